"""The ``graph`` of each of VLMEvalKit's npmm tasks, to and from our JSON form."""

import ast
import re
from collections.abc import Mapping
from typing import Any

from npbench.errors import InputError
from npbench.graphs import Graph, WeightedGraph
from npbench.interop.payloads import (
    Payload,
    adjacency_lists,
    adjacency_weights,
    distance_rows,
    edge_rows,
    require_keys,
    weighted_edge_rows,
)
from npbench.tasks.tsp import Cities

__all__ = ["PAYLOADS", "graph_literal"]

MAX_GRAPH = 4 << 20
"""Longest ``graph`` in characters."""

_LITERAL = re.compile(r"[\s\w\[\]{}:,'\"-]*", re.ASCII)


def graph_literal(text: str) -> Any:
    """The Python literal of a ``graph`` field: objects, lists, numbers and words only.

    Raises:
        InputError: If the text is anything else, or too long.
    """
    if len(text) > MAX_GRAPH:
        raise InputError(f"graph must have at most {MAX_GRAPH} characters, got {len(text)}")
    strange = _LITERAL.match(text)
    if strange is None or strange.end() != len(text):
        place = strange.end() if strange else 0
        raise InputError(f"graph must be a literal of lists and objects, got {text[place:][:20]!r}")
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise InputError(f"graph must be a Python literal, got {text.strip()[:40]!r}") from None


def _write_distances(cities: Cities) -> dict[str, Any]:
    return {
        str(u): {str(v): distance for v, distance in enumerate(row) if v != u}
        for u, row in enumerate(cities.distances)
    }


def _write_text_lists(graph: Graph) -> dict[str, Any]:
    return {str(u): [str(v) for v in row] for u, row in enumerate(graph.neighbours)}


def _read_cut(data: Any) -> dict[str, Any]:
    require_keys(data, ("num_vertices", "edges"), "the graph")
    if not isinstance(data["edges"], dict):
        raise InputError(f"edges must be an object, got {str(data['edges'])[:40]!r}")
    edges = []
    for key, weight in data["edges"].items():
        ends = re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", str(key))
        if ends is None:
            raise InputError(f"an edge must be of the form '0-1', got {str(key)[:40]!r}")
        edges.append([int(ends[1]), int(ends[2]), weight])
    return {"num_vertices": data["num_vertices"], "edges": edges}


def _write_cut(graph: WeightedGraph) -> dict[str, Any]:
    edges = {f"{u}-{v}": weight for u, v, weight in graph.edges}
    return {"num_vertices": graph.num_vertices, "edges": edges}


_LISTS = Payload(edge_rows, adjacency_lists)
PAYLOADS: Mapping[str, Payload] = {
    "NpTsp": Payload(distance_rows, _write_distances),
    "NpGcpD": _LISTS,
    "NpHamiltonianCycle": _LISTS,
    "NpMaximumCliqueProblem": _LISTS,
    "NpMaximumSet": Payload(edge_rows, _write_text_lists),
    "NpMinimumCut": Payload(weighted_edge_rows, adjacency_weights),
    "NpMaximumCut": Payload(_read_cut, _write_cut),
    "NpVertexCover": _LISTS,
    "NpDominatingSet": _LISTS,
    "NpFeedbackVertexSet": _LISTS,
}
"""By alias; neighbours of an independent set are text, since numbers switch its check off."""
