"""Class keys: equal for relabelled copies of an instance, different for different classes."""

import itertools
import random
import re

import networkx as nx
import numpy as np
import pytest

from npbench.tasks import TASKS

PLAIN = (
    "graph_coloring",
    "feedback_vertex_set",
    "vertex_cover",
    "dominating_set",
    "maximum_clique",
    "maximum_independent_set",
    "longest_cycle",
)
WEIGHTED = ("minimum_bisection", "maximum_cut")

every_task = pytest.mark.parametrize("name", list(TASKS))


def key(name, data):
    task = TASKS[name]
    return task.class_key(task.decode(data))


def from_graph(graph):
    number = {vertex: i for i, vertex in enumerate(graph)}
    edges = [[number[u], number[v]] for u, v in graph.edges]
    return {"num_vertices": len(graph), "edges": edges}


def shuffled(items, rng):
    return rng.sample(items, len(items))


def relabelled(name, data, rng):
    """The same instance with its things numbered and listed in another order."""
    if name == "tsp":
        order = shuffled(range(len(data["distances"])), rng)
        copy = {"distances": [[data["distances"][u][v] for v in order] for u in order]}
        if data.get("coordinates") is not None:
            copy["coordinates"] = [data["coordinates"][u] for u in order]
        return copy
    if name == "set_cover":
        order = shuffled(range(data["num_elements"]), rng)
        subsets = [shuffled([order[e] for e in subset], rng) for subset in data["subsets"]]
        return {"num_elements": data["num_elements"], "subsets": shuffled(subsets, rng)}
    if name == "subset_sum":
        return {"numbers": shuffled(data["numbers"], rng), "target": data["target"]}
    if name == "knapsack":
        items = shuffled(list(zip(data["weights"], data["values"], strict=True)), rng)
        weights, values = map(list, zip(*items, strict=True))
        return {"capacity": data["capacity"], "weights": weights, "values": values}
    if name == "meeting_scheduling":
        people = sorted({p for meeting in data["meetings"] for p in meeting["attendees"]})
        names = dict(zip(people, shuffled(people, rng), strict=True))
        meetings = [
            {
                "duration": m["duration"],
                "attendees": shuffled([names[p] for p in m["attendees"]], rng),
            }
            for m in data["meetings"]
        ]
        rooms = shuffled(data["rooms"], rng)
        return {"day": data["day"], "rooms": rooms, "meetings": shuffled(meetings, rng)}
    order = shuffled(range(data["num_vertices"]), rng)
    edges = [[*rng.sample([order[u], order[v]], 2), *w] for u, v, *w in data["edges"]]
    return {"num_vertices": data["num_vertices"], "edges": shuffled(edges, rng)}


@every_task
@pytest.mark.parametrize("level", ["nano", "l1", "l3"])
def test_relabelled_copies_of_a_drawn_instance_have_one_key(name, level):
    task, rng = TASKS[name], random.Random(f"{name} {level}")
    generator = np.random.default_rng(rng.randrange(10**9))
    for family in task.families.values():
        for _ in range(4):
            data = task.encode(family(task.levels[level].params, generator))
            keys = {key(name, relabelled(name, data, rng)) for _ in range(5)}
            assert keys == {key(name, data)}


@every_task
def test_different_draws_have_different_keys(name):
    task, generator = TASKS[name], np.random.default_rng(12)
    families = list(task.families.values())
    instances = [
        families[i % len(families)](task.levels["l3"].params, generator) for i in range(60)
    ]
    assert len({task.class_key(instance) for instance in instances}) == 60


@every_task
def test_a_key_is_hexadecimal_and_stable(name):
    task = TASKS[name]
    family = next(iter(task.families.values()))
    instance = family(task.levels["nano"].params, np.random.default_rng(3))
    found = task.class_key(instance)
    assert re.fullmatch(r"[0-9a-f]{16,128}", found)
    assert task.class_key(task.decode(task.encode(instance))) == found


def connected_graphs(num_vertices):
    atlas = (graph for graph in nx.graph_atlas_g() if len(graph) == num_vertices)
    return [from_graph(graph) for graph in atlas if nx.is_connected(graph)]


@pytest.mark.parametrize(("num_vertices", "count"), [(5, 21), (6, 112), (7, 853)])
def test_each_connected_graph_has_a_key_of_its_own(num_vertices, count):
    rng = random.Random(num_vertices)
    graphs = connected_graphs(num_vertices)
    keys = [key("vertex_cover", graph) for graph in graphs]
    assert len(graphs) == len(set(keys)) == count
    again = [key("vertex_cover", relabelled("vertex_cover", graph, rng)) for graph in graphs]
    assert again == keys


@pytest.mark.parametrize("name", PLAIN)
def test_each_task_on_plain_graphs_tells_all_small_graphs_apart(name):
    graphs = [from_graph(graph) for graph in nx.graph_atlas_g()[1:209]]
    assert len({key(name, graph) for graph in graphs}) == 208


def as_distances(graph):
    n = graph["num_vertices"]
    table = [[2 * (u != v) for v in range(n)] for u in range(n)]
    for u, v in graph["edges"]:
        table[u][v] = table[v][u] = 1
    return {"distances": table}


def as_weights(graph):
    """All pairs, those of the graph lighter than the others."""
    edges = {tuple(sorted(edge)) for edge in graph["edges"]}
    pairs = itertools.combinations(range(graph["num_vertices"]), 2)
    weights = [[u, v, 3 if (u, v) in edges else 5] for u, v in pairs]
    return {"num_vertices": graph["num_vertices"], "edges": weights}


@pytest.mark.parametrize("name", WEIGHTED)
def test_each_two_weighting_of_a_complete_graph_has_a_key_of_its_own(name):
    rng = random.Random(name)
    graphs = [as_weights(from_graph(graph)) for graph in nx.graph_atlas_g() if len(graph) == 6]
    keys = [key(name, graph) for graph in graphs]
    assert len(set(keys)) == len(graphs) == 156
    assert [key(name, relabelled(name, graph, rng)) for graph in graphs] == keys


def test_each_table_of_two_distances_has_a_key_of_its_own():
    rng = random.Random(1)
    tables = [as_distances(from_graph(graph)) for graph in nx.graph_atlas_g() if len(graph) == 6]
    keys = [key("tsp", table) for table in tables]
    assert len(set(keys)) == len(tables) == 156
    assert [key("tsp", relabelled("tsp", table, rng)) for table in tables] == keys


def test_weights_that_differ_in_one_place_have_different_keys():
    ring = [[i, (i + 1) % 6, 1] for i in range(6)]
    keys = {key("maximum_cut", {"num_vertices": 6, "edges": ring})}
    for weight in (2, 3, 10**6):
        edges = [*ring[:5], [5, 0, weight]]
        keys.add(key("maximum_cut", {"num_vertices": 6, "edges": edges}))
    assert len(keys) == 4


REGULAR = {
    "two_triangles": nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)),
    "hexagon": nx.cycle_graph(6),
    "prism": nx.circular_ladder_graph(3),
    "complete_3_3": nx.complete_bipartite_graph(3, 3),
    "petersen": nx.petersen_graph(),
    "pentagonal_prism": nx.circular_ladder_graph(5),
    "moebius_ladder": nx.circulant_graph(10, [1, 5]),
    "desargues": nx.desargues_graph(),
    "dodecahedron": nx.dodecahedral_graph(),
    "rook_4x4": nx.line_graph(nx.complete_bipartite_graph(4, 4)),
    "shrikhande": nx.Graph(
        ((a, b), ((a + x) % 4, (b + y) % 4))
        for a in range(4)
        for b in range(4)
        for x, y in ((0, 1), (1, 0), (1, 1))
    ),
}


def test_regular_graphs_that_colour_refinement_confuses_have_different_keys():
    rng = random.Random(4)
    keys = {}
    for graph_name, graph in REGULAR.items():
        data = from_graph(graph)
        keys[graph_name] = key("maximum_clique", data)
        for _ in range(3):
            again = key("maximum_clique", relabelled("maximum_clique", data, rng))
            assert again == keys[graph_name], graph_name
    assert len(set(keys.values())) == len(REGULAR)


def every_order(name, data):
    """All relabelled copies of a tiny instance as comparable values."""
    if name == "set_cover":
        for order in itertools.permutations(range(data["num_elements"])):
            yield tuple(sorted(tuple(sorted(order[e] for e in s)) for s in data["subsets"]))
    else:
        people = sorted({p for meeting in data["meetings"] for p in meeting["attendees"]})
        rooms = tuple(sorted(room["capacity"] for room in data["rooms"]))
        for order in itertools.permutations(range(len(people))):
            names = dict(zip(people, order, strict=True))
            meetings = (
                (m["duration"], tuple(sorted(names[p] for p in m["attendees"])))
                for m in data["meetings"]
            )
            yield rooms, tuple(sorted(meetings))


def tiny_covers():
    for rows in itertools.product(range(1, 8), repeat=4):
        subsets = [[e for e in range(3) if row >> e & 1] for row in rows]
        if {e for subset in subsets for e in subset} == {0, 1, 2}:
            yield {"num_elements": 3, "subsets": subsets}


def tiny_schedules():
    rng = random.Random(6)
    for _ in range(500):
        yield {
            "day": [[0, 60]],
            "rooms": [{"capacity": rng.randint(1, 2)} for _ in range(2)],
            "meetings": [
                {"duration": rng.choice([20, 30]), "attendees": rng.sample(range(4), 2)}
                for _ in range(3)
            ],
        }


@pytest.mark.parametrize(
    ("name", "instances"),
    [("set_cover", tiny_covers), ("meeting_scheduling", tiny_schedules)],
    ids=["set_cover", "meeting_scheduling"],
)
def test_two_instances_share_a_key_exactly_where_one_is_the_other_relabelled(name, instances):
    classes, keys = {}, {}
    for data in instances():
        form, found = min(every_order(name, data)), key(name, data)
        assert classes.setdefault(form, found) == found
        assert keys.setdefault(found, form) == form
    assert len(classes) == len(keys) >= 20


CHANGED = [
    ("subset_sum", {"numbers": [1, 2, 3], "target": 3}, {"numbers": [1, 2, 3], "target": 4}),
    ("subset_sum", {"numbers": [1, 2, 3], "target": 3}, {"numbers": [1, 1, 3], "target": 3}),
    ("subset_sum", {"numbers": [1, 2], "target": 3}, {"numbers": [1, 2, 2], "target": 3}),
    (
        "knapsack",
        {"capacity": 3, "weights": [1, 2], "values": [3, 4]},
        {"capacity": 3, "weights": [1, 2], "values": [4, 3]},
    ),
    (
        "knapsack",
        {"capacity": 3, "weights": [1, 2], "values": [3, 4]},
        {"capacity": 2, "weights": [1, 2], "values": [3, 4]},
    ),
    (
        "set_cover",
        {"num_elements": 2, "subsets": [[0, 1]]},
        {"num_elements": 2, "subsets": [[0, 1], []]},
    ),
    (
        "meeting_scheduling",
        {
            "day": [[0, 60]],
            "rooms": [{"capacity": 1}],
            "meetings": [{"duration": 9, "attendees": [0]}],
        },
        {
            "day": [[0, 61]],
            "rooms": [{"capacity": 1}],
            "meetings": [{"duration": 9, "attendees": [0]}],
        },
    ),
    (
        "meeting_scheduling",
        {
            "day": [[0, 60]],
            "rooms": [{"capacity": 1}],
            "meetings": [{"duration": 9, "attendees": [0]}] * 2,
        },
        {
            "day": [[0, 60]],
            "rooms": [{"capacity": 1}],
            "meetings": [
                {"duration": 9, "attendees": [0]},
                {"duration": 9, "attendees": [1]},
            ],
        },
    ),
]


@pytest.mark.parametrize(("name", "first", "second"), CHANGED)
def test_one_changed_number_changes_the_key(name, first, second):
    assert key(name, first) != key(name, second)


def test_the_numbers_of_attendees_are_only_names():
    data = {
        "day": [[0, 60]],
        "rooms": [{"capacity": 2}],
        "meetings": [{"duration": 9, "attendees": [0, 1]}, {"duration": 8, "attendees": [1, 2]}],
    }
    renamed = {
        **data,
        "meetings": [{"duration": 8, "attendees": [7, 40]}, {"duration": 9, "attendees": [3, 40]}],
    }
    assert key("meeting_scheduling", data) == key("meeting_scheduling", renamed)


@pytest.mark.parametrize(
    "graph",
    [
        nx.empty_graph(100),
        nx.complete_graph(60),
        nx.star_graph(99),
        nx.complete_bipartite_graph(30, 30),
        nx.hypercube_graph(6),
        nx.cycle_graph(50),
        nx.grid_2d_graph(12, 12),
        nx.disjoint_union_all([nx.cycle_graph(4)] * 20),
        nx.full_rary_tree(2, 63),
        nx.paley_graph(37).to_undirected(),
    ],
    ids=[
        "empty",
        "complete",
        "star",
        "bipartite",
        "6-cube",
        "cycle",
        "grid",
        "squares",
        "tree",
        "paley",
    ],
)
def test_very_symmetric_graphs_have_one_key_under_relabelling(graph):
    rng = random.Random(9)
    data = from_graph(graph)
    keys = {key("vertex_cover", relabelled("vertex_cover", data, rng)) for _ in range(3)}
    assert keys == {key("vertex_cover", data)}
