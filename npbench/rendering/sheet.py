"""A sheet of pixels as numbers of colours, on which a colour through a mask is one look-up each.

A picture shows few colours: some that a style names, and those between two of them at the rims of
strokes. Kept as numbers, they go into the palette of a PNG without a search over all pixels.
"""

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageColor

__all__ = ["Mask", "Sheet"]

Mask = npt.NDArray[np.uint8]
"""How much of each pixel is covered: 0 not at all, 255 wholly."""

_UNKNOWN = np.iinfo(np.uint16).max
_LARGE = 1 << 14
"""Pixels from which on those that a mask leaves alone are passed over."""

Colour = tuple[int, int, int]


class Sheet:
    """Pixels of one colour, to be painted on."""

    def __init__(self, width: int, height: int, ground: str) -> None:
        """Fill the sheet.

        Args:
            width: In pixels.
            height: In pixels.
            ground: A colour, as ``#rrggbb``.
        """
        self._pixels = np.zeros((height, width), dtype=np.uint16)
        self._colours: list[Colour] = []
        self._numbers: dict[Colour, int] = {}
        self._mixtures: dict[str, npt.NDArray[np.uint16]] = {}
        self._number(_channels(ground))

    def fill(self, colour: str, box: tuple[int, int, int, int]) -> None:
        """Paint a box: left, top, right, bottom, the last two excluded."""
        x0, y0, x1, y1 = (max(0, side) for side in box)
        self._pixels[y0:y1, x0:x1] = self._number(_channels(colour))

    def paste(self, colour: str, mask: Mask, *, left: int, top: int) -> None:
        """Mix a colour into the pixels below a mask; what leaves the sheet is cut off.

        Args:
            colour: As ``#rrggbb``.
            mask: By how much.
            left: Where the mask begins.
            top: Where it begins.
        """
        mask = mask[max(0, -top) :, max(0, -left) :]
        area = self._pixels[max(0, top) :, max(0, left) :][: mask.shape[0], : mask.shape[1]]
        mask = mask[: area.shape[0], : area.shape[1]]
        if mask.size < _LARGE:
            area[:] = self._mixed(colour, area, mask)
        else:
            covered = np.nonzero(mask > 0)
            area[covered] = self._mixed(colour, area[covered], mask[covered])

    def begin(self, colour: str, mask: Mask, *, left: int, top: int) -> None:
        """Mix a colour into the ground; the same as ``paste`` and faster, before all else.

        Args:
            colour: As ``#rrggbb``.
            mask: By how much; it lies on the sheet.
            left: Where it begins.
            top: Where it begins.
        """
        ground, ink = self._colours[0], _channels(colour)
        mixed = bytearray(256)
        for share, count in enumerate(Image.fromarray(mask).histogram()):
            if count:
                mixed[share] = self._number(_mixture(ground, ink, share))
        numbers = np.frombuffer(mask.tobytes().translate(mixed), dtype=np.uint8)
        height, width = mask.shape
        self._pixels[top : top + height, left : left + width] = numbers.reshape(mask.shape)

    def image(self) -> Image.Image:
        """The sheet as an image with a palette, or in RGB where one is too short for it."""
        height, width = self._pixels.shape
        pixels: npt.NDArray[np.integer] = self._pixels
        colours = self._colours
        if len(colours) > 256:
            # Colours that were painted over need no place.
            shown = np.unique(pixels)
            if len(shown) > 256:
                return Image.fromarray(np.array(colours, dtype=np.uint8)[pixels])
            pixels = np.searchsorted(shown, pixels)
            colours = [colours[number] for number in shown.tolist()]
        data = pixels.astype(np.uint8).tobytes()
        counts = Image.frombytes("L", (width, height), data).histogram()[: len(colours)]
        order = sorted((n for n, count in enumerate(counts) if count), key=colours.__getitem__)
        places = bytearray(256)
        for place, number in enumerate(order):
            places[number] = place
        image = Image.frombytes("P", (width, height), data.translate(places))
        image.putpalette([channel for number in order for channel in colours[number]])
        return image

    def _number(self, colour: Colour) -> int:
        """The number of a colour, a new one where it has none."""
        if colour not in self._numbers:
            self._numbers[colour] = len(self._colours)
            self._colours.append(colour)
        return self._numbers[colour]

    def _mixed(
        self, colour: str, pixels: npt.NDArray[np.uint16], mask: Mask
    ) -> npt.NDArray[np.uint16]:
        """The pixels after the colour was mixed in; a mixture is worked out when first met."""
        pairs = pixels.astype(np.intp)
        pairs <<= 8
        pairs |= mask
        known = self._mixtures.get(colour)
        if known is None or len(known) < len(self._colours) << 8:
            longer = np.full(2 * len(self._colours) << 8, _UNKNOWN, dtype=np.uint16)
            if known is not None:
                longer[: len(known)] = known
            known = self._mixtures[colour] = longer
        mixed = known[pairs]
        new = mixed == _UNKNOWN
        if new.any():
            ink = _channels(colour)
            for pair in np.unique(pairs[new]).tolist():
                known[pair] = self._number(_mixture(self._colours[pair >> 8], ink, pair & 255))
            mixed = known[pairs]
        return mixed


def _channels(colour: str) -> Colour:
    red, green, blue = ImageColor.getrgb(colour)[:3]
    return red, green, blue


def _mixture(under: Colour, ink: Colour, share: int) -> Colour:
    """A share of 255 of the ink over the colour under it, each channel rounded."""
    red, green, blue = (
        (low * (255 - share) + high * share + 127) // 255
        for low, high in zip(under, ink, strict=True)
    )
    return red, green, blue
