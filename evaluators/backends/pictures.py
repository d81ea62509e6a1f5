"""Encoded pictures to pixels, once and in the same way for every backend."""

import math
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["MAX_RATIO", "MIN_SIDE", "as_png", "load_picture", "scaled_size"]

MIN_SIDE = 32
"""The least side that the processors in use take (Qwen3-VL; Qwen2.5-VL takes 28)."""
MAX_RATIO = 199
"""The largest ratio of the sides that they take."""


def load_picture(
    encoded: bytes, *, min_pixels: int | None = None, max_pixels: int | None = None
) -> "Image":
    """The picture as RGB pixels, as every model sees it.

    Turned as its EXIF tag says, transparent parts on white. Beyond ``MAX_RATIO`` the short side
    is padded with white; then the picture is scaled, its ratio kept, into the limits and up to
    ``MIN_SIDE``.

    Args:
        encoded: A PNG, JPEG or other file that Pillow reads.
        min_pixels: Smaller areas are enlarged to this.
        max_pixels: Larger areas are reduced to this.

    Raises:
        ValueError: If it is no picture or a damaged one.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not isinstance(encoded, bytes):
        raise TypeError(f"a picture is encoded bytes, got {type(encoded).__name__}")
    try:
        with Image.open(BytesIO(encoded)) as opened:
            picture = _on_white(ImageOps.exif_transpose(opened))
    except UnidentifiedImageError:
        raise ValueError(f"{len(encoded)} bytes that are no picture") from None
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"a damaged picture: {error}") from None
    picture = _padded(picture)
    size = scaled_size(picture.size, min_pixels=min_pixels, max_pixels=max_pixels)
    if size != picture.size:
        picture = picture.resize(size, Image.Resampling.BICUBIC)
    return picture


def as_png(
    encoded: bytes, *, min_pixels: int | None = None, max_pixels: int | None = None
) -> tuple[bytes, tuple[int, int]]:
    """The same pixels as a PNG file, and their size; a plain PNG that fits is sent as it is.

    Raises:
        ValueError: If it is no picture or a damaged one.
    """
    picture = load_picture(encoded, min_pixels=min_pixels, max_pixels=max_pixels)
    if _is_plain_png(encoded, picture.size):
        return encoded, picture.size
    buffer = BytesIO()
    picture.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue(), picture.size


def _is_plain_png(encoded: bytes, size: tuple[int, int]) -> bool:
    from PIL import Image

    with Image.open(BytesIO(encoded)) as opened:
        plain = opened.format == "PNG" and opened.mode == "RGB" and opened.size == size
        return plain and not opened.has_transparency_data and not opened.getexif()


def scaled_size(
    size: tuple[int, int], *, min_pixels: int | None = None, max_pixels: int | None = None
) -> tuple[int, int]:
    """The size within the limits, its ratio kept; ``MIN_SIDE`` comes before ``max_pixels``.

    Example:
        >>> scaled_size((332, 27)), scaled_size((100, 50), min_pixels=20_000)
        ((393, 32), (200, 100))
        >>> scaled_size((1000, 500), max_pixels=20_000)
        (200, 100)
    """
    width, height = size
    factor = 1.0
    if max_pixels is not None and width * height > max_pixels:
        factor = math.sqrt(max_pixels / (width * height))
    elif min_pixels is not None and width * height < min_pixels:
        factor = math.sqrt(min_pixels / (width * height))
    factor = max(factor, MIN_SIDE / min(width, height))
    if factor == 1.0 or (factor < 1.0 and min(width, height) < MIN_SIDE):
        return size
    return max(MIN_SIDE, round(width * factor)), max(MIN_SIDE, round(height * factor))


def _on_white(picture: "Image") -> "Image":
    from PIL import Image

    if picture.has_transparency_data:
        clear = picture.convert("RGBA")
        white = Image.new("RGBA", clear.size, "white")
        return Image.alpha_composite(white, clear).convert("RGB")
    if picture.mode in ("I", "I;16", "F"):
        # More than 8 bits a channel: RGB conversion would clip instead of scale.
        picture = picture.convert("F").point(lambda value: value / 257)
    return picture.convert("RGB")


def _padded(picture: "Image") -> "Image":
    from PIL import Image

    width, height = picture.size
    least = math.ceil(max(width, height) / MAX_RATIO)
    if min(width, height) >= least:
        return picture
    wide = Image.new("RGB", (max(width, least), max(height, least)), "white")
    wide.paste(picture, ((wide.width - width) // 2, (wide.height - height) // 2))
    return wide
