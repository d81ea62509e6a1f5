"""Knapsack: items of much value within a capacity."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from npbench.answers import Shape
from npbench.errors import InputError
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

__all__ = ["TASK", "Items"]

MAX_TABLE = 20_000_000
"""Cells of the largest table of the dynamic programme: capacity times items."""


@dataclass(frozen=True)
class Items:
    """Weights and values by item, and the capacity."""

    capacity: int
    weights: tuple[int, ...]
    values: tuple[int, ...]


def verify(instance: Items, answer: object) -> Verdict:
    """Feasible where the items are distinct and their weight is within the capacity."""
    refusal = subset_refusal(answer, len(instance.weights), "item")
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    weight = sum(instance.weights[i] for i in answer)
    if weight > instance.capacity:
        reason = f"the items weigh {weight}, the capacity is {instance.capacity}"
        return Verdict(False, reason=reason, rule="too_heavy")
    return Verdict(True, objective=sum(instance.values[i] for i in answer))


def _filled(instance: Items, order: list[int]) -> list[int]:
    """Items in the given order, each taken that still fits."""
    room = instance.capacity
    chosen: list[int] = []
    for i in order:
        if instance.weights[i] <= room:
            chosen.append(i)
            room -= instance.weights[i]
    return sorted(chosen)


def trivial(instance: Items, _: np.random.Generator) -> list[int]:
    """Items in index order, each taken that still fits."""
    return _filled(instance, list(range(len(instance.weights))))


def random(instance: Items, rng: np.random.Generator) -> list[int]:
    """Items in random order, each taken that still fits."""
    return _filled(instance, rng.permutation(len(instance.weights)).tolist())


def greedy(instance: Items, _: np.random.Generator) -> list[int]:
    """Most value per weight first, the lowest number among equals, each taken that still fits."""
    order = sorted(
        range(len(instance.weights)),
        key=lambda i: (-instance.values[i] / max(instance.weights[i], 1), i),
    )
    return _filled(instance, order)


def heuristic(instance: Items, rng: np.random.Generator) -> list[int]:
    """OR-Tools' knapsack solver (dynamic programming); CP-SAT stopped early for huge capacities."""
    if instance.capacity * len(instance.weights) > MAX_TABLE:
        return _solve(instance, EARLY_STOP, hint=False).solution
    from ortools.algorithms.python import knapsack_solver

    solver = knapsack_solver.KnapsackSolver(
        knapsack_solver.SolverType.KNAPSACK_DYNAMIC_PROGRAMMING_SOLVER, "knapsack"
    )
    solver.init(list(instance.values), [list(instance.weights)], [instance.capacity])
    solver.solve()
    return [i for i in range(len(instance.weights)) if solver.best_solution_contains(i)]


def reference(instance: Items, budget: Budget) -> Reference[list[int]]:
    """CP-SAT with one inequality and the greedy choice as a hint."""
    return _solve(instance, budget, hint=True)


def _solve(instance: Items, budget: Budget, *, hint: bool) -> Reference[list[int]]:
    from ortools.sat.python import cp_model

    start = greedy(instance, np.random.default_rng(0))
    model = cp_model.CpModel()
    chosen = [model.new_bool_var("") for _ in instance.weights]
    total = cp_model.LinearExpr.weighted_sum
    model.add(total(chosen, list(instance.weights)) <= instance.capacity)
    model.maximize(total(chosen, list(instance.values)))
    hints = membership(chosen, start) if hint else None
    outcome = run(model, chosen, budget=budget, linearization_level=1, hint=hints)
    return choose(
        outcome,
        sense=Sense.MAX,
        solution=outcome.chosen(chosen),
        fallback=start,
        objective=lambda items: sum(instance.values[i] for i in items),
        trivial_bound=sum(instance.values),
    )


def flaw(instance: Items, _: Reference[list[int]]) -> str | None:
    """Every item fits alone, and not all fit together."""
    if max(instance.weights) > instance.capacity:
        return "an item is heavier than the capacity"
    if sum(instance.weights) <= instance.capacity:
        return "all items fit"
    return None


def _packed(
    weights: np.ndarray[Any, Any], values: np.ndarray[Any, Any], rng: np.random.Generator
) -> Items:
    """The items in random order with a capacity of 35 to 65 % of their weight."""
    order = rng.permutation(len(weights))
    share = float(rng.uniform(0.35, 0.65))
    capacity = max(int(weights.max()), int(share * int(weights.sum())))
    return Items(
        capacity,
        tuple(int(w) for w in weights[order]),
        tuple(int(v) for v in values[order]),
    )


def _weights(params: Mapping[str, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    low, high = params["weights"]
    return rng.integers(low, high + 1, size=draw_size(params, "num_items", rng))


def _uncorrelated(params: Mapping[str, Any], rng: np.random.Generator) -> Items:
    weights = _weights(params, rng)
    return _packed(weights, rng.integers(5, 41, size=len(weights)), rng)


def _weakly_correlated(params: Mapping[str, Any], rng: np.random.Generator) -> Items:
    weights = _weights(params, rng)
    return _packed(weights, np.maximum(1, weights + rng.integers(-5, 6, size=len(weights))), rng)


def _strongly_correlated(params: Mapping[str, Any], rng: np.random.Generator) -> Items:
    weights = _weights(params, rng)
    return _packed(weights, weights + 5, rng)


def _subset_sum_like(params: Mapping[str, Any], rng: np.random.Generator) -> Items:
    weights = _weights(params, rng)
    return _packed(weights, weights.copy(), rng)


def _heavy_item(params: Mapping[str, Any], rng: np.random.Generator) -> Items:
    """One heavy item of a little less value per weight fills most of the capacity."""
    weights = _weights(params, rng)
    values = np.maximum(1, weights + rng.integers(0, 4, size=len(weights)))
    heavy = int(weights.sum() * 0.45)
    values = np.append(values, max(1, round(heavy * 1.02)))
    return _packed(np.append(weights, heavy)[1:], values[1:], rng)


def encode(instance: Items) -> dict[str, Any]:
    """The JSON form."""
    return {
        "capacity": instance.capacity,
        "weights": list(instance.weights),
        "values": list(instance.values),
    }


def decode(data: Any) -> Items:
    """From ``{"capacity": C, "weights": [...], "values": [...]}``.

    Raises:
        InputError: If a key is missing, a value is negative or the lists differ in length.
    """
    if not isinstance(data, dict) or not {"capacity", "weights", "values"} <= set(data):
        raise InputError("a knapsack instance needs the keys 'capacity', 'weights' and 'values'")
    weights = require_list(data["weights"], "weights", low=1)
    values = require_list(data["values"], "values", low=1)
    if len(weights) != len(values):
        raise InputError(f"{len(weights)} weights but {len(values)} values")
    return Items(
        require_int(data["capacity"], "capacity", low=0),
        tuple(require_int(x, f"weights[{i}]", low=1) for i, x in enumerate(weights)),
        tuple(require_int(x, f"values[{i}]", low=0) for i, x in enumerate(values)),
    )


def class_key(instance: Items) -> str:
    """Equal for the same items in another order."""
    pairs = sorted(zip(instance.weights, instance.values, strict=True))
    return digest("knapsack", pairs, instance.capacity)[:32]


def describe(instance: Items) -> str:
    """The items as the text prompt writes them."""
    rows = "\n".join(
        f"Item {i}: weight {weight}, value {value}"
        for i, (weight, value) in enumerate(zip(instance.weights, instance.values, strict=True))
    )
    return f"{rows}\nCapacity: {instance.capacity}"


def draw(instance: Items, style: "Style", size: int) -> "Picture":
    """A table of items, and the capacity."""
    from npbench.pictures import table_picture
    from npbench.rendering.panels import TablePanel

    rows = tuple(
        (str(i), str(weight), str(value))
        for i, (weight, value) in enumerate(zip(instance.weights, instance.values, strict=True))
    )
    tables = [
        TablePanel(columns=("item", "weight", "value"), rows=rows, size=size),
        TablePanel(
            columns=("capacity",), rows=((str(instance.capacity),),), row_headers=False, size=size
        ),
    ]
    return table_picture(tables, style)


def _level(low: int, high: int, weights: tuple[int, int] = (5, 40)) -> dict[str, Any]:
    return {"num_items": (low, high), "weights": weights}


TASK: Task[Items, list[int]] = Task(
    name="knapsack",
    title="knapsack",
    sense=Sense.MAX,
    group="selection",
    category="selection",
    aliases=("NpKnapsack",),
    levels=make_levels(
        {
            "nano": _level(5, 8, (2, 20)),
            "l1": _level(8, 10),
            "l2": _level(10, 14),
            "l3": _level(14, 18),
            "easy": _level(14, 25),
            "medium": _level(23, 37),
            "hard": _level(35, 60),
            "bench": _level(55, 80),
        }
    ),
    limits={"num_items": (4, 200)},
    families={
        "uncorrelated": _uncorrelated,
        "weakly_correlated": _weakly_correlated,
        "strongly_correlated": _strongly_correlated,
        "subset_sum_like": _subset_sum_like,
        "heavy_item": _heavy_item,
    },
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
        title="the knapsack problem",
        rules=(
            "Choose items such that their total weight is at most the capacity and their total "
            "value is as large as possible. Every item may be used once. Items are numbered from 0."
        ),
        picture="The picture shows the weight and value of every item, and the capacity.",
        output="A list of distinct item numbers.",
        brief=(
            "Choose items of as much total value as possible whose total weight is at most the "
            "capacity. Answer with a list of item numbers."
        ),
        example={"capacity": 10, "weights": [5, 4, 6, 3], "values": [10, 40, 30, 50]},
        example_answer=[1, 2],
    ),
    describe=describe,
    draw=draw,
    notes={
        "uncorrelated": "values independent of weights",
        "weakly_correlated": "value = weight plus or minus up to 5",
        "strongly_correlated": "value = weight + 5",
        "subset_sum_like": "value = weight",
        "heavy_item": "one item fills most of the capacity",
    },
)
