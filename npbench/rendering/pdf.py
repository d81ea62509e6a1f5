"""A scene as PDF: the same marks in the same places, in the bundled font, for figures in papers."""

from importlib.resources import files
from io import BytesIO
from typing import Any

from npbench.errors import InputError
from npbench.rendering.scene import Scene, Table
from npbench.rendering.styles import Style
from npbench.rendering.text import Text
from npbench.rendering.turning import turned_size

__all__ = ["as_pdf"]

_POINT = 0.75
"""Of a pixel in points: 96 pixels and 72 points are an inch."""
_FACES = {False: "DejaVuSans-subset", True: "DejaVuSans-Bold-subset"}


def as_pdf(scene: Scene, style: Style) -> bytes:
    """The scene as a PDF of one page; equal scenes give equal bytes under one version of reportlab.

    Args:
        scene: What to draw.
        style: How to draw it.

    Raises:
        InputError: If the style has noise, which only pixels have, or reportlab is not installed.
    """
    if style.noise:
        raise InputError("noise cannot be drawn as vectors; export the picture as PNG")
    buffer = BytesIO()
    pen = _page(buffer, scene, style)
    for line in scene.lines:
        _stroke(pen, line.points, style)
    for table in scene.tables:
        _table_ground(pen, table, style)
    for bar in scene.bars:
        framed = bar.of.startswith("interval")
        _box(pen, bar.box, fill=style.disc if framed else style.grid, rim=style.grid)
    pen.setLineWidth(style.ring_width)
    pen.setFillColor(style.disc)
    pen.setStrokeColor(style.ring)
    for disc in scene.discs:
        pen.circle(disc.x, -disc.y, disc.r - style.ring_width / 2, stroke=1, fill=1)
    for table in scene.tables:
        for cell in table.cells:
            if cell.text is not None:
                _text(pen, cell.text, style.ink)
    for label in scene.labels:
        _text(pen, label.text, style.number if label.inside else style.ink)
    pen.save()
    return buffer.getvalue()


def _page(buffer: BytesIO, scene: Scene, style: Style) -> Any:
    """A pen on an empty page; its unit is a pixel, and y is the negative of the picture's."""
    try:
        from reportlab.pdfbase import pdfmetrics
        from reportlab.pdfbase.ttfonts import TTFont
        from reportlab.pdfgen.canvas import Canvas
    except ImportError:
        raise InputError("PDF needs: pip install 'npbench[pdf]'") from None
    for name in _FACES.values():
        data = files("npbench.rendering").joinpath("fonts", f"{name}.ttf").read_bytes()
        pdfmetrics.registerFont(TTFont(name, BytesIO(data)))
    width, height = turned_size(scene.width, scene.height, style.rotation)
    # Without a date and a random id in the file.
    pen = Canvas(buffer, pagesize=(_POINT * width, _POINT * height), invariant=1)
    pen.scale(_POINT, _POINT)
    pen.translate(0, height)
    _box(pen, (0, 0, width, height), fill=style.background, rim=None)
    pen.translate(width / 2, -height / 2)
    pen.rotate(-style.rotation)
    pen.translate(-scene.width / 2, scene.height / 2)
    return pen


def _stroke(pen: Any, points: tuple[tuple[float, float], ...], style: Style) -> None:
    pen.setLineWidth(style.edge_width)
    pen.setStrokeColor(style.edge)
    path = pen.beginPath()
    path.moveTo(points[0][0], -points[0][1])
    for x, y in points[1:]:
        path.lineTo(x, -y)
    pen.drawPath(path)


def _box(pen: Any, box: tuple[int, int, int, int], *, fill: str, rim: str | None) -> None:
    x0, y0, x1, y1 = box
    pen.setFillColor(fill)
    if rim is not None:
        pen.setLineWidth(1)
        pen.setStrokeColor(rim)
    pen.rect(x0, -y1, x1 - x0, y1 - y0, fill=1, stroke=int(rim is not None))


def _table_ground(pen: Any, table: Table, style: Style) -> None:
    fills = {"header": style.header, "stripe": style.stripe, "background": style.background}
    for cell in table.cells:
        _box(pen, cell.box, fill=fills[cell.fill], rim=style.grid)


def _text(pen: Any, text: Text, colour: str) -> None:
    pen.setFont(_FACES[text.bold], text.size)
    pen.setFillColor(colour)
    pen.drawString(text.x, -text.baseline, text.text)
