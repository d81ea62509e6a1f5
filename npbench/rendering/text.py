"""Text: the bundled font, the ink of a text at a size, and texts put in their place."""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from io import BytesIO

from PIL import Image, ImageFont

__all__ = ["SIGNS", "TEXT_SIZES", "Box", "Glyphs", "Text", "centred", "glyphs", "placed"]

Box = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels of the picture, right and bottom excluded."""

SIGNS = frozenset(map(chr, range(0x20, 0x7F))) | frozenset("·×–•…←→−∞≤≥")
"""What the bundled font holds: DejaVu Sans and its bold, cut down to these with fontTools."""

TEXT_SIZES = (20, 18, 17, 16, 15)
"""Font sizes in use, largest first; digits are 15, 13, 12, 12 and 11 px high."""

_TEXT_LEVELS = 15
"""Steps between paper and ink in the edge of a letter; few, so that a palette holds them all."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """A rendered text and where its ink lies, relative to its origin on the baseline."""

    mask: Image.Image
    """Coverage, mode ``L``, cropped to the ink."""
    left: int
    top: int
    ink: Box
    """The ink, made as high as a digit at least: an x-high word is as large as its font."""
    advance: int


@dataclass(frozen=True, slots=True)
class Text:
    """A text in its place."""

    text: str
    x: int
    """Origin, in whole pixels: hinted glyphs are crisp only there."""
    baseline: int
    size: int
    bold: bool
    box: Box
    """Its ink, as high as a digit at least."""


@lru_cache(maxsize=64)
def _font(size: int, *, bold: bool) -> ImageFont.FreeTypeFont:
    """The bundled DejaVu Sans; basic layout, which gives the same pixels with or without raqm."""
    name = "DejaVuSans-Bold-subset.ttf" if bold else "DejaVuSans-subset.ttf"
    data = files("npbench.rendering").joinpath("fonts", name).read_bytes()
    return ImageFont.truetype(BytesIO(data), size, layout_engine=ImageFont.Layout.BASIC)


@lru_cache(maxsize=8192)
def glyphs(text: str, size: int, *, bold: bool) -> Glyphs:
    """The rendered ``text``.

    Raises:
        ValueError: If the text has no ink or a sign that the bundled font lacks.
    """
    for sign in text:
        if sign not in SIGNS:
            raise ValueError(f"the bundled font lacks the sign {sign!r} of {text!r}")
    font = _font(size, bold=bold)
    core, (dx, dy) = font.getmask2(text, mode="L", anchor="ls")
    whole = Image.frombytes("L", core.size, bytes(core)).point(_quantised)
    bounds = whole.getbbox()
    if bounds is None:
        raise ValueError(f"a text must have ink, got {text!r}")
    mask = whole.crop(bounds)
    left, top = dx + bounds[0], dy + bounds[1]
    right, bottom = dx + bounds[2], dy + bounds[3]
    digit_top = top if text == "0" else glyphs("0", size, bold=bold).ink[1]
    ink = (left, min(top, digit_top), right, max(bottom, 0))
    return Glyphs(mask, left, top, ink, round(font.getlength(text)))


def _quantised(coverage: float) -> int:
    step = 255 // _TEXT_LEVELS
    return round(coverage / step) * step


def placed(text: str, x: int, baseline: int, *, size: int, bold: bool) -> Text:
    """The text with its origin at (x, baseline)."""
    left, top, right, bottom = glyphs(text, size, bold=bold).ink
    box = (x + left, baseline + top, x + right, baseline + bottom)
    return Text(text, x, baseline, size, bold, box)


def centred(text: str, x: float, y: float, *, size: int, bold: bool) -> Text:
    """The text with the middle of its ink at (x, y), up to half a pixel."""
    left, top, right, bottom = glyphs(text, size, bold=bold).ink
    # floor(v + 0.5) and not round(): halves to even would shift neighbours unequally.
    origin = int(x - (left + right) / 2 + 0.5)
    baseline = int(y - (top + bottom) / 2 + 0.5)
    return placed(text, origin, baseline, size=size, bold=bold)
