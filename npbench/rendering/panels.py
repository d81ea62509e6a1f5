"""Panels: what a picture is to show, before anything is placed."""

from dataclasses import dataclass

__all__ = ["MAX_SIDE", "MIN_GRAPH_SIDE", "GraphPanel", "Panel", "TablePanel", "TimelinePanel"]

MAX_SIDE = 1536
"""No picture is wider or higher than this, in pixels."""

MIN_GRAPH_SIDE = 192
"""No graph is drawn smaller than this, in pixels."""


@dataclass(frozen=True, slots=True)
class GraphPanel:
    """A graph as discs with their numbers and straight edges.

    Example:
        >>> GraphPanel(num_vertices=3, edges=((0, 3),), size=256)
        Traceback (most recent call last):
            ...
        ValueError: an edge must join two of the 3 vertices, got (0, 3)
    """

    num_vertices: int
    edges: tuple[tuple[int, int], ...]
    size: int
    """Preferred side in pixels; a graph that is not legible there is drawn larger."""
    coordinates: tuple[tuple[int, int], ...] | None = None
    """Positions in the plane, y upwards; None for a circle in index order, vertex 0 at the top,
    clockwise. Where vertices are too close to each other, the circle is drawn instead."""
    title: str = ""

    def __post_init__(self) -> None:
        """Refuse a graph that is none."""
        if self.num_vertices < 1:
            raise ValueError(f"a graph needs at least 1 vertex, got {self.num_vertices}")
        if not MIN_GRAPH_SIDE <= self.size <= MAX_SIDE:
            raise ValueError(f"size must lie in [{MIN_GRAPH_SIDE}, {MAX_SIDE}], got {self.size}")
        if self.coordinates is not None and len(self.coordinates) != self.num_vertices:
            raise ValueError(
                f"{self.num_vertices} vertices need as many coordinates, "
                f"got {len(self.coordinates)}"
            )
        seen: set[tuple[int, int]] = set()
        for u, v in self.edges:
            if u == v or not (0 <= u < self.num_vertices and 0 <= v < self.num_vertices):
                raise ValueError(
                    f"an edge must join two of the {self.num_vertices} vertices, got ({u}, {v})"
                )
            if (min(u, v), max(u, v)) in seen:
                raise ValueError(f"an edge must be given once, got ({u}, {v}) again")
            seen.add((min(u, v), max(u, v)))


@dataclass(frozen=True, slots=True)
class TablePanel:
    """A table with a header row; numbers are set right-aligned, words left-aligned.

    Example:
        >>> TablePanel(columns=("item", "weight"), rows=(("0",),))
        Traceback (most recent call last):
            ...
        ValueError: every row needs 2 cells, row 0 has 1
    """

    columns: tuple[str, ...]
    """Texts of the header row."""
    rows: tuple[tuple[str, ...], ...]
    """Texts of the cells; an empty text leaves the cell empty."""
    title: str = ""
    row_headers: bool = True
    """Whether the first column is drawn as a header."""
    size: int = 0
    """Preferred longest side in pixels, 0 for 800. Letters and padding shrink to keep it, the
    digits never below 11 px; a table that is larger even so is drawn larger."""

    def __post_init__(self) -> None:
        """Refuse a table with missing cells."""
        if not self.columns:
            raise ValueError("a table needs at least 1 column, got 0")
        if not self.rows:
            raise ValueError("a table needs at least 1 row, got 0")
        if not 0 <= self.size <= MAX_SIDE:
            raise ValueError(f"size must lie in [0, {MAX_SIDE}], got {self.size}")
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"every row needs {len(self.columns)} cells, row {index} has {len(row)}"
                )


@dataclass(frozen=True, slots=True)
class TimelinePanel:
    """Intervals of time as bars on an axis with marks at round times.

    Example:
        >>> TimelinePanel(intervals=((60, 30),), size=512)
        Traceback (most recent call last):
            ...
        ValueError: an interval must end after it begins, got (60, 30)
    """

    intervals: tuple[tuple[int, int], ...]
    size: int
    """Width in pixels, margins included."""
    title: str = ""

    def __post_init__(self) -> None:
        """Refuse intervals that are empty or out of order."""
        if not self.intervals:
            raise ValueError("a timeline needs at least 1 interval, got 0")
        if not MIN_GRAPH_SIDE <= self.size <= MAX_SIDE:
            raise ValueError(f"size must lie in [{MIN_GRAPH_SIDE}, {MAX_SIDE}], got {self.size}")
        for start, end in self.intervals:
            if end <= start:
                raise ValueError(f"an interval must end after it begins, got ({start}, {end})")
        for (_, end), (start, _) in zip(self.intervals, self.intervals[1:], strict=False):
            if start < end:
                raise ValueError(f"intervals must follow each other, got {start} after {end}")


Panel = GraphPanel | TablePanel | TimelinePanel
