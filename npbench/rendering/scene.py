"""A scene: all that a picture shows, in its place; drawing and layout are both made from it."""

from dataclasses import dataclass
from typing import Any

from npbench.rendering.text import Box, Text

__all__ = ["Bar", "Cell", "Disc", "Label", "Line", "Scene", "Table"]


@dataclass(frozen=True, slots=True)
class Disc:
    """A vertex."""

    vertex: int
    x: float
    y: float
    r: float
    """Outer radius, the ring included."""


@dataclass(frozen=True, slots=True)
class Line:
    """An edge, from centre to centre."""

    u: int
    v: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A text outside tables and what it names."""

    text: Text
    of: str
    """``vertex 3``, or ``graph`` or ``table 0`` for a title."""
    inside: bool = False
    """Whether it stands on a disc."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table; ``fill`` is ``header``, ``stripe`` or ``background``."""

    row: int
    col: int
    box: Box
    fill: str
    text: Text | None


@dataclass(frozen=True, slots=True)
class Table:
    """Cells that tile a box."""

    box: Box
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A filled box of a timeline: an interval, the axis or a mark on it."""

    box: Box
    of: str
    """``interval 540-660``, ``axis`` or ``mark 600``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """All marks of a picture, in pixels; pixel (i, j) covers [i, i + 1] x [j, j + 1]."""

    width: int
    height: int
    discs: tuple[Disc, ...] = ()
    lines: tuple[Line, ...] = ()
    labels: tuple[Label, ...] = ()
    tables: tuple[Table, ...] = ()
    bars: tuple[Bar, ...] = ()

    def layout(self) -> dict[str, Any]:
        """The layout as it is stored with the picture, ready for JSON."""
        layout: dict[str, Any] = {
            "width": self.width,
            "height": self.height,
            "vertices": [{"id": d.vertex, "x": d.x, "y": d.y, "r": d.r} for d in self.discs],
            "edges": [
                {"u": e.u, "v": e.v, "points": [list(point) for point in e.points]}
                for e in self.lines
            ],
            "labels": [
                {"text": label.text.text, "box": list(label.text.box), "of": label.of}
                for label in self.labels
            ],
            "tables": [
                {"box": list(table.box), "cells": [_cell(cell) for cell in table.cells]}
                for table in self.tables
            ],
        }
        if self.bars:
            layout["bars"] = [{"box": list(bar.box), "of": bar.of} for bar in self.bars]
        return layout


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "row": cell.row,
        "col": cell.col,
        "text": cell.text.text if cell.text else "",
        "box": list(cell.box),
        "text_box": list(cell.text.box) if cell.text else None,
    }
