"""How plots look: colours that are told apart without colour vision, direct labels, fixed bytes."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from npbench.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Look", "as_png", "as_svg", "direct_labels", "figure", "look_of", "spread_out"]

Look = Mapping[str, Any]

_COLOURS = ("#0072B2", "#C4500A", "#00785A", "#9B3F7F", "#8F6B00", "#000000")
"""After Okabe and Ito, darkened until each can be read as text on white (4.5 to 1 and more)."""
_DASHES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "p")
_UNTRAINED = {"color": "#555555", "linestyle": (0, (1, 1)), "marker": "x"}

_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "svg.hashsalt": "npbench",
    "svg.fonttype": "path",
    "path.simplify": True,
}


def look_of(arms: Sequence[str], *, untrained: str = "base") -> dict[str, Look]:
    """Colour, dashes and marker of each arm: no two share all three, whatever the colours say.

    Example:
        >>> looks = look_of(["base", "grpo", "mupo"])
        >>> looks["grpo"]["color"], looks["mupo"]["marker"]
        ('#0072B2', 's')
    """
    found: dict[str, Look] = {}
    place = 0
    for arm in arms:
        if arm == untrained:
            found[arm] = _UNTRAINED
            continue
        found[arm] = {
            "color": _COLOURS[place % len(_COLOURS)],
            "linestyle": _DASHES[(place // len(_COLOURS) + place) % len(_DASHES)],
            "marker": _MARKERS[place % len(_MARKERS)],
        }
        place += 1
    return found


@contextmanager
def figure(columns: int, rows: int, *, width: float, height: float) -> Iterator[tuple[Any, Any]]:
    """A figure and its panels as a flat list, under our settings.

    Raises:
        InputError: If matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("plots need: pip install 'npbench[eval,train]'") from error
    with mpl.rc_context(_SETTINGS):
        made = Figure(figsize=(width * columns, height * rows), layout="constrained")
        FigureCanvasAgg(made)
        yield made, list(made.subplots(rows, columns, squeeze=False).flatten())


def as_svg(made: "Figure") -> bytes:
    """The figure as SVG, the same bytes each time."""
    buffer = io.BytesIO()
    made.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def as_png(made: "Figure") -> bytes:
    """The figure as PNG, the same bytes each time."""
    buffer = io.BytesIO()
    made.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def spread_out(wanted: Sequence[float], *, gap: float) -> list[float]:
    """Places near the wanted ones, in their order, at least a gap apart.

    Example:
        >>> [round(place, 3) for place in spread_out([0.0, 0.1, 3.0], gap=1.0)]
        [-0.45, 0.55, 3.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    blocks: list[list[int]] = []
    centres: list[float] = []
    for index in order:
        blocks.append([index])
        centres.append(wanted[index])
        # a block that touches the one below joins it, centred on what its members want
        while len(blocks) > 1 and _bottom(blocks, centres, gap) < _top(blocks, centres, gap) + gap:
            last = blocks.pop()
            centres.pop()
            blocks[-1] += last
            centres[-1] = sum(wanted[i] for i in blocks[-1]) / len(blocks[-1])
    found = [0.0] * len(wanted)
    for block, centre in zip(blocks, centres, strict=True):
        for number, index in enumerate(block):
            found[index] = centre + (number - (len(block) - 1) / 2) * gap
    return found


def _bottom(blocks: list[list[int]], centres: list[float], gap: float) -> float:
    return centres[-1] - (len(blocks[-1]) - 1) / 2 * gap


def _top(blocks: list[list[int]], centres: list[float], gap: float) -> float:
    return centres[-2] + (len(blocks[-2]) - 1) / 2 * gap


def direct_labels(
    axes: "Axes", ends: Sequence[tuple[float, float, str, str]], *, size: float = 8.0
) -> None:
    """Writes names beside the panel, led to their points and moved apart where they would overlap.

    Args:
        axes: With its limits set.
        ends: x, y, text and colour of each.
        size: Of the letters, in points.
    """
    if not ends:
        return
    low, high = axes.get_ylim()
    points = axes.figure.get_figheight() * 72 * 0.7  # type: ignore[union-attr]
    rows = axes.get_subplotspec()
    shown = points / (rows.get_gridspec().nrows if rows is not None else 1)
    gap = (high - low) * size * 1.25 / shown
    places = spread_out([y for _, y, _, _ in ends], gap=gap)
    for (x, y, text, colour), place in zip(ends, places, strict=True):
        axes.annotate(
            text,
            (x, y),
            xytext=(1.05, place),
            textcoords=axes.get_yaxis_transform(),
            color=colour,
            fontsize=size,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "lw": 0.4,
                "shrinkA": 1,
                "shrinkB": 2,
                "relpos": (0.0, 0.5),
            },
        )
