"""Pictures that are turned, under noise, drawn by hand, or laid out on a grid or by springs."""

import io
import itertools
import json

import numpy as np
import pytest
from PIL import Image

from npbench.errors import InputError, PictureError
from npbench.rendering.legibility import flaws
from npbench.rendering.panels import MAX_SIDE, GraphPanel, TablePanel, TimelinePanel
from npbench.rendering.picture import draw_picture
from npbench.rendering.styles import STYLES, disturbed, get_style
from npbench.splits import load


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(picture.png)).convert("RGB"))


def ring(n=9, size=512, extra=()):
    edges = tuple((v, v + 1) for v in range(n - 1))
    return GraphPanel(num_vertices=n, edges=(*edges, *extra), size=size)


def matrix(n, size=512):
    rows = tuple((str(u), *("12" for _ in range(n))) for u in range(n))
    return TablePanel(columns=("", *map(str, range(n))), rows=rows, size=size)


@pytest.mark.parametrize("degrees", [90, 180, -90])
def test_quarter_turns_move_pixels_without_changing_one(degrees):
    upright = pixels(draw_picture([ring(), matrix(9)], style=STYLES["light"]))
    turned = pixels(draw_picture([ring(), matrix(9)], style=get_style(f"light-rotate{degrees}")))
    assert np.array_equal(turned, np.rot90(upright, -degrees // 90))


@pytest.mark.parametrize("label", ["light-rotate15", "dark-rotate-100", "sketch-rotate45"])
def test_a_turned_layout_is_proven_from_the_stored_data_alone(label):
    picture = draw_picture([ring(), matrix(9)], style=get_style(label))
    stored = json.loads(json.dumps(picture.layout))
    assert flaws(stored) == []
    assert (stored["width"], stored["height"]) == (picture.width, picture.height)
    stored["vertices"][3]["x"] += 1.0
    assert flaws(stored) == [
        f"the layout is not its upright one, turned by {stored['rotation']:g} degrees"
    ]


def test_discs_lie_where_the_turned_layout_says():
    picture = draw_picture([ring()], style=get_style("light-rotate20"))
    image = pixels(picture)
    for vertex in picture.layout["vertices"]:
        x, y, r = vertex["x"], vertex["y"], vertex["r"]
        for angle in np.arange(0.0, 2 * np.pi, 0.5):
            place = (x + (r - 0.9) * np.cos(angle), y + (r - 0.9) * np.sin(angle))
            assert image[int(place[1]), int(place[0])].mean() < 160


def test_a_wide_picture_is_drawn_smaller_where_turning_it_would_make_it_too_large():
    panels = [ring(20, 768), matrix(20, 768)]
    picture = draw_picture(panels, style=get_style("light-rotate30"))
    assert max(picture.width, picture.height) <= MAX_SIDE
    assert flaws(picture.layout) == []


def test_what_does_not_fit_when_turned_is_refused_in_one_line():
    panel = TablePanel(columns=tuple(map(str, range(40))), rows=(("10",) * 40,) * 60)
    assert draw_picture([panel], style=STYLES["light"]).width <= MAX_SIDE
    with pytest.raises(PictureError, match="cannot be drawn legibly within 1536 px"):
        draw_picture([panel], style=get_style("light-rotate45"))


def test_noise_has_the_stated_strength_and_is_the_same_every_time():
    clean = pixels(draw_picture([ring()], style=STYLES["dark"])).astype(float)
    style = get_style("dark-noise8")
    first, second = (draw_picture([ring()], style=style) for _ in range(2))
    assert first.png == second.png
    difference = pixels(first) - clean
    assert np.std(difference) == pytest.approx(8.0, rel=0.02)
    assert abs(difference.mean()) < 0.05
    assert first.layout == draw_picture([ring()], style=STYLES["dark"]).layout


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("light-rotate181", r"rotation must lie in \[-180, 180\] degrees, got 181"),
        ("light-noise20.5", r"noise must lie in \[0, 20\], got 20.5"),
        ("lite-rotate5", "unknown style 'lite'; did you mean 'light'"),
        ("light-rotate", "unknown style 'light-rotate'; did you mean 'light'"),
    ],
)
def test_disturbances_out_of_range_get_one_line(label, message):
    with pytest.raises(InputError, match=message):
        get_style(label)


def test_disturbances_are_put_on_top_of_a_style():
    assert disturbed("dark", rotation=15.0, noise=None) == "dark-rotate15"
    assert disturbed("dark-rotate15", rotation=None, noise=4.0) == "dark-rotate15-noise4"
    assert disturbed("dark", rotation=0.0, noise=0.0) == "dark"
    with pytest.raises(InputError, match="rotation must lie in"):
        disturbed("dark", rotation=float("nan"), noise=None)


def test_the_prompt_states_the_angle_of_a_turned_picture_and_nothing_else_changes():
    labels = ["light", "light-rotate15", "light-rotate-15-noise5", "light-noise5"]
    rows = load("nano", "l1", "test", 2, per_task=1, tasks=["vertex_cover"], styles=labels)
    plain, clockwise, counter, noisy = (row.prompt for row in rows)
    assert "The picture is turned clockwise by 15 degrees." in clockwise
    assert "The picture is turned counterclockwise by 15 degrees." in counter
    assert noisy == plain
    assert clockwise.replace(" The picture is turned clockwise by 15 degrees.", "") == plain
    assert len({row.id for row in rows}) == 4


def test_the_paper_style_keeps_a_grid_in_index_order_and_no_edge_through_a_vertex():
    picture = draw_picture([ring(9, 512, ((0, 2), (3, 5), (0, 8)))], style=STYLES["paper"])
    assert flaws(picture.layout) == []
    places = [(v["x"], v["y"]) for v in picture.layout["vertices"]]
    for row in range(3):
        xs = [places[3 * row + col][0] for col in range(3)]
        assert xs == sorted(xs)
    assert max(y for _, y in places[:3]) < min(y for _, y in places[6:])


def test_sparse_graphs_are_laid_out_by_springs_and_dense_ones_on_a_circle():
    def spread(panel):
        layout = draw_picture([panel], style=STYLES["print"]).layout
        places = np.array([(v["x"], v["y"]) for v in layout["vertices"]])
        return np.ptp(np.hypot(*(places - places.mean(axis=0)).T))

    pairs = tuple((u, v) for u in range(9) for v in range(u + 1, 9))
    assert spread(ring()) > 20
    assert spread(GraphPanel(num_vertices=9, edges=pairs, size=512)) < 1


def test_lines_drawn_by_hand_are_bent_and_still_proven():
    layout = draw_picture([ring(12)], style=STYLES["sketch"]).layout
    assert any(len(edge["points"]) > 2 for edge in layout["edges"])
    assert flaws(layout) == []


def test_a_timeline_shows_every_interval_apart_and_is_proven():
    panel = TimelinePanel(intervals=((540, 630), (780, 930)), size=512)
    picture = draw_picture([panel], style=STYLES["light"], arrangement="column")
    bars = {bar["of"]: bar["box"] for bar in picture.layout["bars"]}
    assert bars["interval 540-630"][2] < bars["interval 780-930"][0]
    assert flaws(picture.layout) == []
    picture.layout["bars"][0]["box"][2] = bars["interval 780-930"][0] + 5
    assert "interval 540-630 and interval 780-930 overlap" in flaws(picture.layout)


@pytest.mark.parametrize("style", STYLES)
def test_every_task_is_proven_legible_in_every_style(style):
    for row in load("nano", "l1", "test", 6, per_task=1, styles=[style]):
        assert flaws(json.loads(row.layout)) == []


@pytest.mark.parametrize("style", ["print", "sketch"])
def test_springs_leave_room_to_see_an_edge_between_two_discs(style):
    rows = load("nano", "nano", "test", 1130, tasks=["longest_cycle"], per_task=4, styles=[style])
    discs = json.loads(rows[3].layout)["vertices"]
    for one, other in itertools.combinations(discs, 2):
        apart = np.hypot(one["x"] - other["x"], one["y"] - other["y"])
        assert apart - one["r"] - other["r"] >= 12
