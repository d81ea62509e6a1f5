"""Sheets: mixing colours by look-up gives the pixels that Pillow's own pasting gives."""

import io

import numpy as np
import pytest
from PIL import Image

from npbench.rendering.canvas import encode
from npbench.rendering.sheet import Sheet

INKS = ("#ffffff", "#111827", "#fef3c7", "#0072b2")


def rgb(image):
    return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize("levels", [8, 16, 256])
@pytest.mark.parametrize("seed", range(3))
def test_pasting_and_filling_give_the_pixels_that_pillow_gives(seed, levels):
    rng = np.random.default_rng(seed)
    sheet = Sheet(150, 140, "#f4f6f9")
    image = Image.new("RGB", (150, 140), "#f4f6f9")
    for _ in range(30):
        ink = INKS[rng.integers(len(INKS))]
        left, top = rng.integers(-20, 140, 2).tolist()
        width, height = rng.integers(1, 150, 2).tolist()
        if rng.random() < 0.3:
            sheet.fill(ink, (left, top, left + width, top + height))
            image.paste(ink, (left, top, left + width, top + height))
        else:
            steps = rng.integers(0, levels, (height, width)) * rng.integers(0, 2, (height, width))
            mask = (steps * 255 // (levels - 1)).astype(np.uint8)
            sheet.paste(ink, mask, left=left, top=top)
            image.paste(ink, (left, top), Image.fromarray(mask))
    assert np.array_equal(rgb(sheet.image()), rgb(image))


def test_beginning_with_a_mask_is_pasting_it():
    mask = np.random.default_rng(0).integers(0, 256, (200, 220), dtype=np.uint8)
    begun, pasted = (Sheet(256, 224, "#14181f") for _ in range(2))
    begun.begin("#a3adba", mask, left=5, top=7)
    pasted.paste("#a3adba", mask, left=5, top=7)
    assert np.array_equal(rgb(begun.image()), rgb(pasted.image()))


def test_a_palette_holds_the_colours_that_are_seen_and_no_others():
    sheet = Sheet(40, 30, "#102030")
    sheet.fill("#ffffff", (0, 0, 40, 30))
    sheet.fill("#0072b2", (2, 2, 9, 9))
    image = sheet.image()
    assert image.mode == "P"
    assert image.getpalette("RGB") == [0x00, 0x72, 0xB2, 0xFF, 0xFF, 0xFF]


@pytest.mark.parametrize(("shades", "mode"), [(200, "P"), (256, "RGB")])
def test_more_colours_than_a_palette_holds_are_kept_in_rgb(shades, mode):
    mask = np.resize(np.arange(shades, dtype=np.uint8), (32, 32))
    sheet = Sheet(64, 32, "#000000")
    sheet.paste("#ffffff", mask, left=0, top=0)
    sheet.fill("#d55e00", (32, 0, 64, 32))
    image = sheet.image()
    assert image.mode == mode
    again = Image.open(io.BytesIO(encode(image)))
    assert np.array_equal(rgb(again), rgb(image))
    assert rgb(image)[0, shades % 32].tolist() == [shades % 32] * 3
