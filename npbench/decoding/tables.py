"""The texts of tables, cell by cell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from npbench.decoding.grids import Grid
from npbench.decoding.imaging import LINE, Array, Pixels
from npbench.decoding.reading import DIGITS, SIZES, WORDS, Font, Reading, lengthened, read_line

__all__ = ["UNREADABLE", "read_table"]

UNREADABLE = 0.65
"""Share of a text's ink that its best reading may leave unexplained."""
_UNREADABLE_IN_NOISE = 0.95
"""The same where noise takes its part; beyond it blank paper would fit as well."""
_NOISY = 1e-4
"""Variance of a pixel's ink from which on a picture counts as noisy."""
_ALIKE = "lioSsgqbz:"
"""Letters that look like digits when they are small or soft."""
_NAMES = "S"
"""Letters with which the name of a row may begin, before its number."""
_NUMBERS = DIGITS + "x-"
_SAMPLE = 5
"""Cells from which the size of the letters is told."""
_SPECK = 4.0
"""Ink below which a cell is empty, in pixels."""
_DEPTH = 7
"""Rows below the baseline that letters may reach."""
_FAINT = 0.35
"""Ink of a column in which a letter may begin or end."""
_HEADER = 18.0
"""Contrast of a header's fill, whose letters are bold, at least."""

Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Line:
    """How the texts of a table stand in their cells."""

    font: Font
    baseline: int
    """Rows from the top of the cell."""
    noise: float
    """Variance of the ink of a pixel by noise alone."""


def read_table(pixels: Pixels, grid: Grid, *, turned: bool) -> list[list[str]]:
    """The texts of a table by rows; an unreadable one is ``?``.

    Args:
        pixels: The picture.
        grid: The table's lines.
        turned: Whether the picture was turned back, which makes lines and letters soft.
    """
    cells = dict(_cells(pixels.contrast, grid, margin=2 if turned else 1))
    fills = {key: float(np.median(cell)) for key, cell in cells.items()}
    strokes = np.concatenate([cell[cell > LINE] for cell in cells.values()])
    black = float(np.quantile(strokes, 0.97)) if len(strokes) else 255.0
    texts = [[""] * (len(grid.columns) - 1) for _ in grid.rows[1:]]
    headers = _headers(pixels, grid)
    for bold in (True, False):
        inks = {
            key: np.clip((cell - fills[key]) / (black - fills[key]), 0.0, 1.1)
            for key, cell in cells.items()
            if (key in headers) is bold
        }
        inks = {key: ink for key, ink in inks.items() if float((ink[ink > 0.4]).sum()) > _SPECK}
        if inks:
            noise = (pixels.noise / black) ** 2
            line = _best_line(_sample(inks), bold=bold, turned=turned, noise=noise)
            for (row, col), ink in inks.items():
                shifts = (-1, 0, 1) if turned else (0,)
                texts[row][col] = _text(ink, line, words=row * col == 0, shifts=shifts)
    return texts


def _headers(pixels: Pixels, grid: Grid) -> set[Key]:
    """The cells of the first row and of the first column, where those are filled as headers.

    Noise can lift a single cell above the limit, and hardly ever half of a row.
    """
    fills = {key: float(np.median(cell)) for key, cell in _cells(pixels.smooth, grid, margin=2)}
    headers: set[Key] = set()
    for side in (0, 1):
        first = [key for key in fills if key[side] == 0]
        body = [key for key in first if key[1 - side] > 0] or first
        if np.median([fills[key] for key in body]) > _HEADER:
            headers.update(first if side == 0 else body)
    return headers


def _cells(contrast: Array, grid: Grid, *, margin: int) -> Iterator[tuple[Key, Array]]:
    """The inside of each cell."""
    for row, (top, bottom) in enumerate(zip(grid.rows, grid.rows[1:], strict=False)):
        for col, (left, right) in enumerate(zip(grid.columns, grid.columns[1:], strict=False)):
            yield (
                (row, col),
                contrast[top + margin : bottom - margin + 1, left + margin : right - margin + 1],
            )


def _sample(inks: Mapping[Key, Array]) -> list[Array]:
    """A few narrow cells, which are read fast; the one with most ink first."""
    narrow = sorted(inks.values(), key=lambda ink: ink.shape[1])[: 2 * _SAMPLE]
    return sorted(narrow, key=lambda ink: -float(ink.sum()))[:_SAMPLE]


def _best_line(inks: Sequence[Array], *, bold: bool, turned: bool, noise: float) -> _Line:
    """The size and baseline that explain a few cells best."""
    lines = [
        _Line(Font(size, bold, blur), baseline, noise)
        for size in SIZES
        for blur in ((0.5, 0.8) if turned else (0.0,))
        for baseline in _baselines(inks[0].shape[0], size)
    ]
    # One cell leaves a few candidates, and the others decide.
    costs = {line: _read(inks[0], line, WORDS).cost for line in lines}
    few = sorted(lines, key=costs.__getitem__)[:8]
    return min(few, key=lambda line: costs[line] + _cost(inks[1:], line))


def _cost(inks: Sequence[Array], line: _Line) -> float:
    return sum(_read(ink, line, WORDS).cost for ink in inks)


def _baselines(height: int, size: int) -> range:
    """Where letters of a size may stand in a cell: about its middle."""
    middle = round(height / 2 + 0.365 * size)
    return range(max(1, middle - 3), min(height, middle + 3) + 1)


def _read(ink: Array, line: _Line, alphabet: str) -> Reading:
    """The reading of the cell, cut or padded below to where letters may reach."""
    top = max(0, line.baseline - line.font.size)
    wanted = line.baseline + _DEPTH
    padded = lengthened(ink[top:wanted], wanted - top)
    used = np.flatnonzero(padded.max(axis=0) > _FAINT)
    padded = padded[:, max(0, used[0] - 3) : used[-1] + 4] if len(used) else padded
    found = read_line(padded, baseline=line.baseline - top, font=line.font, alphabet=alphabet)
    expected = line.noise * padded.size
    return Reading(found.text, found.cost - expected, found.ink - expected)


def _text(ink: Array, line: _Line, *, words: bool, shifts: Sequence[int]) -> str:
    """The text of a cell: a number, or where ``words`` may stand as well what fits better."""
    lines = [replace(line, baseline=line.baseline + shift) for shift in shifts]
    best = _best_reading(ink, lines, _NUMBERS)
    if words:
        word = _best_reading(ink, lines, WORDS)
        if word.cost < best.cost and not _alike(word.text):
            best = word
    allowed = _UNREADABLE_IN_NOISE if line.noise > _NOISY else UNREADABLE
    return best.text if best.cost <= allowed * best.ink else "?"


def _best_reading(ink: Array, lines: Sequence[_Line], alphabet: str) -> Reading:
    return min((_read(ink, line, alphabet) for line in lines), key=lambda reading: reading.cost)


def _alike(word: str) -> bool:
    """Whether a word consists of digits and of letters that look like them, such as ``1l``."""
    name = word[:1] in _NAMES and word[1:].isdecimal()
    return not name and all(sign in DIGITS + _ALIKE for sign in word)
