"""Pages: how panels share a picture, and at which sizes they are tried."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from npbench.rendering.geometry import Array
from npbench.rendering.layouts import GraphMarks, circle, plane, scattered
from npbench.rendering.panels import (
    MAX_SIDE,
    MIN_GRAPH_SIDE,
    GraphPanel,
    Panel,
    TablePanel,
    TimelinePanel,
)
from npbench.rendering.scene import Bar, Label, Scene, Table
from npbench.rendering.sketching import sketched
from npbench.rendering.spreading import grid_positions, spring_positions
from npbench.rendering.styles import Style
from npbench.rendering.tables import MARGIN, TablePlan, place_table, plan_table
from npbench.rendering.text import centred, glyphs
from npbench.rendering.timelines import TIMELINE_HEIGHT, place_timeline
from npbench.rendering.turning import turned_size

__all__ = ["scenes"]

_TITLE_SIZE = 18
_TITLE_STRIP = 32
"""Height of the strip that a title takes above its panel."""
_STRENGTHS = (1.0, 0.5)
"""How strongly lines are bent where they are drawn by hand; ruled lines if neither is legible."""
_STEP = 64
"""Between the sizes at which a graph is tried."""


@dataclass(frozen=True, slots=True)
class _Block:
    """The extent of a panel, its title and margins included."""

    title: str
    content: "_Content"
    width: int
    height: int


_Content = GraphPanel | TablePlan | TimelinePanel


@dataclass(frozen=True, slots=True)
class _Page:
    """Blocks and their upper left corners."""

    width: int
    height: int
    blocks: tuple[_Block, ...]
    corners: tuple[tuple[int, int], ...]


def scenes(
    panels: Sequence[Panel],
    arrangement: Literal["row", "column"],
    *,
    style: Style,
) -> Iterator[Scene]:
    """The ways to show the panels within ``MAX_SIDE``, best first; none is proven legible yet.

    Args:
        panels: What to show; one graph at most.
        arrangement: Side by side, or below each other and flush left.
        style: Which families of layouts to try, and whether the page is turned afterwards.
    """
    contents = [plan_table(p) if isinstance(p, TablePanel) else p for p in panels]
    graph = next((panel for panel in panels if isinstance(panel, GraphPanel)), None)
    for size in _sizes(graph):
        blocks = [_block(p.title, c, size) for p, c in zip(panels, contents, strict=True)]
        page = _page(blocks, arrangement)
        if max(turned_size(page.width, page.height, style.rotation)) > MAX_SIDE:
            continue
        if graph is None:
            yield _scene(page, None)
            continue
        left, top = next(
            (x + (block.width - size) // 2, y + block.height - size)
            for block, (x, y) in zip(page.blocks, page.corners, strict=True)
            if block.content is graph
        )
        for name in style.layouts:
            for marks in _proposals(name, graph, left=left, top=top, size=size):
                for strength in _STRENGTHS if style.sketched else ():
                    yield _scene(page, sketched(marks, strength=strength))
                yield _scene(page, marks)


def _proposals(
    name: str, graph: GraphPanel, *, left: int, top: int, size: int
) -> Iterator[GraphMarks]:
    """The layouts of a family that keep the gaps between vertices and edges."""
    if name == "plane":
        found = [plane(graph, left=left, top=top, size=size)] if graph.coordinates else []
    elif name == "circle":
        found = [circle(graph, left=left, top=top, size=size)]
    else:
        propose = _POSITIONS[name]
        for positions in propose(graph):
            marks = scattered(graph, positions, left=left, top=top, size=size)
            if marks is not None:
                yield marks
        return
    yield from (marks for marks in found if marks is not None)


_POSITIONS: dict[str, Callable[[GraphPanel], Iterator[Array]]] = {
    "grid": grid_positions,
    "spring": spring_positions,
}


def _sizes(graph: GraphPanel | None) -> Iterator[int]:
    """Sides of the graph's square: as preferred, then larger, then smaller; one 0 without graph."""
    if graph is None:
        yield 0
        return
    yield from range(graph.size, MAX_SIDE + 1, _STEP)
    yield from range(graph.size - _STEP, MIN_GRAPH_SIDE - 1, -_STEP)


def _block(title: str, content: _Content, size: int) -> _Block:
    if isinstance(content, TablePlan):
        width, height = content.width + 2 * MARGIN, content.height + 2 * MARGIN
    elif isinstance(content, TimelinePanel):
        width, height = content.size, TIMELINE_HEIGHT
    else:
        width = height = size
    if title:
        x0, _, x1, _ = glyphs(title, _TITLE_SIZE, bold=True).ink
        width, height = max(width, x1 - x0 + 2 * MARGIN), height + _TITLE_STRIP
    return _Block(title, content, width, height)


def _page(blocks: Sequence[_Block], arrangement: Literal["row", "column"]) -> _Page:
    widths = [block.width for block in blocks]
    heights = [block.height for block in blocks]
    if arrangement == "row":
        width, height = sum(widths), max(heights)
        # Titles stand on one line; without any, the panels are centred.
        titled = any(block.title for block in blocks)
        corners = [
            (sum(widths[:i]), 0 if titled else (height - high) // 2)
            for i, high in enumerate(heights)
        ]
    else:
        width, height = max(widths), sum(heights)
        corners = [(0, sum(heights[:i])) for i in range(len(blocks))]
    return _Page(width, height, tuple(blocks), tuple(corners))


def _scene(page: _Page, graph: GraphMarks | None) -> Scene:
    """The page with the graph, already in its place, its tables and its titles."""
    tables: list[Table] = []
    bars: list[Bar] = []
    labels = list(graph.labels) if graph else []
    for block, (left, top) in zip(page.blocks, page.corners, strict=True):
        if isinstance(block.content, TablePlan):
            of = f"table {len(tables)}"
            # A title is centred over its table, wherever the table stands in a wider block.
            x = left + (block.width - block.content.width) // 2
            y = top + block.height - block.content.height - MARGIN
            tables.append(place_table(block.content, left=x, top=y))
        elif isinstance(block.content, TimelinePanel):
            of = "timeline"
            y = top + block.height - TIMELINE_HEIGHT
            timeline = place_timeline(block.content, left=left, top=y)
            bars += timeline.bars
            labels += timeline.labels
        else:
            of = "graph"
        if block.title:
            middle = (left + block.width / 2, top + 2 + _TITLE_STRIP / 2)
            labels.append(Label(centred(block.title, *middle, size=_TITLE_SIZE, bold=True), of))
    return Scene(
        width=page.width,
        height=page.height,
        discs=graph.discs if graph else (),
        lines=graph.lines if graph else (),
        labels=tuple(labels),
        tables=tuple(tables),
        bars=tuple(bars),
    )
