"""Which panels show an instance; the drawing itself is in ``npbench.rendering``."""

from collections.abc import Sequence

from npbench.errors import PictureError
from npbench.graphs import Graph, WeightedGraph
from npbench.rendering.panels import GraphPanel, Panel, TablePanel, TimelinePanel
from npbench.rendering.picture import Picture, draw_picture
from npbench.rendering.styles import Style

__all__ = [
    "MAX_DRAWN",
    "graph_picture",
    "matrix_panel",
    "require_drawable",
    "schedule_picture",
    "table_picture",
    "tour_picture",
    "weighted_picture",
]

_ROOMY = 512
"""Picture size from which on a map or a timeline is drawn beside the tables, in pixels."""


MAX_DRAWN = 200
"""Graphs with more vertices are refused without trying."""


def require_drawable(num_vertices: int) -> None:
    """Refuse a graph that no picture can show.

    Raises:
        PictureError: If it has more than ``MAX_DRAWN`` vertices.
    """
    if num_vertices > MAX_DRAWN:
        raise PictureError(f"a picture shows at most {MAX_DRAWN} vertices, got {num_vertices}")


def graph_picture(graph: Graph, style: Style, size: int) -> Picture:
    """Numbered vertices and the edges between them."""
    require_drawable(graph.num_vertices)
    panel = GraphPanel(
        num_vertices=graph.num_vertices,
        edges=graph.edges,
        size=size,
        title="Graph" if style.titles else "",
    )
    return draw_picture([panel], style=style)


def weighted_picture(graph: WeightedGraph, style: Style, size: int) -> Picture:
    """The graph, and beside it the matrix of its weights with empty cells where no edge is."""
    n = graph.num_vertices
    require_drawable(n)
    edges = tuple((u, v) for u, v, _ in graph.edges)
    rows = [[str(graph.weights[u].get(v, "")) for v in range(n)] for u in range(n)]
    graph_title, matrix_title = ("Graph", "Weights") if style.titles else ("", "")
    panels: list[Panel] = [
        GraphPanel(num_vertices=n, edges=edges, size=size, title=graph_title),
        matrix_panel(rows, size, title=matrix_title),
    ]
    return draw_picture(panels, style=style)


def tour_picture(
    distances: Sequence[Sequence[int]],
    coordinates: tuple[tuple[int, int], ...] | None,
    style: Style,
    size: int,
) -> Picture:
    """The matrix of distances; from 512 px on with the cities, on the plane if they have places."""
    n = len(distances)
    require_drawable(n)
    rows = [[str(distances[u][v]) if u != v else "-" for v in range(n)] for u in range(n)]
    matrix = matrix_panel(rows, size, title="Distances" if style.titles else "")
    if size < _ROOMY:
        return draw_picture([matrix], style=style)
    cities = GraphPanel(
        num_vertices=n,
        edges=(),
        size=size,
        coordinates=coordinates,
        title="Cities" if style.titles else "",
    )
    return draw_picture([cities, matrix], style=style)


def matrix_panel(rows: Sequence[Sequence[str]], size: int, *, title: str = "") -> TablePanel:
    """A square table with row and column numbers."""
    columns = ("", *(str(v) for v in range(len(rows))))
    body = tuple((str(u), *row) for u, row in enumerate(rows))
    return TablePanel(columns=columns, rows=body, title=title, size=size)


def table_picture(tables: Sequence[TablePanel], style: Style) -> Picture:
    """Tables one below the other."""
    return draw_picture(list(tables), style=style, arrangement="column")


def schedule_picture(
    day: Sequence[tuple[int, int]], tables: Sequence[TablePanel], style: Style, size: int
) -> Picture:
    """Tables one below the other; from 512 px on with the opening times on a timeline above."""
    panels: list[Panel] = list(tables)
    if size >= _ROOMY:
        panels.insert(0, TimelinePanel(intervals=tuple(day), size=_ROOMY))
    return draw_picture(panels, style=style, arrangement="column")
