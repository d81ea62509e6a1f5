"""``npbench draw``: the picture of an instance file."""

from collections.abc import Callable, Mapping
from pathlib import Path

import click

from npbench.errors import InputError, unknown_name
from npbench.interop.instances import read_instance
from npbench.rendering.pdf import as_pdf
from npbench.rendering.picture import Picture
from npbench.rendering.styles import STYLES, Style, get_style
from npbench.rendering.svg import as_svg

__all__ = ["command"]

PICTURE_SIZE = 768

_FORMATS: Mapping[str, Callable[[Picture, Style], bytes]] = {
    ".png": lambda picture, style: picture.png,
    ".svg": lambda picture, style: as_svg(picture.scene, style).encode(),
    ".pdf": lambda picture, style: as_pdf(picture.scene, style),
}
"""How a picture is written, by the ending of the file."""


@click.command(short_help="Draw the picture of an instance file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--task", help="The task, where the file does not say it.")
@click.option("--key", help="Which instance, where the file holds several.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="The .png, .svg or .pdf to write."
)
@click.option("--style", default=next(iter(STYLES)), show_default=True, help=", ".join(STYLES))
def command(file: Path, task: str | None, key: str | None, out: Path, style: str) -> None:
    """Draw the instance in FILE: our JSON, NP-Engine's, .tsp, .col, .clq, .in or npmm .tsv.

    An instance that is too large to be drawn legibly is refused.
    """
    chosen = get_style(style)
    if out.suffix.lower() not in _FORMATS:
        raise unknown_name("picture format", out.suffix or out.name, _FORMATS)
    found = read_instance(file, task=task, key=key)
    if out.exists():
        raise InputError(f"{out} exists; choose another file")
    picture = found.task.draw(found.instance, chosen, PICTURE_SIZE)
    data = _FORMATS[out.suffix.lower()](picture, chosen)
    try:
        out.write_bytes(data)
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from None
    size = f"{picture.layout['width']} x {picture.layout['height']}"
    click.echo(f"{out}: {found.task.name} instance {found.name}, {size}, {len(data)} bytes")
