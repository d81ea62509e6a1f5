"""The part of the legibility proof that concerns tables: cells tile, and hold their texts."""

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["MIN_TEXT_HEIGHT", "untiled"]

MIN_TEXT_HEIGHT = 11

Cells = Mapping[tuple[int, int], Mapping[str, Any]]


def untiled(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a stored table, one sentence each.

    Args:
        name: How the sentences call it.
        table: Its ``box`` and ``cells``.
    """
    cells: Cells = {(cell["row"], cell["col"]): cell for cell in table["cells"]}
    rows = 1 + max((row for row, _ in cells), default=-1)
    cols = 1 + max((col for _, col in cells), default=-1)
    if not cells or len(table["cells"]) != rows * cols or len(cells) != rows * cols:
        yield f"{name} has {len(table['cells'])} cells for {rows} rows and {cols} columns"
        return
    for (row, col), cell in cells.items():
        here = f"cell ({row}, {col}) of {name}"
        for there, gap in _gaps(cells, row, col, table["box"]):
            if gap < 0:
                yield f"{here} overlaps {there} by {-gap:g} px"
            elif gap > 0:
                yield f"{here} leaves {gap:g} px to {there}"
        yield from _text_flaws(here, cell)


def _gaps(cells: Cells, row: int, col: int, table: list[float]) -> Iterator[tuple[str, float]]:
    """The gaps to what must follow without one: neighbours, or the sides of the table.

    Together with equal widths in a column and equal heights in a row, they make a tiling.
    """
    x0, y0, x1, y1 = cells[row, col]["box"]
    if col == 0:
        yield "the left side of the table", x0 - table[0]
    else:
        yield f"cell ({row}, {col - 1})", x0 - cells[row, col - 1]["box"][2]
    if row == 0:
        yield "the top of the table", y0 - table[1]
    else:
        yield f"cell ({row - 1}, {col})", y0 - cells[row - 1, col]["box"][3]
    if (row, col + 1) not in cells:
        yield "the right side of the table", table[2] - x1
    if (row + 1, col) not in cells:
        yield "the bottom of the table", table[3] - y1
    yield f"the column of cell (0, {col})", cells[0, col]["box"][2] - x1
    yield f"the row of cell ({row}, 0)", cells[row, 0]["box"][3] - y1


def _text_flaws(here: str, cell: Mapping[str, Any]) -> Iterator[str]:
    box = cell["text_box"]
    if box is None:
        if cell["text"]:
            yield f"{here} has no place for its text {cell['text']!r}"
        return
    x0, y0, x1, y1 = cell["box"]
    inside = min(box[0] - x0, box[1] - y0, x1 - box[2], y1 - box[3])
    if inside < 0:
        yield f"{here} is left by its text {cell['text']!r} by {-inside:g} px"
    if box[3] - box[1] < MIN_TEXT_HEIGHT:
        yield f"{here} has a text {box[3] - box[1]:g} px high, at least {MIN_TEXT_HEIGHT} needed"
