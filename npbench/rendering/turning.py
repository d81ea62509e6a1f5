"""Layouts turned by an angle, with sizes and coordinates of the turned picture.

A turned layout holds the coordinates of the delivered picture and, under ``upright``, the layout
before it was turned: distances and heights of letters are proven there, since turning keeps them.
"""

from collections.abc import Mapping, Sequence
from math import ceil, cos, radians, sin
from typing import Any

__all__ = ["cosine_and_sine", "turned_layout", "turned_size"]


def turned_size(width: int, height: int, degrees: float) -> tuple[int, int]:
    """Width and height of a picture after it was turned.

    Example:
        >>> turned_size(300, 200, 90.0)
        (200, 300)
    """
    if degrees == 0:
        return width, height
    c, s = cosine_and_sine(degrees)
    # A hair less, or a quarter turn would gain a pixel by rounding.
    return (
        ceil(width * abs(c) + height * abs(s) - 1e-6),
        ceil(width * abs(s) + height * abs(c) - 1e-6),
    )


def cosine_and_sine(degrees: float) -> tuple[float, float]:
    """Of an angle in degrees."""
    return cos(radians(degrees)), sin(radians(degrees))


def turned_layout(layout: Mapping[str, Any], degrees: float) -> dict[str, Any]:
    """The layout of the turned picture; boxes are those around the turned ones."""
    size = turned_size(layout["width"], layout["height"], degrees)
    c, s = cosine_and_sine(degrees)

    def point(x: float, y: float) -> list[float]:
        dx, dy = x - layout["width"] / 2, y - layout["height"] / 2
        return [
            round(size[0] / 2 + c * dx - s * dy, 2),
            round(size[1] / 2 + s * dx + c * dy, 2),
        ]

    def box(corners: Sequence[float] | None) -> list[float] | None:
        if corners is None:
            return None
        x0, y0, x1, y1 = corners
        points = [point(x, y) for x in (x0, x1) for y in (y0, y1)]
        xs, ys = zip(*points, strict=True)
        return [min(xs), min(ys), max(xs), max(ys)]

    def vertex(mark: Mapping[str, Any]) -> dict[str, Any]:
        x, y = point(mark["x"], mark["y"])
        return {**mark, "x": x, "y": y}

    def boxed(mark: Mapping[str, Any]) -> dict[str, Any]:
        return {**mark, "box": box(mark["box"])}

    result: dict[str, Any] = {"width": size[0], "height": size[1]}
    result["vertices"] = [vertex(mark) for mark in layout["vertices"]]
    result["edges"] = [
        {**mark, "points": [point(*place) for place in mark["points"]]} for mark in layout["edges"]
    ]
    result["labels"] = [boxed(mark) for mark in layout["labels"]]
    result["tables"] = [
        {
            **boxed(table),
            "cells": [
                {**boxed(cell), "text_box": box(cell["text_box"])} for cell in table["cells"]
            ],
        }
        for table in layout["tables"]
    ]
    if "bars" in layout:
        result["bars"] = [boxed(bar) for bar in layout["bars"]]
    return {**result, "rotation": degrees, "upright": dict(layout)}
