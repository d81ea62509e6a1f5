"""Styles: the palettes and line widths in which one and the same instance can be drawn."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from npbench.errors import unknown_name

__all__ = ["STYLES", "Style", "get_style"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Colours, as ``#rrggbb``, and line widths, in pixels; no colour carries meaning."""

    name: str
    background: str
    ink: str
    """Text on the background and in cells, headers included."""
    edge: str
    disc: str
    """Inside of a vertex."""
    ring: str
    """Outline of a vertex."""
    number: str
    """Text inside a vertex."""
    header: str
    """Fill of header cells."""
    stripe: str
    """Fill of every other row of a table."""
    grid: str
    """Lines between cells."""
    edge_width: float
    ring_width: float


_LIGHT = Style(
    name="light",
    background="#ffffff",
    ink="#111827",
    edge="#475569",
    disc="#fef3c7",
    ring="#1f2937",
    number="#111827",
    header="#e2e8f0",
    stripe="#f4f6f9",
    grid="#94a3b8",
    edge_width=1.6,
    ring_width=1.8,
)
_DARK = Style(
    name="dark",
    background="#14181f",
    ink="#e5e7eb",
    edge="#a3adba",
    disc="#2f3a4a",
    ring="#e5e7eb",
    number="#ffffff",
    header="#334155",
    stripe="#1d232d",
    grid="#64748b",
    edge_width=1.6,
    ring_width=1.8,
)
_PRINT = Style(
    name="print",
    background="#ffffff",
    ink="#000000",
    edge="#4d4d4d",
    disc="#ffffff",
    ring="#000000",
    number="#000000",
    header="#dcdcdc",
    stripe="#f2f2f2",
    grid="#8c8c8c",
    edge_width=1.4,
    ring_width=1.6,
)
_PAPER = Style(
    name="paper",
    background="#ffffff",
    ink="#000000",
    edge="#808080",
    disc="#add8e6",
    ring="#00008b",
    number="#000000",
    header="#d6e6f2",
    stripe="#f3f7fb",
    grid="#a0a0a0",
    edge_width=1.8,
    ring_width=2.4,
)

STYLES: Mapping[str, Style] = MappingProxyType(
    {style.name: style for style in (_LIGHT, _DARK, _PRINT, _PAPER)}
)
"""All styles by name; the first is the default."""


def get_style(name: str) -> Style:
    """The style called ``name``.

    Raises:
        InputError: If there is none; the message names the nearest one.

    Example:
        >>> get_style("paper").disc
        '#add8e6'
    """
    if name not in STYLES:
        raise unknown_name("style", name, STYLES)
    return STYLES[name]
