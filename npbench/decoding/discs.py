"""Vertices: rings in the pixels, and the numbers in or beside them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from npbench.decoding.grids import Grid
from npbench.decoding.imaging import LINE, Array, Pixels, image_library
from npbench.decoding.reading import DIGITS, SIZES, Font, Reading, lengthened, read_line

__all__ = ["Disc", "find_discs"]

_RING = 120.0
"""Contrast of a ring, at least; edges and fills are fainter."""
_NOISY = 2.0
"""Standard deviation of the noise from which on specks are wiped away."""
_SPANS = (6, 56)
"""Least and largest width of the inside of a ring."""
_DOT = 15.0
"""Diameter inside of a ring below which the number stands beside it."""
_UNREADABLE = 0.45
_SPECK = 5.0
_DEPTH = 3
_REACH = 12.0
"""How far from the ring of a dot its number may stand."""
_TALL = (9, 16)
"""Least and largest height of a digit beside a dot."""
_SPACE = 5
"""Largest space between the digits of one number."""


@dataclass(frozen=True, slots=True)
class Disc:
    """A vertex as it was found."""

    number: int
    x: float
    y: float
    r: float
    """Of the inside of the ring."""


def find_discs(pixels: Pixels, grids: Sequence[Grid], *, turned: bool) -> list[Disc]:
    """The vertices outside of tables, by their numbers; a number may come twice."""
    dark = _above(pixels, grids, _RING)
    if pixels.noise > _NOISY:
        labels, count = image_library().label(dark, structure=np.ones((3, 3)))
        sizes = image_library().sum_labels(dark, labels, np.arange(count + 1))
        dark &= sizes[labels] >= _SPECK
    rings = list(_rings(dark))
    large = [ring for ring in rings if 2 * ring[2] >= _DOT]
    found = list(_numbered(pixels.contrast, large, turned=turned))
    if not found:
        small = [ring for ring in rings if 2 * ring[2] < _DOT]
        found = list(_named(pixels.contrast, _above(pixels, grids, LINE), small, turned=turned))
    return sorted(found, key=lambda disc: disc.number)


def _above(pixels: Pixels, grids: Sequence[Grid], contrast: float) -> "Mask":
    """Pixels of more contrast than that, outside of tables."""
    mask = pixels.contrast > contrast
    for grid in grids:
        rows = slice(grid.rows[0] - 2, grid.rows[-1] + 3)
        mask[rows, grid.columns[0] - 2 : grid.columns[-1] + 3] = False
    return mask


Mask = npt.NDArray[np.bool_]
Ring = tuple[float, float, float]
"""Centre and inner radius."""


def _rings(dark: Mask) -> Iterator[Ring]:
    """Round regions that a dark outline encloses."""
    nd = image_library()
    labels, _ = nd.label(~dark)
    for index, (ys, xs) in enumerate(nd.find_objects(labels), 1):
        height, width = ys.stop - ys.start, xs.stop - xs.start
        if not (_SPANS[0] <= min(height, width) and max(height, width) <= _SPANS[1]):
            continue
        if abs(height - width) > 3:
            continue
        inside = nd.binary_fill_holes(np.pad(labels[ys, xs] == index, 1))
        rows, columns = np.nonzero(inside)
        y, x = rows.mean(), columns.mean()
        r = float(np.sqrt(inside.sum() / np.pi))
        away = np.hypot(*(np.indices(inside.shape) - np.array([y, x])[:, None, None]))
        tolerance = 1.0 + 0.04 * r
        stray = (inside & (away > r + tolerance)) | (~inside & (away < r - tolerance))
        if not stray.any():
            yield xs.start - 1 + x + 0.5, ys.start - 1 + y + 0.5, r


def _numbered(contrast: Array, rings: Iterable[Ring], *, turned: bool) -> Iterator[Disc]:
    """The rings in which a number can be read."""
    crops = [(ring, crop) for ring in rings if (crop := _inside(contrast, ring)) is not None]
    if not crops:
        return
    readings = _readings([crop for _, crop in crops], turned=turned)
    for (ring, _), reading in zip(crops, readings, strict=True):
        if reading.text.isdecimal() and reading.cost <= _UNREADABLE * reading.ink:
            yield Disc(int(reading.text), *ring)


def _readings(crops: Sequence[Array], *, turned: bool) -> list[Reading]:
    """The readings in the size that reads all crops best: a picture's numbers have one size.

    What no size reads is the face of a graph, and counts little.
    """
    first = {
        font: _centred(crops[0], font)
        for font in (Font(size, True, blur) for size in SIZES for blur in _blurs(turned=turned))
    }
    best: list[Reading] = []
    least = np.inf
    for font in sorted(first, key=lambda font: _misfit(first[font])):
        readings, misfit = [first[font]], _misfit(first[font])
        for crop in crops[1:]:
            if misfit >= least:
                break
            readings.append(_centred(crop, font))
            misfit += _misfit(readings[-1])
        if misfit < least:
            best, least = readings, misfit
    return best


def _misfit(reading: Reading) -> float:
    return min(reading.cost, 0.6 * reading.ink)


def _blurs(*, turned: bool) -> tuple[float, ...]:
    return (0.5, 0.8) if turned else (0.0,)


def _inside(contrast: Array, ring: Ring) -> Array | None:
    """Ink within a ring, the ring left out; None where there is none."""
    x, y, r = ring
    reach = int(r) + 2
    left, top = int(x) - reach, int(y) - reach
    if left < 0 or top < 0:
        return None
    crop = contrast[top : top + 2 * reach + 1, left : left + 2 * reach + 1]
    rows, columns = np.indices(crop.shape)
    within = np.hypot(columns + 0.5 + left - x, rows + 0.5 + top - y) < r - 0.4
    return _as_ink(crop, within)


def _as_ink(crop: Array, within: Mask) -> Array | None:
    """Coverage by ink from 0 to 1, or None where a picture is cut off or blank."""
    if crop.shape != within.shape or not within.any():
        return None
    fill = float(np.median(crop[within]))
    strokes = crop[within & (crop > LINE)]
    if len(strokes) < _SPECK:
        return None
    black = max(float(np.quantile(strokes, 0.9)), fill + LINE)
    return np.where(within, np.clip((crop - fill) / (black - fill), 0.0, 1.1), 0.0)


def _centred(ink: Array, font: Font) -> Reading:
    """The best reading of a text in the middle of a crop."""
    middle = round(ink.shape[0] / 2 + 0.365 * font.size)
    readings = []
    for baseline in range(middle - 2, middle + 3):
        top = max(0, baseline - font.size)
        rows = lengthened(ink[top : baseline + _DEPTH], baseline + _DEPTH - top)
        reading = read_line(rows, baseline=baseline - top, font=font, alphabet=DIGITS)
        lost = float((ink[:top] ** 2).sum() + (ink[baseline + _DEPTH :] ** 2).sum())
        readings.append(Reading(reading.text, reading.cost + lost, reading.ink + lost))
    return min(readings, key=lambda reading: reading.cost)


def _named(
    contrast: Array, strokes: Mask, rings: Sequence[Ring], *, turned: bool
) -> Iterator[Disc]:
    """Dots, each with the number that is nearest to it."""
    labels, _ = image_library().label(strokes, structure=np.ones((3, 3)))
    taken = {int(label) for x, y, r in rings for label in _near(labels, x, y, r + 3)}
    font = Font(SIZES[-1], True, _blurs(turned=turned)[0])
    texts: list[tuple[Box, int]] = []
    for box in _words(image_library().find_objects(labels), taken):
        left, top, right, bottom = box
        crop = np.pad(contrast[top:bottom, left:right], 4)
        ink = _as_ink(crop, np.ones(crop.shape, dtype=bool))
        reading = None if ink is None else _centred(ink, font)
        if reading and reading.text.isdecimal() and reading.cost <= _UNREADABLE * reading.ink:
            texts.append((box, int(reading.text)))
    for x, y, r in rings:
        gaps = [(_gap(box, x, y), number) for box, number in texts]
        gap, number = min(gaps, default=(np.inf, -1))
        if gap < r + _REACH:
            yield Disc(number, x, y, r)


Box = tuple[int, int, int, int]
"""Left, top, right, bottom."""


def _near(labels: npt.NDArray[np.int32], x: float, y: float, reach: float) -> npt.NDArray[np.int32]:
    """The labels of the pixels around a place, as far as that in every direction."""
    left, top = max(0, int(x - reach)), max(0, int(y - reach))
    window = labels[top : int(y + reach) + 1, left : int(x + reach) + 1]
    rows, columns = np.indices(window.shape)
    found: npt.NDArray[np.int32] = np.unique(
        window[np.hypot(columns + 0.5 + left - x, rows + 0.5 + top - y) <= reach]
    )
    return found


def _words(found: Sequence[tuple[slice, slice]], taken: set[int]) -> Iterator[Box]:
    """Strokes as high as a digit, joined where they stand side by side."""
    digits = sorted(
        (xs.start, ys.start, xs.stop, ys.stop)
        for label, (ys, xs) in enumerate(found, 1)
        if label not in taken and _TALL[0] <= ys.stop - ys.start <= _TALL[1]
    )
    while digits:
        left, top, right, bottom = digits.pop(0)
        for other in list(digits):
            if 0 <= other[0] - right <= _SPACE and abs(other[3] - bottom) <= 2:
                right = other[2]
                digits.remove(other)
        yield left, top, right, bottom


def _gap(box: Box, x: float, y: float) -> float:
    left, top, right, bottom = box
    return float(np.hypot(max(left - x, 0.0, x - right), max(top - y, 0.0, y - bottom)))
