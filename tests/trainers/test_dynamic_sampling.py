from collections.abc import Callable, Iterator, Sequence

import pytest

from trainers.dynamic_sampling import fill_batch, informative

Group = tuple[float, ...]
FLAT, MIXED = (0.0, 0.0), (0.0, 1.0)


def drawing_from(groups: Iterator[Group], calls: list[int]) -> Callable[[int], Sequence[Group]]:
    def draw(count: int) -> list[Group]:
        calls.append(count)
        return [group for _, group in zip(range(count), groups, strict=False)]

    return draw


def same(group: Group) -> Group:
    return group


def repeat(group: Group) -> Iterator[Group]:
    while True:
        yield group


def test_flat_groups_are_dropped_and_replaced() -> None:
    calls: list[int] = []
    stream = iter([FLAT, MIXED, FLAT, (0.5, 1.0), MIXED, MIXED, MIXED, MIXED, MIXED])
    found = fill_batch(drawing_from(stream, calls), same, size=4)
    assert len(found.groups) == 4
    assert all(informative(group) for group in found.groups)
    assert found.groups[1] == (0.5, 1.0)
    assert (found.shortage, found.flat) == (0, 2)
    assert calls == [4, 4]
    assert (found.rounds, found.drawn) == (2, 8)


@pytest.mark.parametrize(("shortage", "size"), [("flat", 3), ("short", 0)])
def test_a_constant_reward_ends_within_the_bound_in_the_stated_action(
    shortage: str, size: int
) -> None:
    calls: list[int] = []
    found = fill_batch(
        drawing_from(repeat(FLAT), calls), same, size=3, max_rounds=5, shortage=shortage
    )
    assert found.groups == (FLAT,) * size
    assert found.shortage == 3
    assert found.rounds == len(calls) == 5


def test_prompts_that_run_out_end_the_search() -> None:
    calls: list[int] = []
    found = fill_batch(drawing_from(iter([MIXED, FLAT]), calls), same, size=3)
    assert found.groups == (MIXED, FLAT)
    assert found.shortage == 2
    assert calls[-1] > 0
    assert found.rounds == 2


def test_surplus_groups_are_discarded() -> None:
    calls: list[int] = []
    stream = iter([FLAT] * 3 + [MIXED] + [MIXED] * 50)
    found = fill_batch(drawing_from(stream, calls), same, size=4)
    assert len(found.groups) == 4
    assert found.drawn == 4 + 12


@pytest.mark.parametrize(
    ("accuracies", "expected"),
    [
        ((0.0, 0.0, 0.0), False),
        ((1.0, 1.0), False),
        ((0.0, 1.0), True),
        ((0.35, 0.35 + 1e-9), False),
        ((0.9, None, 1.0), True),
        ((1.0, None, None), False),
        ((None, None), False),
        ((), False),
    ],
)
def test_a_group_informs_where_its_scorable_accuracies_differ(
    accuracies: tuple[float | None, ...], expected: bool
) -> None:
    assert informative(accuracies) == expected


def test_settings_out_of_range_are_refused() -> None:
    draw = drawing_from(repeat(MIXED), [])
    with pytest.raises(ValueError, match="must be at least 1, got size=0, max_rounds=10"):
        fill_batch(draw, same, size=0)
    with pytest.raises(ValueError, match="unknown rule for a shortage 'skip'"):
        fill_batch(draw, same, size=1, shortage="skip")
