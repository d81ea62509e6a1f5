"""Plots: which are drawn, that they are the same each time, colours and labels."""

import xml.etree.ElementTree as ET
from dataclasses import replace
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


def test_a_comparison_shows_methods_and_leaves_points_of_ablations_to_their_own_plots(
    made_up, tmp_path
):
    alone = {one.name: one.data for one, _ in draw_all(made_up(), tmp_path)}
    arms = ("base", "grpo", "dmpo", "dmpo-replication", "mupo", "mupo-k1", "mupo-k5")
    both = {
        one.name: one.data
        for one, _ in draw_all(made_up(arms=arms, studies=("table", "groups")), tmp_path)
    }
    assert both.keys() - alone.keys() == {"groups-1-late.svg"}
    assert {name: both[name] for name in alone} == alone
    ablation = draw_all(made_up(arms=GROUPS, studies=("groups",)), tmp_path)
    (curves,) = (one.data for one, _ in ablation if one.name == "curves-late.svg")
    assert b"MUPO, K = 5" in curves


def test_an_ablation_is_over_the_seeds_that_all_its_points_have(made_up, tmp_path):
    def ablation(results):
        (found,) = (one for one, _ in draw_all(results, tmp_path) if one.name.startswith("groups"))
        return found

    whole = made_up(arms=GROUPS, studies=("table", "groups"))
    lacking = {
        key: cell for key, cell in whole.cells.items() if key.arm != "mupo-k5" or key.seed < 103
    }
    few = made_up(arms=GROUPS, studies=("table", "groups"), seeds=(100, 101, 102))
    found = ablation(replace(whole, cells=lacking))
    assert "the seeds that all of them have (100, 101, 102)" in found.caption
    assert found == ablation(few)
    none = {key: cell for key, cell in whole.cells.items() if key.arm != "mupo" or key.seed > 105}
    none = {key: cell for key, cell in none.items() if key.arm == "mupo" or key.seed < 105}
    drawn = draw_all(replace(whole, cells=none), tmp_path)
    assert "groups-1-late.svg" not in [one.name for one, _ in drawn]


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
