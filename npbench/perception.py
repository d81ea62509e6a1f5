"""np-perception: what a reader sees in a picture, apart from what a solver makes of it.

A picture is a set of facts: the numbers of its vertices or rows, its edges or members, its weights
and its bounds. A reader is asked to list them; each kind is scored by precision, recall and F1 over
exact facts. Whoever sees everything and still answers badly has failed to solve, not to see.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npbench.errors import ParseError

__all__ = [
    "KINDS",
    "Agreement",
    "Facts",
    "agreement",
    "facts",
    "mean_f1",
    "parse_facts",
    "perception_prompt",
    "perception_reply",
]

Facts = dict[str, frozenset[tuple[int, ...]]]
"""Tuples of integers by kind of fact."""

MAX_REPLY_CHARS = 1 << 20
_MAX_FACTS = 100_000
_MARKER = re.compile(r"answer\s*[*_`]{0,4}\s*:", re.IGNORECASE)

_GRAPH = {
    "vertices": "the number of every vertex, each as [v]",
    "edges": "every edge once, as [u, v]",
}
_WEIGHTED = {**_GRAPH, "weights": "the weight of every edge once, as [u, v, weight]"}
KINDS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "graph_coloring",
            "feedback_vertex_set",
            "vertex_cover",
            "dominating_set",
            "maximum_clique",
            "maximum_independent_set",
            "longest_cycle",
        ),
        _GRAPH,
    ),
    "minimum_bisection": _WEIGHTED,
    "maximum_cut": _WEIGHTED,
    "tsp": {
        "cities": "the number of every city, each as [v]",
        "distances": "the distance of every pair of cities once, as [u, v, distance]",
    },
    "set_cover": {
        "subsets": "the number of every subset, each as [j]",
        "members": "every element of every subset, as [subset, element]",
    },
    "subset_sum": {
        "numbers": "every position with its number, as [position, number]",
        "target": "the target, as [target]",
    },
    "knapsack": {
        "items": "every item with its weight and value, as [item, weight, value]",
        "capacity": "the capacity, as [capacity]",
    },
    "meeting_scheduling": {
        "open": "every opening interval, as [from, until]",
        "rooms": "every room with its capacity, as [room, capacity]",
        "durations": "every meeting with its duration, as [meeting, duration]",
        "attendees": "every attendee of every meeting, as [meeting, attendee]",
    },
}
"""What is asked of the pictures of each task, by kind of fact."""

_UNORDERED = ("edges", "weights", "distances")
"""Kinds of which the first two numbers are a pair of vertices without direction."""


def perception_prompt(task: str, picture: str) -> str:
    """The question: list what the picture shows.

    Args:
        task: The task's name.
        picture: What the picture shows, in the words of the task's own prompt.
    """
    listed = "\n".join(f'- "{kind}": {form}' for kind, form in KINDS[task].items())
    shape = ", ".join(f'"{kind}": [[...], ...]' for kind in KINDS[task])
    return (
        f"Read the picture; nothing is to be solved. {picture}\n\nList\n{listed}\n\n"
        "All numbers are integers, as they stand in the picture. End your reply with one line "
        f"of this form and write nothing after it:\nAnswer: {{{shape}}}"
    )


def facts(task: str, instance: Mapping[str, Any]) -> Facts:
    """What the picture of an instance shows.

    Args:
        task: The task's name.
        instance: Its JSON form.
    """
    return {kind: frozenset(rows) for kind, rows in _FACTS.get(task, _graph)(instance).items()}


Lister = Callable[[Mapping[str, Any]], dict[str, list[tuple[int, ...]]]]


def _graph(instance: Mapping[str, Any]) -> dict[str, list[tuple[int, ...]]]:
    return {
        "vertices": [(v,) for v in range(instance["num_vertices"])],
        "edges": [tuple(edge[:2]) for edge in instance["edges"]],
    }


def _weighted(instance: Mapping[str, Any]) -> dict[str, list[tuple[int, ...]]]:
    return {**_graph(instance), "weights": [tuple(edge) for edge in instance["edges"]]}


def _tour(instance: Mapping[str, Any]) -> dict[str, list[tuple[int, ...]]]:
    rows = instance["distances"]
    pairs = [(u, v) for u in range(len(rows)) for v in range(u + 1, len(rows))]
    return {
        "cities": [(v,) for v in range(len(rows))],
        "distances": [(u, v, rows[u][v]) for u, v in pairs],
    }


def _cover(instance: Mapping[str, Any]) -> dict[str, list[tuple[int, ...]]]:
    subsets = instance["subsets"]
    return {
        "subsets": [(j,) for j in range(len(subsets))],
        "members": [(j, element) for j, subset in enumerate(subsets) for element in subset],
    }


def _sum(instance: Mapping[str, Any]) -> dict[str, list[tuple[int, ...]]]:
    return {"numbers": list(enumerate(instance["numbers"])), "target": [(instance["target"],)]}


def _items(instance: Mapping[str, Any]) -> dict[str, list[tuple[int, ...]]]:
    pairs = zip(instance["weights"], instance["values"], strict=True)
    return {
        "items": [(i, weight, value) for i, (weight, value) in enumerate(pairs)],
        "capacity": [(instance["capacity"],)],
    }


def _meetings(instance: Mapping[str, Any]) -> dict[str, list[tuple[int, ...]]]:
    meetings = instance["meetings"]
    return {
        "open": [tuple(span) for span in instance["day"]],
        "rooms": [(r, room["capacity"]) for r, room in enumerate(instance["rooms"])],
        "durations": [(m, meeting["duration"]) for m, meeting in enumerate(meetings)],
        "attendees": [(m, a) for m, meeting in enumerate(meetings) for a in meeting["attendees"]],
    }


_FACTS: Mapping[str, Lister] = {
    "minimum_bisection": _weighted,
    "maximum_cut": _weighted,
    "tsp": _tour,
    "set_cover": _cover,
    "subset_sum": _sum,
    "knapsack": _items,
    "meeting_scheduling": _meetings,
}


def perception_reply(found: Facts) -> str:
    """Facts in the format that the prompt asks for."""
    listed = {kind: [list(fact) for fact in sorted(rows)] for kind, rows in found.items()}
    return f"Answer: {json.dumps(listed)}"


def parse_facts(task: str, reply: str) -> Facts:
    """The facts that a reply lists behind its last answer marker.

    A kind that is missing is empty; other kinds are ignored. A bare number counts as a fact of one
    number, and pairs of vertices may be given in either order.

    Raises:
        ParseError: If there is no JSON object of lists of integers.

    Example:
        >>> parse_facts("knapsack", 'Answer: {"items": [[0, 5, 9]], "capacity": [10]}')["capacity"]
        frozenset({(10,)})
    """
    if len(reply) > MAX_REPLY_CHARS:
        raise ParseError(f"the reply is too long: {len(reply)} characters of {MAX_REPLY_CHARS}")
    end = max((marker.end() for marker in _MARKER.finditer(reply)), default=None)
    start = -1 if end is None else reply.find("{", end)
    if start < 0:
        raise ParseError("no answer marker with an object behind it")
    try:
        data, _ = json.JSONDecoder().raw_decode(reply, start)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"the answer is no JSON object: {error}") from None
    return {kind: frozenset(_rows(kind, data.get(kind, []))) for kind in KINDS[task]}


def _rows(kind: str, listed: object) -> Iterable[tuple[int, ...]]:
    if not isinstance(listed, list) or len(listed) > _MAX_FACTS:
        raise ParseError(f"{kind} is no list of at most {_MAX_FACTS} facts")
    for entry in listed:
        fact = entry if isinstance(entry, list) else [entry]
        if not all(type(number) is int for number in fact):
            raise ParseError(f"{kind} holds {str(entry)[:40]!r}, which are no integers")
        if kind in _UNORDERED and len(fact) > 1 and fact[0] > fact[1]:
            fact = [fact[1], fact[0], *fact[2:]]
        yield tuple(fact)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well the facts that were read agree with those that were drawn."""

    precision: float
    recall: float
    f1: float


def agreement(drawn: frozenset[tuple[int, ...]], read: frozenset[tuple[int, ...]]) -> Agreement:
    """Precision, recall and F1 of a set of facts; all 1 where nothing was drawn and nothing read.

    References:
        van Rijsbergen, Information Retrieval, 1979, chapter 7.
    """
    if not drawn and not read:
        return Agreement(1.0, 1.0, 1.0)
    both = len(drawn & read)
    precision = both / len(read) if read else 0.0
    recall = both / len(drawn) if drawn else 0.0
    return Agreement(precision, recall, 2 * both / (len(drawn) + len(read)))


def mean_f1(parts: Sequence[Agreement]) -> float:
    """The mean of F1 over the kinds of a picture."""
    return sum(part.f1 for part in parts) / len(parts)
