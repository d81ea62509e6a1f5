"""Routes from vertex to vertex: along edges where they are drawn, else bent around what is near."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import hypot, inf

import numpy as np

from npbench.gallery_room import Stroke, drawn, segments, thickness
from npbench.rendering.geometry import Array, point_segment
from npbench.rendering.scene import Disc, Scene

__all__ = ["Arrow", "Leg", "arrow", "legs"]

_BENDS = np.array(
    [0.0, *(sign * step / 50 for step in [*range(1, 8), *range(8, 31, 2)] for sign in (1, -1))]
)
"""Offsets of a control point from the middle of a leg, as shares of its length, flattest first."""
_TIMES = np.linspace(0.0, 1.0, 31)
_CLEAR = 3.5
"""From a foreign vertex to the middle of a leg, at least where any bend allows it."""
_ROOMY = 7.0
"""The same, wanted."""
_MERGED = 9.0
"""Two legs that are nearer than this to each other are hard to tell apart."""
_PARALLEL = 0.4
"""Sine of the angle below which lines that are near run beside each other."""
_PRICE = 0.4
"""Of a pixel by which a control point is off the middle of its leg, in pixels that merge."""
_SWEEPS = 2
_FIRST = 3
"""Legs among which the arrow's place is sought."""
_PLENTY = 18.0
"""Space around an arrow beyond which more is no better."""


@dataclass(frozen=True, slots=True)
class Leg:
    """From one stop to the next."""

    stroke: Stroke
    control: tuple[float, float] | None
    """Of the quadratic curve; None for a leg along a drawn edge."""

    @property
    def path(self) -> str:
        """The leg as a part of an SVG path that stands at its start."""
        if self.control is None:
            return "".join(f"L{x:g} {y:g}" for x, y in self.stroke.points[1:])
        (x, y), (end_x, end_y) = self.control, self.stroke.points[-1]
        return f"Q{x:g} {y:g} {end_x:g} {end_y:g}"


@dataclass(frozen=True, slots=True)
class Arrow:
    """A place on a route and the direction there, as a unit vector."""

    x: float
    y: float
    dx: float
    dy: float


def legs(scene: Scene, stops: Sequence[int]) -> list[Leg]:
    """The route from stop to stop.

    A leg without an edge is a quadratic curve around foreign vertices. Its bend is chosen so that
    it stays within the drawing and apart from other legs, and is no larger than it must be.

    Args:
        scene: The picture.
        stops: Vertices in order.
    """
    found = _found(scene, stops)
    width = thickness(scene, [leg.stroke for leg in found])
    return [replace(leg, stroke=replace(leg.stroke, width=width)) for leg in found]


def _found(scene: Scene, stops: Sequence[int]) -> list[Leg]:
    edges = {frozenset((line.u, line.v)): line for line in scene.lines}
    choices: list[tuple[Array, Array, Array] | None] = []
    found: list[Leg] = []
    for u, v in pairwise(stops):
        line = edges.get(frozenset((u, v)))
        if line is not None:
            points = line.points if line.u == u else line.points[::-1]
            choices.append(None)
            found.append(Leg(Stroke(frozenset((u, v)), points, 0.0), None))
            continue
        controls, curves, costs = _curves(scene, scene.discs[u], scene.discs[v])
        choices.append((controls, curves, costs))
        best = int(costs.argmin())
        found.append(_leg(u, v, controls[best], curves[best]))
    for _ in range(_SWEEPS):
        for index, ((u, v), choice) in enumerate(zip(pairwise(stops), choices, strict=True)):
            if choice is None:
                continue
            controls, curves, costs = choice
            others = segments(leg.stroke for leg in found[:index] + found[index + 1 :])
            plain = int(costs.argmin())
            merged = _merging(scene, (u, v), curves[plain : plain + 1], others)
            # What costs more before merging is counted cannot win.
            able = np.flatnonzero(costs <= costs[plain] + merged[0])
            best = able[(costs[able] + _merging(scene, (u, v), curves[able], others)).argmin()]
            found[index] = _leg(u, v, controls[best], curves[best])
    return found


def _leg(u: int, v: int, control: Array, curve: Array) -> Leg:
    points = tuple((float(x), float(y)) for x, y in curve)
    return Leg(Stroke(frozenset((u, v)), points, 0.0), (float(control[0]), float(control[1])))


def _curves(scene: Scene, first: Disc, then: Disc) -> tuple[Array, Array, Array]:
    """Controls (k, 2), points (k, t, 2) and costs (k) of the curves that come into question.

    A cost is in pixels: of bending, of leaving the drawing and of coming near to vertices.
    """
    start, end = np.array([first.x, first.y]), np.array([then.x, then.y])
    step = end - start
    length = float(np.hypot(*step))
    controls = (start + end) / 2 + _BENDS[:, None] * np.array([-step[1], step[0]])
    t = _TIMES[:, None]
    curves = (1 - t) ** 2 * start + 2 * t * (1 - t) * controls[:, None] + t**2 * end
    discs = np.array([(disc.x, disc.y, disc.r) for disc in scene.discs])
    low = (discs[:, :2] - discs[:, 2:]).min(axis=0)
    high = (discs[:, :2] + discs[:, 2:]).max(axis=0)
    beyond = np.maximum(low - curves, curves - high).max(axis=(1, 2))
    others = np.array([(o.x, o.y, o.r) for o in scene.discs if o not in (first, then)])
    gaps = np.full(len(curves), inf)
    if len(others):
        away = np.hypot(*np.moveaxis(curves[:, :, None] - others[:, :2], -1, 0)) - others[:, 2]
        gaps = away.min(axis=(1, 2))
    allowed = gaps >= min(_CLEAR, gaps.max())
    costs = (
        _PRICE * np.abs(_BENDS) * length
        + 10 * np.maximum(beyond, 0.0)
        + 3 * np.maximum(_ROOMY - gaps, 0.0)
    )
    return controls[allowed], curves[allowed], costs[allowed]


def _merging(scene: Scene, ends: tuple[int, int], curves: Array, others: Array) -> Array:
    """Over how many pixels each of the curves (k, t, 2) runs beside other legs.

    Where it crosses one at a large angle, it is told apart from it.
    """
    if not len(others):
        return np.zeros(len(curves))
    points = curves.reshape(-1, 2)
    away = point_segment(points, others)
    nearest = away.argmin(axis=1)
    ahead = np.gradient(curves, axis=1).reshape(-1, 2)
    along = others[nearest, 2:] - others[nearest, :2]
    sine = np.abs(ahead[:, 0] * along[:, 1] - ahead[:, 1] * along[:, 0])
    sine /= np.maximum(np.hypot(*ahead.T) * np.hypot(*along.T), 1e-9)
    near = ((away.min(axis=1) < _MERGED) & (sine < _PARALLEL)).reshape(curves.shape[:2])
    for end in ends:
        disc = scene.discs[end]
        near &= np.hypot(curves[..., 0] - disc.x, curves[..., 1] - disc.y) > disc.r
    lengths = np.hypot(*np.moveaxis(np.diff(curves, axis=1), -1, 0)).sum(axis=1)
    return np.asarray(near.mean(axis=1) * lengths)


def arrow(scene: Scene, route: Sequence[Leg]) -> Arrow:
    """The place on one of the first legs with the most space around; the earliest of equals."""
    strokes = drawn(scene)
    best, most = None, -inf
    for leg in route[:_FIRST]:
        others = [other.stroke for other in route if other is not leg]
        others += [stroke for stroke in strokes if stroke.ends != leg.stroke.ends]
        pieces = segments(others)
        for place in _places(leg):
            space = min(_PLENTY, _space(scene, place, pieces))
            if space > most:
                best, most = place, space
    assert best is not None
    return best


def _places(leg: Leg) -> list[Arrow]:
    """Places along a leg, those in the middle first."""
    points = np.array(leg.stroke.points)
    steps = np.diff(points, axis=0)
    lengths = np.hypot(*steps.T)
    ends = np.cumsum(lengths)
    places = []
    for share in (0.5, *(0.5 + sign * step / 40 for step in range(1, 14) for sign in (1, -1))):
        at = share * ends[-1]
        piece = int(np.searchsorted(ends, at))
        x, y = points[piece + 1] - steps[piece] * (ends[piece] - at) / lengths[piece]
        dx, dy = steps[piece] / lengths[piece]
        places.append(Arrow(float(x), float(y), float(dx), float(dy)))
    return places


def _space(scene: Scene, place: Arrow, others: Array) -> float:
    """From the place to the nearest disc, number or line other than its own."""
    discs = min(hypot(disc.x - place.x, disc.y - place.y) - disc.r for disc in scene.discs)
    lines = point_segment(np.array([[place.x, place.y]]), others).min(initial=inf)
    return min(discs, float(lines))
