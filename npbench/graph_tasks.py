"""What all tasks on graphs have in common: JSON form, class key, text and picture."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from npbench.answers import Shape
from npbench.canonical import class_key
from npbench.graphs import Graph, WeightedGraph, decode_graph, decode_weighted_graph
from npbench.prompts import Wording, edge_text
from npbench.solutions import (
    canonical_set,
    canonical_sides,
    set_distance,
    side_distance,
)
from npbench.task import Budget, Level, Reference, Sense, Solver, Task, Verdict

if TYPE_CHECKING:
    from npbench.rendering.picture import Picture
    from npbench.rendering.styles import Style

__all__ = [
    "EXAMPLE_GRAPH",
    "EXAMPLE_WEIGHTED",
    "PICTURE_OF_A_GRAPH",
    "PICTURE_OF_WEIGHTS",
    "VERTEX_LIMITS",
    "describe_graph",
    "draw_graph",
    "encode_graph",
    "graph_class_key",
    "split_task",
    "subset_task",
]

Family = Callable[[Mapping[str, Any], np.random.Generator], Any]

PICTURE_OF_A_GRAPH = (
    "The picture shows the graph: numbered vertices, and a line for every edge. "
    "Lines that cross between vertices do not meet there."
)
PICTURE_OF_WEIGHTS = (
    "The picture shows the graph and beside it the symmetric matrix of its edge weights; "
    "an empty cell means that there is no edge."
)
EXAMPLE_GRAPH: dict[str, Any] = {
    "num_vertices": 5,
    "edges": [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]],
}
EXAMPLE_WEIGHTED: dict[str, Any] = {
    "num_vertices": 4,
    "edges": [[0, 1, 5], [0, 2, 1], [1, 3, 2], [2, 3, 4]],
}
VERTEX_LIMITS = {"num_vertices": (4, 200)}


def encode_graph(graph: Graph | WeightedGraph) -> dict[str, Any]:
    """The JSON form of a graph, weighted or not."""
    return {"num_vertices": graph.num_vertices, "edges": [list(edge) for edge in graph.edges]}


def describe_graph(graph: Graph | WeightedGraph) -> str:
    """The graph as the text prompt writes it."""
    return edge_text(graph.num_vertices, graph.edges)


def graph_class_key(graph: Graph) -> str:
    """Equal for isomorphic graphs."""
    adjacency = [dict.fromkeys(row, 1) for row in graph.neighbours]
    return class_key([0] * graph.num_vertices, adjacency)


def weighted_class_key(graph: WeightedGraph) -> str:
    """Equal for weighted graphs that are isomorphic with their weights."""
    return class_key([0] * graph.num_vertices, graph.weights)


def draw_graph(graph: Graph, style: "Style", size: int) -> "Picture":
    """The graph as a node-link picture."""
    from npbench.pictures import graph_picture

    return graph_picture(graph, style, size)


def draw_weighted(graph: WeightedGraph, style: "Style", size: int) -> "Picture":
    """The graph and its matrix of weights."""
    from npbench.pictures import weighted_picture

    return weighted_picture(graph, style, size)


SolutionT = TypeVar("SolutionT")


def subset_task(
    *,
    name: str,
    title: str,
    sense: Sense,
    group: str,
    category: str,
    aliases: tuple[str, ...],
    levels: Mapping[str, Level],
    families: Mapping[str, Family],
    flaw: Callable[[Graph, Reference[list[int]]], str | None],
    verify: Callable[[Graph, object], Verdict],
    solvers: Mapping[str, Solver[Graph, list[int]]],
    reference: Callable[[Graph, Budget], Reference[list[int]]],
    wording: Wording,
    notes: Mapping[str, str],
) -> Task[Graph, list[int]]:
    """A task on a graph whose answer is a set of vertices."""
    return Task(
        name=name,
        title=title,
        sense=sense,
        group=group,
        category=category,
        aliases=aliases,
        levels=levels,
        limits=VERTEX_LIMITS,
        families=families,
        flaw=flaw,
        verify=verify,
        solvers=solvers,
        reference=reference,
        canonical=canonical_set,
        distance=set_distance,
        class_key=graph_class_key,
        encode=encode_graph,
        decode=decode_graph,
        shape=Shape.FLAT,
        wording=wording,
        describe=describe_graph,
        draw=draw_graph,
        notes=notes,
    )


def split_task(
    *,
    name: str,
    title: str,
    sense: Sense,
    category: str,
    aliases: tuple[str, ...],
    levels: Mapping[str, Level],
    families: Mapping[str, Family],
    flaw: Callable[[WeightedGraph, Reference[list[list[int]]]], str | None],
    verify: Callable[[WeightedGraph, object], Verdict],
    solvers: Mapping[str, Solver[WeightedGraph, list[list[int]]]],
    reference: Callable[[WeightedGraph, Budget], Reference[list[list[int]]]],
    wording: Wording,
    notes: Mapping[str, str],
) -> Task[WeightedGraph, list[list[int]]]:
    """A task on a weighted graph whose answer is a split of the vertices into two sides."""
    return Task(
        name=name,
        title=title,
        sense=sense,
        group="partitioning",
        category=category,
        aliases=aliases,
        levels=levels,
        limits=VERTEX_LIMITS,
        families=families,
        flaw=flaw,
        verify=verify,
        solvers=solvers,
        reference=reference,
        canonical=canonical_sides,
        distance=side_distance,
        class_key=weighted_class_key,
        encode=encode_graph,
        decode=decode_weighted_graph,
        shape=Shape.NESTED,
        wording=wording,
        describe=describe_graph,
        draw=draw_weighted,
        notes=notes,
    )
