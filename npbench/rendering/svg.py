"""A scene as SVG: the same marks in the same places, for figures that are printed or enlarged."""

from base64 import b64encode
from functools import lru_cache
from html import escape
from importlib.resources import files

from npbench.errors import InputError
from npbench.rendering.scene import Disc, Line, Scene, Table
from npbench.rendering.styles import Style
from npbench.rendering.text import Text
from npbench.rendering.turning import turned_size

__all__ = ["as_svg", "svg_text"]


_FACES = {400: "DejaVuSans-subset.ttf", 700: "DejaVuSans-Bold-subset.ttf"}
"""Files of the bundled font by weight."""


@lru_cache(maxsize=2)
def _face(weight: int) -> str:
    """A face of the bundled font, so that the letters are the same everywhere."""
    data = files("npbench.rendering").joinpath("fonts", _FACES[weight]).read_bytes()
    source = f"url(data:font/ttf;base64,{b64encode(data).decode()})"
    return f"@font-face{{font-family:npbench;font-weight:{weight};src:{source}}}"


def _fonts(scene: Scene) -> str:
    """The faces that the scene needs; marks on top of it use the bold one."""
    texts = [label.text for label in scene.labels]
    texts += [cell.text for table in scene.tables for cell in table.cells if cell.text]
    weights = [700] if all(text.bold for text in texts) else [400, 700]
    faces = "".join(_face(weight) for weight in weights)
    return f"<style>{faces}text{{font-family:npbench,'DejaVu Sans',sans-serif}}</style>"


def as_svg(
    scene: Scene,
    style: Style,
    *,
    under: str = "",
    over: str = "",
    margin: int = 0,
    frame: int = 0,
) -> str:
    """The scene as an SVG document.

    Args:
        scene: What to draw.
        style: How to draw it.
        under: SVG elements between the edges and the vertices, and below the texts of tables.
        over: SVG elements on top of everything.
        margin: Blank space added at the right side, for elements on top.
        frame: Blank space added on all sides, for elements that reach beyond the scene.

    Raises:
        InputError: If the style has noise, which only pixels have.
    """
    if style.noise:
        raise InputError("noise cannot be drawn as vectors; export the picture as PNG")
    width, height = scene.width + margin, scene.height
    size = turned_size(width, height, style.rotation)
    turn = ""
    if style.rotation:
        dx, dy = (size[0] - width) / 2, (size[1] - height) / 2
        turn = (
            f' transform="translate({dx:g} {dy:g}) '
            f'rotate({style.rotation:g} {width / 2:g} {height / 2:g})"'
        )
    wide, high = size[0] + 2 * frame, size[1] + 2 * frame
    halo = style.background if under else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
        f'viewBox="{-frame} {-frame} {wide} {high}">',
        _fonts(scene),
        f'<rect x="{-frame}" y="{-frame}" width="100%" height="100%" fill="{style.background}"/>',
        f"<g{turn}>",
        *(_line(line, style) for line in scene.lines),
        *(_table_ground(table, style) for table in scene.tables),
        *(_bar(bar.box, style, interval=bar.of.startswith("interval")) for bar in scene.bars),
        under,
        *(_disc(disc, style) for disc in scene.discs),
        *(_table_text(table, style) for table in scene.tables),
        *(
            svg_text(label.text, style.number)
            if label.inside
            else svg_text(label.text, style.ink, halo=halo)
            for label in scene.labels
        ),
        over,
        "</g></svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def svg_text(text: Text, colour: str, *, halo: str = "") -> str:
    """A text in its place, with a rim that parts it from what lies below where ``halo`` is one."""
    weight = ' font-weight="700"' if text.bold else ""
    rim = f' stroke="{halo}" stroke-width="4" paint-order="stroke"' if halo else ""
    return (
        f'<text x="{text.x}" y="{text.baseline}" font-size="{text.size}"{weight}{rim} '
        f'fill="{colour}" xml:space="preserve">{escape(text.text)}</text>'
    )


def _line(line: Line, style: Style) -> str:
    points = " ".join(f"{x:g},{y:g}" for x, y in line.points)
    return (
        f'<polyline points="{points}" fill="none" stroke="{style.edge}" '
        f'stroke-width="{style.edge_width}"/>'
    )


def _disc(disc: Disc, style: Style) -> str:
    r = disc.r - style.ring_width / 2
    return (
        f'<circle cx="{disc.x:g}" cy="{disc.y:g}" r="{r:g}" fill="{style.disc}" '
        f'stroke="{style.ring}" stroke-width="{style.ring_width}"/>'
    )


def _bar(box: tuple[int, int, int, int], style: Style, *, interval: bool) -> str:
    x0, y0, x1, y1 = box
    fill = f'fill="{style.disc}" stroke="{style.grid}"' if interval else f'fill="{style.grid}"'
    return f'<rect x="{x0}" y="{y0}" width="{x1 - x0}" height="{y1 - y0}" {fill}/>'


def _table_ground(table: Table, style: Style) -> str:
    fills = {"header": style.header, "stripe": style.stripe, "background": style.background}
    parts = []
    for cell in table.cells:
        x0, y0, x1, y1 = cell.box
        parts.append(
            f'<rect x="{x0}" y="{y0}" width="{x1 - x0}" height="{y1 - y0}" '
            f'fill="{fills[cell.fill]}" stroke="{style.grid}"/>'
        )
    return "".join(parts)


def _table_text(table: Table, style: Style) -> str:
    return "".join(svg_text(cell.text, style.ink) for cell in table.cells if cell.text is not None)
