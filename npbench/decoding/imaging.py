"""Pixels of a picture as contrast to its background, upright and with little noise.

Nothing here knows how pictures are drawn: no style, no layout, no colour is given. Two levels of
contrast are enough for every style, since lines and rings stand out from the ground by more than
``LINE`` of 255 steps of luminance, and the fills of discs, headers and stripes by less.
"""

from dataclasses import dataclass
from io import BytesIO
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

__all__ = ["LINE", "Array", "Pixels", "image_library", "read_pixels", "sampled"]

Array = npt.NDArray[np.float64]

LINE = 80.0
"""Contrast above which a pixel belongs to a line, a ring or a letter."""
_NOISY = 2.0
"""Standard deviation of the ground's luminance above which a picture is smoothed."""
_LUMINANCE = (0.299, 0.587, 0.114)
_FRAME = 4
"""Width of the frame in which nothing is drawn."""


@dataclass(frozen=True, slots=True)
class Pixels:
    """A picture as a decoder sees it."""

    contrast: Array
    """Absolute difference of luminance from the background, 0 to 255."""
    smooth: Array
    """The same after a 3 x 3 binomial filter where the picture is noisy."""
    noise: float
    """Standard deviation of the background's luminance."""


def image_library() -> ModuleType:
    """``scipy.ndimage``, with a hint where it is not installed."""
    try:
        from scipy import ndimage
    except ImportError:
        raise ImportError("the decoder needs: pip install 'npbench[eval]'") from None
    assert isinstance(ndimage, ModuleType)
    return ndimage


def read_pixels(png: bytes, *, degrees: float = 0.0) -> Pixels:
    """The picture turned back by ``degrees`` (clockwise as the prompt states them)."""
    image: Image.Image = Image.open(BytesIO(png))
    if degrees:
        image = image.convert("RGB")
        ground = tuple(int(channel) for channel in _ground(np.asarray(image)))
        image = image.rotate(
            degrees, resample=Image.Resampling.BICUBIC, expand=True, fillcolor=ground
        )
    difference = _luminance(image)
    difference -= float(_ground(np.asarray(image.convert("RGB"))) @ np.array(_LUMINANCE))
    contrast = np.abs(difference)
    noise = 1.4826 * float(np.median(_frame(contrast)))
    smooth = contrast
    if noise > _NOISY:
        # Smoothed before the absolute value is taken, or noise would lift the ground.
        for axis in (0, 1):
            difference = image_library().convolve1d(difference, [0.25, 0.5, 0.25], axis=axis)
        smooth = np.abs(difference)
    return Pixels(contrast=contrast, smooth=smooth, noise=noise)


def _luminance(image: Image.Image) -> Array:
    """The luminance of each pixel; of an image with a palette, that of its few colours."""
    palette = image.getpalette("RGB") if image.mode == "P" else None
    if palette is not None:
        few = np.array(palette, dtype=float).reshape(-1, 3) @ np.array(_LUMINANCE)
        return np.asarray(few[np.asarray(image)])
    red, green, blue = np.moveaxis(np.asarray(image.convert("RGB")), -1, 0)
    return np.asarray(_LUMINANCE[0] * red + _LUMINANCE[1] * green + _LUMINANCE[2] * blue)


def _ground(colours: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """The colour of the background: the median along the frame."""
    return np.asarray(np.median(_frame(colours), axis=0))


def _frame(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The pixels of the frame, in a list."""
    strips = (image[:_FRAME], image[-_FRAME:], image[:, :_FRAME], image[:, -_FRAME:])
    return np.concatenate([strip.reshape(-1, *image.shape[2:]) for strip in strips])


def sampled(image: Array, x: Array, y: Array) -> Array:
    """The image at points, bilinear; pixel (i, j) is centred at (i + 0.5, j + 0.5)."""
    places = np.array([y - 0.5, x - 0.5])
    return np.asarray(image_library().map_coordinates(image, places, order=1, mode="nearest"))
