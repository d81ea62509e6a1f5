"""The ``question`` of each of NP-Engine's task types, to and from our JSON form."""

from collections.abc import Mapping
from typing import Any

from npbench.errors import InputError
from npbench.graphs import Graph
from npbench.interop.payloads import (
    Payload,
    adjacency_lists,
    adjacency_weights,
    by_number,
    distance_rows,
    edge_rows,
    require_keys,
    weighted_edge_rows,
)
from npbench.tasks.knapsack import Items
from npbench.tasks.meeting_scheduling import Meetings
from npbench.tasks.set_cover import Cover
from npbench.tasks.subset_sum import Numbers
from npbench.tasks.tsp import Cities

__all__ = ["PAYLOADS"]


def _read_cover(data: Any) -> dict[str, Any]:
    require_keys(data, ("U", "S"), "the question")
    universe = data["U"]
    if not isinstance(universe, list) or universe != list(range(len(universe))):
        raise InputError(f"U must list the elements 0, 1, 2, ..., got {str(universe)[:40]}")
    return {"num_elements": len(universe), "subsets": by_number(data["S"], "S")}


def _write_cover(cover: Cover) -> dict[str, Any]:
    subsets = {str(j): list(subset) for j, subset in enumerate(cover.subsets)}
    return {"U": list(range(cover.num_elements)), "S": subsets}


def _read_numbers(data: Any) -> dict[str, Any]:
    require_keys(data, ("target", "numbers"), "the question")
    return {"numbers": by_number(data["numbers"], "numbers"), "target": data["target"]}


def _write_numbers(problem: Numbers) -> dict[str, Any]:
    numbers = {str(i): number for i, number in enumerate(problem.numbers)}
    return {"target": problem.target, "numbers": numbers}


def _read_items(data: Any) -> dict[str, Any]:
    require_keys(data, ("capacity", "items"), "the question")
    items = by_number(data["items"], "items")
    for i, item in enumerate(items):
        require_keys(item, ("weight", "value"), f"item {i}")
    return {
        "capacity": data["capacity"],
        "weights": [item["weight"] for item in items],
        "values": [item["value"] for item in items],
    }


def _write_items(problem: Items) -> dict[str, Any]:
    pairs = enumerate(zip(problem.weights, problem.values, strict=True))
    items = {str(i): {"weight": weight, "value": value} for i, (weight, value) in pairs}
    return {"capacity": problem.capacity, "items": items}


def _read_meetings(data: Any) -> dict[str, Any]:
    require_keys(data, ("meetings", "attendee_availability", "rooms"), "the question")
    available = data["attendee_availability"]
    if not isinstance(available, dict) or not available:
        raise InputError("attendee_availability must be an object with an entry for each attendee")
    first, day = next(iter(available.items()))
    for person, intervals in available.items():
        if intervals != day:
            raise InputError(
                f"attendees must all have the same availability, got {str(day)[:60]} for "
                f"attendee {first} and {str(intervals)[:60]} for attendee {person}"
            )
    meetings = by_number(data["meetings"], "meetings")
    for i, meeting in enumerate(meetings):
        require_keys(meeting, ("attendees", "duration"), f"meeting {i}")
        if not isinstance(meeting["attendees"], list):
            raise InputError(f"the attendees of meeting {i} must be a list")
        unknown = [person for person in meeting["attendees"] if str(person) not in available]
        if unknown:
            raise InputError(f"attendee {str(unknown[0])[:20]} of meeting {i} has no availability")
    rooms = [{"capacity": capacity} for capacity in by_number(data["rooms"], "rooms")]
    return {"day": day, "rooms": rooms, "meetings": meetings}


def _write_meetings(problem: Meetings) -> dict[str, Any]:
    alone = [i for i, people in enumerate(problem.attendees) if not people]
    if alone:
        raise InputError(
            f"meeting {alone[0]} has no attendees; NP-Engine would hold it at any time"
        )
    rows = enumerate(zip(problem.attendees, problem.durations, strict=True))
    people = sorted({person for row in problem.attendees for person in row})
    day = [list(interval) for interval in problem.day]
    return {
        "meetings": {
            str(i): {"attendees": list(row), "duration": duration} for i, (row, duration) in rows
        },
        "attendee_availability": {str(person): day for person in people},
        "rooms": {str(i): capacity for i, capacity in enumerate(problem.capacities)},
    }


def _write_distances(cities: Cities) -> dict[str, Any]:
    rows = enumerate(cities.distances)
    return {str(u): {str(v): d for v, d in enumerate(row)} for u, row in rows}


def _write_ones(graph: Graph) -> dict[str, Any]:
    return {str(u): {str(v): 1 for v in row} for u, row in enumerate(graph.neighbours)}


_LISTS = Payload(edge_rows, adjacency_lists)
PAYLOADS: Mapping[str, Payload] = {
    "TSP": Payload(distance_rows, _write_distances),
    "hamiltonian-cycle": _LISTS,
    "GCP-D": _LISTS,
    "maximum_clique_problem": _LISTS,
    "maximum-set": Payload(edge_rows, _write_ones),
    "minimum-cut": Payload(weighted_edge_rows, adjacency_weights),
    "set-cover": Payload(_read_cover, _write_cover),
    "subset-sum": Payload(_read_numbers, _write_numbers),
    "knapsack": Payload(_read_items, _write_items),
    "meeting-schedule": Payload(_read_meetings, _write_meetings),
}
"""By task type."""
