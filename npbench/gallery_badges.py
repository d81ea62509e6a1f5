"""Where small badges beside vertices go: in the direction in which they cover the least."""

from math import cos, inf, pi, sin

import numpy as np

from npbench.gallery_room import drawn, segments
from npbench.rendering.geometry import Array, box_point, point_segment
from npbench.rendering.scene import Disc, Scene

__all__ = ["badge_places"]

_TURNS = sorted(range(24), key=lambda turn: min(abs(turn - 3), 24 - abs(turn - 3)))
"""Directions in steps of 15 degrees from the right, upwards; upper right first."""
_BEYOND = (5.0, 8.0)
"""From the outline of a disc to the middle of its badge."""
_FREE = 3.0
"""Space around a badge beyond which more is no better."""


def badge_places(
    scene: Scene, *, radius: float, room: float, frame: int
) -> list[tuple[float, float]]:
    """The middle of a badge for each vertex.

    Args:
        scene: The picture.
        radius: Of a badge.
        room: By how much the marks of vertices reach over their discs.
        frame: Blank space around the picture, in which badges may lie.
    """
    lines = segments(drawn(scene))
    boxes = np.array([label.text.box for label in scene.labels], dtype=float).reshape(-1, 4)
    sides = np.array([[-frame, -frame], [scene.width + frame, scene.height + frame]])
    places: list[tuple[float, float]] = []
    for disc in scene.discs:
        spots = _spots(disc)
        others = [(o.x, o.y, o.r + room) for o in scene.discs if o is not disc]
        others += [(x, y, radius) for x, y in places]
        taken = np.array(others, dtype=float).reshape(-1, 3)
        away = np.hypot(*np.moveaxis(spots[:, None] - taken[:, :2], -1, 0)) - taken[:, 2]
        space = np.minimum.reduce(
            [
                point_segment(spots, lines).min(axis=1, initial=inf),
                box_point(boxes, spots).min(axis=0, initial=inf),
                away.min(axis=1, initial=inf),
                np.minimum(spots - sides[0], sides[1] - spots).min(axis=1),
            ]
        )
        x, y = spots[int(np.minimum(space - radius, _FREE).argmax())]
        places.append((float(x), float(y)))
    return places


def _spots(disc: Disc) -> Array:
    """Places around a disc, the nearest and those at its upper right first."""
    return np.array(
        [
            (disc.x + (disc.r + beyond) * cos(angle), disc.y - (disc.r + beyond) * sin(angle))
            for beyond in _BEYOND
            for angle in (turn * pi / 12 for turn in _TURNS)
        ]
    )
