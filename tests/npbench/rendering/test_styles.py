"""Styles: contrast, and lookup by name."""

import pytest

from npbench.errors import InputError
from npbench.rendering.styles import STYLES, get_style


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    """The contrast ratio of WCAG 2.2."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
def test_text_stands_out_from_every_ground_that_it_is_set_on(style):
    for ground in (style.background, style.header, style.stripe):
        assert contrast(style.ink, ground) >= 4.5
    assert contrast(style.number, style.disc) >= 4.5


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
def test_edges_and_rings_stand_out_from_the_background(style):
    assert contrast(style.edge, style.background) >= 3
    assert contrast(style.ring, style.background) >= 3


def test_the_print_style_is_grey():
    style = STYLES["print"]
    for colour in (style.ink, style.edge, style.disc, style.ring, style.header, style.grid):
        assert colour[1:3] == colour[3:5] == colour[5:7]


def test_styles_are_found_by_name():
    assert next(iter(STYLES)) == "light"
    for name, style in STYLES.items():
        assert style.name == name
        assert get_style(name) is style


def test_an_unknown_style_is_refused_with_the_nearest_one():
    with pytest.raises(InputError, match="unknown style 'papper'; did you mean 'paper'"):
        get_style("papper")
