"""Plots: which are drawn, that they are the same each time, colours and labels."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

from leaderboards.plot_style import look_of, spread_out
from leaderboards.plots import draw_all
from leaderboards.reproduction_settings import known_arms

GROUPS = ("base", "grpo", "mupo", "mupo-k1", "mupo-k5")


def test_what_can_be_drawn_is_drawn(made_up, tmp_path):
    drawn = draw_all(made_up(), tmp_path)
    names = [picture.name for picture, _ in drawn]
    kinds = ("acc-at-k", "sr-qr", "curves", "first-steps", "diversity-acc")
    assert names == [f"{kind}-late.svg" for kind in kinds]
    for picture, png in drawn:
        assert ET.fromstring(picture.data).tag.endswith("svg")
        assert png.startswith(b"\x89PNG")
        assert picture.alt
        assert picture.caption.endswith(".")


def test_ablations_are_drawn_along_their_axis(made_up, tmp_path):
    drawn = draw_all(made_up(arms=GROUPS, studies=("table", "groups")), tmp_path)
    assert "groups-1-late.svg" in [picture.name for picture, _ in drawn]
    alone = draw_all(made_up(arms=("base", "grpo"), studies=("groups",)), tmp_path)
    assert "groups-1-late.svg" not in [picture.name for picture, _ in alone]


def test_the_same_results_give_the_same_bytes(made_up, tmp_path):
    first, second = (draw_all(made_up(seeds=(1, 2)), tmp_path) for _ in range(2))
    assert first == second


def test_a_marker_is_in_every_picture_and_caption(made_up, tmp_path):
    plain = draw_all(made_up(seeds=(1, 2)), tmp_path)
    marked = draw_all(made_up(seeds=(1, 2), marker="smoke: not evidence"), tmp_path)
    assert all(one.caption.startswith("smoke: not evidence") for one, _ in marked)
    assert all(a[0].data != b[0].data for a, b in zip(plain, marked, strict=True))


def test_no_two_arms_look_the_same_even_without_colour():
    looks = look_of(["base", *known_arms()][:13])
    shapes = {(str(one["linestyle"]), one["marker"]) for one in looks.values()}
    assert len(shapes) == len(looks)


@pytest.mark.parametrize("seed", range(20))
def test_labels_do_not_overlap_and_keep_their_order(seed):
    rng = np.random.default_rng(seed)
    wanted = rng.random(rng.integers(1, 12)).tolist()
    places = spread_out(wanted, gap=0.1)
    order = np.argsort(wanted, kind="stable")
    assert all(b - a >= 0.1 - 1e-9 for a, b in pairwise(places[i] for i in order))
    if all(b - a >= 0.1 for a, b in pairwise(sorted(wanted))):
        assert places == pytest.approx(wanted)
