"""Lines as a steady hand draws them: slightly bowed, a little uneven, and still where they were."""

from dataclasses import replace
from math import hypot, pi, sin

import numpy as np

from npbench.rendering.layouts import GraphMarks
from npbench.rendering.scene import Line
from npbench.rng import stream

__all__ = ["sketched"]

_BOW = 0.008
"""Largest bow of a line, as a share of its length."""
_MAX_BOW = 2.4
"""Largest bow in pixels."""
_WAVE = 0.35
"""Height of the waves on top of the bow, in pixels."""
_WAVELENGTH = 90.0
_PIECE = 22.0
"""Length of the straight pieces that a line is made of."""


def sketched(marks: GraphMarks, *, strength: float) -> GraphMarks:
    """The graph with bent lines; the same graph in the same place bends alike.

    Args:
        marks: The graph in its place, with straight lines.
        strength: 1 for the usual bends, less for smaller ones.
    """
    rng = stream("sketch", [list(map(list, line.points)) for line in marks.lines])
    bows = rng.uniform(-1.0, 1.0, len(marks.lines)).tolist()
    phases = rng.uniform(0.0, 2 * pi, len(marks.lines)).tolist()
    bent = (
        _bent(line, bow, phase, strength)
        for line, bow, phase in zip(marks.lines, bows, phases, strict=True)
    )
    return replace(marks, lines=tuple(bent))


def _bent(line: Line, bow: float, phase: float, strength: float) -> Line:
    (x0, y0), (x1, y1) = line.points[0], line.points[-1]
    length = hypot(x1 - x0, y1 - y0)
    height = bow * min(_BOW * length, _MAX_BOW)
    count = max(3, round(length / _PIECE))
    places = []
    for t in np.linspace(0.0, 1.0, count + 1).tolist():
        wave = _WAVE * sin(2 * pi * t * length / _WAVELENGTH + phase)
        aside = strength * sin(pi * t) * (height + wave)
        x = x0 + t * (x1 - x0) - aside * (y1 - y0) / length
        y = y0 + t * (y1 - y0) + aside * (x1 - x0) / length
        places.append((round(x, 2), round(y, 2)))
    places[0], places[-1] = line.points[0], line.points[-1]
    return Line(line.u, line.v, tuple(places))
