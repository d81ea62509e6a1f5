"""Pictures as files: size, bytes, sameness, refusals."""

import hashlib
import io
import os
import struct
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from npbench.errors import InputError, PictureError
from npbench.rendering.panels import GraphPanel, TablePanel
from npbench.rendering.picture import draw_picture
from npbench.rendering.styles import STYLES

HASH_PROGRAM = """
import hashlib, io
from PIL import Image
from npbench.rendering.panels import GraphPanel, TablePanel
from npbench.rendering.picture import draw_picture
from npbench.rendering.styles import STYLES
panels = [
    GraphPanel(num_vertices=9, edges=((0, 3), (1, 5), (2, 8), (4, 7)), size=512, title="G"),
    TablePanel(columns=("item", "weight"), rows=(("0", "12"), ("1", "7"))),
]
for style in STYLES.values():
    picture = draw_picture(panels, style=style)
    pixels = Image.open(io.BytesIO(picture.png)).convert("RGB").tobytes()
    print(hashlib.sha256(pixels).hexdigest(), hashlib.sha256(picture.png).hexdigest())
"""


def cycle(num_vertices, size=512, **options):
    edges = tuple((v, (v + 1) % num_vertices) for v in range(num_vertices))
    return GraphPanel(num_vertices=num_vertices, edges=edges, size=size, **options)


def ring_of_chords(num_vertices, size=512):
    edges = tuple((v, (v + 2) % num_vertices) for v in range(num_vertices))
    return GraphPanel(num_vertices=num_vertices, edges=edges, size=size)


def matrix(n, low, high, **options):
    numbers = np.random.default_rng(n).integers(low, high, (n, n))
    rows = tuple(
        (str(i), *("–" if i == j else str(number) for j, number in enumerate(row)))
        for i, row in enumerate(numbers)
    )
    return TablePanel(columns=("", *map(str, range(n))), rows=rows, **options)


def chunks(png):
    position, names = 8, []
    while position < len(png):
        (length,) = struct.unpack(">I", png[position : position + 4])
        names.append(png[position + 4 : position + 8].decode())
        position += 12 + length
    return names


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
def test_the_file_opens_at_its_stated_size_and_holds_no_metadata(style):
    picture = draw_picture([cycle(8, 256)], style=style)
    image = Image.open(io.BytesIO(picture.png))
    assert image.size == (picture.width, picture.height) == (256, 256)
    assert (picture.layout["width"], picture.layout["height"]) == (256, 256)
    assert set(chunks(picture.png)) == {"IHDR", "PLTE", "IDAT", "IEND"}


def test_the_palette_loses_no_colour():
    style = STYLES["paper"]
    picture = draw_picture([cycle(8, 256)], style=style)
    image = Image.open(io.BytesIO(picture.png)).convert("RGB")
    seen = {f"#{r:02x}{g:02x}{b:02x}" for _, (r, g, b) in image.getcolors(256)}
    assert {style.background, style.disc, style.ring, style.edge, style.number} <= seen


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_same_pixels_come_out_in_another_process(seed):
    panels = [
        GraphPanel(num_vertices=9, edges=((0, 3), (1, 5), (2, 8), (4, 7)), size=512, title="G"),
        TablePanel(columns=("item", "weight"), rows=(("0", "12"), ("1", "7"))),
    ]
    here = []
    for style in STYLES.values():
        first, second = (draw_picture(panels, style=style) for _ in range(2))
        assert first == second
        pixels = Image.open(io.BytesIO(first.png)).convert("RGB").tobytes()
        digests = (hashlib.sha256(pixels).hexdigest(), hashlib.sha256(first.png).hexdigest())
        here.append(" ".join(digests))
    there = subprocess.run(
        [sys.executable, "-c", HASH_PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.split("\n")[:-1] == here


def test_records_and_the_proof_do_without_pillow():
    program = (
        "import sys\n"
        "import npbench, npbench.rendering.styles, npbench.rendering.panels\n"
        "import npbench.rendering.legibility\n"
        "sys.exit('PIL' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("num_vertices", "size", "side"),
    [(5, 256, 256), (8, 256, 256), (12, 512, 512), (20, 768, 768), (16, 256, 320), (40, 768, 1408)],
)
def test_a_picture_keeps_its_size_or_grows_until_it_is_legible(num_vertices, size, side):
    picture = draw_picture([ring_of_chords(num_vertices, size)], style=STYLES["light"])
    assert (picture.width, picture.height) == (side, side)


@pytest.mark.parametrize(("num_vertices", "size"), [(8, 256), (12, 512), (20, 768)])
def test_numbers_stand_in_the_discs_at_the_sizes_of_the_levels(num_vertices, size):
    layout = draw_picture([ring_of_chords(num_vertices, size)], style=STYLES["light"]).layout
    for vertex, label in zip(layout["vertices"], layout["labels"], strict=True):
        x0, y0, x1, y1 = label["box"]
        assert x0 < vertex["x"] < x1
        assert y0 < vertex["y"] < y1


def test_vertex_0_is_at_the_top_and_the_others_follow_clockwise():
    first, second = draw_picture([cycle(8)], style=STYLES["light"]).layout["vertices"][:2]
    assert (first["x"], first["y"]) == (256, min(first["y"], second["y"]))
    assert second["x"] > first["x"]


def test_cities_lie_as_on_a_map_with_y_upwards():
    panel = GraphPanel(num_vertices=3, edges=(), size=512, coordinates=((0, 0), (100, 0), (0, 50)))
    origin, east, north = draw_picture([panel], style=STYLES["light"]).layout["vertices"]
    assert east["y"] == origin["y"]
    assert east["x"] > origin["x"]
    assert north["x"] == origin["x"]
    assert (origin["y"] - north["y"]) * 2 == pytest.approx(east["x"] - origin["x"], abs=0.05)


@pytest.mark.parametrize("coordinates", [((0, 0), (0, 0), (50, 50)), ((0, 0), (1, 0), (100, 99))])
def test_cities_too_close_to_each_other_are_drawn_on_a_circle(coordinates):
    panel = GraphPanel(num_vertices=3, edges=(), size=256, coordinates=coordinates)
    circle = GraphPanel(num_vertices=3, edges=(), size=256)
    style = STYLES["light"]
    assert draw_picture([panel], style=style).png == draw_picture([circle], style=style).png


@pytest.mark.parametrize("digits", [2, 3])
def test_a_matrix_of_22_cities_fits_beside_its_graph(digits):
    panels = [
        GraphPanel(num_vertices=22, edges=(), size=768),
        matrix(22, 10 ** (digits - 1), 10**digits),
    ]
    picture = draw_picture(panels, style=STYLES["light"])
    assert max(picture.width, picture.height) <= 1536
    x0, _, x1, _ = picture.layout["tables"][0]["box"]
    assert x1 - x0 <= 800


def test_a_matrix_of_9_cities_fits_a_nano_panel():
    table = draw_picture([matrix(9, 10, 100, size=320)], style=STYLES["light"])
    assert max(table.width, table.height) <= 320


def test_small_tables_are_stacked_in_order():
    panels = [
        TablePanel(columns=("opens", "closes"), rows=(("09:00", "12:00"),), title="Day"),
        TablePanel(columns=("room", "capacity"), rows=(("0", "4"),), title="Rooms"),
    ]
    layout = draw_picture(panels, style=STYLES["light"], arrangement="column").layout
    first, second = layout["tables"]
    assert first["box"][3] < second["box"][1]
    assert [label["of"] for label in layout["labels"]] == ["table 0", "table 1"]
    assert [cell["text"] for cell in first["cells"]] == ["opens", "closes", "09:00", "12:00"]


@pytest.mark.parametrize(
    ("panels", "message"),
    [
        ([ring_of_chords(60)], "a graph of 60 vertices cannot be drawn legibly within 1536 px"),
        ([matrix(60, 10, 99)], "a table of 60 rows and 61 columns cannot be drawn legibly"),
        (
            [ring_of_chords(40), matrix(40, 1, 9)],
            "a graph of 40 vertices and a table of 40 rows and 41 columns cannot be drawn",
        ),
    ],
)
def test_what_cannot_be_drawn_legibly_is_refused_in_one_line(panels, message):
    with pytest.raises(PictureError, match=message) as error:
        draw_picture(panels, style=STYLES["light"])
    assert "\n" not in str(error.value)


def test_an_unknown_arrangement_is_refused_with_the_nearest_one():
    with pytest.raises(InputError, match="did you mean 'row'"):
        draw_picture([cycle(5)], style=STYLES["light"], arrangement="rows")


@pytest.mark.parametrize("panels", [[], [cycle(5), cycle(5)]])
def test_a_picture_takes_one_graph_at_most_and_one_panel_at_least(panels):
    with pytest.raises(ValueError, match="at least 1 panel and takes at most 1 graph"):
        draw_picture(panels, style=STYLES["light"])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: GraphPanel(0, (), 256), "at least 1 vertex, got 0"),
        (lambda: GraphPanel(3, ((0, 1), (1, 0)), 256), r"given once, got \(1, 0\) again"),
        (lambda: GraphPanel(3, ((1, 1),), 256), r"join two of the 3 vertices, got \(1, 1\)"),
        (lambda: GraphPanel(3, (), 100), r"size must lie in \[192, 1536\], got 100"),
        (lambda: GraphPanel(3, (), 256, ((0, 0),)), "3 vertices need as many coordinates, got 1"),
        (lambda: TablePanel((), ()), "at least 1 column"),
        (lambda: TablePanel(("a",), ()), "at least 1 row"),
        (lambda: TablePanel(("a", "b"), (("1",),)), "every row needs 2 cells, row 0 has 1"),
        (lambda: TablePanel(("a",), (("1",),), size=9999), r"size must lie in \[0, 1536\]"),
    ],
)
def test_panels_are_checked_when_they_are_made(build, message):
    with pytest.raises(ValueError, match=message):
        build()
