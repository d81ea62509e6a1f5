"""Reading of short texts by matching the letters of the bundled font along a line.

A text is the cheapest way to cover the line's columns by letters and blanks (dynamic
programming); the cost is the squared difference of inks. Letters may touch each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from PIL import Image, ImageDraw, ImageFont

from npbench.decoding.imaging import Array, image_library

__all__ = ["DIGITS", "SIZES", "WORDS", "Font", "Reading", "lengthened", "read_line"]

DIGITS = "0123456789"
WORDS = DIGITS + "abcdefghijklmnopqrstuvwxyzSGDMR-x:"
SIZES = (20, 18, 17, 16, 15)
_PRICE = 0.6
"""Cost of a letter, so that specks on blank paper are not read as dots or dashes."""
_GAP = 0.24
"""Share of the font size that a blank between two words takes at least, beyond the letters'."""
_BETWEEN = 0.4
"""Shift in pixels of the letters that a turned picture is compared with, beside the unshifted."""


@dataclass(frozen=True, slots=True)
class Font:
    """One face of the bundled font, as sharp as the picture."""

    size: int
    bold: bool
    blur: float = 0.0
    """Standard deviation in pixels; a picture that was turned is softer than its letters."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text and how badly the pixels fit it."""

    text: str
    cost: float
    """Squared difference of inks, in pixels."""
    ink: float
    """Squared ink of the line, in pixels; a good reading costs a small part of it."""


@dataclass(frozen=True, slots=True, eq=False)
class _Letters:
    """An alphabet, its letters and their shifted copies in the order of their widths."""

    flat: Array
    """Inks by columns, one letter a column, all padded to the widest."""
    squared: Array
    widest: int
    groups: tuple[tuple[int, int, tuple[int, ...]], ...]
    """Width, first row, and places in the alphabet of the letters and copies of one width."""


@lru_cache(maxsize=64)
def _face(size: int, *, bold: bool) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold-subset.ttf" if bold else "DejaVuSans-subset.ttf"
    data = files("npbench.rendering").joinpath("fonts", name).read_bytes()
    return ImageFont.truetype(BytesIO(data), size, layout_engine=ImageFont.Layout.BASIC)


@lru_cache(maxsize=8192)
def _letter(sign: str, font: Font, above: int, below: int) -> Array:
    """Ink of a letter on rows from ``above`` the baseline to ``below`` it, one advance wide."""
    face = _face(font.size, bold=font.bold)
    width = max(1, round(face.getlength(sign)))
    canvas = Image.new("L", (width, above + below))
    ImageDraw.Draw(canvas).text((0, above), sign, fill=255, font=face, anchor="ls")
    ink = np.asarray(canvas, dtype=float) / 255
    if font.blur:
        ink = image_library().gaussian_filter(ink, font.blur)
    return ink


@lru_cache(maxsize=4096)
def _letters(alphabet: str, font: Font, above: int, below: int) -> _Letters:
    """The alphabet's letters, for lines with that many rows above and below the baseline."""
    inks = [
        (place, ink)
        for place, sign in enumerate(alphabet)
        for ink in _shifted(_letter(sign, font, above, below), turned=font.blur > 0)
    ]
    inks.sort(key=lambda entry: entry[1].shape[1])
    widest = inks[-1][1].shape[1]
    groups: list[tuple[int, int, tuple[int, ...]]] = []
    first = 0
    for width in sorted({ink.shape[1] for _, ink in inks}):
        members = tuple(place for place, ink in inks if ink.shape[1] == width)
        groups.append((width, first, members))
        first += len(members)
    padded = np.zeros((len(inks), widest, above + below))
    for row, (_, ink) in enumerate(inks):
        padded[row, : ink.shape[1]] = ink.T
    squared = np.array([(ink**2).sum() for _, ink in inks])
    flat = padded.reshape(len(inks), -1).T
    return _Letters(np.ascontiguousarray(flat), squared, widest, tuple(groups))


def _shifted(ink: Array, *, turned: bool) -> list[Array]:
    """A letter; in a picture that was turned also between the pixels, where it may stand there."""
    if not turned:
        return [ink]
    shift = image_library().shift
    steps = (-_BETWEEN, 0.0, _BETWEEN)
    places = [(down, right) for down in steps for right in steps]
    return [np.asarray(shift(ink, place, order=1)) if any(place) else ink for place in places]


def lengthened(ink: Array, rows: int) -> Array:
    """The ink with blank rows below it, ``rows`` in all."""
    if len(ink) == rows:
        return ink
    longer = np.zeros((rows, ink.shape[1]))
    longer[: len(ink)] = ink
    return longer


def read_line(ink: Array, *, baseline: int, font: Font, alphabet: str) -> Reading:
    """The cheapest reading of a line.

    Args:
        ink: Coverage by ink in [0, 1], rows by columns.
        baseline: Row on which the letters stand.
        font: The face to compare with.
        alphabet: Letters that may occur.
    """
    columns = ink.shape[1]
    blank = np.concatenate([[0.0], np.cumsum((ink**2).sum(axis=0))])
    best = blank.tolist()
    came: list[tuple[int, int]] = [(x - 1, -1) for x in range(columns + 1)]
    letters = _letters(alphabet, font, baseline, ink.shape[0] - baseline)
    offers = list(_offers(ink, letters, blank))
    steps = np.diff(blank).tolist()
    for x in range(1, columns + 1):
        price, source = best[x - 1] + steps[x - 1], (x - 1, -1)
        for width, prices, numbers in offers:
            start = x - width
            if start >= 0 and best[start] + prices[start] < price:
                price, source = best[start] + prices[start], (start, numbers[start])
        best[x], came[x] = price, source
    return Reading(_spelled(came, alphabet, font.size), best[columns], float(blank[-1]))


def _offers(
    ink: Array, letters: _Letters, blank: Array
) -> Iterator[tuple[int, list[float], list[int]]]:
    """For every width, the price and the place of the best letter at every starting column."""
    rows, columns = ink.shape
    padded = np.zeros((columns + letters.widest, rows))
    padded[:columns] = ink.T
    windows = sliding_window_view(padded.ravel(), letters.widest * rows)[: columns * rows : rows]
    fits = letters.squared - 2 * windows @ letters.flat
    for width, first, members in letters.groups:
        if width > columns:
            break
        group = fits[: columns - width + 1, first : first + len(members)]
        prices = group.min(axis=1) + (blank[width:] - blank[:-width]) + _PRICE
        places = group.argmin(axis=1).tolist()
        yield width, prices.tolist(), [members[place] for place in places]


def _spelled(came: Sequence[tuple[int, int]], alphabet: str, size: int) -> str:
    """The letters on the cheapest path, words parted where many columns are blank."""
    signs: list[str] = []
    x, blank = len(came) - 1, 0
    while x > 0:
        start, index = came[x]
        if index < 0:
            blank += 1
        else:
            if signs and blank > _GAP * size:
                signs.append(" ")
            signs.append(alphabet[index])
            blank = 0
        x = start
    return "".join(reversed(signs))
