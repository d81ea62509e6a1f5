"""Text: its height in the delivered pixels, its place, its signs."""

import io

import numpy as np
import pytest
from PIL import Image

from npbench.rendering.panels import GraphPanel, TablePanel
from npbench.rendering.picture import draw_picture
from npbench.rendering.styles import STYLES
from npbench.rendering.text import SIGNS, TEXT_SIZES, glyphs


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(picture.png)).convert("RGB")).astype(int)


def ink_box(image, box, ground):
    """Bounds of what differs from the ground within a box, in pixels of the picture."""
    x0, y0, x1, y1 = box
    rows, cols = np.nonzero(np.any(image[y0:y1, x0:x1] != ground, axis=-1))
    return [x0 + cols.min(), y0 + rows.min(), x0 + cols.max() + 1, y0 + rows.max() + 1]


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
@pytest.mark.parametrize("digits", [1, 2, 3])
def test_digits_in_cells_are_at_least_11_px_high_and_where_the_layout_says(style, digits):
    n = 22
    numbers = np.random.default_rng(digits).integers(10 ** (digits - 1), 10**digits, (n, n))
    panel = TablePanel(
        columns=tuple(map(str, range(n))),
        rows=tuple(tuple(map(str, row)) for row in numbers),
        row_headers=False,
    )
    picture = draw_picture([panel], style=style)
    image = pixels(picture)
    for cell in picture.layout["tables"][0]["cells"]:
        x0, y0, x1, y1 = cell["box"]
        inner = (x0 + 1, y0 + 1, x1, y1)
        ink = ink_box(image, inner, image[y0 + 1, x0 + 1])
        assert ink[3] - ink[1] >= 11
        assert ink == cell["text_box"]


@pytest.mark.parametrize(("num_vertices", "size"), [(8, 256), (20, 768), (30, 768)])
def test_numbers_of_vertices_are_at_least_11_px_high_and_where_the_layout_says(num_vertices, size):
    edges = tuple((v, (v + 2) % num_vertices) for v in range(num_vertices))
    panel = GraphPanel(num_vertices=num_vertices, edges=edges, size=size)
    picture = draw_picture([panel], style=STYLES["print"])
    image = pixels(picture)
    for label in picture.layout["labels"]:
        ink = ink_box(image, label["box"], np.array([255, 255, 255]))
        assert ink[3] - ink[1] >= 11
        assert ink == label["box"]


@pytest.mark.parametrize("bold", [False, True])
@pytest.mark.parametrize("size", TEXT_SIZES)
def test_every_digit_of_every_size_is_at_least_11_px_high(size, bold):
    for digit in "0123456789":
        rows = np.asarray(glyphs(digit, size, bold=bold).mask).max(axis=1)
        assert np.count_nonzero(rows > 60) >= 11


@pytest.mark.parametrize("bold", [False, True])
def test_every_sign_of_the_bundled_font_has_ink_of_its_own(bold):
    shapes = {}
    for sign in sorted(SIGNS - {" "}):
        shape = glyphs(sign, 40, bold=bold)
        assert shape.mask.getbbox() is not None
        shapes.setdefault((shape.mask.tobytes(), shape.left, shape.top), []).append(sign)
    assert all(len(signs) == 1 for signs in shapes.values()), shapes


@pytest.mark.parametrize(
    ("text", "message"),
    [("naïve", "lacks the sign 'ï' of 'naïve'"), (" ", "a text must have ink, got ' '")],
)
def test_a_text_that_cannot_be_shown_is_refused(text, message):
    panel = TablePanel(columns=("name",), rows=((text,),))
    with pytest.raises(ValueError, match=message):
        draw_picture([panel], style=STYLES["light"])


def column(layout, col):
    return [cell for cell in layout["tables"][0]["cells"] if cell["col"] == col]


def test_numbers_end_on_one_line_and_words_begin_on_one():
    panel = TablePanel(
        columns=("item", "name", "weight"),
        rows=(("0", "bolt", "8"), ("1", "hammer", "118"), ("2", "nut", "–")),
    )
    layout = draw_picture([panel], style=STYLES["light"]).layout
    ends = {cell["text_box"][2] for cell in column(layout, 2)[1:3]}
    starts = {cell["text_box"][0] for cell in column(layout, 1)}
    assert max(ends) - min(ends) <= 1
    assert max(starts) - min(starts) <= 1


def test_the_columns_of_a_matrix_are_equally_wide():
    panel = TablePanel(columns=("", "0", "1", "2"), rows=(("0", "–", "100", "7"),))
    layout = draw_picture([panel], style=STYLES["light"]).layout
    widths = {cell["box"][2] - cell["box"][0] for cell in layout["tables"][0]["cells"][1:4]}
    assert len(widths) == 1
