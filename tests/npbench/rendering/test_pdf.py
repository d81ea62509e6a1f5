"""PDF of single pictures: vectors, the bundled font, the picture's size, the same bytes again."""

import builtins

import pytest

from npbench.errors import InputError
from npbench.rendering.panels import GraphPanel, TablePanel, TimelinePanel
from npbench.rendering.pdf import as_pdf
from npbench.rendering.picture import draw_picture
from npbench.rendering.styles import STYLES, get_style

PANELS = (
    GraphPanel(num_vertices=9, edges=((0, 3), (1, 5), (2, 8), (4, 7)), size=512, title="Graph"),
    TablePanel(columns=("item", "weight"), rows=(("0", "12"), ("1", "≤ 7"))),
    TimelinePanel(intervals=((540, 720), (780, 1020)), size=512),
)


@pytest.mark.parametrize("label", [*STYLES, "light-rotate90", "sketch-rotate15"])
def test_a_page_is_as_large_as_the_picture_and_made_of_vectors(label):
    style = get_style(label)
    picture = draw_picture(PANELS, style=style, arrangement="column")
    pdf = as_pdf(picture.scene, style)
    assert pdf.startswith(b"%PDF-")
    box = f"/MediaBox [ 0 0 {0.75 * picture.width:g} {0.75 * picture.height:g} ]"
    assert box.encode() in pdf
    assert b"DejaVuSans-Bold" in pdf
    assert b"/Image" not in pdf.replace(b"/ImageB /ImageC /ImageI", b"")


def test_equal_scenes_give_equal_bytes():
    style = STYLES["sketch"]
    first, second = (as_pdf(draw_picture(PANELS, style=style).scene, style) for _ in range(2))
    assert first == second


def test_noise_is_refused():
    style = get_style("light-noise5")
    with pytest.raises(InputError, match="noise cannot be drawn as vectors"):
        as_pdf(draw_picture(PANELS, style=style).scene, style)


def test_a_missing_library_is_named(monkeypatch):
    found = builtins.__import__

    def without_reportlab(name, *arguments, **options):
        if name.startswith("reportlab"):
            raise ImportError(name)
        return found(name, *arguments, **options)

    picture = draw_picture(PANELS, style=STYLES["light"])
    monkeypatch.setattr(builtins, "__import__", without_reportlab)
    with pytest.raises(InputError, match=r"PDF needs: pip install 'npbench\[pdf\]'"):
        as_pdf(picture.scene, STYLES["light"])
