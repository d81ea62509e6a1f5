"""Broken answers: one example per constraint, optima with one thing broken, and fuzz."""

import itertools
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from npbench.task import Verdict
from npbench.tasks import TASKS

GRAPH = {"num_vertices": 5, "edges": [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]]}
WEIGHTED = {"num_vertices": 5, "edges": [[0, 1, 3], [0, 2, 1], [1, 2, 4], [2, 3, 2], [3, 4, 7]]}
CITIES = {"distances": [[0, 4, 1, 20], [4, 0, 2, 1], [1, 2, 0, 3], [20, 1, 3, 0]]}
COVER = {"num_elements": 4, "subsets": [[0, 1], [1, 2], [2, 3], [3]]}
NUMBERS = {"numbers": [1, 9, 2, 3, 4], "target": 10}
ITEMS = {"capacity": 7, "weights": [3, 3, 7], "values": [1, 1, 9]}
MEETINGS = {
    "day": [[540, 600], [600, 630], [660, 720]],
    "rooms": [{"capacity": 2}, {"capacity": 3}],
    "meetings": [
        {"duration": 30, "attendees": [0, 1]},
        {"duration": 60, "attendees": [1, 2, 3]},
        {"duration": 30, "attendees": [4]},
    ],
}
INSTANCES = dict.fromkeys(TASKS, GRAPH) | {
    "minimum_bisection": WEIGHTED,
    "maximum_cut": WEIGHTED,
    "tsp": CITIES,
    "set_cover": COVER,
    "subset_sum": NUMBERS,
    "knapsack": ITEMS,
    "meeting_scheduling": MEETINGS,
}
FEASIBLE = {
    "graph_coloring": [0, 1, 2, 0, 1],
    "feedback_vertex_set": [2],
    "vertex_cover": [0, 2, 3],
    "dominating_set": [0, 3],
    "minimum_bisection": [[0, 1], [2, 3, 4]],
    "maximum_cut": [[0, 2, 4], [1, 3]],
    "maximum_clique": [0, 1, 2],
    "maximum_independent_set": [1, 4],
    "tsp": [0, 2, 3, 1, 0],
    "longest_cycle": [1, 2, 0, 1],
    "set_cover": [0, 2],
    "subset_sum": [0, 1],
    "knapsack": [0, 1],
    "meeting_scheduling": [[0, 0, 600], [1, 1, 540]],
}
NESTED = {"minimum_bisection", "maximum_cut", "meeting_scheduling"}

every_task = pytest.mark.parametrize("name", list(TASKS))


def verdict_of(name, answer):
    task = TASKS[name]
    return task.verify(task.decode(INSTANCES[name]), answer)


# task, broken answer, a fragment of the reason that names what is wrong.
VIOLATIONS = [
    ("graph_coloring", [0, 1, 2, 0], "4 colours for 5"),
    ("graph_coloring", [0, 1, 2, 0, 1, 0], "6 colours for 5"),
    ("graph_coloring", [], "0 colours for 5"),
    ("graph_coloring", [0, 1, 1, 0, 2], "edge 1-2"),
    ("graph_coloring", [5, 1, 2, 7, 7], "edge 3-4"),
    ("graph_coloring", [0, 1, 2, 0, -1], "vertex 4"),
    ("feedback_vertex_set", [], "cycle"),
    ("feedback_vertex_set", [3, 4], "cycle"),
    ("feedback_vertex_set", [2, 2], "vertex 2 appears twice"),
    ("feedback_vertex_set", [2, 5], "vertex 5 does not exist"),
    ("feedback_vertex_set", [2, -1], "vertex -1 does not exist"),
    ("vertex_cover", [], "edge 0-1"),
    ("vertex_cover", [0, 3], "edge 1-2"),
    ("vertex_cover", [0, 2], "edge 3-4"),
    ("vertex_cover", [0, 2, 3, 0], "vertex 0 appears twice"),
    ("vertex_cover", [0, 2, 3, 5], "vertex 5 does not exist"),
    ("vertex_cover", [0, -3, 3], "vertex -3 does not exist"),
    ("dominating_set", [], "vertex 0"),
    ("dominating_set", [0], "vertex 3"),
    ("dominating_set", [2], "vertex 4"),
    ("dominating_set", [0, 3, 3], "vertex 3 appears twice"),
    ("dominating_set", [0, 3, 99], "vertex 99 does not exist"),
    ("dominating_set", [0, -2], "vertex -2 does not exist"),
    ("maximum_clique", [], "empty"),
    ("maximum_clique", [0, 1, 3], "0 and 3 are not adjacent"),
    ("maximum_clique", [0, 1, 1], "vertex 1 appears twice"),
    ("maximum_clique", [0, 1, 5], "vertex 5 does not exist"),
    ("maximum_clique", [0, -4], "vertex -4 does not exist"),
    ("maximum_independent_set", [], "empty"),
    ("maximum_independent_set", [0, 3, 4], "3 and 4 are adjacent"),
    ("maximum_independent_set", [1, 4, 1], "vertex 1 appears twice"),
    ("maximum_independent_set", [1, 5], "vertex 5 does not exist"),
    ("maximum_independent_set", [1, -1], "vertex -1 does not exist"),
    ("longest_cycle", [], "at least 3 vertices"),
    ("longest_cycle", [0], "at least 3 vertices"),
    ("longest_cycle", [0, 0], "at least 3 vertices"),
    ("longest_cycle", [0, 1, 0], "at least 3 vertices"),
    ("longest_cycle", [0, 1, 2], "returns to its start"),
    ("longest_cycle", [0, 1, 2, 3], "starts at 0 and ends at 3"),
    ("longest_cycle", [2, 3, 4, 2], "4-2 is not an edge"),
    ("longest_cycle", [0, 1, 2, 1, 0], "vertex 1"),
    ("longest_cycle", [0, 1, 2, 0, 1, 2, 0], "vertex 0"),
    ("longest_cycle", [0, 1, 5, 0], "vertex 5 does not exist"),
    ("longest_cycle", [0, 1, -3, 0], "vertex -3 does not exist"),
    ("longest_cycle", [999], "vertex 999 does not exist"),
    ("minimum_bisection", [[0, 1, 2, 3], [4]], "4 and 1"),
    ("minimum_bisection", [[], [0, 1, 2, 3, 4]], "0 and 5"),
    ("minimum_bisection", [[0, 1], [2, 3]], "vertex 4"),
    ("minimum_bisection", [[0, 1], [1, 2, 3, 4]], "vertex 1 is on both sides"),
    ("minimum_bisection", [[0, 1], [2, 3, 3]], "vertex 3 appears twice"),
    ("minimum_bisection", [[0, 1], [2, 3, 5]], "vertex 5 does not exist"),
    ("minimum_bisection", [[0, 1], [2, 3, -1]], "vertex -1 does not exist"),
    ("minimum_bisection", [[0, 1, 2, 3, 4]], "two sides"),
    ("minimum_bisection", [[0, 1], [2, 3], [4]], "two sides"),
    ("minimum_bisection", [], "two sides"),
    ("maximum_cut", [[0, 1], [2, 3]], "vertex 4"),
    ("maximum_cut", [[0, 1, 4], [2, 3, 4]], "vertex 4 is on both sides"),
    ("maximum_cut", [[0, 0, 1], [2, 3, 4]], "vertex 0 appears twice"),
    ("maximum_cut", [[0, 1, 5], [2, 3, 4]], "vertex 5 does not exist"),
    ("maximum_cut", [[0, 1, -1], [2, 3, 4]], "vertex -1 does not exist"),
    ("maximum_cut", [[0, 1, 2, 3, 4]], "two sides"),
    ("maximum_cut", [[0, 1], [2, 3, 4], []], "two sides"),
    ("maximum_cut", [[], []], "vertex 0"),
    ("tsp", [], "empty"),
    ("tsp", [0, 1, 2, 3], "starts at 0 and ends at 3"),
    ("tsp", [0, 1, 2, 3, 1], "starts at 0 and ends at 1"),
    ("tsp", [0, 1, 2, 0], "city 3 is not visited"),
    ("tsp", [0, 1, 1, 3, 0], "city 2 is not visited"),
    ("tsp", [0, 1, 2, 3, 1, 0], "city 1"),
    ("tsp", [0, 1, 2, 3, 0, 0], "city 0"),
    ("tsp", [0, 1, 2, 4, 0], "city 4 does not exist"),
    ("tsp", [0, 1, 2, -1, 0], "city -1 does not exist"),
    ("tsp", [0], "not visited"),
    ("set_cover", [], "element 0"),
    ("set_cover", [0, 1], "element 3"),
    ("set_cover", [0, 2, 0], "subset 0 appears twice"),
    ("set_cover", [0, 2, 4], "subset 4 does not exist"),
    ("set_cover", [0, -2], "subset -2 does not exist"),
    ("subset_sum", [], "no position"),
    ("subset_sum", [0, 2], "add up to 3, not 10"),
    ("subset_sum", [1, 2], "add up to 11, not 10"),
    ("subset_sum", [0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "position 0 appears twice"),
    ("subset_sum", [0, 5], "position 5 does not exist"),
    ("subset_sum", [0, -4], "position -4 does not exist"),
    ("knapsack", [0, 2], "weigh 10, the capacity is 7"),
    ("knapsack", [0, 0], "item 0 appears twice"),
    ("knapsack", [3], "item 3 does not exist"),
    ("knapsack", [-1], "item -1 does not exist"),
    ("meeting_scheduling", [[0, 0, 540], [0, 0, 660]], "meeting 0 is scheduled twice"),
    ("meeting_scheduling", [[0, 0, 540], [0, 1, 540]], "meeting 0 is scheduled twice"),
    ("meeting_scheduling", [[0, 0, 540], [0, 0, 540]], "meeting 0 is scheduled twice"),
    ("meeting_scheduling", [[1, 0, 540]], "3 attendees, room 0 holds 2"),
    ("meeting_scheduling", [[0, 0, 580]], "meeting 0 from 580 to 610"),
    ("meeting_scheduling", [[0, 0, 539]], "meeting 0 from 539 to 569"),
    ("meeting_scheduling", [[0, 0, 601]], "meeting 0 from 601 to 631"),
    ("meeting_scheduling", [[0, 0, 630]], "meeting 0 from 630 to 660"),
    ("meeting_scheduling", [[0, 0, -30]], "meeting 0 from -30 to 0"),
    ("meeting_scheduling", [[0, 0, 9]], "meeting 0 from 9 to 39"),
    ("meeting_scheduling", [[0, 0, 540], [2, 0, 569]], "0 and 2 overlap in room 0"),
    ("meeting_scheduling", [[2, 1, 599 - 30], [1, 1, 540]], "overlap in room 1"),
    ("meeting_scheduling", [[0, 0, 540], [1, 1, 540]], "attendee 1"),
    ("meeting_scheduling", [[3, 0, 540]], "meeting 3 does not exist"),
    ("meeting_scheduling", [[-1, 0, 540]], "meeting -1 does not exist"),
    ("meeting_scheduling", [[0, 2, 540]], "room 2 does not exist"),
    ("meeting_scheduling", [[0, -1, 540]], "room -1 does not exist"),
    ("meeting_scheduling", [[0, 0]], "[meeting, room, start]"),
    ("meeting_scheduling", [[0, 0, 540, 1]], "[meeting, room, start]"),
    ("meeting_scheduling", [[]], "[meeting, room, start]"),
    ("meeting_scheduling", [0, 0, 540], "[meeting, room, start]"),
]


@pytest.mark.parametrize(
    ("name", "answer", "fragment"),
    [pytest.param(*row, id=f"{row[0]}-{json.dumps(row[1])}") for row in VIOLATIONS],
)
def test_a_broken_answer_is_infeasible_for_the_reason_that_applies(name, answer, fragment):
    verdict = verdict_of(name, answer)
    assert (verdict.feasible, verdict.objective) == (False, None)
    assert fragment in verdict.reason
    assert verdict.rule


@every_task
def test_the_answers_that_are_broken_below_are_feasible_as_they_stand(name):
    verdict = verdict_of(name, FEASIBLE[name])
    assert (verdict.feasible, verdict.reason, verdict.rule) == (True, "", "")
    assert type(verdict.objective) is int


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param([[0, 0, 540], [2, 0, 570]], id="back_to_back_in_a_room"),
        pytest.param([[1, 1, 540], [0, 0, 600]], id="back_to_back_for_an_attendee"),
        pytest.param([[2, 0, 570]], id="until_closing_time"),
        pytest.param([[2, 0, 600]], id="from_opening_time"),
        pytest.param([[0, 0, 540], [2, 1, 540]], id="other_people_in_another_room"),
        pytest.param([[1, 1, 540]], id="the_room_is_just_large_enough"),
        pytest.param([[2, 0, 547]], id="any_minute"),
        pytest.param([], id="nothing"),
    ],
)
def test_a_schedule_that_touches_its_limits_is_feasible(answer):
    assert verdict_of("meeting_scheduling", answer).feasible


def test_a_meeting_may_not_span_two_intervals_that_touch():
    verdict = verdict_of("meeting_scheduling", [[0, 0, 585]])
    assert not verdict.feasible
    assert "from 585 to 615" in verdict.reason


NO_LISTS = [None, 0, 5, -1, 2.5, float("nan"), True, False, "", "[0, 1]", "abc", {}, {"0": 1}, b"0"]


@every_task
@pytest.mark.parametrize("answer", NO_LISTS, ids=repr)
def test_what_is_not_a_list_is_infeasible_and_the_reason_says_so(name, answer):
    verdict = verdict_of(name, answer)
    assert not verdict.feasible
    assert "list" in verdict.reason


def deep(levels):
    nest = []
    for _ in range(levels):
        nest = [nest]
    return nest


# In place of a number: never an existing vertex, item or minute, and never a colour.
STRANGE = {
    "text": "0",
    "word": "zero",
    "empty_text": "",
    "true": True,
    "false": False,
    "float": 1.0,
    "fraction": 0.5,
    "nan": float("nan"),
    "infinity": float("inf"),
    "none": None,
    "list": [0],
    "empty_list": [],
    "tuple": (0,),
    "object": {"0": 0},
    "bytes": b"0",
    "negative": -1,
    "very_negative": -(10**40),
    "nested_20": deep(20),
}
FATAL = {
    "nested_100_000": deep(100_000),
    "minus_5000_digits": -(10**5000),
}


def with_entry(answer, position, value):
    """A copy with the number at ``position`` (counted through all inner lists) replaced."""
    flat = itertools.count()
    if isinstance(answer[0], list):
        return [[value if next(flat) == position else x for x in part] for part in answer]
    return [value if next(flat) == position else x for x in answer]


def entries(answer):
    return sum(len(part) for part in answer) if isinstance(answer[0], list) else len(answer)


@every_task
@pytest.mark.parametrize("kind", [*STRANGE, *FATAL])
def test_a_strange_entry_anywhere_makes_an_answer_infeasible(name, kind):
    value = {**STRANGE, **FATAL}[kind]
    for position in range(entries(FEASIBLE[name])):
        verdict = verdict_of(name, with_entry(FEASIBLE[name], position, value))
        assert (verdict.feasible, verdict.objective) == (False, None)
        assert verdict.reason
        assert len(verdict.reason) < 200


@every_task
@pytest.mark.parametrize(
    "number",
    [5, 99, 10**18, 10**40, 10**5000],
    ids=lambda n: f"{n:.0e}"[:4] if n < 10**300 else "5000_digits",
)
def test_a_number_that_is_too_large_is_infeasible_except_as_a_colour(name, number):
    answer = FEASIBLE[name]
    for position in range(entries(answer)):
        verdict = verdict_of(name, with_entry(answer, position, number))
        assert verdict.feasible == (name == "graph_coloring")
        assert bool(verdict.reason) != verdict.feasible


@every_task
def test_a_list_around_the_answer_is_infeasible(name):
    for answer in ([FEASIBLE[name]], [[FEASIBLE[name]]], deep(50)):
        verdict = verdict_of(name, answer)
        assert not verdict.feasible
        assert verdict.reason


@pytest.mark.parametrize("name", sorted(NESTED))
def test_a_flat_list_is_infeasible_where_lists_are_expected(name):
    for answer in ([0, 1, 2], [0, 1], [0], [[0, 1], 2], [None, None], ["01", "234"]):
        verdict = verdict_of(name, answer)
        assert not verdict.feasible
        assert verdict.reason


@every_task
def test_a_repeated_entry_is_infeasible_except_as_a_colour(name):
    answer = FEASIBLE[name]
    if name == "graph_coloring":
        assert verdict_of(name, [3, 4, 5, 4, 3]).feasible
        return
    if name in {"minimum_bisection", "maximum_cut"}:
        broken = [[answer[0] + [v], answer[1]] for v in [*answer[0], *answer[1]]]
    elif name in {"tsp", "longest_cycle"}:
        broken = [[*answer[:i], answer[i], *answer[i:]] for i in range(len(answer))]
    else:
        broken = [[*answer, entry] for entry in answer]
    for twice in broken:
        verdict = verdict_of(name, twice)
        assert not verdict.feasible
        assert verdict.reason


@every_task
def test_tuples_count_as_lists(name):
    answer = FEASIBLE[name]
    tuples = tuple(tuple(part) if isinstance(part, list) else part for part in answer)
    assert verdict_of(name, tuples) == verdict_of(name, answer)


def without(items, i):
    return [*items[:i], *items[i + 1 :]]


def broken_colourings(data, best):
    yield best[:-1]
    yield [*best, 0]
    for u, v in data["edges"]:
        yield [best[u] if i == v else colour for i, colour in enumerate(best)]


def broken_minimal_sets(data, best):
    """A smallest set loses its property with any of its members."""
    for i in range(len(best)):
        yield without(best, i)
        yield [*best, best[i]]


def broken_maximal_sets(data, best):
    """A largest set of vertices has room for no other."""
    for vertex in range(data["num_vertices"]):
        yield [*best, vertex]


def broken_sums(data, best):
    for i in range(len(data["numbers"])):
        yield [*best, i]
        if i in best:
            yield [j for j in best if j != i]


def broken_knapsacks(data, best):
    """A best knapsack has room for no further item of positive value."""
    for i, value in enumerate(data["values"]):
        if i in best or value > 0:
            yield [*best, i]


def broken_splits(data, best):
    left, right = best
    for i, vertex in enumerate(left):
        yield [without(left, i), right]
        yield [left, [*right, vertex]]
        yield [[*left, vertex], right]
    yield [left]
    yield [left, right, []]
    yield [*left, *right]


def broken_bisections(data, best):
    yield from broken_splits(data, best)
    small, large = sorted(best, key=len)
    for i, vertex in enumerate(small):
        yield [without(small, i), [*large, vertex]]


def broken_tours(data, best):
    yield best[:-1]
    yield best[1:]
    for i in range(1, len(best) - 1):
        yield without(best, i)
        yield [*best[:i], best[i], *best[i:]]
        yield [*best[:i], best[0], *best[i + 1 :]]


def broken_cycles(data, best):
    """No vertex can be put into a longest cycle."""
    yield best[:-1]
    yield best[:2]
    for i in range(1, len(best)):
        for vertex in range(data["num_vertices"]):
            yield [*best[:i], vertex, *best[i:]]


def broken_schedules(data, best):
    """A best schedule has no place for another meeting that somebody attends."""
    rooms = range(len(data["rooms"]))
    opens = [start for start, _ in data["day"]]
    for meeting, row in enumerate(data["meetings"]):
        if row["attendees"]:
            for room, start in itertools.product(rooms, range(min(opens), max(opens) + 40)):
                yield [*best, [meeting, room, start]]
    for i, (meeting, room, _) in enumerate(best):
        yield [*without(best, i), [meeting, room, min(opens) - 1]]
        yield [*without(best, i), [meeting, room, max(end for _, end in data["day"])]]
        yield [*without(best, i), [meeting, len(rooms), opens[0]]]
        yield [*without(best, i), [len(data["meetings"]), room, opens[0]]]


MUTATIONS = {
    "graph_coloring": broken_colourings,
    "feedback_vertex_set": broken_minimal_sets,
    "vertex_cover": broken_minimal_sets,
    "dominating_set": broken_minimal_sets,
    "minimum_bisection": broken_bisections,
    "maximum_cut": broken_splits,
    "maximum_clique": broken_maximal_sets,
    "maximum_independent_set": broken_maximal_sets,
    "tsp": broken_tours,
    "longest_cycle": broken_cycles,
    "set_cover": broken_minimal_sets,
    "subset_sum": broken_sums,
    "knapsack": broken_knapsacks,
    "meeting_scheduling": broken_schedules,
}


@every_task
def test_an_optimum_with_one_thing_broken_is_infeasible(name, pools, references):
    task, tried = TASKS[name], 0
    for (data, _), reference in zip(pools[name], references[name], strict=True):
        instance = task.decode(data)
        for answer in MUTATIONS[name](data, reference.solution):
            verdict = task.verify(instance, answer)
            tried += 1
            assert not verdict.feasible, f"{answer} on {data}"
            assert verdict.objective is None
            assert verdict.reason
    assert tried >= 100


NUMBER = st.one_of(
    st.integers(-2, 6),
    st.integers(),
    st.sampled_from([540, 570, 600, 660, 690]),
)
SCALAR = st.one_of(NUMBER, st.none(), st.booleans(), st.floats(), st.text(max_size=5))
JSON_LIKE = st.recursive(
    SCALAR,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=12,
)
NEARLY = st.one_of(
    st.lists(NUMBER, max_size=7),
    st.lists(SCALAR, max_size=7),
    st.lists(st.lists(NUMBER, max_size=5), max_size=4),
    st.permutations(range(5)),
    st.permutations(range(5)).flatmap(
        lambda order: st.integers(0, 5).map(lambda cut: [order[:cut], order[cut:]])
    ),
)


@every_task
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(answer=st.one_of(JSON_LIKE, NEARLY))
def test_any_json_like_object_gets_the_verdict_of_the_oracle(name, answer, oracles):
    verdict = verdict_of(name, answer)
    expected = oracles.judge(name, INSTANCES[name], answer)
    assert isinstance(verdict, Verdict)
    assert (verdict.feasible, verdict.objective) == (expected is not None, expected)
    assert bool(verdict.reason) != verdict.feasible


@every_task
def test_a_list_that_holds_itself_is_infeasible(name):
    loop = [0]
    loop.append(loop)
    verdict = verdict_of(name, loop)
    assert not verdict.feasible
    assert verdict.reason


@every_task
def test_very_long_answers_are_infeasible_with_a_short_reason(name):
    for answer in ([0] * 200_000, list(range(200_000)), [[0] * 200_000, []], [[]] * 200_000):
        verdict = verdict_of(name, answer)
        assert not verdict.feasible
        assert 0 < len(verdict.reason) < 200
