"""Splits of a weighted graph into two sides: verdict, local search and model of both cut tasks."""

from collections.abc import Sequence

import numpy as np

from npbench.graphs import WeightedGraph, subset_refusal
from npbench.references import choose, run
from npbench.task import Budget, Reference, Sense, Verdict

__all__ = ["cut_weight", "local_search", "sides_of", "solve_cut", "split_verdict"]

Sides = list[list[int]]


def cut_weight(graph: WeightedGraph, sides: Sequence[Sequence[int]]) -> int:
    """Total weight of the edges between the two sides."""
    first = set(sides[0])
    return sum(weight for u, v, weight in graph.edges if (u in first) != (v in first))


def split_verdict(graph: WeightedGraph, answer: object, *, balanced: bool) -> Verdict:
    """Feasible where two disjoint sides hold all vertices, with almost equal sizes if asked."""
    n = graph.num_vertices
    if not isinstance(answer, (list, tuple)):
        return Verdict(False, reason="the answer is no list of two sides", rule="shape")
    if len(answer) != 2:
        reason = f"{len(answer)} parts instead of two sides"
        return Verdict(False, reason=reason, rule="shape")
    for side in answer:
        refusal = subset_refusal(side, n, "vertex")
        if refusal is not None:
            return refusal
    first, second = answer
    shared = sorted(set(first) & set(second))
    if shared:
        return Verdict(False, reason=f"vertex {shared[0]} is on both sides", rule="both_sides")
    missing = sorted(set(range(n)) - set(first) - set(second))
    if missing:
        return Verdict(False, reason=f"vertex {missing[0]} is on no side", rule="missing")
    if balanced and abs(len(first) - len(second)) > 1:
        reason = f"the sides have {len(first)} and {len(second)} vertices"
        return Verdict(False, reason=reason, rule="unbalanced")
    inside = set(first)
    objective = sum(weight for u, v, weight in graph.edges if (u in inside) != (v in inside))
    return Verdict(True, objective=objective)


def sides_of(flags: Sequence[int | bool]) -> Sides:
    """The side of vertex 0 first, each side in increasing order."""
    same = [v for v, flag in enumerate(flags) if bool(flag) == bool(flags[0])]
    return [same, [v for v, flag in enumerate(flags) if bool(flag) != bool(flags[0])]]


def local_search(
    graph: WeightedGraph, *, sense: Sense, balanced: bool, starts: int, seed: int
) -> Sides:
    """The best of several descents from random splits: pair swaps if balanced, else moves."""
    n = graph.num_vertices
    weights = np.zeros((n, n), dtype=np.int64)
    for u, v, weight in graph.edges:
        weights[u, v] = weights[v, u] = weight
    sign = 1 if sense is Sense.MIN else -1
    rng = np.random.default_rng(seed)
    best_value, best = None, np.zeros(n, dtype=np.int64)
    for _ in range(starts):
        side = np.ones(n, dtype=np.int64)
        if balanced:
            side[rng.permutation(n)[: n // 2]] = -1
        else:
            side[rng.random(n) < 0.5] = -1
        while True:
            # gain[v]: how much the cut falls when v changes sides, times the sense's sign
            gain = sign * -side * (weights @ side)
            if balanced:
                left, right = np.flatnonzero(side < 0), np.flatnonzero(side > 0)
                pairs = gain[left][:, None] + gain[right][None] - 2 * sign * weights[left][:, right]
                if pairs.size == 0 or pairs.max() <= 0:
                    break
                i, j = divmod(int(pairs.argmax()), len(right))
                side[left[i]], side[right[j]] = 1, -1
            else:
                vertex = int(gain.argmax())
                if gain[vertex] <= 0:
                    break
                side[vertex] = -side[vertex]
        value = sign * int((weights * (side[:, None] != side[None])).sum()) // 2
        if best_value is None or value < best_value:
            best_value, best = value, side.copy()
    return sides_of((best > 0).tolist())


def solve_cut(
    graph: WeightedGraph,
    budget: Budget,
    *,
    sense: Sense,
    balanced: bool,
    start: Sides,
    hint: bool,
) -> Reference[Sides]:
    """An optimal split by CP-SAT: one boolean per vertex, two clauses per edge."""
    from ortools.sat.python import cp_model

    n = graph.num_vertices
    model = cp_model.CpModel()
    side = [model.new_bool_var("") for _ in range(n)]
    across = []
    for u, v, _ in graph.edges:
        cut = model.new_bool_var("")
        across.append(cut)
        if sense is Sense.MIN:
            model.add_bool_or(cut, side[u].negated(), side[v])
            model.add_bool_or(cut, side[u], side[v].negated())
        else:
            model.add_bool_or(cut.negated(), side[u], side[v])
            model.add_bool_or(cut.negated(), side[u].negated(), side[v].negated())
    odd = balanced and n % 2 == 1
    if balanced:
        model.add(sum(side) == n // 2)
    if not odd:  # with an odd number either side may be the larger, so no vertex is fixed
        model.add(side[0] == 0)
    weights = [weight for _, _, weight in graph.edges]
    total = cp_model.LinearExpr.weighted_sum(across, weights)
    if sense is Sense.MIN:
        model.minimize(total)
    else:
        model.maximize(total)
    hints = None
    if hint:
        ones = (
            set(start[1])
            if not odd
            else set(start[0] if len(start[0]) < len(start[1]) else start[1])
        )
        hints = [(variable, int(v in ones)) for v, variable in enumerate(side)]
    outcome = run(model, side, budget=budget, linearization_level=2, hint=hints)
    solution = None
    if outcome.values is not None:
        solution = sides_of([outcome.value(variable) for variable in side])
    return choose(
        outcome,
        sense=sense,
        solution=solution,
        fallback=start,
        objective=lambda sides: cut_weight(graph, sides),
        trivial_bound=0 if sense is Sense.MIN else graph.total_weight,
    )
