"""Styles: how one and the same instance can be drawn, and which disturbances come on top.

A style is asked for by name, with its disturbances behind it: ``dark-rotate15-noise8`` is the dark
style, turned by 15 degrees clockwise, under Gaussian noise of standard deviation 8.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from npbench.errors import InputError, unknown_name

__all__ = ["MAX_NOISE", "MAX_ROTATION", "STYLES", "Style", "disturbed", "get_style"]

MAX_ROTATION = 180.0
"""Degrees to either side by which a picture may be turned."""
MAX_NOISE = 20.0
"""Largest standard deviation of the noise, in 255 steps; above it small words are lost."""


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
    layouts: tuple[str, ...] = ("plane", "circle")
    """Families of layouts, best first; the first one that is proven legible is drawn."""
    titles: bool = False
    """Whether a title stands over each panel."""
    sketched: bool = False
    """Whether lines and rings are drawn as by hand."""
    rotation: float = 0.0
    """Degrees by which the picture is turned, clockwise."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise on every channel, in 255 steps."""

    def __post_init__(self) -> None:
        """Refuse disturbances that are out of range."""
        if not -MAX_ROTATION <= self.rotation <= MAX_ROTATION:
            raise InputError(
                f"rotation must lie in [{-MAX_ROTATION:g}, {MAX_ROTATION:g}] degrees, "
                f"got {self.rotation:g}"
            )
        if not 0 <= self.noise <= MAX_NOISE:
            raise InputError(f"noise must lie in [0, {MAX_NOISE:g}], got {self.noise:g}")

    @property
    def label(self) -> str:
        """The name with its disturbances, by which ``get_style`` finds the style again."""
        parts = [self.name]
        if self.rotation:
            parts.append(f"rotate{self.rotation:g}")
        if self.noise:
            parts.append(f"noise{self.noise:g}")
        return "-".join(parts)

    @property
    def note(self) -> str:
        """What a prompt must say of the picture beside the task's own words; mostly nothing."""
        if not self.rotation:
            return ""
        side = "clockwise" if self.rotation > 0 else "counterclockwise"
        return f"The picture is turned {side} by {abs(self.rotation):g} degrees."


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
    layouts=("plane", "spring", "circle"),
)
_PAPER = Style(
    name="paper",
    background="#ffffff",
    ink="#000000",
    edge="#707070",
    disc="#add8e6",
    ring="#00008b",
    number="#000000",
    header="#d6e6f2",
    stripe="#f3f7fb",
    grid="#a0a0a0",
    edge_width=1.8,
    ring_width=1.9,
    layouts=("grid", "circle"),
    titles=True,
)
_SKETCH = Style(
    name="sketch",
    background="#fdfaf3",
    ink="#1c2340",
    edge="#34406b",
    disc="#f3e7cd",
    ring="#1c2340",
    number="#1c2340",
    header="#ece2cb",
    stripe="#f7f1e3",
    grid="#8d93ab",
    edge_width=1.7,
    ring_width=1.7,
    layouts=("plane", "spring", "circle"),
    sketched=True,
)

STYLES: Mapping[str, Style] = MappingProxyType(
    {style.name: style for style in (_LIGHT, _DARK, _PRINT, _PAPER, _SKETCH)}
)
"""All styles by name; the first is the default."""

_LABEL = re.compile(
    r"(?P<name>[^-]+)(-rotate(?P<angle>-?\d{1,4}(\.\d{1,3})?))?(-noise(?P<sigma>\d{1,4}(\.\d{1,3})?))?"
)


def get_style(label: str) -> Style:
    """The style called ``label``, with the disturbances that are named behind it.

    Raises:
        InputError: If there is none; the message names the nearest one.

    Example:
        >>> get_style("paper").disc
        '#add8e6'
        >>> get_style("dark-rotate-30-noise8").rotation
        -30.0
    """
    parts = _LABEL.fullmatch(label)
    if parts is None or parts["name"] not in STYLES:
        raise unknown_name("style", label if parts is None else parts["name"], STYLES)
    style = STYLES[parts["name"]]
    rotation, noise = float(parts["angle"] or 0), float(parts["sigma"] or 0)
    return replace(style, rotation=rotation, noise=noise) if rotation or noise else style


def disturbed(label: str, *, rotation: float | None, noise: float | None) -> str:
    """The label of a style under the disturbances that are given.

    Raises:
        InputError: If the style is unknown or a disturbance out of range.

    Example:
        >>> disturbed("dark", rotation=90.0, noise=None)
        'dark-rotate90'
    """
    style = get_style(label)
    turned = style.rotation if rotation is None else round(rotation, 3)
    rough = style.noise if noise is None else round(noise, 3)
    return replace(style, rotation=turned, noise=rough).label
