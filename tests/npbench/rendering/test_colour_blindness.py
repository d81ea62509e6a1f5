"""Styles and solution marks under simulated deuteranopia and protanopia.

The matrices are those of Machado, Oliveira and Fernandes, A Physiologically-based Model for
Simulation of Color Vision Deficiency, 2009, at full severity, on linear RGB.
"""

from itertools import combinations

import numpy as np
import pytest

from npbench.gallery_marks import COLOURS
from npbench.rendering.styles import STYLES

SIGHTS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}


def seen(colour, sight):
    """The colour in linear RGB as it is seen."""
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return np.clip(np.array(SIGHTS[sight]) @ linear, 0.0, 1.0)


def contrast(first, second, sight):
    """The contrast ratio of WCAG 2.2 as it is seen."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted(float(weights @ seen(colour, sight)) for colour in (first, second))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
def test_text_lines_and_rings_stand_out_for_the_colour_blind(style, sight):
    for ground in (style.background, style.header, style.stripe):
        assert contrast(style.ink, ground, sight) >= 4.5
    assert contrast(style.number, style.disc, sight) >= 4.5
    assert contrast(style.edge, style.background, sight) >= 3
    assert contrast(style.ring, style.background, sight) >= 3
    assert contrast(style.ring, style.disc, sight) >= 3


@pytest.mark.parametrize("sight", SIGHTS)
def test_the_colours_of_solutions_are_told_apart_by_the_colour_blind(sight):
    for one, other in combinations(COLOURS[:6], 2):
        away = np.sqrt(seen(one, sight)) - np.sqrt(seen(other, sight))
        assert float(np.abs(away).max()) >= 0.1, (one, other)


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
def test_discs_and_edges_are_told_apart_by_their_shape_in_a_picture_of_one_colour_of_ink(style):
    """A vertex has an outline and a number, an edge none, so grey would do as well."""
    assert style.ring_width > 0
    assert style.number != style.disc
