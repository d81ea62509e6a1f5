"""Share-GRPO's picture transforms, each with the hint that keeps its question answerable.

Rotations and noise by default; flips by choice, since they reverse text and handedness, which only
the hint makes up for. Cropping and colour changes are left out: they can remove the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from npbench.errors import unknown_name

__all__ = ["DEFAULT_TRANSFORMS", "FLIPS", "TRANSFORMS", "Transform", "Variant", "vary"]

Draw = Callable[[Image.Image, np.random.Generator], Image.Image]


@dataclass(frozen=True, slots=True)
class Transform:
    """One way to change a picture without changing the answer."""

    name: str
    apply: Draw
    hint: str
    """What was done to the picture, for the reader of the question."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A picture and a prompt that ask the same question."""

    image: Image.Image
    prompt: str
    transform: str | None
    """The transform's name; None where the original was kept."""


def _turned(way: Image.Transpose) -> Draw:
    return lambda image, rng: image.transpose(way)


def _noisy(sigma: float) -> Draw:
    """Gaussian noise on the colour channels, on the scale 0-255; transparency stays."""

    def apply(image: Image.Image, rng: np.random.Generator) -> Image.Image:
        plain = image if image.mode in ("L", "RGB", "RGBA") else image.convert("RGB")
        values = np.asarray(plain, dtype=np.float64).copy()
        colours = values[..., :3] if values.ndim == 3 else values
        colours += rng.normal(0.0, sigma, size=colours.shape)
        return Image.fromarray(np.clip(np.rint(values), 0, 255).astype(np.uint8))

    return apply


# Pillow's ROTATE_90 is counter-clockwise. In the released code the hints of the two quarter turns
# are exchanged, and the hint is repeated before every piece of text around the picture.
_ALL = (
    Transform(
        "rotate-90-clockwise",
        _turned(Image.Transpose.ROTATE_270),
        "The picture has been rotated by 90 degrees clockwise.",
    ),
    Transform(
        "rotate-90-counterclockwise",
        _turned(Image.Transpose.ROTATE_90),
        "The picture has been rotated by 90 degrees counterclockwise.",
    ),
    Transform(
        "rotate-180",
        _turned(Image.Transpose.ROTATE_180),
        "The picture has been rotated by 180 degrees.",
    ),
    Transform("noise-10", _noisy(10.0), "The picture has slight noise."),
    Transform("noise-25", _noisy(25.0), "The picture has noise."),
    Transform("noise-50", _noisy(50.0), "The picture has strong noise."),
    Transform(
        "flip-horizontal",
        _turned(Image.Transpose.FLIP_LEFT_RIGHT),
        "The picture has been mirrored left to right, its text included.",
    ),
    Transform(
        "flip-vertical",
        _turned(Image.Transpose.FLIP_TOP_BOTTOM),
        "The picture has been mirrored top to bottom, its text included.",
    ),
    Transform(
        "flip-both",
        _turned(Image.Transpose.ROTATE_180),
        "The picture has been mirrored left to right and top to bottom, its text included.",
    ),
)
TRANSFORMS: Mapping[str, Transform] = {transform.name: transform for transform in _ALL}
"""All transforms by name; angles and noise levels are those of the released code."""
FLIPS = ("flip-horizontal", "flip-vertical", "flip-both")
DEFAULT_TRANSFORMS = tuple(name for name in TRANSFORMS if name not in FLIPS)


def vary(
    image: Image.Image,
    prompt: str,
    rng: np.random.Generator,
    *,
    probability: float = 0.3,
    names: Sequence[str] = DEFAULT_TRANSFORMS,
) -> Variant:
    """With the given probability one transform, drawn uniformly, and its hint before the prompt.

    The hint stands once, on a line of its own. The generator is advanced by the same number of
    draws whether or not a transform is taken, noise apart.

    Args:
        image: The picture; not changed.
        prompt: The question, placeholder of the picture included.
        rng: Source of the draw.
        probability: Chance of a transform; 0.3 in paper and code.
        names: Transforms to draw from; flips only by choice.

    References:
        Yao et al., `R1-ShareVL <https://arxiv.org/abs/2505.16673>`_, NeurIPS 2025; angles and noise
        levels from its code, the paper's own list is not known to us.
    """
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"probability must lie in [0, 1], got {probability}")
    if not names:
        raise ValueError("names must hold at least 1 transform, got none")
    for name in names:
        if name not in TRANSFORMS:
            raise unknown_name("transform", name, TRANSFORMS)
    wanted = float(rng.random()) < probability
    transform = TRANSFORMS[names[int(rng.integers(len(names)))]]
    if not wanted:
        return Variant(image, prompt, None)
    return Variant(transform.apply(image, rng), f"{transform.hint}\n{prompt}", transform.name)
