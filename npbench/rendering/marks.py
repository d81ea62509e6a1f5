"""A stored layout as arrays, for the proof of legibility."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from npbench.rendering.geometry import Array

__all__ = ["Marks", "read_marks"]


@dataclass(frozen=True, slots=True)
class Marks:
    """The layout as arrays, with a name for each mark."""

    vertex: tuple[int, ...]
    centres: Array
    radii: Array
    edges: tuple[tuple[int, int], ...]
    segments: Array
    owner: tuple[int, ...]
    """For each segment, the position of its edge."""
    boxes: Array
    of: tuple[str, ...]
    texts: tuple[str, ...]
    tables: Array

    def label(self, index: int) -> str:
        """How sentences call a label."""
        return f"label {self.texts[index]!r} of {self.of[index]}"

    def edge(self, segment: int) -> str:
        """How sentences call the edge of a segment."""
        u, v = self.edges[self.owner[segment]]
        return f"edge {u}-{v}"


def read_marks(layout: Mapping[str, Any]) -> Marks:
    """The marks of a layout, tables only as boxes."""
    vertices, edges, labels = layout["vertices"], layout["edges"], layout["labels"]
    pieces = [
        (index, [*start, *end])
        for index, edge in enumerate(edges)
        for start, end in zip(edge["points"], edge["points"][1:], strict=False)
    ]
    return Marks(
        vertex=tuple(v["id"] for v in vertices),
        centres=np.array([[v["x"], v["y"]] for v in vertices], dtype=float).reshape(-1, 2),
        radii=np.array([v["r"] for v in vertices], dtype=float),
        edges=tuple((edge["u"], edge["v"]) for edge in edges),
        segments=np.array([piece for _, piece in pieces], dtype=float).reshape(-1, 4),
        owner=tuple(index for index, _ in pieces),
        boxes=np.array([label["box"] for label in labels], dtype=float).reshape(-1, 4),
        of=tuple(label["of"] for label in labels),
        texts=tuple(label["text"] for label in labels),
        tables=np.array([t["box"] for t in layout["tables"]], dtype=float).reshape(-1, 4),
    )
