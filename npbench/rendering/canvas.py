"""The canvas: a scene becomes pixels, and pixels become the bytes of a PNG.

Discs and lines are not drawn by Pillow, whose wide lines vary in width with their direction, but
as their exact coverage of each pixel, in few levels: the whole picture then has fewer than 256
colours, and a palette stores it without loss in half of the bytes. They use only arithmetic that
IEEE 754 defines to the last bit; the pixels of letters are those of the installed FreeType.
"""

from functools import lru_cache
from io import BytesIO

import numpy as np
import numpy.typing as npt
from PIL import Image

from npbench.rendering.scene import Bar, Disc, Scene, Table
from npbench.rendering.styles import Style
from npbench.rendering.text import Text, glyphs

__all__ = ["encode", "paint"]

_LEVELS = 7
"""Steps of coverage of a pixel by a disc or a line."""
_SWING = 0.03
"""By what share of itself the radius of a ring drawn by hand swings at most."""
_OVERSHOOT = 4
"""By how many pixels the lines of a table drawn by hand cross at its corners."""
_MASK_LEVELS = np.array([255 * step // _LEVELS for step in range(_LEVELS + 1)], dtype=np.uint8)


def paint(scene: Scene, style: Style) -> Image.Image:
    """The scene as an RGB image."""
    image = Image.new("RGB", (scene.width, scene.height), style.background)
    if scene.lines:
        mask = Image.fromarray(_line_coverage(scene, style.edge_width))
        image.paste(style.edge, (0, 0), mask)
    for disc in scene.discs:
        if style.sketched:
            _paint_sketched_disc(image, disc, style)
        else:
            _paint_disc(image, disc, style)
    for table in scene.tables:
        _paint_table(image, table, style)
    for bar in scene.bars:
        _paint_bar(image, bar, style)
    for label in scene.labels:
        _paint_text(image, label.text, style.number if label.inside else style.ink)
    return image


def encode(image: Image.Image) -> bytes:
    """The image as a PNG with no metadata, with a palette where that holds all its colours.

    Levels of coverage are chosen so that it does, unless the picture is turned or noisy. Equal
    images give equal bytes under one version of Pillow; over versions, compare pixels.
    """
    counted = image.getcolors(256)
    if counted is None:
        buffer = BytesIO()
        image.save(buffer, "PNG", compress_level=1)
        return buffer.getvalue()
    colours = sorted(colour for _, colour in counted if isinstance(colour, tuple))
    codes = np.frombuffer(image.tobytes("raw", "RGBX"), dtype="<u4") & 0xFFFFFF
    # Indexed by the colour itself; pages of zeros that are not touched cost nothing.
    index = np.zeros(1 << 24, dtype=np.uint8)
    index[[r | g << 8 | b << 16 for r, g, b in colours]] = np.arange(len(colours))
    paletted = Image.frombytes("P", image.size, index[codes].tobytes())
    paletted.putpalette([channel for colour in colours for channel in colour])
    buffer = BytesIO()
    paletted.save(buffer, "PNG", compress_level=4)
    return buffer.getvalue()


def _levels(coverage: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Coverages in [0, 1], and beyond it where certain, as ``_LEVELS`` equal steps of a mask."""
    steps = (np.minimum(np.maximum(coverage, 0.0), 1.0) * _LEVELS + 0.5).astype(np.uint8)
    return np.asarray(_MASK_LEVELS[steps])


def _line_coverage(scene: Scene, width: float) -> npt.NDArray[np.uint8]:
    """How much of each pixel the lines cover; where lines cross, the most of any."""
    coverage = np.zeros((scene.height, scene.width), dtype=np.uint8)
    for line in scene.lines:
        for start, end in zip(line.points, line.points[1:], strict=False):
            _cover(coverage, start, end, width)
    return coverage


def _cover(
    coverage: npt.NDArray[np.uint8],
    start: tuple[float, float],
    end: tuple[float, float],
    width: float,
) -> None:
    """Add one segment: a walk along its longer direction, a few pixels to either side.

    Edges end in centres of discs that lie on the canvas, so those pixels do so as well.
    """
    steep = abs(end[1] - start[1]) > abs(end[0] - start[0])
    # The view makes every line a flat one.
    view = coverage.T if steep else coverage
    (x0, y0), (x1, y1) = sorted((p[1], p[0]) if steep else p for p in (start, end))
    slope = (y1 - y0) / max(x1 - x0, 1e-9)
    columns = np.arange(int(x0), int(x1) + 1)[:, None]
    axis = y0 + slope * (columns + 0.5 - x0)
    # A flat line is at most sqrt(2) times as high as it is wide.
    reach = int((width / 2 + 0.5) * 1.415 + 0.5)
    rows = axis.astype(np.int64) + np.arange(-reach, reach + 1)
    away = np.abs(rows + 0.5 - axis) * (1.0 / np.sqrt(1.0 + slope * slope))
    view[rows, columns] = np.maximum(view[rows, columns], _levels(width / 2 + 0.5 - away))


@lru_cache(maxsize=256)
def _disc_mask(dx: float, dy: float, r: float, side: int) -> Image.Image:
    """Coverage of a square by a disc whose centre lies (dx, dy) from its middle."""
    middle = np.arange(side) + 0.5 - side / 2
    away = np.sqrt((middle[:, None] - dy) ** 2 + (middle[None, :] - dx) ** 2)
    return Image.fromarray(_levels(r + 0.5 - away))


def _paint_disc(image: Image.Image, disc: Disc, style: Style) -> None:
    reach = int(disc.r) + 2
    x, y = round(disc.x), round(disc.y)
    offset = (round(disc.x - x, 2), round(disc.y - y, 2))
    for r, colour in ((disc.r, style.ring), (disc.r - style.ring_width, style.disc)):
        image.paste(colour, (x - reach, y - reach), _disc_mask(*offset, r, 2 * reach))


def _paint_sketched_disc(image: Image.Image, disc: Disc, style: Style) -> None:
    """A ring drawn by hand: its radius swings a little, differently for every vertex."""
    reach = int(disc.r) + 2
    left, top = round(disc.x) - reach, round(disc.y) - reach
    middle = np.arange(2 * reach) + 0.5
    dx, dy = middle[None, :] + left - disc.x, middle[:, None] + top - disc.y
    away, angle = np.sqrt(dx**2 + dy**2), np.arctan2(dy, dx)
    waves = (np.sin(2 * angle + disc.vertex) + np.sin(3 * angle + 2 * disc.vertex)) / 2 - 1.0
    outline = disc.r + 0.5 + _SWING * disc.r * waves
    for inset, colour in ((0.0, style.ring), (style.ring_width, style.disc)):
        image.paste(colour, (left, top), Image.fromarray(_levels(outline - inset - away)))


def _paint_bar(image: Image.Image, bar: Bar, style: Style) -> None:
    image.paste(style.grid, bar.box)
    if bar.of.startswith("interval"):
        x0, y0, x1, y1 = bar.box
        image.paste(style.disc, (x0 + 1, y0 + 1, x1 - 1, y1))


def _paint_table(image: Image.Image, table: Table, style: Style) -> None:
    fills = {"header": style.header, "stripe": style.stripe, "background": style.background}
    for cell in table.cells:
        image.paste(fills[cell.fill], cell.box)
    left, top, right, bottom = table.box
    beyond = _OVERSHOOT if style.sketched else 0
    for x in sorted({cell.box[0] for cell in table.cells} | {right}):
        image.paste(style.grid, (x, top - beyond, x + 1, bottom + 1 + beyond))
    for y in sorted({cell.box[1] for cell in table.cells} | {bottom}):
        image.paste(style.grid, (left - beyond, y, right + 1 + beyond, y + 1))
    for cell in table.cells:
        if cell.text is not None:
            _paint_text(image, cell.text, style.ink)


def _paint_text(image: Image.Image, text: Text, colour: str) -> None:
    shape = glyphs(text.text, text.size, bold=text.bold)
    image.paste(colour, (text.x + shape.left, text.baseline + shape.top), shape.mask)
