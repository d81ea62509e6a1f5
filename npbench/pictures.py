"""Which panels show an instance; the drawing itself is in ``npbench.rendering``."""

from collections.abc import Sequence

from npbench.graphs import Graph, WeightedGraph
from npbench.rendering.panels import GraphPanel, TablePanel
from npbench.rendering.picture import Picture, draw_picture
from npbench.rendering.styles import Style

__all__ = ["graph_picture", "matrix_panel", "table_picture", "tour_picture", "weighted_picture"]


def graph_picture(graph: Graph, style: Style, size: int) -> Picture:
    """Vertices on a circle in index order, edges as straight lines."""
    panel = GraphPanel(num_vertices=graph.num_vertices, edges=graph.edges, size=size)
    return draw_picture([panel], style=style)


def weighted_picture(graph: WeightedGraph, style: Style, size: int) -> Picture:
    """The graph, and beside it the matrix of its weights with empty cells where no edge is."""
    n = graph.num_vertices
    edges = tuple((u, v) for u, v, _ in graph.edges)
    rows = [[str(graph.weights[u].get(v, "")) for v in range(n)] for u in range(n)]
    panels: list[GraphPanel | TablePanel] = [
        GraphPanel(num_vertices=n, edges=edges, size=size),
        matrix_panel(rows, size),
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
    rows = [[str(distances[u][v]) if u != v else "-" for v in range(n)] for u in range(n)]
    matrix = matrix_panel(rows, size)
    if size < 512:
        return draw_picture([matrix], style=style)
    cities = GraphPanel(num_vertices=n, edges=(), size=size, coordinates=coordinates)
    return draw_picture([cities, matrix], style=style)


def matrix_panel(rows: Sequence[Sequence[str]], size: int) -> TablePanel:
    """A square table with row and column numbers."""
    columns = ("", *(str(v) for v in range(len(rows))))
    body = tuple((str(u), *row) for u, row in enumerate(rows))
    return TablePanel(columns=columns, rows=body, size=size)


def table_picture(tables: Sequence[TablePanel], style: Style) -> Picture:
    """Tables one below the other."""
    return draw_picture(list(tables), style=style, arrangement="column")
