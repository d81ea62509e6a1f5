"""Pictures reach every backend as the same pixels."""

from io import BytesIO

import pytest
from PIL import Image

from evaluators.backends.pictures import as_png, load_picture, scaled_size


def encoded(picture, form="PNG", **options):
    buffer = BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "PA"])
def test_transparent_parts_are_white_and_strokes_stay(mode):
    clear = Image.new("RGBA", (40, 40), (0, 0, 0, 0))
    clear.paste((0, 0, 0, 255), (0, 0, 20, 40))
    if mode == "LA":
        clear = clear.convert("LA")
    if mode in ("P", "PA"):
        palette = Image.new("P", (40, 40), 1)
        palette.putpalette([0, 0, 0, 10, 10, 10])
        palette.paste(0, (0, 0, 20, 40))
        clear, options = palette, {"transparency": 1}
    else:
        options = {}
    shown = load_picture(encoded(clear, **options))
    assert shown.mode == "RGB"
    assert shown.getpixel((5, 5)) == (0, 0, 0)
    assert shown.getpixel((35, 5)) == (255, 255, 255)
    sent, size = as_png(encoded(clear, **options))
    assert size == (40, 40)
    assert Image.open(BytesIO(sent)).convert("RGB").tobytes() == shown.tobytes()


def test_a_rotation_tag_is_applied_once():
    picture = Image.new("RGB", (60, 40), "white")
    picture.paste((255, 0, 0), (0, 0, 30, 40))
    exif = Image.Exif()
    exif[0x0112] = 6
    raw = encoded(picture, "JPEG", exif=exif, quality=95)
    shown = load_picture(raw)
    assert shown.size == (40, 60)
    assert shown.getpixel((20, 5))[1] < 60
    assert shown.getpixel((20, 55))[1] > 200
    again, size = as_png(raw)
    assert size == (40, 60)
    assert load_picture(again).tobytes() == shown.tobytes()


@pytest.mark.parametrize(
    ("size", "sent"),
    [((332, 27), (393, 32)), ((26, 28), (32, 34)), ((1, 1), (32, 32)), ((300, 200), (300, 200))],
)
def test_a_short_side_is_scaled_up_with_the_ratio_kept(size, sent):
    assert load_picture(encoded(Image.new("RGB", size))).size == sent


def test_a_picture_beyond_the_largest_ratio_is_padded_with_white():
    shown = load_picture(encoded(Image.new("RGB", (2270, 10), "black")))
    assert shown.width / shown.height < 200
    assert shown.height >= 32
    assert shown.getpixel((5, 0)) == (255, 255, 255)
    assert shown.getpixel((5, shown.height // 2)) == (0, 0, 0)


def test_pixel_limits_scale_the_area_both_ways():
    assert scaled_size((1000, 500), max_pixels=20_000) == (200, 100)
    assert scaled_size((100, 50), min_pixels=20_000) == (200, 100)
    assert scaled_size((100, 100), min_pixels=5_000, max_pixels=20_000) == (100, 100)
    assert min(scaled_size((3000, 40), max_pixels=5_000)) == 32


def test_more_than_eight_bits_are_scaled_and_not_clipped():
    deep = Image.new("I;16", (40, 40), 32768)
    assert load_picture(encoded(deep)).getpixel((0, 0)) == (127, 127, 127)


def test_a_plain_png_is_sent_as_it_is():
    raw = encoded(Image.new("RGB", (50, 40), "blue"))
    assert as_png(raw) == (raw, (50, 40))
    assert as_png(raw, max_pixels=1100)[1] != (50, 40)


@pytest.mark.parametrize("raw", [b"", b"no picture", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_picture_is_one_line(raw):
    with pytest.raises(ValueError, match=r"no picture|damaged"):
        load_picture(raw)


def test_a_cut_picture_is_damaged():
    raw = encoded(Image.effect_noise((64, 64), 50).convert("RGB"))
    with pytest.raises(ValueError, match="damaged picture"):
        load_picture(raw[: len(raw) // 2])


def test_a_path_is_no_picture():
    with pytest.raises(TypeError, match="a picture is encoded bytes, got str"):
        load_picture("some/file.png")
