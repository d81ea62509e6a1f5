"""``npbench draw``: the picture of an instance file."""

from pathlib import Path

import click

from npbench.errors import InputError
from npbench.interop.instances import read_instance
from npbench.rendering.styles import STYLES, get_style
from npbench.rendering.svg import as_svg

__all__ = ["command"]

PICTURE_SIZE = 768


@click.command(short_help="Draw the picture of an instance file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--task", help="The task, where the file does not say it.")
@click.option("--key", help="Which instance, where the file holds several.")
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="The PNG or SVG to write."
)
@click.option("--style", default=next(iter(STYLES)), show_default=True, help=", ".join(STYLES))
def command(file: Path, task: str | None, key: str | None, out: Path, style: str) -> None:
    """Draw the instance in FILE: our JSON, NP-Engine's, .tsp, .col, .clq, .in or npmm .tsv.

    An instance that is too large to be drawn legibly is refused.
    """
    chosen = get_style(style)
    found = read_instance(file, task=task, key=key)
    if out.exists():
        raise InputError(f"{out} exists; choose another file")
    picture = found.task.draw(found.instance, chosen, PICTURE_SIZE)
    vectors = out.suffix.lower() == ".svg"
    data = as_svg(picture.scene, chosen).encode() if vectors else picture.png
    try:
        out.write_bytes(data)
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from None
    size = f"{picture.layout['width']} x {picture.layout['height']}"
    click.echo(f"{out}: {found.task.name} instance {found.name}, {size}, {len(data)} bytes")
