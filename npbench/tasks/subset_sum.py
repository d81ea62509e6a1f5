"""Subset sum with most elements: positions whose numbers add up to the target exactly."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from npbench.answers import Shape
from npbench.errors import InputError, NoSolutionError
from npbench.families import draw_size
from npbench.graphs import require_int, require_list, subset_refusal
from npbench.levels import make_levels
from npbench.prompts import Wording
from npbench.references import EARLY_STOP, choose, membership, run
from npbench.rng import digest
from npbench.solutions import canonical_set, set_distance
from npbench.task import Budget, Reference, Sense, Task, Verdict

if TYPE_CHECKING:
    from npbench.rendering.picture import Picture
    from npbench.rendering.styles import Style

__all__ = ["TASK", "Numbers", "exact_subset"]

MAX_SUMS = 20_000_000
"""Bound on the sums, over all positions, that the dynamic programmes keep."""


@dataclass(frozen=True)
class Numbers:
    """Positive numbers by position, and the sum to reach."""

    numbers: tuple[int, ...]
    target: int


def verify(instance: Numbers, answer: object) -> Verdict:
    """Feasible where the positions are distinct, at least one, and their numbers hit the target."""
    refusal = subset_refusal(answer, len(instance.numbers), "position", empty=False)
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    total = sum(instance.numbers[i] for i in answer)
    if total != instance.target:
        reason = f"the numbers add up to {total}, not {instance.target}"
        return Verdict(False, reason=reason, rule="wrong_sum")
    return Verdict(True, objective=len(answer))


def exact_subset(instance: Numbers, *, most: bool) -> list[int]:
    """An exact subset with most (or fewest) elements, by dynamic programming over reachable sums.

    Raises:
        NoSolutionError: If no subset adds up to the target.
        InputError: If more sums can be reached than are kept in memory.
    """
    layers: list[dict[int, int]] = [{0: 0}]
    for number in instance.numbers:
        before = layers[-1]
        row = dict(before)
        for total, count in before.items():
            reached = total + number
            if reached <= instance.target:
                known = row.get(reached)
                if known is None or (count + 1 > known if most else count + 1 < known):
                    row[reached] = count + 1
        layers.append(row)
        _check_size(instance, layers)
    if instance.target not in layers[-1]:
        raise NoSolutionError("no subset adds up to the target")
    chosen: list[int] = []
    rest = instance.target
    for i in range(len(instance.numbers) - 1, -1, -1):
        if layers[i].get(rest) != layers[i + 1][rest]:
            chosen.append(i)
            rest -= instance.numbers[i]
    return sorted(chosen)


def _check_size(instance: Numbers, layers: list[dict[int, int]]) -> None:
    if sum(len(layer) for layer in layers[-2:]) * len(layers) > MAX_SUMS:
        raise InputError(
            f"subset_sum of {len(instance.numbers)} numbers with target {instance.target} "
            f"reaches too many different sums"
        )


def trivial(instance: Numbers, _: np.random.Generator) -> list[int]:
    """An exact subset with the fewest numbers."""
    return exact_subset(instance, most=False)


def random(instance: Numbers, rng: np.random.Generator) -> list[int]:
    """A uniformly random exact subset, by counting."""
    ways: list[dict[int, int]] = [{0: 1}]
    for number in instance.numbers:
        row = dict(ways[-1])
        for total, count in ways[-1].items():
            if total + number <= instance.target:
                row[total + number] = row.get(total + number, 0) + count
        ways.append(row)
        _check_size(instance, ways)
    if instance.target not in ways[-1]:
        raise NoSolutionError("no subset adds up to the target")
    chosen: list[int] = []
    rest = instance.target
    for i in range(len(instance.numbers) - 1, -1, -1):
        number = instance.numbers[i]
        with_it = ways[i].get(rest - number, 0)
        if with_it and rng.random() < with_it / ways[i + 1][rest]:
            chosen.append(i)
            rest -= number
    return sorted(chosen)


def greedy(instance: Numbers, rng: np.random.Generator) -> list[int]:
    """The smallest numbers first while they fit; if that misses the target, the trivial answer."""
    order = sorted(range(len(instance.numbers)), key=lambda i: (instance.numbers[i], i))
    rest = instance.target
    chosen: list[int] = []
    for i in order:
        if instance.numbers[i] <= rest:
            chosen.append(i)
            rest -= instance.numbers[i]
    return trivial(instance, rng) if rest else sorted(chosen)


def heuristic(instance: Numbers, rng: np.random.Generator) -> list[int]:
    """CP-SAT stopped early."""
    return _solve(instance, EARLY_STOP, start=trivial(instance, rng), hint=False).solution


def reference(instance: Numbers, budget: Budget) -> Reference[list[int]]:
    """CP-SAT with one equation and the dynamic programme's subset as a hint."""
    return _solve(instance, budget, start=exact_subset(instance, most=True), hint=True)


def _solve(
    instance: Numbers, budget: Budget, *, start: list[int], hint: bool
) -> Reference[list[int]]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in instance.numbers]
    total = cp_model.LinearExpr.weighted_sum(chosen, list(instance.numbers))
    model.add(total == instance.target)
    model.maximize(sum(chosen))
    hints = membership(chosen, start) if hint else None
    outcome = run(model, chosen, budget=budget, linearization_level=1, hint=hints)
    return choose(
        outcome,
        sense=Sense.MAX,
        solution=outcome.chosen(chosen),
        fallback=start,
        objective=len,
        trivial_bound=len(instance.numbers),
    )


def flaw(instance: Numbers, _: Reference[list[int]]) -> str | None:
    """The target is not the total."""
    return "the target is the total" if instance.target == sum(instance.numbers) else None


def _planted(values: np.ndarray[Any, Any], rng: np.random.Generator) -> Numbers:
    """The numbers in random order; the target is the sum of a random third to two thirds."""
    numbers = tuple(int(v) for v in rng.permutation(values))
    n = len(numbers)
    size = int(rng.integers(max(2, n // 3), max(3, 2 * n // 3) + 1))
    chosen = rng.choice(n, size=size, replace=False)
    return Numbers(numbers, sum(numbers[int(i)] for i in chosen))


def _uniform(params: Mapping[str, Any], rng: np.random.Generator) -> Numbers:
    n = draw_size(params, "num_numbers", rng)
    return _planted(rng.integers(1, params["largest"] + 1, size=n), rng)


def _parity(params: Mapping[str, Any], rng: np.random.Generator) -> Numbers:
    """Mostly even numbers: an odd target needs one of the few odd ones."""
    n = draw_size(params, "num_numbers", rng)
    values = 2 * rng.integers(1, params["largest"] // 2 + 1, size=n)
    odd = rng.choice(n, size=max(1, n // 5), replace=False)
    values[odd] -= 1
    return _planted(values, rng)


def _two_scales(params: Mapping[str, Any], rng: np.random.Generator) -> Numbers:
    """Small and large numbers: few large ones or many small ones."""
    n = draw_size(params, "num_numbers", rng)
    largest = params["largest"]
    small = rng.integers(1, max(2, largest // 4) + 1, size=n)
    large = rng.integers(max(1, 3 * largest // 4), largest + 1, size=n)
    return _planted(np.where(rng.random(n) < 0.6, small, large), rng)


def encode(instance: Numbers) -> dict[str, Any]:
    """The JSON form."""
    return {"numbers": list(instance.numbers), "target": instance.target}


def decode(data: Any) -> Numbers:
    """From ``{"numbers": [...], "target": T}``.

    Raises:
        InputError: If a key is missing or a value is no positive integer.
    """
    if not isinstance(data, dict) or not {"numbers", "target"} <= set(data):
        raise InputError("a subset_sum instance needs the keys 'numbers' and 'target'")
    entries = require_list(data["numbers"], "numbers", low=1)
    numbers = tuple(require_int(x, f"numbers[{i}]", low=1) for i, x in enumerate(entries))
    return Numbers(numbers, require_int(data["target"], "target", low=1))


def class_key(instance: Numbers) -> str:
    """Equal for the same numbers in another order."""
    return digest("subset_sum", sorted(instance.numbers), instance.target)[:32]


def describe(instance: Numbers) -> str:
    """The numbers as the text prompt writes them."""
    rows = ", ".join(f"{i}: {number}" for i, number in enumerate(instance.numbers))
    return f"Numbers (as position: number): {rows}\nTarget: {instance.target}"


def draw(instance: Numbers, style: "Style", size: int) -> "Picture":
    """A table of positions and numbers, and the target."""
    from npbench.pictures import table_picture
    from npbench.rendering.panels import TablePanel

    rows = tuple((str(i), str(number)) for i, number in enumerate(instance.numbers))
    tables = [
        TablePanel(columns=("position", "number"), rows=rows, size=size),
        TablePanel(
            columns=("target",), rows=((str(instance.target),),), row_headers=False, size=size
        ),
    ]
    return table_picture(tables, style)


TASK: Task[Numbers, list[int]] = Task(
    name="subset_sum",
    title="subset sum with most elements",
    sense=Sense.MAX,
    group="selection",
    category="selection",
    aliases=("subset-sum",),
    levels=make_levels(
        {
            "nano": {"num_numbers": (5, 8), "largest": 9},
            "l1": {"num_numbers": (8, 10), "largest": 20},
            "l2": {"num_numbers": (10, 14), "largest": 30},
            "l3": {"num_numbers": (14, 18), "largest": 50},
            "easy": {"num_numbers": (7, 10), "largest": 9},
            "medium": {"num_numbers": (8, 12), "largest": 10},
            "hard": {"num_numbers": (12, 15), "largest": 15},
            "bench": {"num_numbers": (15, 20), "largest": 15},
        }
    ),
    limits={"num_numbers": (4, 200), "largest": (4, 1000)},
    families={"uniform": _uniform, "parity": _parity, "two_scales": _two_scales},
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    canonical=canonical_set,
    distance=set_distance,
    class_key=class_key,
    encode=encode,
    decode=decode,
    shape=Shape.FLAT,
    wording=Wording(
        title="subset sum with most elements",
        rules=(
            "Choose positions, as many as possible, such that the numbers at these positions add "
            "up to the target exactly. Every position may be used once. Positions are numbered "
            "from 0."
        ),
        picture="The picture shows a table with the number at every position, and the target.",
        output="A list of distinct positions (not of the numbers themselves).",
        brief=(
            "Choose as many positions as possible whose numbers add up to the target exactly. "
            "Answer with a list of positions."
        ),
        example={"numbers": [3, 1, 4, 2], "target": 6},
        example_answer=[2, 3],
    ),
    describe=describe,
    draw=draw,
    notes={
        "uniform": "uniform numbers, the target planted",
        "parity": "mostly even numbers",
        "two_scales": "many small and a few large numbers",
    },
)
