"""Names of the levels, and the sizes that several tasks share."""

from collections.abc import Mapping
from typing import Any

from npbench.task import Level

__all__ = ["HARD_SHARE", "LEVEL_NAMES", "PICTURE_SIZE", "graph_levels", "make_levels"]

LEVEL_NAMES = ("nano", "l1", "l2", "l3", "easy", "medium", "hard", "bench")

HARD_SHARE = {
    "nano": 0.0,
    "l1": 0.25,
    "l2": 0.6,
    "l3": 0.65,
    "easy": 0.25,
    "medium": 0.6,
    "hard": 0.6,
    "bench": 0.6,
}
"""Share of the indices of a level that take only instances on which greedy misses the optimum."""

PICTURE_SIZE = {"nano": 256, "l1": 512, "l2": 768, "l3": 768}


def make_levels(sizes: Mapping[str, Mapping[str, Any]]) -> dict[str, Level]:
    """Levels from their size parameters, with the suite-wide hard share and picture size."""
    return {
        name: Level(
            name=name,
            params=dict(params),
            hard_share=HARD_SHARE[name],
            picture_size=PICTURE_SIZE.get(name, 768),
        )
        for name, params in sizes.items()
    }


def graph_levels(
    *, text: Mapping[str, Mapping[str, Any]] | None = None, **common: Any
) -> dict[str, Level]:
    """The four picture levels of a graph task (5-8, 8-12, 12-16, 16-20 vertices).

    Args:
        text: Parameters of the text levels, for tasks of the text benchmark.
        **common: Parameters equal on the picture levels, such as ``degree``.
    """
    ranges = {"nano": (5, 8), "l1": (8, 12), "l2": (12, 16), "l3": (16, 20)}
    sizes = {name: {"num_vertices": span, **common} for name, span in ranges.items()}
    return make_levels({**sizes, **(text or {})})
