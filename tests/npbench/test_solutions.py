"""When two solutions are one, and how far apart two are: laws that every task must keep."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npbench.tasks import TASKS

MINIMUM, MAXIMUM = 3, 8
SETS = {
    "feedback_vertex_set",
    "vertex_cover",
    "dominating_set",
    "maximum_clique",
    "maximum_independent_set",
    "set_cover",
    "subset_sum",
    "knapsack",
}
CUTS = {"minimum_bisection", "maximum_cut"}
CYCLES = {"tsp", "longest_cycle"}
LAWS = settings(max_examples=120, deadline=None, derandomize=True, database=None)

every_task = pytest.mark.parametrize("name", list(TASKS))


def instance_of(name, n):
    """An instance of n vertices, items or meetings in which much is allowed."""
    pairs = list(itertools.combinations(range(n), 2))
    data = {
        "set_cover": {"num_elements": n, "subsets": [list(range(n))] * n},
        "subset_sum": {"numbers": [1] * n, "target": 1},
        "knapsack": {"capacity": n, "weights": [1] * n, "values": [1] * n},
        "tsp": {"distances": [[int(u != v) for v in range(n)] for u in range(n)]},
        "meeting_scheduling": {
            "day": [[0, 1000]],
            "rooms": [{"capacity": 1}] * n,
            "meetings": [{"duration": 1, "attendees": [m]} for m in range(n)],
        },
    }.get(name, {"num_vertices": n, "edges": [list(pair) for pair in pairs]})
    if name in CUTS:
        data["edges"] = [[u, v, 1] for u, v in pairs]
    return TASKS[name].decode(data)


def colourings(n):
    return st.lists(st.integers(0, n), min_size=n, max_size=n)


def subsets(n):
    return st.lists(st.integers(0, n - 1), unique=True, max_size=n)


def splits(n, name):
    def split(order, cut):
        size = n // 2 + (n % 2) * (cut % 2) if name == "minimum_bisection" else cut
        return [order[:size], order[size:]]

    return st.builds(split, st.permutations(range(n)), st.integers(0, n))


def walks(n, name):
    def walk(order, length):
        ring = order if name == "tsp" else order[: max(3, length)]
        return [*ring, ring[0]]

    return st.builds(walk, st.permutations(range(n)), st.integers(3, n))


def schedules(n):
    def rows(meetings, rooms, starts):
        return [list(row) for row in zip(meetings, rooms, starts, strict=False)]

    numbers = st.lists(st.integers(0, 1), min_size=n, max_size=n)
    return st.builds(rows, subsets(n), numbers, numbers)


def solutions(name, n):
    if name in SETS:
        return subsets(n)
    if name in CUTS:
        return splits(n, name)
    if name in CYCLES:
        return walks(n, name)
    return colourings(n) if name == "graph_coloring" else schedules(n)


def respelled(name, solution, draw):
    """The same solution in other words."""
    if name == "graph_coloring":
        names = draw(st.permutations(range(3, 3 + len(solution) + 2)))
        return [names[colour] for colour in solution]
    if name in CYCLES:
        ring = solution[:-1]
        shift = draw(st.integers(0, len(ring) - 1))
        ring = [*ring[shift:], *ring[:shift]]
        if draw(st.booleans()):
            ring.reverse()
        return [*ring, ring[0]]
    if name in CUTS:
        return draw(st.permutations([draw(st.permutations(side)) for side in solution]))
    return draw(st.permutations(solution))


@every_task
@LAWS
@given(data=st.data())
def test_the_distance_is_symmetric_in_the_unit_interval_and_0_only_for_equal_solutions(name, data):
    task = TASKS[name]
    n = data.draw(st.integers(MINIMUM, MAXIMUM))
    instance = instance_of(name, n)
    first, second = data.draw(solutions(name, n)), data.draw(solutions(name, n))
    distance = task.distance(instance, first, second)
    assert 0.0 <= distance <= 1.0
    assert distance == task.distance(instance, second, first)
    equal = task.canonical(instance, first) == task.canonical(instance, second)
    assert (distance == 0.0) == equal
    assert equal == (essence(name, first) == essence(name, second))
    assert hash(task.canonical(instance, first)) == hash(task.canonical(instance, first))


def essence(name, solution):
    """What a solution is, apart from its spelling; written apart from the package."""
    if name == "graph_coloring":
        return {frozenset(v for v, c in enumerate(solution) if c == d) for d in solution}
    if name in CYCLES:
        return {frozenset(step) for step in itertools.pairwise(solution)}
    if name in CUTS:
        return set(map(frozenset, solution))
    return set(map(tuple, solution)) if name == "meeting_scheduling" else set(solution)


@every_task
@LAWS
@given(data=st.data())
def test_another_spelling_of_a_solution_is_the_same_solution(name, data):
    task = TASKS[name]
    n = data.draw(st.integers(MINIMUM, MAXIMUM))
    instance = instance_of(name, n)
    solution = data.draw(solutions(name, n))
    again = respelled(name, solution, data.draw)
    assert task.canonical(instance, again) == task.canonical(instance, solution)
    assert task.distance(instance, solution, again) == 0.0


@every_task
@LAWS
@given(data=st.data())
def test_the_distance_keeps_the_triangle_inequality(name, data):
    task = TASKS[name]
    n = data.draw(st.integers(MINIMUM, MAXIMUM))
    instance = instance_of(name, n)
    a, b, c = (data.draw(solutions(name, n)) for _ in range(3))
    detour = task.distance(instance, a, b) + task.distance(instance, b, c)
    assert task.distance(instance, a, c) <= detour + 1e-9


@pytest.mark.parametrize(
    ("name", "first", "second", "distance"),
    [
        ("vertex_cover", [0, 1, 2], [1, 2, 3], 0.5),
        ("vertex_cover", [0, 1], [2, 3], 1.0),
        ("knapsack", [], [], 0.0),
        ("knapsack", [], [3], 1.0),
        ("graph_coloring", [0, 0, 1, 1], [5, 5, 2, 2], 0.0),
        ("graph_coloring", [0, 1, 2, 3], [0, 0, 0, 0], 1.0),
        ("graph_coloring", [0, 0, 1, 1], [0, 1, 1, 0], 4 / 6),
        ("maximum_cut", [[0, 1], [2, 3]], [[2, 3], [0, 1]], 0.0),
        ("minimum_bisection", [[0, 1], [2, 3]], [[0, 2], [1, 3]], 1.0),
        ("tsp", [0, 1, 2, 3, 0], [0, 3, 2, 1, 0], 0.0),
        ("tsp", [0, 1, 2, 3, 0], [1, 2, 3, 0, 1], 0.0),
        ("tsp", [0, 1, 2, 3, 0], [0, 2, 1, 3, 0], 1 - 2 / 6),
        ("longest_cycle", [0, 1, 2, 0], [1, 2, 3, 1], 1 - 1 / 5),
        ("meeting_scheduling", [[0, 0, 0]], [[0, 0, 1]], 1.0),
        ("meeting_scheduling", [], [], 0.0),
    ],
)
def test_a_distance_that_is_worked_out_by_hand(name, first, second, distance):
    assert TASKS[name].distance(instance_of(name, 4), first, second) == pytest.approx(distance)


@pytest.mark.parametrize("name", ["graph_coloring", "maximum_cut", "minimum_bisection"])
def test_the_only_solutions_of_a_single_vertex_are_equal(name):
    task = TASKS[name]
    instance = task.decode({"num_vertices": 1, "edges": []})
    first, second = ([4], [0]) if name == "graph_coloring" else ([[0], []], [[], [0]])
    assert task.distance(instance, first, second) == 0.0
    assert task.canonical(instance, first) == task.canonical(instance, second)
