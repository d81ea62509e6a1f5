"""Timelines: bars on an axis with round times."""

from dataclasses import dataclass

from npbench.rendering.panels import TimelinePanel
from npbench.rendering.scene import Bar, Label
from npbench.rendering.text import TEXT_SIZES, centred, glyphs

__all__ = ["TIMELINE_HEIGHT", "Timeline", "place_timeline"]

TIMELINE_HEIGHT = 76
"""Height of a timeline, margins included."""
_MARGIN = 24
"""Beside the axis; half of the outermost label must fit."""
_BAR = 22
"""Height of an interval's bar."""
_STEPS = (5, 10, 15, 30, 60, 120, 180, 240, 360, 720, 1440)
"""Minutes between two marks; beyond the last one, its multiples."""
_APART = 12
"""Least space between the labels of two marks."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A timeline in its place."""

    bars: tuple[Bar, ...]
    labels: tuple[Label, ...]


def place_timeline(panel: TimelinePanel, *, left: int, top: int) -> Timeline:
    """The timeline with its upper left corner at (left, top).

    Args:
        panel: The intervals and the width.
        left: Left side, margin included.
        top: Upper side.
    """
    first, last = panel.intervals[0][0], panel.intervals[-1][1]
    x0, width = left + _MARGIN, panel.size - 2 * _MARGIN
    step = _step(first, last, width)
    start, end = first // step * step, -(-last // step) * step
    axis = top + 12 + _BAR

    def at(time: int) -> int:
        return x0 + round(width * (time - start) / (end - start))

    bars = [
        Bar((at(opens), axis - _BAR, at(closes), axis), f"interval {opens}-{closes}")
        for opens, closes in panel.intervals
    ]
    bars.append(Bar((x0, axis, x0 + width + 1, axis + 2), "axis"))
    labels = []
    for time in range(start, end + 1, step):
        x = at(time)
        bars.append(Bar((x, axis + 2, x + 1, axis + 8), f"mark {time}"))
        text = centred(str(time), x + 0.5, axis + 18, size=TEXT_SIZES[-1], bold=False)
        labels.append(Label(text, f"mark {time}"))
    return Timeline(tuple(bars), tuple(labels))


def _step(first: int, last: int, width: int) -> int:
    """The smallest round step at which labels do not crowd."""
    x0, _, x1, _ = glyphs(str(last), TEXT_SIZES[-1], bold=False).ink
    most = max(1, width // (x1 - x0 + _APART) - 2)
    wanted = (last - first) / most
    fitting = [step for step in _STEPS if step >= wanted]
    return fitting[0] if fitting else -(-int(wanted + 1) // _STEPS[-1]) * _STEPS[-1]
