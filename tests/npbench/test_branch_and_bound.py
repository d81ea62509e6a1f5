"""The clique search against networkx, published cliques, and its own node limit."""

import itertools
import random

import networkx as nx
import pytest

from npbench.branch_and_bound import maximum_clique
from npbench.graphs import decode_graph

PLENTY = 10**7


def searched(graph, *, node_limit=PLENTY):
    """The clique found as vertices of the graph, and whether it is proven."""
    vertices = list(graph)
    number = {vertex: i for i, vertex in enumerate(vertices)}
    edges = [[number[u], number[v]] for u, v in graph.edges]
    plain = decode_graph({"num_vertices": len(vertices), "edges": edges})
    found, proven = maximum_clique(plain, node_limit=node_limit)
    assert found == sorted(set(found))
    return [vertices[i] for i in found], proven


def is_clique(graph, vertices):
    return all(graph.has_edge(u, v) for u, v in itertools.combinations(vertices, 2))


@pytest.mark.parametrize("density", [0.05, 0.2, 0.5, 0.8, 0.95])
def test_the_search_finds_a_clique_as_large_as_that_of_networkx(density):
    for seed in range(40):
        graph = nx.gnp_random_graph(random.Random(seed).randint(1, 22), density, seed=seed)
        found, proven = searched(graph)
        best, size = nx.max_weight_clique(graph, weight=None)
        assert proven
        assert is_clique(graph, found)
        assert len(found) == size, f"networkx finds {best}"


def test_every_graph_of_up_to_six_vertices_has_its_clique_number():
    for graph in nx.graph_atlas_g()[1:209]:
        found, proven = searched(graph)
        largest = max(map(len, nx.find_cliques(graph)))
        assert (len(found), proven) == (largest, True)
        assert is_clique(graph, found)


@pytest.mark.parametrize(
    ("graph", "size"),
    [
        (nx.empty_graph(1), 1),
        (nx.empty_graph(9), 1),
        (nx.complete_graph(40), 40),
        (nx.turan_graph(30, 7), 7),
        (nx.kneser_graph(8, 2), 4),
        (nx.mycielski_graph(6), 2),
        (nx.complement(nx.cycle_graph(21)), 10),
        (nx.disjoint_union(nx.star_graph(20), nx.complete_graph(5)), 5),
    ],
)
def test_the_search_proves_known_clique_numbers(graph, size):
    found, proven = searched(graph)
    assert (len(found), proven) == (size, True)
    assert is_clique(graph, found)


@pytest.mark.parametrize("node_limit", [1, 2, 5, 20, 100])
def test_a_search_that_runs_out_of_nodes_says_so_and_returns_a_clique(node_limit):
    graph = nx.gnp_random_graph(60, 0.7, seed=3)
    size = len(searched(graph)[0])
    found, proven = searched(graph, node_limit=node_limit)
    assert not proven
    assert len(found) <= size
    assert is_clique(graph, found)


def test_a_claim_of_proof_is_never_wrong_whatever_the_node_limit():
    graph = nx.gnp_random_graph(18, 0.6, seed=8)
    _, size = nx.max_weight_clique(graph, weight=None)
    claims = set()
    for node_limit in range(1, 200):
        found, proven = searched(graph, node_limit=node_limit)
        claims.add(proven)
        assert is_clique(graph, found)
        assert len(found) == size or not proven
    assert claims == {True, False}


def test_the_search_gives_the_same_clique_twice():
    graph = nx.gnp_random_graph(40, 0.5, seed=5)
    assert searched(graph) == searched(graph)
