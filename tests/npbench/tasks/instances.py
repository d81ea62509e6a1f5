"""Small instances of every task as JSON: hand-made corner cases and random ones without a plan."""

import itertools


def hand_made(task):
    """Corner cases: no edges, all edges, odd sizes, ties, nothing fits, everything fits."""
    return _HAND_MADE[task]()


def scattered(task, rng):
    """A random small instance that no generator of npbench would draw."""
    return _SCATTERED[task](rng)


def _graphs():
    cycles = [_graph(n, [(i, (i + 1) % n) for i in range(n)]) for n in (3, 4, 5, 8)]
    complete = [_graph(n, itertools.combinations(range(n), 2)) for n in (2, 3, 5, 7)]
    return [
        _graph(1, []),
        _graph(2, []),
        _graph(5, []),
        _graph(5, [(1, 3)]),
        _graph(6, [(0, 1), (2, 3), (4, 5)]),
        _graph(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)]),
        _graph(7, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 4)]),
        _graph(5, [(0, 1), (0, 2), (0, 3), (0, 4)]),
        _graph(7, [(a, b) for a in (0, 1, 2) for b in (3, 4, 5, 6)]),
        *cycles,
        *complete,
    ]


def _graph(num_vertices, edges):
    return {"num_vertices": num_vertices, "edges": [list(edge) for edge in edges]}


def _scattered_graph(rng):
    n = rng.randint(2, 8)
    density = rng.choice([0.15, 0.35, 0.6, 0.9])
    edges = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < density]
    return _graph(n, [rng.sample(edge, 2) for edge in rng.sample(edges, len(edges))])


def _weighted(weight_of):
    def graphs():
        return [_with_weights(graph, weight_of) for graph in _graphs()]

    return graphs


def _with_weights(graph, weight_of):
    edges = [[u, v, weight_of(u, v)] for u, v in graph["edges"]]
    return {"num_vertices": graph["num_vertices"], "edges": edges}


def _scattered_weighted(rng):
    return _with_weights(_scattered_graph(rng), lambda u, v: rng.choice([1, 2, 3, 9, 1000]))


def _tours():
    return [
        _distances(3, lambda u, v: 5),
        _distances(4, lambda u, v: abs(u - v)),
        _distances(6, lambda u, v: abs(u - v)),
        _distances(7, lambda u, v: 1),
        _distances(5, lambda u, v: 100 if u + v == 4 else 1),
        _distances(8, lambda u, v: min(abs(u - v), 8 - abs(u - v))),
    ]


def _distances(n, between):
    return {"distances": [[between(u, v) if u != v else 0 for v in range(n)] for u in range(n)]}


def _scattered_tour(rng):
    largest = rng.choice([2, 9, 100, 10**6])
    table = {frozenset(p): rng.randint(1, largest) for p in itertools.combinations(range(8), 2)}
    return _distances(rng.choice([3, 4, 5, 6, 7, 7]), lambda u, v: table[frozenset((u, v))])


def _covers():
    return [
        {"num_elements": 1, "subsets": [[0]]},
        {"num_elements": 3, "subsets": [[0, 1, 2], [0], [1], [2]]},
        {"num_elements": 4, "subsets": [[0], [1], [2], [3]]},
        {"num_elements": 4, "subsets": [[0, 1], [2, 3], [1, 2], [], [0, 3]]},
        {"num_elements": 2, "subsets": [[0, 1, 2], [5, 9]]},
        {"num_elements": 6, "subsets": [[0, 1, 2], [3, 4, 5], [0, 1, 3, 4], [2, 5]]},
        {"num_elements": 3, "subsets": [[0, 1], [1]]},
        {"num_elements": 5, "subsets": [[4, 0], [4, 0], [1, 2, 3], [3, 2, 1]]},
    ]


def _scattered_cover(rng):
    m, count = rng.randint(1, 8), rng.randint(1, 8)
    subsets = [rng.sample(range(m + 1), rng.randint(0, m)) for _ in range(count)]
    return {"num_elements": m, "subsets": subsets}


def _sums():
    return [
        {"numbers": [1], "target": 1},
        {"numbers": [1, 2, 3, 4, 5, 6], "target": 10},
        {"numbers": [5, 5, 5, 5], "target": 10},
        {"numbers": [3, 3, 6], "target": 6},
        {"numbers": [2, 4, 6, 8], "target": 7},
        {"numbers": [9, 1, 1, 1, 7, 10], "target": 10},
        {"numbers": [4, 5], "target": 9},
        {"numbers": [4, 5], "target": 100},
        {"numbers": [1000, 1, 999], "target": 1000},
    ]


def _scattered_sum(rng):
    numbers = [rng.randint(1, rng.choice([3, 9, 50])) for _ in range(rng.randint(1, 9))]
    chosen = rng.sample(numbers, rng.randint(1, len(numbers)))
    return {"numbers": numbers, "target": sum(chosen) + rng.choice([0, 0, 0, 1])}


def _knapsacks():
    return [
        {"capacity": 1, "weights": [2, 3], "values": [5, 5]},
        {"capacity": 5, "weights": [2, 3], "values": [5, 5]},
        {"capacity": 4, "weights": [1, 1, 1, 1, 1], "values": [1, 5, 2, 4, 3]},
        {"capacity": 6, "weights": [1, 2, 4, 8], "values": [1, 2, 4, 8]},
        {"capacity": 10, "weights": [10, 2, 2, 2], "values": [9, 2, 2, 2]},
        {"capacity": 100, "weights": [100, 1], "values": [99, 2]},
        {"capacity": 7, "weights": [7], "values": [3]},
    ]


def _scattered_knapsack(rng):
    n = rng.randint(1, 8)
    weights = [rng.randint(1, 20) for _ in range(n)]
    values = [rng.choice([w, rng.randint(1, 20)]) for w in weights]
    return {"capacity": rng.randint(1, sum(weights) + 2), "weights": weights, "values": values}


def _schedules():
    two_parts = [[540, 720], [780, 1020]]
    return [
        _meetings([[0, 100]], [2], [(30, [0])]),
        _meetings([[0, 100]], [2], [(101, [0])]),
        _meetings([[0, 100]], [1], [(30, [0, 1])]),
        _meetings([[0, 60]], [2, 2], [(60, [0, 1]), (60, [1, 2])]),
        _meetings([[0, 60]], [2, 2], [(60, [0, 1]), (60, [2, 3])]),
        _meetings([[0, 60]], [2], [(30, [0, 1]), (30, [1, 2]), (20, [3])]),
        _meetings(two_parts, [3], [(180, [0, 1]), (240, [0]), (30, [2])]),
        _meetings(two_parts, [4, 2], [(90, [0, 1, 2]), (90, [2, 3]), (90, [0, 3]), (240, [1])]),
        _meetings([[0, 50], [50, 100]], [5], [(60, [0, 1]), (50, [2]), (40, [3])]),
        _meetings([[7, 37], [41, 53]], [9, 1], [(13, [0, 1]), (17, [1, 2]), (11, [0]), (12, [2])]),
    ]


def _meetings(day, capacities, meetings):
    return {
        "day": day,
        "rooms": [{"capacity": capacity} for capacity in capacities],
        "meetings": [{"duration": d, "attendees": list(people)} for d, people in meetings],
    }


def _scattered_schedule(rng):
    day, clock = [], rng.randint(0, 20)
    for _ in range(rng.randint(1, 2)):
        length = rng.randint(5, 60)
        day.append([clock, clock + length])
        clock += length + rng.randint(1, 9)
    capacities = [rng.randint(1, 4) for _ in range(rng.randint(1, 2))]
    meetings = [
        (rng.randint(1, 40), rng.sample(range(5), rng.randint(1, 3)))
        for _ in range(rng.randint(1, 4))
    ]
    return _meetings(day, capacities, meetings)


_GRAPH_TASKS = (
    "graph_coloring",
    "feedback_vertex_set",
    "vertex_cover",
    "dominating_set",
    "maximum_clique",
    "maximum_independent_set",
    "longest_cycle",
)
_HAND_MADE = dict.fromkeys(_GRAPH_TASKS, _graphs) | {
    "minimum_bisection": _weighted(lambda u, v: 1 + (u * v) % 5),
    "maximum_cut": _weighted(lambda u, v: 1 + (u + 3 * v) % 7),
    "tsp": _tours,
    "set_cover": _covers,
    "subset_sum": _sums,
    "knapsack": _knapsacks,
    "meeting_scheduling": _schedules,
}
_SCATTERED = dict.fromkeys(_GRAPH_TASKS, _scattered_graph) | {
    "minimum_bisection": _scattered_weighted,
    "maximum_cut": _scattered_weighted,
    "tsp": _scattered_tour,
    "set_cover": _scattered_cover,
    "subset_sum": _scattered_sum,
    "knapsack": _scattered_knapsack,
    "meeting_scheduling": _scattered_schedule,
}
