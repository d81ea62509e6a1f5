"""The gallery: its page, its files, and the solutions drawn into the pictures."""

import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from click.testing import CliRunner

from npbench.commands.gallery import command
from npbench.errors import InputError
from npbench.gallery import LEVELS, exhibits
from npbench.rendering.styles import get_style
from npbench.rendering.svg import as_svg
from npbench.tasks import TASKS


def elements(svg):
    return list(ET.fromstring(svg).iter())


@pytest.mark.parametrize("task", TASKS)
def test_the_solution_of_every_task_is_drawn_into_its_picture(task):
    for level in ("nano", "l1"):
        (shown,) = exhibits(task, level, ["light"], seed=0)
        assert shown.png.startswith(b"\x89PNG")
        assert len(elements(shown.solution_svg)) > len(elements(shown.svg))
        assert shown.legend.endswith(".")


@pytest.mark.parametrize("style", ["light", "paper"])
def test_a_tour_leads_over_no_city_between_two_stops(style):
    (shown,) = exhibits("tsp", "l1", [style], seed=0)
    stops = json.loads(shown.row.reference_solution)
    discs = {disc["id"]: disc for disc in json.loads(shown.row.layout)["vertices"]}
    (path,) = (e.get("d") for e in elements(shown.solution_svg) if "Q" in e.get("d", ""))
    legs = np.array(re.findall(r"Q(\S+) (\S+) (\S+) (\S+?)(?=Q|$)", path), dtype=float)
    assert len(legs) == len(stops) - 1
    t = np.linspace(0.0, 1.0, 200)[:, None]
    for (u, v), leg in zip(pairwise(stops), legs, strict=True):
        start = np.array([discs[u]["x"], discs[u]["y"]])
        curve = (1 - t) ** 2 * start + 2 * t * (1 - t) * leg[:2] + t**2 * leg[2:]
        for city in set(discs) - {u, v}:
            away = np.hypot(*(curve - [discs[city]["x"], discs[city]["y"]]).T)
            assert away.min() > discs[city]["r"]


def test_a_vector_picture_holds_every_mark_of_its_scene():
    (shown,) = exhibits("maximum_cut", "l1", ["paper"], seed=0)
    names = [element.tag.rpartition("}")[2] for element in elements(shown.svg)]
    layout = shown.row.layout
    assert names.count("circle") == layout.count('"r":')
    assert names.count("polyline") == layout.count('"points":')


def test_a_turned_vector_picture_has_the_size_of_the_turned_pixels():
    (shown,) = exhibits("vertex_cover", "nano", ["light-rotate30"], seed=0)
    root = ET.fromstring(shown.svg)
    assert f'"width":{root.get("width")},"height":{root.get("height")}' in shown.row.layout


@pytest.mark.parametrize("label", ["light", "light-rotate30"])
def test_a_solution_has_room_around_its_picture(label):
    (shown,) = exhibits("graph_coloring", "nano", [label], seed=0)
    plain, solved = ET.fromstring(shown.svg), ET.fromstring(shown.solution_svg)
    for side in ("width", "height"):
        assert int(solved.get(side)) == int(plain.get(side)) + 16
    assert solved.get("viewBox").startswith("-8 -8 ")


def test_noise_is_refused_in_vectors():
    with pytest.raises(InputError, match="noise cannot be drawn as vectors"):
        exhibits("vertex_cover", "nano", ["light-noise5"], seed=0)
    assert as_svg.__doc__
    assert get_style("light-noise5").noise == 5


def test_the_command_writes_a_page_with_every_level_and_style(tmp_path):
    out = tmp_path / "gallery"
    options = ["--task", "knapsack", "--style", "light,sketch", "--out", str(out)]
    result = CliRunner().invoke(command, options, standalone_mode=False)
    assert result.exception is None
    page = (out / "index.html").read_text("utf-8")
    for level in LEVELS:
        for style in ("light", "sketch"):
            name = f"knapsack-{level}-{style}"
            assert f"pictures/{name}.png" in page
            for suffix in (".png", ".svg", "-solution.svg"):
                assert (out / "pictures" / f"{name}{suffix}").stat().st_size > 1000
    again = CliRunner().invoke(command, options, standalone_mode=False)
    assert "is not empty" in str(again.exception)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--level", "l9"], "unknown level 'l9'"),
        (["--style", "lite"], "unknown style 'lite'; did you mean 'light'"),
        (["--task", "tps"], "unknown task 'tps'; did you mean 'tsp'"),
    ],
)
def test_unknown_names_write_nothing(options, message, tmp_path):
    out = tmp_path / "gallery"
    result = CliRunner().invoke(command, [*options, "--out", str(out)], standalone_mode=False)
    assert message in str(result.exception)
    assert not out.exists()
