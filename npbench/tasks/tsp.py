"""Travelling salesman: a short closed tour through all cities."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from npbench.answers import Shape
from npbench.canonical import class_key as structure_key
from npbench.errors import InputError
from npbench.families import draw_size
from npbench.graphs import entry_refusal, require_int, require_list
from npbench.levels import make_levels
from npbench.prompts import Wording
from npbench.references import choose, run
from npbench.solutions import canonical_cycle, cycle_distance
from npbench.task import Budget, Reference, Sense, Task, Verdict

if TYPE_CHECKING:
    from npbench.rendering.picture import Picture
    from npbench.rendering.styles import Style

__all__ = ["TASK", "Cities", "tour_length"]

Tour = list[int]


@dataclass(frozen=True)
class Cities:
    """Symmetric distances between cities, and their places where they have some."""

    distances: tuple[tuple[int, ...], ...]
    coordinates: tuple[tuple[int, int], ...] | None = None


def tour_length(cities: Cities, tour: Sequence[int]) -> int:
    """Sum of the distances along a tour."""
    return sum(cities.distances[u][v] for u, v in itertools.pairwise(tour))


def verify(cities: Cities, answer: object) -> Verdict:
    """Feasible where the tour visits each city once and returns to its start."""
    n = len(cities.distances)
    refusal = entry_refusal(answer, n, "city")
    if refusal is not None:
        return refusal
    assert isinstance(answer, (list, tuple))
    if not answer:
        return Verdict(False, reason="the tour is empty", rule="empty")
    if len(answer) > 1 and answer[0] != answer[-1]:
        reason = f"the tour starts at {answer[0]} and ends at {answer[-1]}"
        return Verdict(False, reason=reason, rule="not_closed")
    missing = sorted(set(range(n)) - set(answer))
    if missing:
        return Verdict(False, reason=f"city {missing[0]} is not visited", rule="missing")
    if len(answer) != n + 1:
        seen: set[int] = set()
        twice = next(c for c in answer[:-1] if c in seen or seen.add(c))  # type: ignore[func-returns-value]
        return Verdict(False, reason=f"city {twice} is visited twice", rule="duplicate")
    return Verdict(True, objective=tour_length(cities, answer))


def trivial(cities: Cities, _: np.random.Generator) -> Tour:
    """The cities in the order of their numbers."""
    return [*range(len(cities.distances)), 0]


def random(cities: Cities, rng: np.random.Generator) -> Tour:
    """A uniformly random order."""
    order = rng.permutation(len(cities.distances)).tolist()
    return [*order, order[0]]


def greedy(cities: Cities, _: np.random.Generator) -> Tour:
    """Nearest neighbour from city 0, the lowest number among equals."""
    left = set(range(1, len(cities.distances)))
    tour = [0]
    while left:
        row = cities.distances[tour[-1]]
        city = min(left, key=lambda c: (row[c], c))
        tour.append(city)
        left.remove(city)
    return [*tour, 0]


def heuristic(cities: Cities, rng: np.random.Generator) -> Tour:
    """OR-Tools' routing solver: cheapest arcs, then its default local search to a local optimum."""
    from ortools.constraint_solver import pywrapcp, routing_enums_pb2

    n = len(cities.distances)
    manager = pywrapcp.RoutingIndexManager(n, 1, 0)
    routing = pywrapcp.RoutingModel(manager)
    rows = [list(row) for row in cities.distances]
    routing.SetArcCostEvaluatorOfAllVehicles(routing.RegisterTransitMatrix(rows))
    parameters = pywrapcp.DefaultRoutingSearchParameters()
    parameters.first_solution_strategy = routing_enums_pb2.FirstSolutionStrategy.PATH_CHEAPEST_ARC
    found = routing.SolveWithParameters(parameters)
    if found is None:
        return greedy(cities, rng)
    tour = [0]
    index = found.Value(routing.NextVar(routing.Start(0)))
    while not routing.IsEnd(index):
        tour.append(manager.IndexToNode(index))
        index = found.Value(routing.NextVar(index))
    return [*tour, 0]


def two_opt(cities: Cities, tour: Tour) -> Tour:
    """The tour after segment reversals until none shortens it."""
    ring = tour[:-1]
    n = len(ring)
    distances = cities.distances
    improved = True
    while improved:
        improved = False
        for i in range(n - 1):
            a, b = ring[i], ring[i + 1]
            for j in range(i + 2, n if i else n - 1):
                c, d = ring[j], ring[(j + 1) % n]
                old = distances[a][b] + distances[c][d]
                if distances[a][c] + distances[b][d] < old:
                    ring[i + 1 : j + 1] = ring[i + 1 : j + 1][::-1]
                    b = ring[i + 1]
                    improved = True
    return [*ring, ring[0]]


def reference(cities: Cities, budget: Budget) -> Reference[Tour]:
    """One circuit through all cities by CP-SAT, with the better 2-opt tour as a hint."""
    from ortools.sat.python import cp_model

    n = len(cities.distances)
    rng = np.random.default_rng(0)
    starts = [two_opt(cities, solver(cities, rng)) for solver in (greedy, heuristic)]
    start = min(starts, key=lambda tour: tour_length(cities, tour))
    model = cp_model.CpModel()
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v]
    arcs = [model.new_bool_var("") for _ in pairs]
    model.add_circuit([(u, v, arc) for (u, v), arc in zip(pairs, arcs, strict=True)])
    costs = [cities.distances[u][v] for u, v in pairs]
    model.minimize(cp_model.LinearExpr.weighted_sum(arcs, costs))
    steps = set(itertools.pairwise(start))
    hints = [(arc, int(pair in steps)) for pair, arc in zip(pairs, arcs, strict=True)]
    outcome = run(model, arcs, budget=budget, linearization_level=2, hint=hints)
    solution = None
    if outcome.values is not None:
        after = {u: v for (u, v), arc in zip(pairs, arcs, strict=True) if outcome.value(arc)}
        solution = [0]
        while len(solution) == 1 or solution[-1] != 0:
            solution.append(after[solution[-1]])
    return choose(
        outcome,
        sense=Sense.MIN,
        solution=solution,
        fallback=start,
        objective=lambda tour: tour_length(cities, tour),
        trivial_bound=0,
    )


def flaw(cities: Cities, _: Reference[Tour]) -> str | None:
    """Cities must be apart."""
    n = len(cities.distances)
    if any(cities.distances[u][v] < 1 for u in range(n) for v in range(u)):
        return "two cities have distance 0"
    return None


def _from_matrix(matrix: np.ndarray[Any, Any]) -> Cities:
    return Cities(tuple(tuple(int(d) for d in row) for row in matrix))


def _from_points(points: list[tuple[int, int]]) -> Cities:
    """Euclidean distances rounded half up, as TSPLIB does."""
    rows = tuple(
        tuple(int(((ax - bx) ** 2 + (ay - by) ** 2) ** 0.5 + 0.5) for bx, by in points)
        for ax, ay in points
    )
    return Cities(rows, tuple(points))


def _distinct(n: int, draw: Any, rng: np.random.Generator) -> list[tuple[int, int]]:
    """``n`` distinct points in random order; a place that is taken is filled from free ones."""
    points: dict[tuple[int, int], None] = {}
    for _ in range(50 * n):
        if len(points) == n:
            break
        points[draw()] = None
    while len(points) < n:
        points[(int(rng.integers(0, 101)), int(rng.integers(0, 101)))] = None
    listed = list(points)
    return [listed[int(i)] for i in rng.permutation(n)]


def _uniform(params: Mapping[str, Any], rng: np.random.Generator) -> Cities:
    n = draw_size(params, "num_cities", rng)
    upper = np.triu(rng.integers(10, 101 if n > 8 else 100, size=(n, n)), k=1)
    return _from_matrix(upper + upper.T)


def _euclidean(params: Mapping[str, Any], rng: np.random.Generator) -> Cities:
    n = draw_size(params, "num_cities", rng)

    def point() -> tuple[int, int]:
        return int(rng.integers(0, 101)), int(rng.integers(0, 101))

    return _from_points(_distinct(n, point, rng))


def _clustered(params: Mapping[str, Any], rng: np.random.Generator) -> Cities:
    n = draw_size(params, "num_cities", rng)
    centres = rng.integers(15, 86, size=(max(2, n // 5), 2)).tolist()

    def point() -> tuple[int, int]:
        x, y = centres[int(rng.integers(len(centres)))]
        dx, dy = rng.normal(0, 9, size=2)
        return min(100, max(0, round(x + dx))), min(100, max(0, round(y + dy)))

    return _from_points(_distinct(n, point, rng))


def _lattice(params: Mapping[str, Any], rng: np.random.Generator) -> Cities:
    """Points of a coarse lattice: many equal distances."""
    n = draw_size(params, "num_cities", rng)
    side = max(3, int((2 * n) ** 0.5) + 1)
    step = 100 // (side - 1)

    def point() -> tuple[int, int]:
        return step * int(rng.integers(side)), step * int(rng.integers(side))

    return _from_points(_distinct(n, point, rng))


def _shortcuts(params: Mapping[str, Any], rng: np.random.Generator) -> Cities:
    """Euclidean distances, a fifth of them cut to a third: no longer a metric."""
    base = np.array(_euclidean(params, rng).distances)
    n = len(base)
    cut = np.triu(rng.random((n, n)) < 0.2, k=1)
    matrix = np.where(cut | cut.T, np.maximum(base // 3, 1), base)
    np.fill_diagonal(matrix, 0)
    return _from_matrix(matrix)


def encode(cities: Cities) -> dict[str, Any]:
    """The JSON form."""
    data: dict[str, Any] = {"distances": [list(row) for row in cities.distances]}
    if cities.coordinates is not None:
        data["coordinates"] = [list(point) for point in cities.coordinates]
    return data


def decode(data: Any) -> Cities:
    """From ``{"distances": [[...], ...], "coordinates"?: [[x, y], ...]}``.

    Raises:
        InputError: If the matrix is not square and symmetric with a zero diagonal.
    """
    if not isinstance(data, dict) or "distances" not in data:
        raise InputError("a tsp instance needs the key 'distances'")
    rows = [require_list(row, "distances") for row in require_list(data["distances"], "distances")]
    n = len(rows)
    if n < 3:
        raise InputError(f"a tour needs at least 3 cities, got {n}")
    for u, row in enumerate(rows):
        if len(row) != n:
            raise InputError(f"distances[{u}] must hold {n} numbers, got {len(row)}")
        for v, value in enumerate(row):
            require_int(value, f"distances[{u}][{v}]", low=0)
            if u == v and value != 0:
                raise InputError(f"distances[{u}][{u}] must be 0, got {value}")
            if v < u and value != rows[v][u]:
                raise InputError(f"distances[{u}][{v}] is {value} but [{v}][{u}] is {rows[v][u]}")
    coordinates = None
    if data.get("coordinates") is not None:
        points = require_list(data["coordinates"], "coordinates")
        if len(points) != n or any(len(require_list(p, "coordinates")) != 2 for p in points):
            raise InputError(f"coordinates must hold {n} pairs")
        coordinates = tuple(
            (
                require_int(x, "coordinates", low=-(10**9)),
                require_int(y, "coordinates", low=-(10**9)),
            )
            for x, y in points
        )
    return Cities(tuple(tuple(row) for row in rows), coordinates)


def class_key(cities: Cities) -> str:
    """Equal for renumbered copies of one matrix."""
    n = len(cities.distances)
    rows = [{v: d for v, d in enumerate(row) if v != u} for u, row in enumerate(cities.distances)]
    return structure_key([0] * n, rows)


def describe(cities: Cities) -> str:
    """The distances as the text prompt writes them."""
    n = len(cities.distances)
    rows = "\n".join(f"{u}: {' '.join(map(str, row))}" for u, row in enumerate(cities.distances))
    return f"Cities: 0 to {n - 1}\nDistances (row u holds the distances from city u):\n{rows}"


def draw(cities: Cities, style: "Style", size: int) -> "Picture":
    """The matrix of distances, and the cities beside it in larger pictures."""
    from npbench.pictures import tour_picture

    return tour_picture(cities.distances, cities.coordinates, style, size)


TASK: Task[Cities, Tour] = Task(
    name="tsp",
    title="travelling salesman",
    sense=Sense.MIN,
    group="path",
    category="planning",
    aliases=("NpTsp", "TSP"),
    levels=make_levels(
        {
            "nano": {"num_cities": (5, 8)},
            "l1": {"num_cities": (10, 14)},
            "l2": {"num_cities": (14, 18)},
            "l3": {"num_cities": (18, 22)},
            "easy": {"num_cities": (10, 20)},
            "medium": {"num_cities": (20, 30)},
            "hard": {"num_cities": (35, 45)},
            "bench": {"num_cities": (45, 55)},
        }
    ),
    limits={"num_cities": (4, 200)},
    families={
        "uniform": _uniform,
        "euclidean": _euclidean,
        "clustered": _clustered,
        "lattice": _lattice,
        "shortcuts": _shortcuts,
    },
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    canonical=canonical_cycle,
    distance=cycle_distance,
    class_key=class_key,
    encode=encode,
    decode=decode,
    shape=Shape.PATH,
    wording=Wording(
        title="the travelling salesman problem",
        rules=(
            "Find a closed tour, as short as possible, that visits every city exactly once and "
            "returns to the city where it started. Distances are symmetric; they need not obey "
            "the triangle inequality. Cities are numbered from 0."
        ),
        picture=(
            "The picture shows the table of the distances between the numbered cities. "
            "Where the cities are drawn as well, the table counts."
        ),
        output="The list of cities in the order of the tour, the first one again at the end.",
        brief=(
            "Find a short closed tour that visits every city once. "
            "Answer with the list of cities in order, the first again at the end."
        ),
        example={"distances": [[0, 2, 9, 5], [2, 0, 4, 7], [9, 4, 0, 3], [5, 7, 3, 0]]},
        example_answer=[0, 2, 1, 3, 0],
    ),
    describe=describe,
    draw=draw,
    notes={
        "uniform": "integers from 10 to 100, not metric",
        "euclidean": "rounded distances of uniform points",
        "clustered": "rounded distances of points in clusters",
        "lattice": "points of a coarse lattice: many equal distances",
        "shortcuts": "Euclidean with a fifth of the distances cut to a third",
    },
)
