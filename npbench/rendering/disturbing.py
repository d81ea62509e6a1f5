"""Disturbances of a finished picture: turned by an angle, and under Gaussian noise."""

import hashlib

import numpy as np
from PIL import Image

from npbench.rendering.turning import cosine_and_sine, turned_size
from npbench.rng import stream

__all__ = ["noisy", "turned"]

_QUARTERS = {
    90: Image.Transpose.ROTATE_270,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_90,
}
"""Pillow counts counterclockwise."""


def turned(image: Image.Image, degrees: float, background: str) -> Image.Image:
    """The image turned clockwise on a canvas that is just large enough."""
    if degrees % 360 in _QUARTERS:
        return image.transpose(_QUARTERS[int(degrees % 360)])
    size = turned_size(*image.size, degrees)
    c, s = cosine_and_sine(degrees)
    x, y = image.width / 2, image.height / 2
    middle = (size[0] / 2, size[1] / 2)
    back = (c, s, x - c * middle[0] - s * middle[1], -s, c, y + s * middle[0] - c * middle[1])
    return image.convert("RGB").transform(
        size,
        Image.Transform.AFFINE,
        back,
        resample=Image.Resampling.BICUBIC,
        fillcolor=background,
    )


def noisy(image: Image.Image, sigma: float) -> Image.Image:
    """The image under Gaussian noise; equal images get equal noise."""
    image = image.convert("RGB")
    rng = stream("noise", sigma, hashlib.sha256(image.tobytes()).hexdigest())
    colours = np.asarray(image, dtype=np.float32)
    noise = rng.standard_normal(colours.shape, dtype=np.float32)
    return Image.fromarray(np.clip(np.rint(colours + sigma * noise), 0, 255).astype(np.uint8))
