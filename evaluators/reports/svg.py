"""Marks, scales and labels of the charts of a page, as SVG whose colours the page's style sets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from evaluators.reports.text import visible

__all__ = [
    "SHAPES",
    "Box",
    "Scale",
    "Tag",
    "marker",
    "place_tags",
    "spread_out",
    "text",
    "width_of",
]

SHAPES = ("circle", "square", "triangle", "diamond", "cross", "down", "plus", "hexagon")
"""The second carrier of a series beside its colour."""

_CHARACTER = 7.0
"""Width of a character of a label in a wide font, in pixels."""
LINE = 14.0
"""Height of a label."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Values of an axis as pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of pixels."""

    x0: float
    y0: float
    x1: float
    y1: float

    def meets(self, other: "Box") -> bool:
        """Whether two boxes share a point inside."""
        return (
            self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1
        )

    def covers(self, x: float, y: float) -> bool:
        """Whether a point lies in the box."""
        return self.x0 <= x <= self.x1 and self.y0 <= y <= self.y1

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of the box that is nearest to a point."""
        return min(max(x, self.x0), self.x1), min(max(y, self.y0), self.y1)

    def holds(self, other: "Box") -> bool:
        """Whether the other box lies in this one."""
        return (
            self.x0 <= other.x0
            and self.y0 <= other.y0
            and other.x1 <= self.x1
            and other.y1 <= self.y1
        )


@dataclass(frozen=True, slots=True)
class Tag:
    """A label that names a point."""

    x: float
    y: float
    words: str
    strong: bool = False


def width_of(words: str) -> float:
    """About the width of a label in pixels."""
    return len(words) * _CHARACTER


def text(
    x: float, y: float, words: str, *, anchor: str = "start", kind: str = "", turned: bool = False
) -> str:
    """A line of text, escaped.

    Args:
        x: Of its anchor.
        y: Of its base line.
        words: The text.
        anchor: ``start``, ``middle`` or ``end``.
        kind: Its classes.
        turned: Whether it runs upwards.
    """
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    of_kind = f' class="{kind}"' if kind else ""
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {where}{of_kind}{turn}>{escape(visible(words))}</text>"


def marker(shape: str, x: float, y: float, *, kind: str, radius: float = 5.0) -> str:
    """A mark of a shape at a point.

    Args:
        shape: A name of ``SHAPES``, or ``ring``.
        x: Its centre.
        y: Its centre.
        kind: Its classes.
        radius: About half its width.
    """
    r = radius
    if shape in ("circle", "ring"):
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:g}" class="{kind}"/>'
    corners = {
        "square": [(-r, -r), (r, -r), (r, r), (-r, r)],
        "triangle": [(0, -1.2 * r), (1.15 * r, 0.9 * r), (-1.15 * r, 0.9 * r)],
        "down": [(0, 1.2 * r), (1.15 * r, -0.9 * r), (-1.15 * r, -0.9 * r)],
        "diamond": [(0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)],
        "hexagon": [(-r, 0), (-r / 2, -r), (r / 2, -r), (r, 0), (r / 2, r), (-r / 2, r)],
        "plus": _plus(1.2 * r, turned=False),
        "cross": _plus(1.2 * r, turned=True),
    }[shape]
    path = "L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in corners)
    return f'<path d="M{path}Z" class="{kind}"/>'


def _plus(r: float, *, turned: bool) -> list[tuple[float, float]]:
    a = r / 3
    corners = [(-a, -r), (a, -r), (a, -a), (r, -a), (r, a), (a, a),
               (a, r), (-a, r), (-a, a), (-r, a), (-r, -a), (-a, -a)]  # fmt: skip
    if not turned:
        return corners
    return [((dx - dy) * 0.7071, (dx + dy) * 0.7071) for dx, dy in corners]


def place_tags(tags: Sequence[Tag], frame: Box, taken: Iterable[Box]) -> list[str]:
    """Labels beside their points that meet neither each other nor a mark, nor stand behind one.

    Each label takes the nearest free place around its point; one that stands apart gets a line.
    Where nothing is free the nearest place is taken.

    Args:
        tags: The labels, the most important one first.
        frame: Where labels may stand.
        taken: Where none may stand.
    """
    marks = list(taken)
    blocked = list(marks)
    parts = []
    for tag in tags:
        width = width_of(tag.words) * (1.1 if tag.strong else 1.0)
        places = [
            (_around(tag, width, dx, dy, gap), anchor)
            for gap in (9, 20, 34, 50, 70, 95)
            for dx, dy, anchor in _DIRECTIONS
        ]
        inside = [place for place in places if frame.holds(place[0])] or places[:1]
        others = [box for box in marks if not box.covers(tag.x, tag.y)]
        free = (
            place
            for place in inside
            if not any(place[0].meets(box) for box in blocked)
            and not any(_passes(tag, place[0], box) for box in others)
        )
        box, anchor = next(free, inside[0])
        blocked.append(box)
        parts.append(_leader(tag, box))
        kind = "tag strong" if tag.strong else "tag"
        x = {"start": box.x0, "middle": (box.x0 + box.x1) / 2, "end": box.x1}[anchor]
        parts.append(text(x, box.y1 - 3.5, tag.words, anchor=anchor, kind=kind))
    return parts


_DIRECTIONS = (
    (1, 0, "start"), (-1, 0, "end"), (1, -1, "start"), (-1, -1, "end"),
    (1, 1, "start"), (-1, 1, "end"), (0, -1, "middle"), (0, 1, "middle"),
)  # fmt: skip
"""Where a label may stand from its point, and which end of it is near the point."""


def _around(tag: Tag, width: float, dx: int, dy: int, gap: float) -> Box:
    x = tag.x + dx * gap - (width if dx < 0 else width / 2 if dx == 0 else 0)
    y = tag.y + dy * gap - LINE / 2
    return Box(x, y, x + width, y + LINE)


def _passes(tag: Tag, box: Box, mark: Box) -> bool:
    """Whether the way from a point to its label leads over another mark."""
    x, y = box.nearest(tag.x, tag.y)
    steps = [(i / 8) for i in range(1, 8)]
    return any(mark.covers(tag.x + t * (x - tag.x), tag.y + t * (y - tag.y)) for t in steps)


def _leader(tag: Tag, box: Box) -> str:
    x, y = box.nearest(tag.x, tag.y)
    if (x - tag.x) ** 2 + (y - tag.y) ** 2 < 15**2:
        return ""
    return f'<path d="M{tag.x:.1f} {tag.y:.1f}L{x:.1f} {y:.1f}" class="leader"/>'


def spread_out(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Positions near the wanted ones, at least a gap apart, in the same order along the axis.

    Example:
        >>> spread_out([10.0, 11.0, 40.0], gap=10, low=0, high=50)
        [10.0, 20.0, 40.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    found = list(wanted)
    least = low
    for i in order:
        found[i] = max(found[i], least)
        least = found[i] + gap
    most = high
    for i in reversed(order):
        found[i] = min(found[i], most)
        most = found[i] - gap
    return found
