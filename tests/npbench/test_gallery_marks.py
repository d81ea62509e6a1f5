"""The marks of solutions: what they cover, and what can be told from them."""

import json
import re
import xml.etree.ElementTree as ET
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from npbench.gallery import exhibits
from npbench.gallery_badges import badge_places
from npbench.gallery_lanes import Meeting, lanes
from npbench.gallery_room import drawn, reach, segments, thickness
from npbench.gallery_routes import arrow, legs
from npbench.rendering.geometry import point_segment
from npbench.rendering.panels import GraphPanel, TimelinePanel
from npbench.rendering.picture import draw_picture
from npbench.rendering.styles import STYLES, get_style

MARKED = [
    "graph_coloring",
    "feedback_vertex_set",
    "vertex_cover",
    "dominating_set",
    "minimum_bisection",
    "maximum_cut",
    "maximum_clique",
    "maximum_independent_set",
]


@cache
def shown(task, level):
    return exhibits(task, level, ["light", "paper", "sketch"], seed=0)


@cache
def picture(style, vertices, edges, seed):
    rng = np.random.default_rng(seed)
    pairs = [(u, v) for u in range(vertices) for v in range(u)]
    chosen = rng.permutation(len(pairs))[:edges]
    panel = GraphPanel(vertices, tuple(pairs[index] for index in chosen), size=512)
    return draw_picture([panel], style=get_style(style)).scene


def scenes():
    """Pictures of random graphs in all styles."""
    for style in STYLES:
        for seed, (vertices, edges) in enumerate([(6, 8), (12, 20), (20, 40), (30, 40)]):
            yield picture(style, vertices, edges, seed)


def elements(svg, name):
    root = ET.fromstring(svg)
    return [e for e in root.iter() if e.tag.rpartition("}")[2] == name]


def number(element, key):
    return float(element.get(key))


def polylines(svg):
    """Points and stroke widths of all lines along edges."""
    for line in elements(svg, "polyline"):
        points = np.array([place.split(",") for place in line.get("points").split()], dtype=float)
        yield points, number(line, "stroke-width")


def outlines(svg):
    """Centre and outer radius of every ring and cross around a vertex."""
    for ring in elements(svg, "circle"):
        if ring.get("fill") == "none":
            r = number(ring, "r") + number(ring, "stroke-width") / 2
            yield np.array([number(ring, "cx"), number(ring, "cy")]), r
    for cross in elements(svg, "path"):
        if cross.get("stroke-linecap") == "round":
            ends = np.array(re.findall(r"-?[\d.]+", cross.get("d")), dtype=float).reshape(4, 2)
            middle = ends.mean(axis=0)
            yield middle, np.hypot(*(ends - middle).T).max() + number(cross, "stroke-width") / 2


@pytest.mark.parametrize("level", ["nano", "l1", "l3"])
@pytest.mark.parametrize("task", MARKED)
def test_no_mark_of_a_solution_comes_near_a_line_that_ends_elsewhere(task, level):
    for exhibit in shown(task, level):
        svg = exhibit.solution_svg
        marks = list(outlines(svg))
        assert marks
        for points, width in polylines(svg):
            pieces = np.hstack([points[:-1], points[1:]])
            for middle, r in marks:
                if min(np.hypot(*(points[end] - middle)) for end in (0, -1)) < 0.1:
                    continue
                gap = point_segment(middle[None], pieces).min() - width / 2 - r
                assert gap >= 1, (exhibit.name, middle, gap)


def test_marks_of_any_vertices_keep_off_foreign_lines_and_off_each_other():
    for scene in scenes():
        thick = {frozenset((line.u, line.v)) for line in scene.lines[::3]}
        width = thickness(scene, [s for s in drawn(scene) if s.ends in thick])
        strokes = drawn(scene, thick=thick, width=width)
        room = reach(scene, range(len(scene.discs)), strokes)
        for disc in scene.discs:
            here = np.array([[disc.x, disc.y]])
            for stroke in strokes:
                if disc.vertex not in stroke.ends:
                    gap = point_segment(here, segments([stroke])).min() - stroke.width / 2
                    assert gap >= disc.r + room + 1
            for other in scene.discs[: disc.vertex]:
                apart = np.hypot(disc.x - other.x, disc.y - other.y) - disc.r - other.r
                assert 2 * room <= apart / 2


@pytest.mark.parametrize("level", ["nano", "l1", "l3"])
def test_the_sides_of_a_cut_differ_in_shape_as_well_as_in_colour(level):
    for exhibit in shown("minimum_bisection", level):
        sides = json.loads(exhibit.row.reference_solution)
        rings = [e for e in elements(exhibit.solution_svg, "circle") if e.get("fill") == "none"]
        toothed = [ring for ring in rings if ring.get("stroke-dasharray")]
        assert len(rings) - len(toothed) == len(sides[0])
        assert len(toothed) == len(sides[1])


def test_badges_cover_no_edge_no_number_and_no_other_badge():
    for scene in scenes():
        room = reach(scene, range(len(scene.discs)), drawn(scene))
        places = np.array(badge_places(scene, radius=8, room=room, frame=8))
        assert (places >= 0).all()
        assert (places <= [scene.width, scene.height]).all()
        for index, one in enumerate(places):
            for other in places[:index]:
                assert np.hypot(*(one - other)) >= 16
        covered = point_segment(places, segments(drawn(scene))).min(axis=1) < 8
        # A vertex amid many edges may have no direction that is wholly free.
        assert covered.mean() <= 0.1


def test_an_arrow_stands_at_the_place_of_the_first_legs_with_the_most_space():
    for scene in scenes():
        line = scene.lines[0]
        third = next(d.vertex for d in scene.discs if d.vertex not in (line.u, line.v))
        route = legs(scene, [line.u, line.v, third, line.u])
        at = arrow(scene, route)
        assert np.isclose(np.hypot(at.dx, at.dy), 1)

        def space(x, y, leg, scene=scene, route=route):
            others = [s for s in drawn(scene) if s.ends != leg.stroke.ends]
            others += [other.stroke for other in route if other is not leg]
            lines = point_segment(np.array([[x, y]]), segments(others)).min()
            return min(lines, *(np.hypot(d.x - x, d.y - y) - d.r for d in scene.discs))

        def away(leg, x=at.x, y=at.y):
            return point_segment(np.array([[x, y]]), segments([leg.stroke])).min()

        own = min(route, key=away)
        assert away(own) < 0.5
        for leg in route:
            x, y = leg.stroke.points[len(leg.stroke.points) // 2]
            assert space(at.x, at.y, own) >= min(space(x, y, leg), 18) - 1


def test_a_leg_along_a_drawn_edge_follows_it_in_either_direction():
    scene = picture("sketch", 12, 20, 1)
    line = scene.lines[0]
    there, back = legs(scene, [line.u, line.v, line.u])
    assert there.stroke.points == line.points
    assert back.stroke.points == line.points[::-1]


@pytest.mark.parametrize("style", STYLES)
def test_a_tour_stays_within_its_drawing_and_its_legs_part_at_every_stop(style):
    for seed, vertices in enumerate((8, 12, 16)):
        scene = picture(style, vertices, 0, seed)
        stops = [*np.random.default_rng(seed).permutation(vertices).tolist()]
        route = legs(scene, [*stops, stops[0]])
        discs = np.array([(d.x, d.y, d.r) for d in scene.discs])
        low = (discs[:, :2] - discs[:, 2:]).min(axis=0)
        high = (discs[:, :2] + discs[:, 2:]).max(axis=0)
        for leg in route:
            points = np.array(leg.stroke.points)
            assert (points >= low - 1).all()
            assert (points <= high + 1).all()
        for first, then in pairwise([*route, route[0]]):
            stop = np.array(then.stroke.points[0])
            points = np.array(first.stroke.points)
            away = np.hypot(*(points - stop).T)
            near = point_segment(points, segments([then.stroke])).min(axis=1) < 6
            # Where they cross further on, they are near to each other for a few pixels.
            length = np.hypot(*np.diff(points, axis=0).T).sum()
            assert (near & (away > 3 * discs[0, 2])).mean() * length <= 60


@pytest.mark.parametrize("rooms", [1, 2, 3])
def test_every_meeting_on_a_timeline_has_its_number_within_its_bar(rooms):
    style = get_style("light")
    panel = TimelinePanel(((540, 630), (780, 900)), size=512)
    scene = draw_picture([panel], style=style).scene
    meetings = [Meeting(10 + room, room, 540, 570) for room in range(rooms)]
    svg = lanes(scene, meetings, "#009e73", rooms=rooms, style=style, frame=8)
    svg = f"<svg>{svg}</svg>"
    bars = [bar for bar in elements(svg, "rect") if bar.get("fill") == "#009e73"]
    for meeting, bar, text in zip(meetings, bars, elements(svg, "text"), strict=True):
        assert text.text == str(meeting.number)
        size, middle = number(text, "font-size"), number(text, "x")
        assert size >= 10
        assert number(bar, "y") >= -8
        assert number(bar, "y") < number(text, "y") - 0.73 * size
        assert number(text, "y") < number(bar, "y") + number(bar, "height")
        assert number(bar, "x") < middle - 0.7 * size
        assert middle + 0.7 * size < number(bar, "x") + number(bar, "width")
