"""Pictures: panels are placed, the result is proven legible, and only then drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from npbench.errors import PictureError, unknown_name
from npbench.rendering.canvas import encode, paint
from npbench.rendering.disturbing import noisy, turned
from npbench.rendering.legibility import flaws
from npbench.rendering.pages import scenes
from npbench.rendering.panels import MAX_SIDE, GraphPanel, Panel, TablePanel
from npbench.rendering.scene import Scene
from npbench.rendering.styles import Style
from npbench.rendering.turning import turned_layout

__all__ = ["Picture", "draw_picture"]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture and where everything in it lies."""

    png: bytes
    width: int
    height: int
    layout: dict[str, Any]
    """As stored with the picture: the proof of legibility can be repeated from it alone."""
    scene: Scene
    """All marks before the picture was turned, for drawing it as vectors."""


def draw_picture(
    panels: Sequence[Panel],
    *,
    style: Style,
    arrangement: Literal["row", "column"] = "row",
) -> Picture:
    """The panels side by side or below each other, proven legible.

    The graph gets its preferred size, or the next larger one at which it is legible, or, where
    its neighbours leave no room for that, a smaller one.

    Args:
        panels: What to show; one graph at most.
        style: How to draw it.
        arrangement: ``row`` or ``column``.

    Raises:
        PictureError: If it cannot be drawn legibly within ``MAX_SIDE`` pixels a side.
    """
    if arrangement not in ("row", "column"):
        raise unknown_name("arrangement", arrangement, ("row", "column"))
    graphs = [panel for panel in panels if isinstance(panel, GraphPanel)]
    if not panels or len(graphs) > 1:
        raise ValueError(
            f"a picture needs at least 1 panel and takes at most 1 graph, "
            f"got {len(panels)} panels and {len(graphs)} graphs"
        )
    reason = ""
    for scene in scenes(panels, arrangement, style=style):
        layout = scene.layout()
        found = flaws(layout)
        if not found:
            return _delivered(scene, layout, style)
        reason = f": {found[0]}"
    subject = " and ".join(_described(panel) for panel in panels)
    raise PictureError(f"{subject} cannot be drawn legibly within {MAX_SIDE} px{reason}")


def _delivered(scene: Scene, layout: dict[str, Any], style: Style) -> Picture:
    """The picture as a file, turned and under noise where the style says so."""
    image = paint(scene, style)
    if style.rotation:
        image = turned(image, style.rotation, style.background)
        layout = turned_layout(layout, style.rotation)
    if style.noise:
        image = noisy(image, style.noise)
    return Picture(encode(image), image.width, image.height, layout, scene)


def _described(panel: Panel) -> str:
    if isinstance(panel, GraphPanel):
        return f"a graph of {panel.num_vertices} vertices"
    if not isinstance(panel, TablePanel):
        return f"a timeline of {len(panel.intervals)} intervals"
    return f"a table of {len(panel.rows)} rows and {len(panel.columns)} columns"
