"""Meetings on a timeline: a lane for each room, high enough for the meetings' numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npbench.rendering.scene import Bar, Scene
from npbench.rendering.styles import Style

__all__ = ["Meeting", "lanes"]

_LETTERS = 13
"""Height of a lane in which a meeting's number can be read."""
_EDGE = 2
"""What stays free between the lanes and the end of the sheet or a text above."""
_FONT = 11
_DIGIT = 0.36
"""Half of the height of a digit, as a share of the font size."""
_DARK = "#000000"


@dataclass(frozen=True, slots=True)
class Meeting:
    """A meeting that takes place."""

    number: int
    room: int
    start: int
    end: int


def lanes(
    scene: Scene,
    meetings: Sequence[Meeting],
    colour: str,
    *,
    rooms: int,
    style: Style,
    frame: int,
) -> str:
    """The meetings on the timeline; nothing where none is drawn.

    The bars of the open times grow upwards until every room has a lane for letters, as far as
    there is space.

    Args:
        scene: The picture.
        meetings: Where and when they are.
        colour: Of the meetings.
        rooms: How many there are; each gets a lane, room 0 the uppermost.
        style: Of the picture.
        frame: Blank space above it.
    """
    marks = {int(bar.of.split()[1]): bar.box[0] for bar in scene.bars if bar.of.startswith("mark")}
    if not marks:
        return ""
    first, last = min(marks), max(marks)
    scale = (marks[last] - marks[first]) / (last - first)
    intervals = [bar for bar in scene.bars if bar.of.startswith("interval")]
    bottom = intervals[0].box[3]
    ceiling = _EDGE + max(_texts_above(scene, intervals[0]), default=-frame)
    top = max(ceiling, min(intervals[0].box[1], bottom - rooms * _LETTERS))
    height = (bottom - top) / rooms
    parts = []
    for bar in intervals:
        x0, _, x1, _ = bar.box
        parts.append(
            f'<rect x="{x0}" y="{top}" width="{x1 - x0}" height="{bottom - top}" '
            f'fill="{style.disc}" stroke="{style.grid}"/>'
        )
    for meeting in meetings:
        x = marks[first] + scale * (meeting.start - first) + 1
        width = scale * (meeting.end - meeting.start) - 2
        y = top + meeting.room * height + 1
        size = min(_FONT, height - 2)
        middle = y + (height - 2) / 2 + _DIGIT * size
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height - 2:g}" '
            f'fill="{colour}"/>'
            f'<text x="{x + width / 2:g}" y="{middle:g}" font-size="{size:g}" font-weight="700" '
            f'text-anchor="middle" fill="{_DARK}">{meeting.number}</text>'
        )
    return "".join(parts)


def _texts_above(scene: Scene, bar: Bar) -> Iterator[int]:
    """The lower sides of the texts above a bar."""
    for label in scene.labels:
        if label.text.box[3] <= bar.box[1]:
            yield label.text.box[3]
