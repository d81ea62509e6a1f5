"""Meeting scheduling: meetings with many attendees in rooms and times without a clash."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from npbench.answers import Shape
from npbench.canonical import class_key as structure_key
from npbench.errors import InputError
from npbench.families import draw_size, size_range
from npbench.graphs import require_int, require_list, shown
from npbench.levels import make_levels
from npbench.prompts import Wording
from npbench.references import EARLY_STOP, choose, run
from npbench.solutions import canonical_rows, row_distance
from npbench.task import Budget, Reference, Sense, Task, Verdict

if TYPE_CHECKING:
    from npbench.rendering.picture import Picture
    from npbench.rendering.styles import Style

__all__ = ["TASK", "Meetings"]

Schedule = list[list[int]]


@dataclass(frozen=True)
class Meetings:
    """A day's opening intervals, rooms and meetings; times in minutes from midnight."""

    day: tuple[tuple[int, int], ...]
    capacities: tuple[int, ...]
    durations: tuple[int, ...]
    attendees: tuple[tuple[int, ...], ...]


def verify(instance: Meetings, answer: object) -> Verdict:
    """Feasible where no meeting, room, opening time or attendee is misused."""
    if not isinstance(answer, (list, tuple)):
        return Verdict(False, reason="the answer is no list of meetings", rule="shape")
    placed: dict[int, tuple[int, int, int]] = {}
    for row in answer:
        if not isinstance(row, (list, tuple)) or len(row) != 3:
            reason = f"the answer holds {shown(row)}, not of the form [meeting, room, start]"
            return Verdict(False, reason=reason, rule="shape")
        for entry in row:
            if type(entry) is not int:
                reason = f"the answer holds {shown(entry)}, which is no integer"
                return Verdict(False, reason=reason, rule="type")
        meeting, room, start = row
        reason, rule = _misplaced(instance, meeting, room, start)
        if reason:
            return Verdict(False, reason=reason, rule=rule)
        if meeting in placed:
            reason = f"meeting {meeting} is scheduled twice"
            return Verdict(False, reason=reason, rule="duplicate")
        end = start + instance.durations[meeting]
        for other, (other_room, other_start, other_end) in placed.items():
            if start >= other_end or other_start >= end:
                continue
            if room == other_room:
                reason = f"meetings {other} and {meeting} overlap in room {room}"
                return Verdict(False, reason=reason, rule="room_clash")
            shared = set(instance.attendees[meeting]) & set(instance.attendees[other])
            if shared:
                reason = f"attendee {min(shared)} is in meetings {other} and {meeting} at once"
                return Verdict(False, reason=reason, rule="attendee_clash")
        placed[meeting] = (room, start, end)
    return Verdict(True, objective=sum(len(instance.attendees[m]) for m in placed))


def _misplaced(instance: Meetings, meeting: int, room: int, start: int) -> tuple[str, str]:
    """Why one row is wrong by itself, with the rule's name; empty where it is right."""
    if not 0 <= meeting < len(instance.durations):
        return (
            f"meeting {shown(meeting)} does not exist (0 to {len(instance.durations) - 1})",
            "range",
        )
    if not 0 <= room < len(instance.capacities):
        return f"room {shown(room)} does not exist (0 to {len(instance.capacities) - 1})", "range"
    end = start + instance.durations[meeting]
    if not any(opens <= start and end <= closes for opens, closes in instance.day):
        return (
            f"meeting {meeting} from {shown(start)} to {shown(end)} is outside the opening times",
            "closed",
        )
    people = len(instance.attendees[meeting])
    if people > instance.capacities[room]:
        return (
            f"meeting {meeting} has {people} attendees, room {room} holds "
            f"{instance.capacities[room]}",
            "room_too_small",
        )
    return "", ""


def value(instance: Meetings, schedule: Schedule) -> int:
    """Attendees of the scheduled meetings."""
    return sum(len(instance.attendees[meeting]) for meeting, _, _ in schedule)


def _free(instance: Meetings, schedule: Schedule, meeting: int, room: int, start: int) -> bool:
    """Whether the meeting can be added to a feasible schedule."""
    end = start + instance.durations[meeting]
    people = instance.attendees[meeting]
    if len(people) > instance.capacities[room]:
        return False
    if not any(opens <= start and end <= closes for opens, closes in instance.day):
        return False
    for other, other_room, other_start in schedule:
        overlap = start < other_start + instance.durations[other] and other_start < end
        shared = room == other_room or not set(people).isdisjoint(instance.attendees[other])
        if overlap and shared:
            return False
    return True


def _earliest(instance: Meetings, schedule: Schedule, meeting: int) -> list[int] | None:
    """The earliest free slot in the lowest-numbered room, or None."""
    starts = {opens for opens, _ in instance.day}
    starts |= {start + instance.durations[other] for other, _, start in schedule}
    for start in sorted(starts):
        for room in range(len(instance.capacities)):
            if _free(instance, schedule, meeting, room, start):
                return [meeting, room, start]
    return None


def trivial(instance: Meetings, _: np.random.Generator) -> Schedule:
    """The largest single meeting that fits."""
    best: Schedule = []
    for meeting in range(len(instance.durations)):
        row = _earliest(instance, [], meeting)
        if row and (not best or value(instance, [row]) > value(instance, best)):
            best = [row]
    return best


def random(instance: Meetings, rng: np.random.Generator) -> Schedule:
    """Meetings in random order, each in a uniform choice of its free rooms and half-hour starts."""
    schedule: Schedule = []
    for meeting in rng.permutation(len(instance.durations)).tolist():
        slots = [
            [meeting, room, start]
            for room in range(len(instance.capacities))
            for opens, closes in instance.day
            for start in range(opens, closes, 30)
            if _free(instance, schedule, meeting, room, start)
        ]
        if slots:
            schedule.append(slots[int(rng.integers(len(slots)))])
    return schedule


def greedy(instance: Meetings, _: np.random.Generator) -> Schedule:
    """The meetings with most attendees first, each in its earliest slot."""
    schedule: Schedule = []
    for meeting in sorted(
        range(len(instance.durations)), key=lambda m: (-len(instance.attendees[m]), m)
    ):
        row = _earliest(instance, schedule, meeting)
        if row:
            schedule.append(row)
    return schedule


def heuristic(instance: Meetings, rng: np.random.Generator) -> Schedule:
    """CP-SAT stopped early."""
    return _solve(instance, EARLY_STOP, start=greedy(instance, rng), hint=False).solution


def reference(instance: Meetings, budget: Budget) -> Reference[Schedule]:
    """CP-SAT with optional intervals per room and attendee."""
    return _solve(instance, budget, start=greedy(instance, np.random.default_rng(0)), hint=True)


def _solve(
    instance: Meetings, budget: Budget, *, start: Schedule, hint: bool
) -> Reference[Schedule]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    in_room: list[list[Any]] = [[] for _ in instance.capacities]
    of_person: dict[int, list[Any]] = {}
    placements: list[tuple[int, int, Any, Any]] = []
    terms: list[Any] = []
    for meeting, duration in enumerate(instance.durations):
        people = instance.attendees[meeting]
        rooms = [r for r, capacity in enumerate(instance.capacities) if capacity >= len(people)]
        spans = [[opens, closes - duration] for opens, closes in instance.day]
        spans = [span for span in spans if span[0] <= span[1]]
        if not rooms or not spans:
            continue
        begin = model.new_int_var_from_domain(cp_model.Domain.from_intervals(spans), "")
        present = model.new_bool_var("")
        terms.append(len(people) * present)
        whole = model.new_optional_fixed_size_interval_var(begin, duration, present, "")
        for person in people:
            of_person.setdefault(person, []).append(whole)
        here = []
        for room in rooms:
            chosen = model.new_bool_var("")
            here.append(chosen)
            placements.append((meeting, room, begin, chosen))
            in_room[room].append(
                model.new_optional_fixed_size_interval_var(begin, duration, chosen, "")
            )
        model.add(sum(here) == present)
    for intervals in [*in_room, *of_person.values()]:
        if len(intervals) > 1:
            model.add_no_overlap(intervals)
    model.maximize(sum(terms))
    hints: list[tuple[Any, int]] | None = None
    if hint:
        starts = {(meeting, room): begin for meeting, room, begin in start}
        hints = [(chosen, int((m, r) in starts)) for m, r, _, chosen in placements]
        hints += [(begin, starts[m, r]) for m, r, begin, _ in placements if (m, r) in starts]
    variables = [variable for _, _, begin, chosen in placements for variable in (begin, chosen)]
    outcome = run(model, variables, budget=budget, linearization_level=0, hint=hints)
    solution = None
    if outcome.values is not None:
        solution = [
            [m, r, outcome.value(b)] for m, r, b, chosen in placements if outcome.value(chosen)
        ]
    return choose(
        outcome,
        sense=Sense.MAX,
        solution=solution,
        fallback=start,
        objective=lambda schedule: value(instance, schedule),
        trivial_bound=sum(len(people) for people in instance.attendees),
    )


def flaw(instance: Meetings, best: Reference[Schedule]) -> str | None:
    """Something can be scheduled, and it takes care: greedy or capacity must bite."""
    if best.objective == 0:
        return "no meeting can be scheduled"
    earliest = [_earliest(instance, [], meeting) for meeting in range(len(instance.durations))]
    if all(row is not None for row in earliest) and not _clashes(instance):
        return "no two meetings can clash"
    return None


def _clashes(instance: Meetings) -> bool:
    """Whether two meetings share an attendee, or the rooms are fewer than the meetings."""
    people = [person for row in instance.attendees for person in row]
    return len(set(people)) < len(people) or len(instance.capacities) < len(instance.durations)


DAY = ((540, 720), (780, 1020))


def _drawn(
    params: Mapping[str, Any],
    rng: np.random.Generator,
    *,
    rooms: Sequence[int],
    largest: int,
    day: tuple[tuple[int, int], ...],
    durations: Sequence[int] = (30, 60, 90),
) -> Meetings:
    """Meetings of random people, every attendee number in use, numbered at random."""
    count = draw_size(params, "num_meetings", rng)
    people = draw_size(params, "num_attendees", rng)
    rows = []
    for _ in range(count):
        size = int(rng.integers(1, min(largest, people) + 1))
        rows.append(sorted(rng.choice(people, size=size, replace=False).tolist()))
    used = sorted({person for row in rows for person in row})
    names = dict(zip(used, rng.permutation(len(used)).tolist(), strict=True))
    lengths = tuple(int(d) for d in rng.choice(np.array(durations), size=count))
    capacities = tuple(int(c) for c in rng.permutation(np.array(rooms)))
    attendees = tuple(tuple(sorted(names[person] for person in row)) for row in rows)
    return Meetings(day, capacities, lengths, attendees)


def _short_day(rng: np.random.Generator, count: int) -> tuple[tuple[int, int], ...]:
    """Opening times that are too short for comfort: an hour or two before noon, some after."""
    morning = 60 + 30 * int(rng.integers(0, 3))
    afternoon = 30 * int(rng.integers(2, max(3, count // 2) + 1))
    return ((540, 540 + morning), (780, min(1020, 780 + afternoon)))


def _few_rooms(params: Mapping[str, Any], rng: np.random.Generator) -> Meetings:
    """Fewer rooms than wanted, on a short day."""
    rooms = rng.integers(3, 8, size=int(rng.integers(1, 3))).tolist()
    day = _short_day(rng, size_range(params, "num_meetings")[1])
    return _drawn(params, rng, rooms=rooms, largest=params["largest"], day=day)


def _busy_people(params: Mapping[str, Any], rng: np.random.Generator) -> Meetings:
    """Enough rooms, but few people who are in many meetings."""
    rooms = [params["largest"] + int(extra) for extra in rng.integers(0, 3, size=3)]
    fewer = {**params, "num_attendees": max(3, size_range(params, "num_attendees")[0] - 1)}
    day = _short_day(rng, size_range(params, "num_meetings")[1])
    return _drawn(fewer, rng, rooms=rooms, largest=params["largest"], day=day)


def _one_large_room(params: Mapping[str, Any], rng: np.random.Generator) -> Meetings:
    """One room that alone is large enough for the large meetings, and small ones."""
    rooms = [params["largest"] + 1, 2, 2][: int(rng.integers(2, 4))]
    return _drawn(params, rng, rooms=rooms, largest=params["largest"], day=_tight(rng))


def _long_meetings(params: Mapping[str, Any], rng: np.random.Generator) -> Meetings:
    """Long and short meetings on a whole day with few rooms."""
    rooms = rng.integers(3, 7, size=1 + (size_range(params, "num_meetings")[1] > 8)).tolist()
    return _drawn(
        params,
        rng,
        rooms=rooms,
        largest=params["largest"],
        day=_tight(rng),
        durations=(30, 90, 120),
    )


def _tight(rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
    morning = 90 + 30 * int(rng.integers(0, 2))
    return ((540, 540 + morning), (780, 780 + 30 * int(rng.integers(3, 6))))


def encode(instance: Meetings) -> dict[str, Any]:
    """The JSON form."""
    return {
        "day": [list(span) for span in instance.day],
        "rooms": [{"capacity": capacity} for capacity in instance.capacities],
        "meetings": [
            {"duration": duration, "attendees": list(people)}
            for duration, people in zip(instance.durations, instance.attendees, strict=True)
        ],
    }


def decode(data: Any) -> Meetings:
    """From ``{"day": [[open, close], ...], "rooms": [...], "meetings": [...]}``.

    Raises:
        InputError: If a key is missing, opening times overlap, or a number is out of range.
    """
    if not isinstance(data, dict) or not {"day", "rooms", "meetings"} <= set(data):
        raise InputError("a meeting_scheduling instance needs the keys 'day', 'rooms', 'meetings'")
    day: list[tuple[int, int]] = []
    for i, span in enumerate(require_list(data["day"], "day", low=1)):
        if len(require_list(span, f"day[{i}]")) != 2:
            raise InputError(f"day[{i}] must hold an opening and a closing time")
        opens, closes = (require_int(time, f"day[{i}]", low=0, high=10**6) for time in span)
        if closes <= opens or (day and opens < day[-1][1]):
            raise InputError(f"day[{i}] = [{opens}, {closes}] must follow the interval before it")
        day.append((opens, closes))
    capacities = []
    for i, room in enumerate(require_list(data["rooms"], "rooms", low=1)):
        if not isinstance(room, dict) or "capacity" not in room:
            raise InputError(f"rooms[{i}] needs the key 'capacity'")
        capacities.append(require_int(room["capacity"], f"rooms[{i}] capacity", low=0))
    durations, attendees = [], []
    for i, meeting in enumerate(require_list(data["meetings"], "meetings", low=1)):
        if not isinstance(meeting, dict) or not {"duration", "attendees"} <= set(meeting):
            raise InputError(f"meetings[{i}] needs the keys 'duration' and 'attendees'")
        durations.append(require_int(meeting["duration"], f"meetings[{i}] duration", low=1))
        people = [
            require_int(person, f"meetings[{i}] attendee", low=0)
            for person in require_list(meeting["attendees"], f"meetings[{i}] attendees")
        ]
        if len(set(people)) < len(people):
            raise InputError(f"meetings[{i}] names an attendee twice")
        attendees.append(tuple(sorted(people)))
    return Meetings(tuple(day), tuple(capacities), tuple(durations), tuple(attendees))


def class_key(instance: Meetings) -> str:
    """Equal for renumbered meetings, rooms and people."""
    count = len(instance.durations)
    people = sorted({person for row in instance.attendees for person in row})
    place = {person: count + i for i, person in enumerate(people)}
    rows: list[dict[int, int]] = [{} for _ in range(count + len(people))]
    for meeting, attendees in enumerate(instance.attendees):
        for person in attendees:
            rows[meeting][place[person]] = 1
            rows[place[person]][meeting] = 1
    attributes = [*instance.durations, *(0 for _ in people)]
    header = [[list(span) for span in instance.day], sorted(instance.capacities)]
    return structure_key(attributes, rows, header=header)


def describe(instance: Meetings) -> str:
    """The meetings as the text prompt writes them."""
    spans = ", ".join(f"{opens}-{closes}" for opens, closes in instance.day)
    rooms = "\n".join(f"Room {r}: capacity {c}" for r, c in enumerate(instance.capacities))
    meetings = "\n".join(
        f"Meeting {m}: duration {d}, attendees {', '.join(map(str, people))}"
        for m, (d, people) in enumerate(zip(instance.durations, instance.attendees, strict=True))
    )
    return f"Opening times (minutes from midnight): {spans}\n{rooms}\n{meetings}"


def draw(instance: Meetings, style: "Style", size: int) -> "Picture":
    """Three tables: opening times, rooms, meetings; a timeline of the opening times above."""
    from npbench.pictures import schedule_picture
    from npbench.rendering.panels import TablePanel

    day = tuple((str(opens), str(closes)) for opens, closes in instance.day)
    rooms = tuple((str(r), str(capacity)) for r, capacity in enumerate(instance.capacities))
    meetings = tuple(
        (str(m), str(duration), " ".join(map(str, people)))
        for m, (duration, people) in enumerate(
            zip(instance.durations, instance.attendees, strict=True)
        )
    )
    tables = [
        TablePanel(columns=("open from", "until"), rows=day, row_headers=False, size=size),
        TablePanel(columns=("room", "capacity"), rows=rooms, size=size),
        TablePanel(columns=("meeting", "duration", "attendees"), rows=meetings, size=size),
    ]
    return schedule_picture(instance.day, tables, style, size)


def _level(meetings: tuple[int, int], people: tuple[int, int], largest: int) -> dict[str, Any]:
    return {"num_meetings": meetings, "num_attendees": people, "largest": largest}


TASK: Task[Meetings, Schedule] = Task(
    name="meeting_scheduling",
    title="meeting scheduling",
    sense=Sense.MAX,
    group="schedule",
    category="schedule",
    aliases=("meeting-schedule",),
    levels=make_levels(
        {
            "nano": _level((3, 4), (3, 5), 3),
            "l1": _level((5, 6), (4, 6), 4),
            "l2": _level((7, 8), (5, 7), 4),
            "l3": _level((9, 10), (6, 8), 5),
            "easy": _level((4, 5), (3, 5), 3),
            "medium": _level((5, 6), (4, 6), 4),
            "hard": _level((6, 7), (5, 7), 4),
            "bench": _level((8, 10), (7, 9), 5),
        }
    ),
    limits={"num_meetings": (3, 200), "num_attendees": (2, 200), "largest": (1, 20)},
    families={
        "few_rooms": _few_rooms,
        "busy_people": _busy_people,
        "one_large_room": _one_large_room,
        "long_meetings": _long_meetings,
    },
    flaw=flaw,
    verify=verify,
    solvers={"trivial": trivial, "random": random, "greedy": greedy, "heuristic": heuristic},
    reference=reference,
    canonical=canonical_rows,
    distance=row_distance,
    class_key=class_key,
    encode=encode,
    decode=decode,
    shape=Shape.NESTED,
    wording=Wording(
        title="meeting scheduling",
        rules=(
            "Schedule meetings such that as many attendees as possible, summed over the scheduled "
            "meetings, are served. A meeting takes place at most once, in one room that is large "
            "enough for its attendees, without interruption inside one opening interval. No two "
            "meetings overlap in a room, and nobody attends two meetings at the same time; a "
            "meeting may start in the minute in which another one ends. Times are minutes from "
            "midnight; meetings, rooms and attendees are numbered from 0."
        ),
        picture=(
            "The picture shows tables of the opening times, the rooms and the meetings. "
            "Where the opening times are drawn on a timeline as well, the table counts."
        ),
        output="A list of [meeting, room, start] for every scheduled meeting.",
        brief=(
            "Schedule meetings for as many attendees in total as possible: each inside one "
            "opening interval, in a room large enough, no overlap in a room or for a person. "
            "Answer with a list of [meeting, room, start]."
        ),
        example={
            "day": [[540, 660]],
            "rooms": [{"capacity": 2}],
            "meetings": [
                {"duration": 60, "attendees": [0, 1]},
                {"duration": 90, "attendees": [1]},
                {"duration": 60, "attendees": [0]},
            ],
        },
        example_answer=[[0, 0, 540], [2, 0, 600]],
    ),
    describe=describe,
    draw=draw,
    notes={
        "few_rooms": "one or two rooms on a short day",
        "busy_people": "few people who are in many meetings",
        "one_large_room": "one room that alone holds the large meetings",
        "long_meetings": "30, 90 and 120 minutes",
    },
)
