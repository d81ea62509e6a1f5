"""The part of the legibility proof that concerns timelines: bars apart, and no text on them."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

__all__ = ["misplaced"]


def misplaced(layout: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the bars of a stored layout, one sentence each."""
    bars = layout.get("bars", [])
    for bar in bars:
        x0, y0, x1, y1 = bar["box"]
        beyond = max(-x0, -y0, x1 - layout["width"], y1 - layout["height"])
        if beyond > 0:
            yield f"{bar['of']} lies {beyond:g} px outside the canvas"
        if bar["of"].startswith("interval") and x1 - x0 < 2:
            yield f"{bar['of']} is {x1 - x0:g} px wide, at least 2 needed"
        for label in layout["labels"]:
            if _overlap(bar["box"], label["box"]):
                yield f"label {label['text']!r} of {label['of']} lies on {bar['of']}"
        for index, table in enumerate(layout["tables"]):
            if _overlap(bar["box"], table["box"]):
                yield f"{bar['of']} lies on table {index}"
    for one, other in combinations([b for b in bars if b["of"].startswith("interval")], 2):
        if _overlap(one["box"], other["box"]):
            yield f"{one['of']} and {other['of']} overlap"


def _overlap(one: list[float], other: list[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
