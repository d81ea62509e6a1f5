"""An independent decoder reads the instance back from the pixels."""

import ast
import io
import json
from importlib.resources import files

import numpy as np
import pytest
from PIL import Image, ImageDraw

from npbench.decoding.decoder import decode
from npbench.decoding.instances import as_instance
from npbench.errors import InputError
from npbench.rendering.canvas import encode, paint
from npbench.rendering.panels import GraphPanel
from npbench.rendering.picture import draw_picture
from npbench.rendering.scene import Disc, Label, Line, Scene
from npbench.rendering.styles import STYLES, get_style
from npbench.rendering.text import centred
from npbench.splits import load
from npbench.tasks import TASKS


def random_graph(seed, num_vertices, density):
    rng = np.random.default_rng(seed)
    return tuple(
        (u, v)
        for u in range(num_vertices)
        for v in range(u + 1, num_vertices)
        if rng.random() < density
    )


def drawn(row):
    instance = json.loads(row.instance)
    instance.pop("coordinates", None)
    return instance


def read(task, png, degrees=0.0):
    return as_instance(task, decode(png, degrees=degrees))


def test_the_decoder_shares_nothing_with_the_drawer_but_the_font():
    for module in files("npbench.decoding").iterdir():
        if module.name.endswith(".py"):
            for node in ast.walk(ast.parse(module.read_text("utf-8"))):
                names = [node.module] if isinstance(node, ast.ImportFrom) else []
                names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
                assert not any(name.startswith("npbench.rendering") for name in names)


@pytest.mark.parametrize(
    ("style", "level"), [*((style, "l1") for style in STYLES), ("light", "nano"), ("paper", "nano")]
)
def test_every_task_is_read_back_in_every_style(style, level):
    for row in load("nano", level, "test", 5, per_task=1, styles=[style]):
        assert read(row.task, row.image) == drawn(row), row.id


@pytest.mark.parametrize("level", ["l2", "l3"])
@pytest.mark.parametrize("task", ["maximum_clique", "maximum_cut", "tsp", "meeting_scheduling"])
def test_large_pictures_are_read_back(task, level):
    (row,) = load("nano", level, "test", 5, per_task=1, tasks=[task], styles=["light"])
    assert read(task, row.image) == drawn(row)


@pytest.mark.parametrize(
    "label",
    [
        "light-rotate15",
        "dark-rotate-30",
        "print-rotate90",
        "light-rotate180",
        "paper-noise12",
        "print-noise20",
        "sketch-rotate8-noise6",
    ],
)
def test_turned_and_noisy_pictures_are_read_back_with_the_angle_that_the_prompt_states(label):
    style = get_style(label)
    tasks = ["vertex_cover", "maximum_cut", "tsp", "knapsack"]
    for row in load("nano", "l1", "test", 5, per_task=1, tasks=tasks, styles=[label]):
        assert style.note in row.prompt
        assert read(row.task, row.image, style.rotation) == drawn(row), row.id


@pytest.mark.parametrize("num_vertices", [3, 9, 16])
def test_all_edges_of_a_complete_graph_are_read_back(num_vertices):
    edges = random_graph(0, num_vertices, 1.1)
    panel = GraphPanel(num_vertices=num_vertices, edges=edges, size=768)
    found = decode(draw_picture([panel], style=STYLES["light"]).png)
    assert found.edges == set(edges)
    assert found.unexplained == 0


@pytest.mark.parametrize("seed", range(4))
def test_edges_between_given_positions_are_read_back(seed):
    rng = np.random.default_rng(seed)
    coordinates = tuple(map(tuple, rng.integers(0, 101, (9, 2)).tolist()))
    edges = random_graph(seed, 9, 0.4)
    panel = GraphPanel(num_vertices=9, edges=edges, size=768, coordinates=coordinates)
    assert decode(draw_picture([panel], style=STYLES["light"]).png).edges == set(edges)


@pytest.mark.parametrize("gap", [4, 5, 7])
@pytest.mark.parametrize("edges", [((0, 2), (1, 2)), ((0, 1), (0, 2), (1, 2))])
def test_between_discs_that_almost_touch_an_edge_is_told_from_none(edges, gap):
    places = ((100, 60), (124 + gap, 60), (112, 190))
    scene = Scene(
        width=224,
        height=224,
        discs=tuple(Disc(v, x, y, 12) for v, (x, y) in enumerate(places)),
        lines=tuple(Line(u, v, (places[u], places[v])) for u, v in edges),
        labels=tuple(
            Label(centred(str(v), x, y, size=15, bold=True), f"vertex {v}", inside=True)
            for v, (x, y) in enumerate(places)
        ),
    )
    assert decode(encode(paint(scene, STYLES["light"]))).edges == set(edges)


@pytest.mark.parametrize(
    ("task", "level", "seed", "index", "style"),
    [
        ("longest_cycle", "nano", 1130, 3, "print"),
        ("tsp", "nano", 1130, 0, "print-noise20"),
        ("tsp", "nano", 1130, 20, "print-noise20"),
        ("tsp", "l1", 1130, 0, "print-noise20"),
        ("minimum_bisection", "l2", 2611, 20, "sketch-rotate8"),
        ("minimum_bisection", "l3", 3011, 3, "light-rotate15"),
        ("tsp", "l2", 3011, 19, "light-rotate15"),
        ("minimum_bisection", "l3", 4011, 4, "sketch-rotate8"),
        ("graph_coloring", "l2", 6011, 3, "sketch"),
    ],
)
def test_pictures_that_were_once_misread_are_read_back(task, level, seed, index, style):
    rows = load("nano", level, "test", seed, tasks=[task], per_task=index + 1, styles=[style])
    degrees = get_style(style).rotation
    assert read(task, rows[index].image, degrees) == drawn(rows[index])


def mutated(png, change):
    image = Image.open(io.BytesIO(png)).convert("RGB")
    change(image, ImageDraw.Draw(image))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("style", STYLES)
def test_an_erased_edge_is_noticed(style):
    (row,) = load("nano", "l1", "test", 5, per_task=1, tasks=["vertex_cover"], styles=[style])
    layout = json.loads(row.layout)
    ground = STYLES[style].background
    edge = layout["edges"][3]
    ends = {vertex["id"]: vertex for vertex in layout["vertices"]}
    u, v = ends[edge["u"]], ends[edge["v"]]
    points = [
        (u["x"] + t * (v["x"] - u["x"]), u["y"] + t * (v["y"] - u["y"])) for t in (0.15, 0.85)
    ]
    png = mutated(row.image, lambda _, pen: pen.line(points, fill=ground, width=8))
    assert (edge["u"], edge["v"]) not in decode(png).edges


def line_between(picture, u, v, start, end):
    """Points at shares of the way from one vertex to another."""
    places = np.array([(vertex["x"], vertex["y"]) for vertex in picture.layout["vertices"]])
    return [tuple(places[u] + share * (places[v] - places[u])) for share in (start, end)]


def test_an_added_edge_is_noticed():
    edges = ((0, 3), (1, 4), (2, 6))
    style = STYLES["light"]
    picture = draw_picture([GraphPanel(num_vertices=8, edges=edges, size=512)], style=style)
    line = line_between(picture, 3, 5, 0.065, 0.935)
    png = mutated(picture.png, lambda _, pen: pen.line(line, fill=style.edge, width=2))
    assert decode(png).edges == {*edges, (3, 5)}


def test_a_line_that_ends_nowhere_is_left_unexplained():
    style = STYLES["light"]
    picture = draw_picture([GraphPanel(num_vertices=8, edges=((0, 3),), size=512)], style=style)
    line = line_between(picture, 5, 1, 0.04, 0.6)
    png = mutated(picture.png, lambda _, pen: pen.line(line, fill=style.edge, width=2))
    assert decode(png).edges == {(0, 3)}
    assert decode(png).unexplained > 50


@pytest.mark.parametrize("style", STYLES)
def test_a_changed_weight_is_noticed(style):
    (row,) = load("nano", "l1", "test", 5, per_task=1, tasks=["knapsack"], styles=[style])
    cells = {(c["row"], c["col"]): c for c in json.loads(row.layout)["tables"][0]["cells"]}
    first = cells[1, 1]
    other = next(
        c for (r, col), c in cells.items() if col == 1 and r and c["text"] != first["text"]
    )

    def swap(image, _):
        x0, y0, x1, y1 = other["box"]
        inside = image.crop((x0 + 2, y0 + 2, x1 - 1, y1 - 1))
        image.paste(inside, (first["box"][0] + 2, first["box"][1] + 2))

    found = read("knapsack", mutated(row.image, swap))
    assert found["weights"][0] == int(other["text"])
    assert found["weights"] != drawn(row)["weights"]


def test_lines_and_matrix_that_differ_are_refused():
    (row,) = load("nano", "l1", "test", 5, per_task=1, tasks=["maximum_cut"], styles=["light"])
    cells = json.loads(row.layout)["tables"][0]["cells"]
    filled = next(c for c in cells if c["row"] and c["col"] > c["row"] and c["text"])
    x0, y0, x1, y1 = filled["box"]
    png = mutated(
        row.image, lambda _, pen: pen.rectangle((x0 + 2, y0 + 2, x1 - 2, y1 - 2), fill="#ffffff")
    )
    with pytest.raises(InputError, match="lines and matrix differ in"):
        read("maximum_cut", png)


@pytest.mark.slow
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("level", ["nano", "l1", "l2", "l3"])
def test_two_hundred_pictures_of_each_style_and_level_are_read_back(style, level):
    rows = load("nano", level, "test", 3, per_task=15, styles=[style])
    assert len(rows) >= 200
    assert len({row.task for row in rows}) == len(TASKS)
    for row in rows:
        assert read(row.task, row.image) == drawn(row), row.id
