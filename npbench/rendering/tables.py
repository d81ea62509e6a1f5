"""Tables: how wide and high their columns and rows must be, and where every text goes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from npbench.rendering.panels import TablePanel
from npbench.rendering.scene import Cell, Table
from npbench.rendering.text import Text, centred, glyphs, placed

__all__ = ["MARGIN", "TablePlan", "place_table", "plan_table"]

MARGIN = 12
"""Around a table."""
_DEFAULT_SIDE = 800
_STEPS = ((18, 10, 7), (17, 8, 6), (16, 6, 5), (15, 5, 5), (15, 4, 4), (15, 3, 4), (15, 2, 4))
"""Font size, padding beside and padding above and below a text, roomiest first."""
_NOTHING = frozenset("–-−·")
"""What stands in the place of a number where there is none; set in the middle."""
_NUMBER = re.compile(r"[-−+]?\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table whose sizes are known and whose place is not."""

    panel: TablePanel
    size: int
    """Font size."""
    padding: int
    """Left and right of a text, beside the grid line on its left."""
    widths: tuple[int, ...]
    """Of the columns, their left grid line included."""
    row_height: int
    ascent: int
    """From the upper side of a row to its baseline."""

    @property
    def width(self) -> int:
        """Width of the table and its closing grid line."""
        return sum(self.widths) + 1

    @property
    def height(self) -> int:
        """Height of the table and its closing grid line."""
        return self.row_height * (1 + len(self.panel.rows)) + 1


def plan_table(panel: TablePanel) -> TablePlan:
    """The roomiest plan within the panel's preferred side, or the smallest one."""
    side = panel.size - 2 * MARGIN if panel.size else _DEFAULT_SIDE
    for step in _STEPS:
        plan = _plan(panel, *step)
        if max(plan.width, plan.height) <= side:
            break
    return plan


def _plan(panel: TablePanel, size: int, beside: int, above: int) -> TablePlan:
    widths = [
        max(
            glyphs(text, size, bold=_is_header(panel, row, col)).advance if text else 0
            for row, text in enumerate(column)
        )
        for col, column in enumerate(_columns(panel))
    ]
    # A matrix is read along its columns: those under numbers are all of one width.
    matrix = [col for col, text in enumerate(panel.columns) if _NUMBER.fullmatch(text)]
    widest = max((widths[col] for col in matrix), default=0)
    for col in matrix:
        widths[col] = widest
    inks = [
        glyphs(text, size, bold=_is_header(panel, row, col)).ink
        for col, column in enumerate(_columns(panel))
        for row, text in enumerate(column)
        if text
    ]
    rise = max((-top for _, top, _, _ in inks), default=0)
    fall = max((bottom for _, _, _, bottom in inks), default=0)
    return TablePlan(
        panel=panel,
        size=size,
        padding=beside,
        widths=tuple(width + 2 * beside + 1 for width in widths),
        row_height=rise + fall + 2 * above + 1,
        ascent=1 + above + rise,
    )


def place_table(plan: TablePlan, *, left: int, top: int) -> Table:
    """The planned table with its upper left corner at (left, top)."""
    cells = []
    x = left
    for col, column in enumerate(_columns(plan.panel)):
        x1 = x + plan.widths[col]
        texts = _column_texts(plan, col, column, x, top)
        for row, text in enumerate(texts):
            y = top + row * plan.row_height
            if _is_header(plan.panel, row, col):
                fill = "header"
            else:
                fill = "background" if row % 2 else "stripe"
            cells.append(Cell(row, col, (x, y, x1, y + plan.row_height), fill, text))
        x = x1
    box = (left, top, x, top + plan.row_height * (1 + len(plan.panel.rows)))
    return Table(box, tuple(sorted(cells, key=lambda cell: (cell.row, cell.col))))


def _columns(panel: TablePanel) -> list[tuple[str, ...]]:
    return list(zip(panel.columns, *panel.rows, strict=True))


def _is_header(panel: TablePanel, row: int, col: int) -> bool:
    return row == 0 or (col == 0 and panel.row_headers)


def _column_texts(
    plan: TablePlan, col: int, column: Sequence[str], left: int, top: int
) -> list[Text | None]:
    """The texts of a column; numbers end on one vertical line, in the middle of the column."""
    right = left + plan.widths[col]
    middle = (left + 1 + right) / 2
    body = [text for text in column[1:] if text and text not in _NOTHING]
    numeric = bool(body) and all(_NUMBER.fullmatch(text) for text in body)
    bold = _is_header(plan.panel, 1, col)
    block = max((glyphs(text, plan.size, bold=bold).advance for text in body), default=0)
    texts: list[Text | None] = []
    for row, text in enumerate(column):
        baseline = top + row * plan.row_height + plan.ascent
        if not text:
            texts.append(None)
        elif numeric and (row == 0 or text in _NOTHING):
            heading = _is_header(plan.panel, row, col)
            x = centred(text, middle, 0, size=plan.size, bold=heading).x
            texts.append(placed(text, x, baseline, size=plan.size, bold=heading))
        elif numeric:
            start = int(middle + block / 2) - glyphs(text, plan.size, bold=bold).advance
            texts.append(placed(text, start, baseline, size=plan.size, bold=bold))
        else:
            start = left + 1 + plan.padding
            heading = _is_header(plan.panel, row, col)
            texts.append(placed(text, start, baseline, size=plan.size, bold=heading))
    return texts
