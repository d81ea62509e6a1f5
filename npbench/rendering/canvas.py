"""The canvas: a scene becomes pixels, and pixels become the bytes of a PNG.

Discs and lines are not drawn by Pillow, whose wide lines vary in width with their direction, but
as their exact coverage of each pixel, in few levels: the whole picture then has fewer than 256
colours, and a palette stores it without loss in half of the bytes. They use only arithmetic that
IEEE 754 defines to the last bit; the pixels of letters are those of the installed FreeType.
"""

from collections.abc import Sequence
from functools import lru_cache
from io import BytesIO
from itertools import groupby

import numpy as np
import numpy.typing as npt
from PIL import Image

from npbench.rendering.scene import Bar, Disc, Line, Scene, Table
from npbench.rendering.sheet import Mask, Sheet
from npbench.rendering.styles import Style
from npbench.rendering.text import Box, Text, glyphs

__all__ = ["encode", "paint"]

_LEVELS = 7
"""Steps of coverage of a pixel by a disc or a line."""
_SWING = 0.03
"""By what share of itself the radius of a ring drawn by hand swings at most."""
_OVERSHOOT = 4
"""By how many pixels the lines of a table drawn by hand cross at its corners."""
_MASK_LEVELS = np.array([255 * step // _LEVELS for step in range(_LEVELS + 1)], dtype=np.uint8)


def paint(scene: Scene, style: Style) -> Image.Image:
    """The scene as an image with a palette, or in RGB where it has more than 256 colours."""
    sheet = Sheet(scene.width, scene.height, style.background)
    if scene.lines:
        mask = _line_coverage(scene, style.edge_width)
        left, top, right, bottom = _bounds(scene.lines)
        sheet.begin(style.edge, mask[top:bottom, left:right], left=left, top=top)
    for disc in scene.discs:
        if style.sketched:
            _paint_sketched_disc(sheet, disc, style)
        else:
            _paint_disc(sheet, disc, style)
    for table in scene.tables:
        _paint_table(sheet, table, style)
    for bar in scene.bars:
        _paint_bar(sheet, bar, style)
    for label in scene.labels:
        text = label.text
        left, top, ink = _ink(text)
        sheet.paste(style.number if label.inside else style.ink, ink, left=left, top=top)
    return sheet.image()


def encode(image: Image.Image) -> bytes:
    """The image as a PNG with no metadata.

    Levels of coverage are chosen so that a palette holds all colours, unless the picture is turned
    or noisy. Equal images give equal bytes under one version of Pillow; over versions, compare
    pixels.
    """
    buffer = BytesIO()
    image.save(buffer, "PNG", compress_level=4 if image.mode == "P" else 1)
    return buffer.getvalue()


def _levels(coverage: npt.NDArray[np.float64]) -> Mask:
    """Coverages in [0, 1], and beyond it where certain, as ``_LEVELS`` equal steps of a mask."""
    steps = (np.minimum(np.maximum(coverage, 0.0), 1.0) * _LEVELS + 0.5).astype(np.uint8)
    return np.asarray(_MASK_LEVELS[steps])


def _line_coverage(scene: Scene, width: float) -> Mask:
    """How much of each pixel the lines cover; where lines cross, the most of any."""
    coverage = np.zeros((scene.height, scene.width), dtype=np.uint8)
    for line in scene.lines:
        for start, end in zip(line.points, line.points[1:], strict=False):
            _cover(coverage, start, end, width)
    return coverage


def _bounds(lines: Sequence[Line]) -> Box:
    """A box around lines, a few pixels wider than they are."""
    xs, ys = zip(*(point for line in lines for point in line.points), strict=True)
    left, top = max(0, int(min(xs)) - 4), max(0, int(min(ys)) - 4)
    return left, top, int(max(xs)) + 5, int(max(ys)) + 5


def _cover(
    coverage: Mask, start: tuple[float, float], end: tuple[float, float], width: float
) -> None:
    """Add one segment: a walk along its longer direction, a few pixels to either side.

    Edges end in centres of discs that lie on the canvas, so those pixels do so as well.
    """
    steep = abs(end[1] - start[1]) > abs(end[0] - start[0])
    # With x and y exchanged, every line is a flat one.
    (x0, y0), (x1, y1) = sorted((p[1], p[0]) if steep else p for p in (start, end))
    slope = (y1 - y0) / max(x1 - x0, 1e-9)
    columns = np.arange(int(x0), int(x1) + 1)[:, None]
    axis = y0 + slope * (columns + 0.5 - x0)
    # A flat line is at most sqrt(2) times as high as it is wide.
    reach = int((width / 2 + 0.5) * 1.415 + 0.5)
    rows = axis.astype(np.int64) + np.arange(-reach, reach + 1)
    away = np.abs(rows + 0.5 - axis) * (1.0 / np.sqrt(1.0 + slope * slope))
    across = coverage.shape[1]
    places = columns * across + rows if steep else rows * across + columns
    pixels = coverage.reshape(-1)
    pixels[places] = np.maximum(pixels[places], _levels(width / 2 + 0.5 - away))


@lru_cache(maxsize=256)
def _disc_mask(dx: float, dy: float, r: float, side: int) -> Mask:
    """Coverage of a square by a disc whose centre lies (dx, dy) from its middle."""
    middle = np.arange(side) + 0.5 - side / 2
    away = np.sqrt((middle[:, None] - dy) ** 2 + (middle[None, :] - dx) ** 2)
    return _levels(r + 0.5 - away)


def _paint_disc(sheet: Sheet, disc: Disc, style: Style) -> None:
    reach = int(disc.r) + 2
    x, y = round(disc.x), round(disc.y)
    offset = (round(disc.x - x, 2), round(disc.y - y, 2))
    for r, colour in ((disc.r, style.ring), (disc.r - style.ring_width, style.disc)):
        mask = _disc_mask(*offset, r, 2 * reach)
        sheet.paste(colour, mask, left=x - reach, top=y - reach)


def _paint_sketched_disc(sheet: Sheet, disc: Disc, style: Style) -> None:
    """A ring drawn by hand: its radius swings a little, differently for every vertex."""
    reach = int(disc.r) + 2
    left, top = round(disc.x) - reach, round(disc.y) - reach
    middle = np.arange(2 * reach) + 0.5
    dx, dy = middle[None, :] + left - disc.x, middle[:, None] + top - disc.y
    away, angle = np.sqrt(dx**2 + dy**2), np.arctan2(dy, dx)
    waves = (np.sin(2 * angle + disc.vertex) + np.sin(3 * angle + 2 * disc.vertex)) / 2 - 1.0
    outline = disc.r + 0.5 + _SWING * disc.r * waves
    for inset, colour in ((0.0, style.ring), (style.ring_width, style.disc)):
        sheet.paste(colour, _levels(outline - inset - away), left=left, top=top)


def _paint_bar(sheet: Sheet, bar: Bar, style: Style) -> None:
    sheet.fill(style.grid, bar.box)
    if bar.of.startswith("interval"):
        x0, y0, x1, y1 = bar.box
        sheet.fill(style.disc, (x0 + 1, y0 + 1, x1 - 1, y1))


def _paint_table(sheet: Sheet, table: Table, style: Style) -> None:
    fills = {"header": style.header, "stripe": style.stripe, "background": style.background}
    for (_, fill), run in groupby(table.cells, key=lambda cell: (cell.row, cell.fill)):
        boxes = [cell.box for cell in run]
        sheet.fill(fills[fill], (*boxes[0][:2], *boxes[-1][2:]))
    left, top, right, bottom = table.box
    beyond = _OVERSHOOT if style.sketched else 0
    for x in sorted({cell.box[0] for cell in table.cells} | {right}):
        sheet.fill(style.grid, (x, top - beyond, x + 1, bottom + 1 + beyond))
    for y in sorted({cell.box[1] for cell in table.cells} | {bottom}):
        sheet.fill(style.grid, (left - beyond, y, right + 1 + beyond, y + 1))
    mask = np.zeros((bottom - top, right - left), dtype=np.uint8)
    for text in (cell.text for cell in table.cells):
        if text is not None:
            x, y, ink = _ink(text)
            mask[y - top : y - top + len(ink), x - left : x - left + ink.shape[1]] = ink
    sheet.paste(style.ink, mask, left=left, top=top)


def _ink(text: Text) -> tuple[int, int, Mask]:
    """Left and upper side of the ink of a text, and its coverage."""
    dx, dy, coverage = _coverage(text.text, text.size, bold=text.bold)
    return text.x + dx, text.baseline + dy, coverage


@lru_cache(maxsize=8192)
def _coverage(text: str, size: int, *, bold: bool) -> tuple[int, int, Mask]:
    shape = glyphs(text, size, bold=bold)
    return shape.left, shape.top, np.asarray(shape.mask)
