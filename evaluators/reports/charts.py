"""The charts of a page: the SR-QR plane, curves over k, and a score of every task."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evaluators.reports.svg import (
    SHAPES,
    Box,
    Scale,
    Tag,
    marker,
    place_tags,
    spread_out,
    text,
    width_of,
)

__all__ = [
    "Line",
    "Mark",
    "PlanePoint",
    "TaskRow",
    "curves_chart",
    "key_of",
    "plane_chart",
    "tasks_chart",
]

Ends = tuple[float, float] | None
"""A 95 % interval."""

_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_COLOURS = 8


@dataclass(frozen=True, slots=True)
class PlanePoint:
    """A place in the SR-QR plane."""

    label: str
    sr: float
    qr: float
    series: int | None
    """The run's number; None for a floor."""
    sr_ends: Ends = None
    qr_ends: Ends = None
    minor: bool = False
    """Another reading of the run, such as its greedy replies."""


@dataclass(frozen=True, slots=True)
class Line:
    """A metric over k."""

    label: str
    series: int
    points: Sequence[tuple[int, float, Ends]]


@dataclass(frozen=True, slots=True)
class Mark:
    """A run's score of a task."""

    series: int
    value: float
    ends: Ends


@dataclass(frozen=True, slots=True)
class TaskRow:
    """The scores of a task, one a run, and what is beside them."""

    label: str
    marks: Sequence[Mark]
    floors: Sequence[tuple[str, float]]


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    words = text(0, 0, title).partition(">")[2].removesuffix("</text>")
    return (
        f'<svg class="chart" viewBox="0 0 {width:g} {height:g}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{words}</title>{"".join(parts)}</svg>'
    )


def _series(number: int) -> str:
    return f"s{number % _COLOURS}"


def _shape(number: int) -> str:
    return SHAPES[number % len(SHAPES)]


def key_of(number: int) -> str:
    """The mark by which the charts tell a run apart, around the origin."""
    return marker(_shape(number), 0, 0, kind=f"mark {_series(number)}")


def _line(x0: float, y0: float, x1: float, y1: float, kind: str) -> str:
    return f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" class="{kind}"/>'


def _whiskers(x0: float, y0: float, x1: float, y1: float, series: int) -> str:
    """An interval as a bar with ends."""
    dx, dy = (0.0, 3.0) if y0 == y1 else (3.0, 0.0)
    path = (
        f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}M{x0 - dx:.1f} {y0 - dy:.1f}L{x0 + dx:.1f} "
        f"{y0 + dy:.1f}M{x1 - dx:.1f} {y1 - dy:.1f}L{x1 + dx:.1f} {y1 + dy:.1f}"
    )
    return f'<path d="{path}" class="whisker {_series(series)}"/>'


def _top(values: Sequence[float]) -> float:
    """The upper end of an axis of shares: 1, or beyond where a value is."""
    return max(1.0, *(math.ceil(value * 5) / 5 for value in values)) if values else 1.0


def _ticks(top: float) -> list[float]:
    return [*_TICKS, *(1.0 + 0.2 * i for i in range(1, round((top - 1) * 5) + 1))]


def plane_chart(points: Sequence[PlanePoint], *, title: str) -> str:
    """Runs and floors by success rate and quality ratio.

    Where every feasible answer is optimal a point lies on the diagonal; its distance below it is
    the quality that feasible answers lack.
    """
    width, height = 440.0, 400.0
    top = _top([p.qr for p in points] + [p.qr_ends[1] for p in points if p.qr_ends])
    frame = Box(46, 12, width - 12, height - 44)
    x = Scale(0, 1.04, frame.x0, frame.x1)
    y = Scale(0, top * 1.04, frame.y1, frame.y0)
    parts = [_line(x(tick), frame.y0, x(tick), frame.y1, "grid") for tick in _TICKS]
    parts += [_line(frame.x0, y(tick), frame.x1, y(tick), "grid") for tick in _ticks(top)]
    parts += [
        text(x(tick), frame.y1 + 16, f"{tick:.1f}", anchor="middle", kind="tick") for tick in _TICKS
    ]
    parts += [
        text(frame.x0 - 7, y(tick) + 4, f"{tick:.1f}", anchor="end", kind="tick")
        for tick in _ticks(top)
    ]
    parts.append(_line(x(0), y(0), x(1), y(1), "diagonal"))
    slope = math.degrees(math.atan2(y(1) - y(0), x(1) - x(0)))
    cx, cy = x(0.3), y(0.3) - 6
    parts.append(
        f'<text x="{cx:.1f}" y="{cy:.1f}" text-anchor="middle" class="tick" '
        f'transform="rotate({slope:.1f} {cx:.1f} {cy:.1f})">every feasible answer optimal</text>'
    )
    parts.append(_line(frame.x0, frame.y1, frame.x1, frame.y1, "axis"))
    parts.append(_line(frame.x0, frame.y0, frame.x0, frame.y1, "axis"))
    middle = (frame.x0 + frame.x1) / 2
    parts.append(text(middle, height - 8, "success rate SR", anchor="middle", kind="name"))
    middle = (frame.y0 + frame.y1) / 2
    parts.append(text(13, middle, "quality ratio QR", anchor="middle", kind="name", turned=True))
    marks, tags, taken = [], [], []
    for point in points:
        px, py = x(point.sr), y(point.qr)
        taken.append(Box(px - 7, py - 7, px + 7, py + 7))
        tags.append(Tag(px, py, point.label, strong=point.series is not None and not point.minor))
        if point.series is None:
            marks.append(marker("ring", px, py, kind="floor", radius=4))
            continue
        if point.sr_ends:
            low, high = point.sr_ends
            marks.append(_whiskers(x(low), py, x(high), py, point.series))
            taken.append(Box(x(low) - 4, py - 4, x(high) + 4, py + 4))
        if point.qr_ends:
            low, high = point.qr_ends
            marks.append(_whiskers(px, y(low), px, y(high), point.series))
            taken.append(Box(px - 4, y(high) - 4, px + 4, y(low) + 4))
        kind = f"{'minor' if point.minor else 'mark'} {_series(point.series)}"
        marks.append(marker(_shape(point.series), px, py, kind=kind, radius=5.5))
    tags.sort(key=lambda tag: not tag.strong)
    labels = place_tags(tags, frame, taken)
    return _svg(width, height, title, [*parts, *labels, *marks])


def curves_chart(lines: Sequence[Line], *, title: str, axis: str) -> str:
    """A metric over the number of samples k, one line a run or an estimator."""
    width, height = 440.0, 300.0
    values = [value for line in lines for _, value, _ in line.points]
    top = _top(values)
    room = min(170.0, max(width_of(line.label) for line in lines) + 22)
    frame = Box(46, 12, width - room, height - 44)
    ks = sorted({k for line in lines for k, _, _ in line.points})
    last = max(math.log2(ks[-1]), 1.0)
    x = Scale(0, last, frame.x0 + 14, frame.x1 - 10)
    y = Scale(0, top * 1.02, frame.y1, frame.y0)
    parts = [_line(frame.x0, y(tick), frame.x1, y(tick), "grid") for tick in _ticks(top)]
    parts += [
        text(frame.x0 - 7, y(tick) + 4, f"{tick:.1f}", anchor="end", kind="tick")
        for tick in _ticks(top)
    ]
    for k in ks:
        parts.append(text(x(math.log2(k)), frame.y1 + 16, str(k), anchor="middle", kind="tick"))
    parts.append(_line(frame.x0, frame.y1, frame.x1, frame.y1, "axis"))
    middle = (frame.x0 + frame.x1) / 2
    parts.append(text(middle, height - 8, "samples k", anchor="middle", kind="name"))
    middle = (frame.y0 + frame.y1) / 2
    parts.append(text(13, middle, axis, anchor="middle", kind="name", turned=True))
    count = len(lines)
    for place, line in enumerate(lines):
        # Lines stand a little apart, so that whiskers at one k do not hide each other.
        shift = (place - (count - 1) / 2) * min(5.0, 24.0 / count)
        spots = [(x(math.log2(k)) + shift, y(value)) for k, value, _ in line.points]
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in spots)
        parts.append(f'<path d="M{path}" class="line {_series(line.series)}"/>')
        for (px, py), (_, _, ends) in zip(spots, line.points, strict=True):
            if ends:
                parts.append(_whiskers(px, y(ends[0]), px, y(ends[1]), line.series))
            kind = f"mark {_series(line.series)}"
            parts.append(marker(_shape(line.series), px, py, kind=kind, radius=4))
    ends_at = [y(line.points[-1][1]) for line in lines]
    spread = spread_out(ends_at, gap=14, low=frame.y0 + 4, high=frame.y1)
    for line, wanted, found in zip(lines, ends_at, spread, strict=True):
        px = x(math.log2(line.points[-1][0])) + 14
        if abs(wanted - found) > 4:
            parts.append(_line(px - 6, wanted, px, found, "leader"))
        parts.append(text(px + 3, found + 4, line.label, kind="tag"))
    return _svg(width, height, title, parts)


def tasks_chart(rows: Sequence[TaskRow], *, title: str, axis: str, names: Sequence[str]) -> str:
    """A score of every task with its interval, beside the floors.

    Args:
        rows: The tasks from top to bottom.
        title: What the chart shows.
        axis: The score's name.
        names: The runs, named in a line above where there are several.
    """
    width = 440.0
    left = max(width_of(row.label) for row in rows) + 14
    step = max(22.0, 10.0 + 9.0 * len(names))
    legend, above = _legend(rows, names, width)
    frame = Box(left, above, width - 14, above + step * len(rows))
    height = frame.y1 + 42
    values = [mark.value for row in rows for mark in row.marks]
    values += [value for row in rows for _, value in row.floors]
    top = _top(values)
    x = Scale(0, top * 1.03, frame.x0, frame.x1)
    parts = [*legend]
    parts += [_line(x(tick), frame.y0, x(tick), frame.y1, "grid") for tick in _ticks(top)]
    parts += [
        text(x(tick), frame.y1 + 16, f"{tick:.1f}", anchor="middle", kind="tick")
        for tick in _ticks(top)
    ]
    for number, row in enumerate(rows):
        middle = frame.y0 + step * (number + 0.5)
        parts.append(text(left - 8, middle + 4, row.label, anchor="end", kind="tag"))
        parts.append(_line(frame.x0, middle, frame.x1, middle, "grid"))
        for place, (_, value) in enumerate(row.floors):
            parts.append(_floor(place, x(value), middle, step))
        for mark in row.marks:
            py = middle + 9.0 * (mark.series - (len(names) - 1) / 2)
            if mark.ends:
                low, high = mark.ends
                parts.append(_whiskers(x(low), py, x(high), py, mark.series))
            kind = f"mark {_series(mark.series)}"
            parts.append(marker(_shape(mark.series), x(mark.value), py, kind=kind, radius=4))
    parts.append(_line(frame.x0, frame.y1, frame.x1, frame.y1, "axis"))
    middle = (frame.x0 + frame.x1) / 2
    parts.append(text(middle, height - 8, axis, anchor="middle", kind="name"))
    return _svg(width, height, title, parts)


def _floor(place: int, x: float, middle: float, step: float) -> str:
    half = step / 2 - 2
    return _line(x, middle - half, x, middle + half, f"floor dash{place}")


def _legend(rows: Sequence[TaskRow], names: Sequence[str], width: float) -> tuple[list[str], float]:
    """Marks with their names in lines, and where they end."""
    floors = [name for name, _ in rows[0].floors]
    parts = []
    px, py = 8.0, 14.0
    entries = [(name, number, False) for number, name in enumerate(names)]
    entries += [(name, number, True) for number, name in enumerate(floors)]
    for name, number, is_floor in entries:
        wide = width_of(name) + 30
        if px + wide > width and px > 8:
            px, py = 8.0, py + 17
        if is_floor:
            parts.append(_floor(number, px + 4, py - 4, 18))
        else:
            kind = f"mark {_series(number)}"
            parts.append(marker(_shape(number), px + 4, py - 4, kind=kind, radius=4))
        parts.append(text(px + 14, py, name, kind="tag"))
        px += wide
    return parts, py + 12
