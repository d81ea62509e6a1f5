"""Where tables lie in a picture, and where their rows and columns do."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from npbench.decoding.imaging import Array, Pixels, image_library

__all__ = ["Grid", "find_grids"]

_RUN = 21
"""Length of the filter along which a grid line is looked for."""
_STEP = 20.0
"""By how much the grid lines stand out from the fills beside them, at least."""
_FAINT = 36.0
"""Contrast of a grid line that was turned and turned back, at least."""
_COVERED = 0.9
"""Share of each side of a table that its outline covers."""
_SMALLEST = 18


@dataclass(frozen=True, slots=True)
class Grid:
    """The lines of a table: cell (i, j) lies between rows[i:i + 2] and columns[j:j + 2]."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]


def find_grids(pixels: Pixels) -> list[Grid]:
    """The tables, from top to bottom, then from left to right."""
    lines = _straight(pixels.contrast, axis=1) | _straight(pixels.contrast, axis=0)
    nd = image_library()
    labels, _ = nd.label(lines, structure=np.ones((3, 3)))
    grids = []
    for ys, xs in nd.find_objects(labels):
        if min(ys.stop - ys.start, xs.stop - xs.start) >= _SMALLEST:
            grid = _grid(pixels, (ys.start, ys.stop), (xs.start, xs.stop))
            if grid is not None:
                grids.append(grid)
    return sorted(grids, key=lambda grid: (grid.rows[0], grid.columns[0]))


def _straight(contrast: Array, *, axis: int) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Pixels on a thin straight line along the axis (1 is horizontal)."""
    along = image_library().uniform_filter1d(contrast, _RUN, axis=axis)
    # Few pixels are dark enough, and only those are compared with their neighbours.
    places = np.nonzero(along > _FAINT)
    across = along.shape[1 - axis]
    lines = np.zeros(along.shape, dtype=bool)
    lines[places] = True
    for shift in (-3, 3):
        beside = list(places)
        beside[1 - axis] = (places[1 - axis] + shift) % across
        lines[places] &= along[places] - along[tuple(beside)] > _STEP / 2
    return lines


def _grid(pixels: Pixels, ys: tuple[int, int], xs: tuple[int, int]) -> Grid | None:
    """The grid within a box, or None where the box has no outline."""
    contrast = pixels.contrast
    # The box is a few pixels too large, so first only its outline is looked for in it.
    top, left = max(0, ys[0] - 6), max(0, xs[0] - 6)
    window = contrast[top : ys[1] + 6, left : xs[1] + 6]
    around = [y + top for y in _peaks(window.T, share=0.35)]
    beside = [x + left for x in _peaks(window, share=0.35)]
    if len(around) < 2 or len(beside) < 2:
        return None
    inside = contrast[around[0] : around[-1] + 1, left : xs[1] + 6]
    columns = [x + left for x in _peaks(inside, share=0.1)]
    inside = contrast[top : ys[1] + 6, beside[0] : beside[-1] + 1]
    rows = [y + top for y in _peaks(inside.T, share=0.1)]
    if len(rows) < 3 or len(columns) < 2:
        return None
    outline = (
        (rows[0] - ys[0], ys[1] - 1 - rows[-1]),
        (columns[0] - xs[0], xs[1] - 1 - columns[-1]),
    )
    if max(abs(gap) for pair in outline for gap in pair) > _RUN // 2 + 2:
        return None
    if not all(share >= _COVERED for share in _outlined(contrast, rows, columns)):
        return None
    return Grid(tuple(rows), tuple(columns))


def _peaks(window: Array, *, share: float) -> Iterator[int]:
    """Columns that a line covers from top to bottom: letters do not, and fills are flat.

    Args:
        window: Contrast of the table and six pixels more at the left and the right.
        share: Part of the column that the line may leave out.
    """
    profile = np.quantile(window, share, axis=0)
    # Letters that stand in a row leave ridges as well, but none as high as the outline.
    least = 0.55 * float(profile.max(initial=0.0))
    for x in range(3, len(profile) - 3):
        around = max(profile[x - 3 : x - 1].min(), profile[x + 2 : x + 4].min())
        first = profile[x] > profile[x - 2 : x].max() and profile[x] >= profile[x + 1 : x + 3].max()
        if first and profile[x] > least and profile[x] - around > _STEP:
            yield x


def _outlined(contrast: Array, rows: list[int], columns: list[int]) -> Iterator[float]:
    """Share of each of the four sides that is drawn."""
    for y in (rows[0], rows[-1]):
        yield float((contrast[y - 1 : y + 2, columns[0] : columns[-1]].max(axis=0) > _STEP).mean())
    for x in (columns[0], columns[-1]):
        yield float((contrast[rows[0] : rows[-1], x - 1 : x + 2].max(axis=1) > _STEP).mean())
