"""References on instances whose optimum is known in closed form or from the literature."""

import itertools

import networkx as nx
import numpy as np
import pytest

from npbench.task import Budget, Status
from npbench.tasks import TASKS


def from_graph(graph, *, weights=False):
    """The JSON form of a networkx graph, vertices numbered in its order."""
    number = {vertex: i for i, vertex in enumerate(graph)}
    edges = [[number[u], number[v], *([1] if weights else [])] for u, v in graph.edges]
    return {"num_vertices": len(graph), "edges": edges}


def instance_of(task, graph):
    return from_graph(graph, weights=task in {"maximum_cut", "minimum_bisection"})


def assert_optimum(name, data, expected):
    task = TASKS[name]
    instance = task.decode(data)
    reference = task.reference(instance, Budget())
    found = (reference.objective, reference.bound, reference.status)
    assert found == (expected, expected, Status.OPTIMAL)
    verdict = task.verify(instance, reference.solution)
    assert (verdict.feasible, verdict.objective) == (True, expected), verdict.reason


def board(size, reaches):
    """The squares of a board, adjacent where a piece reaches one from the other."""
    squares = list(itertools.product(range(size), repeat=2))
    graph = nx.Graph()
    graph.add_nodes_from(squares)
    for a, b in itertools.combinations(squares, 2):
        if reaches(abs(a[0] - b[0]), abs(a[1] - b[1])):
            graph.add_edge(a, b)
    return graph


def queen(size):
    return board(size, lambda rows, columns: rows * columns == 0 or rows == columns)


def knight(size):
    return board(size, lambda rows, columns: {rows, columns} == {1, 2})


def hamming(bits, distance):
    """Words of bits, adjacent where they differ in at least ``distance`` places."""
    words = list(itertools.product((0, 1), repeat=bits))
    graph = nx.Graph()
    graph.add_nodes_from(words)
    for a, b in itertools.combinations(words, 2):
        if sum(x != y for x, y in zip(a, b, strict=True)) >= distance:
            graph.add_edge(a, b)
    return graph


def johnson(points, size):
    """Subsets of a size, adjacent where they are disjoint."""
    return nx.kneser_graph(points, size)


def cube(dimension):
    return nx.hypercube_graph(dimension)


def grid(rows, columns):
    return nx.grid_2d_graph(rows, columns)


def paley(prime):
    squares = {x * x % prime for x in range(1, prime)}
    graph = nx.Graph()
    graph.add_nodes_from(range(prime))
    pairs = itertools.combinations(range(prime), 2)
    graph.add_edges_from((a, b) for a, b in pairs if (a - b) % prime in squares)
    return graph


def almost_complete(size):
    graph = nx.complete_graph(size)
    graph.remove_edge(0, 1)
    return graph


def two_triangles():
    return nx.Graph([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)])


def two_cliques(size):
    """Two cliques joined by one edge."""
    return nx.barbell_graph(size, 0)


COLOURING, CLIQUE, INDEPENDENT = "graph_coloring", "maximum_clique", "maximum_independent_set"
COVER, DOMINATION, FEEDBACK = "vertex_cover", "dominating_set", "feedback_vertex_set"
CUT, BISECTION, CYCLE = "maximum_cut", "minimum_bisection", "longest_cycle"

SIXTY = [
    (COLOURING, "groetzsch", lambda: nx.mycielski_graph(4), 4),
    (COLOURING, "mycielski_5", lambda: nx.mycielski_graph(5), 5),
    (COLOURING, "queen_5", lambda: queen(5), 5),
    (COLOURING, "queen_6", lambda: queen(6), 7),
    (COLOURING, "petersen", nx.petersen_graph, 3),
    (COLOURING, "complete_7", lambda: nx.complete_graph(7), 7),
    (COLOURING, "cycle_9", lambda: nx.cycle_graph(9), 3),
    (CLIQUE, "complete_7_minus_an_edge", lambda: almost_complete(7), 6),
    (CLIQUE, "queen_8", lambda: queen(8), 8),
    (CLIQUE, "hamming6-2", lambda: hamming(6, 2), 32),
    (CLIQUE, "johnson8-2-4", lambda: johnson(8, 2), 4),
    (CLIQUE, "paley_13", lambda: paley(13), 3),
    (CLIQUE, "paley_17", lambda: paley(17), 3),
    (INDEPENDENT, "petersen", nx.petersen_graph, 4),
    (INDEPENDENT, "queen_8", lambda: queen(8), 8),
    (INDEPENDENT, "5-cube", lambda: cube(5), 16),
    (INDEPENDENT, "cycle_9", lambda: nx.cycle_graph(9), 4),
    (INDEPENDENT, "dodecahedron", nx.dodecahedral_graph, 8),
    (INDEPENDENT, "icosahedron", nx.icosahedral_graph, 3),
    (COVER, "petersen", nx.petersen_graph, 6),
    (COVER, "4-cube", lambda: cube(4), 8),
    (COVER, "complete_3_7", lambda: nx.complete_bipartite_graph(3, 7), 3),
    (COVER, "dodecahedron", nx.dodecahedral_graph, 12),
    (DOMINATION, "queen_5", lambda: queen(5), 3),
    (DOMINATION, "queen_6", lambda: queen(6), 3),
    (DOMINATION, "queen_7", lambda: queen(7), 4),
    (DOMINATION, "queen_8", lambda: queen(8), 5),
    (DOMINATION, "petersen", nx.petersen_graph, 3),
    (DOMINATION, "4-cube", lambda: cube(4), 4),
    (DOMINATION, "5-cube", lambda: cube(5), 7),
    (DOMINATION, "path_10", lambda: nx.path_graph(10), 4),
    (DOMINATION, "grid_5x5", lambda: grid(5, 5), 7),
    (FEEDBACK, "complete_7", lambda: nx.complete_graph(7), 5),
    (FEEDBACK, "petersen", nx.petersen_graph, 3),
    (FEEDBACK, "3-cube", lambda: cube(3), 3),
    (FEEDBACK, "4-cube", lambda: cube(4), 6),
    (FEEDBACK, "complete_3_5", lambda: nx.complete_bipartite_graph(3, 5), 2),
    (FEEDBACK, "grid_4x4", lambda: grid(4, 4), 4),
    (FEEDBACK, "dodecahedron", nx.dodecahedral_graph, 6),
    (FEEDBACK, "a_tree", lambda: nx.full_rary_tree(3, 22), 0),
    (CUT, "petersen", nx.petersen_graph, 12),
    (CUT, "complete_7", lambda: nx.complete_graph(7), 12),
    (CUT, "cycle_9", lambda: nx.cycle_graph(9), 8),
    (CUT, "dodecahedron", nx.dodecahedral_graph, 24),
    (CUT, "icosahedron", nx.icosahedral_graph, 20),
    (CUT, "4-cube", lambda: cube(4), 32),
    (BISECTION, "3-cube", lambda: cube(3), 4),
    (BISECTION, "4-cube", lambda: cube(4), 8),
    (BISECTION, "petersen", nx.petersen_graph, 5),
    (BISECTION, "grid_4x4", lambda: grid(4, 4), 4),
    (BISECTION, "complete_8", lambda: nx.complete_graph(8), 16),
    (BISECTION, "cycle_10", lambda: nx.cycle_graph(10), 2),
    (CYCLE, "petersen", nx.petersen_graph, 9),
    (CYCLE, "dodecahedron", nx.dodecahedral_graph, 20),
    (CYCLE, "grid_5x5", lambda: grid(5, 5), 24),
    (CYCLE, "complete_3_5", lambda: nx.complete_bipartite_graph(3, 5), 6),
    (CYCLE, "4-cube", lambda: cube(4), 16),
    (CYCLE, "two_triangles", two_triangles, 3),
    (CYCLE, "knight_5", lambda: knight(5), 24),
]


@pytest.mark.parametrize(
    ("task", "build", "optimum"),
    [pytest.param(task, build, best, id=f"{task}-{name}") for task, name, build, best in SIXTY],
)
def test_the_reference_proves_the_sixty_values(task, build, optimum):
    assert_optimum(task, instance_of(task, build()), optimum)


@pytest.mark.slow
def test_the_reference_proves_the_feedback_vertex_set_of_the_five_cube():
    task = TASKS[FEEDBACK]
    instance = task.decode(from_graph(cube(5)))
    reference = task.reference(instance, Budget(deterministic_time=100.0))
    assert (reference.objective, reference.bound, reference.status) == (14, 14, Status.OPTIMAL)


def test_with_the_five_cube_there_are_sixty_values():
    assert len(SIXTY) + 1 == 60


def complete(n):
    return nx.complete_graph(n)


def bipartite(a, b):
    return nx.complete_bipartite_graph(a, b)


def wheel(n):
    return nx.wheel_graph(n)


FAMILIES = [
    *((COLOURING, f"complete_{n}", complete(n), n) for n in (2, 4, 9)),
    *((COLOURING, f"cycle_{n}", nx.cycle_graph(n), 2 + n % 2) for n in (3, 6, 11, 14)),
    *((COLOURING, f"wheel_{n}", wheel(n), 4 - n % 2) for n in (4, 5, 8, 11)),
    *((COLOURING, f"turan_{n}_{r}", nx.turan_graph(n, r), r) for n, r in ((7, 3), (12, 5))),
    *((COLOURING, f"mycielski_{k}", nx.mycielski_graph(k), k) for k in (2, 3)),
    *((COLOURING, f"grid_{a}x{b}", grid(a, b), 2) for a, b in ((1, 5), (3, 4), (6, 6))),
    (COLOURING, "4-cube", cube(4), 2),
    (COLOURING, "queen_7", queen(7), 7),
    *((CLIQUE, f"turan_{n}_{r}", nx.turan_graph(n, r), r) for n, r in ((7, 3), (20, 6))),
    *((CLIQUE, f"wheel_{n}", wheel(n), 3) for n in (5, 9)),
    *((CLIQUE, f"almost_complete_{n}", almost_complete(n), n - 1) for n in (3, 10)),
    *((CLIQUE, f"hamming{d}-2", hamming(d, 2), 2 ** (d - 1)) for d in (2, 3, 5)),
    *((INDEPENDENT, f"path_{n}", nx.path_graph(n), (n + 1) // 2) for n in (2, 7, 12)),
    *((INDEPENDENT, f"cycle_{n}", nx.cycle_graph(n), n // 2) for n in (3, 8, 13)),
    *((INDEPENDENT, f"complete_{a}_{b}", bipartite(a, b), max(a, b)) for a, b in ((2, 5), (6, 6))),
    *((INDEPENDENT, f"complete_{n}", complete(n), 1) for n in (2, 8)),
    *((INDEPENDENT, f"{d}-cube", cube(d), 2 ** (d - 1)) for d in (2, 3, 4)),
    *((INDEPENDENT, f"grid_{a}x{b}", grid(a, b), (a * b + 1) // 2) for a, b in ((3, 5), (4, 6))),
    *((INDEPENDENT, f"queen_{n}", queen(n), n) for n in (4, 5, 6, 7)),
    *((COVER, f"path_{n}", nx.path_graph(n), n // 2) for n in (2, 7, 12)),
    *((COVER, f"cycle_{n}", nx.cycle_graph(n), (n + 1) // 2) for n in (3, 8, 13)),
    *((COVER, f"complete_{n}", complete(n), n - 1) for n in (2, 8)),
    *((COVER, f"complete_{a}_{b}", bipartite(a, b), min(a, b)) for a, b in ((2, 5), (6, 6))),
    (COVER, "star", nx.star_graph(9), 1),
    (COVER, "no_edges", nx.empty_graph(4), 0),
    *((DOMINATION, f"path_{n}", nx.path_graph(n), -(-n // 3)) for n in (1, 2, 9, 13)),
    *((DOMINATION, f"cycle_{n}", nx.cycle_graph(n), -(-n // 3)) for n in (3, 9, 14)),
    *((DOMINATION, f"complete_{a}_{b}", bipartite(a, b), 2) for a, b in ((2, 2), (3, 7))),
    (DOMINATION, "star", nx.star_graph(9), 1),
    (DOMINATION, "wheel", wheel(10), 1),
    (DOMINATION, "no_edges", nx.empty_graph(4), 4),
    (DOMINATION, "3-cube", cube(3), 2),
    *((DOMINATION, f"grid_2x{n}", grid(2, n), n // 2 + 1) for n in (2, 5, 8)),
    *((DOMINATION, f"grid_{k}x{k}", grid(k, k), best) for k, best in ((2, 2), (3, 3), (4, 4))),
    *((DOMINATION, f"grid_{k}x{k}", grid(k, k), best) for k, best in ((6, 10), (7, 12))),
    *((FEEDBACK, f"cycle_{n}", nx.cycle_graph(n), 1) for n in (3, 10)),
    *((FEEDBACK, f"complete_{n}", complete(n), n - 2) for n in (3, 6, 8)),
    *((FEEDBACK, f"complete_{a}_{b}", bipartite(a, b), min(a, b) - 1) for a, b in ((2, 4), (4, 4))),
    (FEEDBACK, "no_edges", nx.empty_graph(3), 0),
    (FEEDBACK, "disjoint_parts", nx.disjoint_union(complete(5), nx.cycle_graph(4)), 4),
    *((CUT, f"complete_{n}", complete(n), n * n // 4) for n in (2, 6, 9)),
    *((CUT, f"cycle_{n}", nx.cycle_graph(n), n - n % 2) for n in (3, 10, 15)),
    *((CUT, f"grid_{a}x{b}", grid(a, b), 2 * a * b - a - b) for a, b in ((3, 5), (4, 4))),
    *((BISECTION, f"complete_{n}", complete(n), (n // 2) * ((n + 1) // 2)) for n in (2, 7, 10)),
    *((BISECTION, f"cycle_{n}", nx.cycle_graph(n), 2) for n in (4, 9, 16)),
    *((BISECTION, f"path_{n}", nx.path_graph(n), 1) for n in (2, 9, 16)),
    *((BISECTION, f"grid_{k}x{k}", grid(k, k), k) for k in (2, 6)),
    (BISECTION, "2-cube", cube(2), 2),
    (BISECTION, "two_equal_components", nx.disjoint_union(complete(5), complete(5)), 0),
    *((BISECTION, f"two_cliques_{n}", two_cliques(n), 1) for n in (3, 6)),
    *((CYCLE, f"complete_{n}", complete(n), n) for n in (3, 9)),
    *((CYCLE, f"cycle_{n}", nx.cycle_graph(n), n) for n in (3, 12)),
    *((CYCLE, f"wheel_{n}", wheel(n), n) for n in (4, 10)),
    *((CYCLE, f"{d}-cube", cube(d), 2**d) for d in (2, 3)),
    *((CYCLE, f"complete_{a}_{b}", bipartite(a, b), 2 * min(a, b)) for a, b in ((2, 9), (4, 4))),
    *((CYCLE, f"grid_{a}x{b}", grid(a, b), a * b - a * b % 2) for a, b in ((2, 2), (3, 3), (3, 6))),
    (CYCLE, "blocks", nx.disjoint_union(complete(4), nx.lollipop_graph(6, 5)), 6),
    (CYCLE, "two_cliques", two_cliques(5), 5),
]


@pytest.mark.parametrize(
    ("task", "graph", "optimum"),
    [pytest.param(task, graph, best, id=f"{task}-{name}") for task, name, graph, best in FAMILIES],
)
def test_the_reference_meets_the_closed_form_of_a_graph_family(task, graph, optimum):
    assert_optimum(task, instance_of(task, graph), optimum)


def distances(points, between):
    return {"distances": [[between(a, b) for b in points] for a in points]}


def manhattan(a, b):
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


def one_or_two(graph):
    return distances(list(graph), lambda u, v: 0 if u == v else 1 if graph.has_edge(u, v) else 2)


def polygon(corners):
    """Corners of a convex polygon, far apart and in a scattered order."""
    angles = np.random.default_rng(5).permutation(corners) * 2 * np.pi / corners
    points = [(10**5 * np.cos(angle), 10**5 * np.sin(angle)) for angle in angles]
    data = distances(points, lambda a, b: round(float(np.hypot(a[0] - b[0], a[1] - b[1]))))
    order = sorted(range(corners), key=lambda i: angles[i])
    ring = zip(order, [*order[1:], order[0]], strict=True)
    return data, sum(data["distances"][u][v] for u, v in ring)


def grid_tour(rows, columns):
    return distances(list(itertools.product(range(rows), range(columns))), manhattan)


def star_metric(weights):
    n = range(len(weights))
    return distances(n, lambda u, v: 0 if u == v else weights[u] + weights[v])


def ring(n):
    return distances(range(n), lambda u, v: min(abs(u - v), n - abs(u - v)))


TOURS = [
    *((f"line_{n}", distances(range(n), lambda a, b: abs(a - b)), 2 * (n - 1)) for n in (3, 8, 20)),
    *((f"grid_{a}x{b}", grid_tour(a, b), a * b + a * b % 2) for a, b in ((2, 3), (3, 3), (5, 5))),
    ("all_equal", distances(range(9), lambda a, b: 7 * (a != b)), 63),
    *((f"ring_{n}", ring(n), n) for n in (3, 8, 15)),
    ("star_metric", star_metric([3, 1, 4, 1, 5, 9, 2, 6]), 62),
    ("hamiltonian", one_or_two(nx.dodecahedral_graph()), 20),
    ("petersen", one_or_two(nx.petersen_graph()), 11),
    *((f"polygon_{n}", *polygon(n)) for n in (5, 12, 21)),
]


@pytest.mark.parametrize(
    ("data", "optimum"), [pytest.param(data, best, id=name) for name, data, best in TOURS]
)
def test_the_reference_meets_the_closed_form_of_a_metric(data, optimum):
    assert_optimum("tsp", data, optimum)


def intervals(length, points):
    starts = range(points - length + 1)
    return [list(range(start, start + length)) for start in starts]


FANO = [[0, 1, 2], [0, 3, 4], [0, 5, 6], [1, 3, 5], [1, 4, 6], [2, 3, 6], [2, 4, 5]]
COVERS = [
    ("singletons", 6, [[e] for e in range(6)], 6),
    ("partition", 9, [[0, 4, 8], [1, 2], [3, 5, 6, 7]], 3),
    *((f"intervals_{k}_{m}", m, intervals(k, m), -(-m // k)) for k, m in ((3, 10), (4, 12))),
    ("fano", 7, FANO, 3),
    *(
        (f"all_{k}_subsets_of_{m}", m, [list(s) for s in itertools.combinations(range(m), k)], best)
        for k, m, best in ((2, 7, 4), (3, 8, 3))
    ),
]


@pytest.mark.parametrize(
    ("elements", "subsets", "optimum"), [pytest.param(*row[1:], id=row[0]) for row in COVERS]
)
def test_the_reference_meets_the_closed_form_of_a_set_system(elements, subsets, optimum):
    assert_optimum("set_cover", {"num_elements": elements, "subsets": subsets}, optimum)


@pytest.mark.parametrize("target", [1, 2, 3, 5, 6, 27, 28, 50, 54, 55])
def test_a_sum_of_the_first_integers_takes_as_many_of_the_smallest_as_fit(target):
    most = max(k for k in range(1, 11) if k * (k + 1) // 2 <= target)
    assert_optimum("subset_sum", {"numbers": list(range(1, 11)), "target": target}, most)


@pytest.mark.parametrize("capacity", range(6))
def test_a_knapsack_of_unit_weights_takes_the_largest_values(capacity):
    values = [4, 9, 1, 9, 6]
    best = sum(sorted(values, reverse=True)[:capacity])
    data = {"capacity": capacity, "weights": [1] * 5, "values": values}
    assert_optimum("knapsack", data, best)


@pytest.mark.parametrize("capacity", [0, 1, 37, 126])
def test_a_knapsack_of_powers_of_two_is_filled_exactly(capacity):
    powers = [2**k for k in range(7)]
    data = {"capacity": capacity, "weights": powers, "values": powers}
    assert_optimum("knapsack", data, capacity)


@pytest.mark.parametrize(
    ("duration", "count", "optimum"), [(30, 15, 14), (60, 10, 7), (90, 8, 4), (50, 3, 3)]
)
def test_one_person_in_one_room_attends_as_many_meetings_as_the_day_holds(duration, count, optimum):
    data = {
        "day": [[540, 720], [780, 1020]],
        "rooms": [{"capacity": 2}],
        "meetings": [{"duration": duration, "attendees": [0]}] * count,
    }
    assert_optimum("meeting_scheduling", data, optimum)


def test_disjoint_people_and_enough_rooms_hold_all_meetings():
    people = [[0, 1], [2, 3, 4], [5], [6, 7]]
    data = {
        "day": [[540, 630]],
        "rooms": [{"capacity": 3}] * 4,
        "meetings": [{"duration": 90, "attendees": group} for group in people],
    }
    assert_optimum("meeting_scheduling", data, 8)


def edges(count, *pairs, weights=False):
    graph = nx.empty_graph(count)
    graph.add_edges_from(pairs)
    return from_graph(graph, weights=weights)


TRIANGLE_WITH_TAIL = edges(6, (0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 2))
WEIGHTED_SQUARE = {"num_vertices": 4, "edges": [[0, 1, 5], [1, 2, 1], [2, 3, 7], [0, 3, 2]]}
TABLE = {"distances": [[0, 4, 1, 20], [4, 0, 2, 1], [1, 2, 0, 3], [20, 1, 3, 0]]}
THREE_PARTS = {"num_elements": 6, "subsets": [[0, 1, 2], [3, 4, 5], [0, 1, 3, 4], [5]]}
TEN = {"numbers": [1, 9, 2, 3, 4], "target": 10}
BUSY_ROOM = {
    "day": [[0, 60]],
    "rooms": [{"capacity": 3}],
    "meetings": [
        {"duration": 30, "attendees": [0, 1]},
        {"duration": 60, "attendees": [0, 1, 2]},
        {"duration": 30, "attendees": [2, 3]},
        {"duration": 20, "attendees": [0, 1, 2, 3]},
    ],
}
SPIDER = edges(7, (0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (3, 6))
TWO_STARS = edges(9, *((7, v) for v in (1, 2, 3, 0)), *((8, v) for v in (4, 5, 6)))
STAR_AND_CLIQUE = nx.disjoint_union(nx.star_graph(5), complete(4))
BRIDGED = {
    "num_vertices": 9,
    "edges": [*TWO_STARS["edges"], *([0, v] for v in (1, 2, 4, 5))],
}

# name, solver, instance, its objective, the optimum: worked out by hand from the rule.
RULES = [
    (COLOURING, "trivial", TRIANGLE_WITH_TAIL, 6, 3),
    (COLOURING, "greedy", edges(4, (0, 2), (2, 3), (3, 1)), 3, 2),
    (FEEDBACK, "trivial", TRIANGLE_WITH_TAIL, 6, 1),
    (FEEDBACK, "greedy", TRIANGLE_WITH_TAIL, 1, 1),
    (COVER, "trivial", SPIDER, 7, 3),
    (COVER, "greedy", SPIDER, 4, 3),
    (DOMINATION, "trivial", BRIDGED, 9, 2),
    (DOMINATION, "greedy", BRIDGED, 3, 2),
    (BISECTION, "trivial", WEIGHTED_SQUARE, 3, 3),
    (BISECTION, "greedy", from_graph(two_cliques(4), weights=True), 1, 1),
    (CUT, "trivial", WEIGHTED_SQUARE, 15, 15),
    (CUT, "greedy", from_graph(nx.star_graph(5), weights=True), 5, 5),
    (CLIQUE, "trivial", from_graph(STAR_AND_CLIQUE), 1, 4),
    (CLIQUE, "greedy", from_graph(STAR_AND_CLIQUE), 2, 4),
    (INDEPENDENT, "trivial", from_graph(nx.complement(STAR_AND_CLIQUE)), 1, 4),
    (INDEPENDENT, "greedy", from_graph(nx.complement(STAR_AND_CLIQUE)), 2, 4),
    ("tsp", "trivial", TABLE, 4 + 2 + 3 + 20, 9),
    ("tsp", "greedy", TABLE, 1 + 2 + 1 + 20, 9),
    (CYCLE, "trivial", TRIANGLE_WITH_TAIL, 3, 4),
    (CYCLE, "greedy", from_graph(nx.cycle_graph(7)), 7, 7),
    ("set_cover", "trivial", THREE_PARTS, 4, 2),
    ("set_cover", "greedy", THREE_PARTS, 3, 2),
    ("subset_sum", "trivial", TEN, 2, 4),
    ("subset_sum", "greedy", TEN, 4, 4),
    ("knapsack", "trivial", {"capacity": 7, "weights": [3, 3, 7], "values": [1, 1, 9]}, 2, 9),
    ("knapsack", "greedy", {"capacity": 10, "weights": [5, 6, 5], "values": [5, 7, 5]}, 7, 10),
    ("meeting_scheduling", "trivial", BUSY_ROOM, 3, 4),
    ("meeting_scheduling", "greedy", BUSY_ROOM, 3, 4),
]


@pytest.mark.parametrize(
    ("name", "solver", "data", "objective", "optimum"),
    [pytest.param(*row, id=f"{row[0]}-{row[1]}") for row in RULES],
)
def test_the_floor_follows_its_published_rule(name, solver, data, objective, optimum):
    task = TASKS[name]
    instance = task.decode(data)
    solution = task.solvers[solver](instance, np.random.default_rng(0))
    assert task.verify(instance, solution).objective == objective
    assert_optimum(name, data, optimum)


def test_the_identity_and_the_nearest_neighbour_tour_start_at_city_0():
    task = TASKS["tsp"]
    instance, rng = task.decode(TABLE), np.random.default_rng(0)
    assert task.solvers["trivial"](instance, rng) == [0, 1, 2, 3, 0]
    assert task.solvers["greedy"](instance, rng) == [0, 2, 1, 3, 0]


def test_first_fit_takes_the_vertices_in_index_order():
    task = TASKS[COLOURING]
    instance = task.decode(edges(4, (0, 2), (2, 3), (3, 1)))
    assert task.solvers["greedy"](instance, np.random.default_rng(0)) == [0, 0, 1, 2]


def test_the_trivial_cuts_split_by_halves_and_by_parity():
    data = from_graph(complete(6), weights=True)
    for name, sides in ((BISECTION, [[0, 1, 2], [3, 4, 5]]), (CUT, [[0, 2, 4], [1, 3, 5]])):
        task = TASKS[name]
        instance = task.decode(data)
        found = task.solvers["trivial"](instance, np.random.default_rng(0))
        assert task.canonical(instance, found) == task.canonical(instance, sides)
