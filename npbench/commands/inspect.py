"""``npbench inspect``: one row of a split."""

import json
from pathlib import Path

import click

from npbench.errors import InputError
from npbench.storage import open_split
from npbench.tasks import TASKS

__all__ = ["command"]


@click.command(short_help="Show one row of a split.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--row", type=int, default=0, show_default=True, help="Position from 0.")
@click.option("--image", type=click.Path(path_type=Path), help="Write the picture to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the row as one JSON object.")
def command(folder: Path, row: int, image: Path | None, as_json: bool) -> None:
    """Show row ROW of the split in FOLDER: question, reference, floors."""
    data = open_split(folder).row(row)
    picture = data.pop("image")
    if image is not None:
        if picture is None:
            raise click.UsageError(f"row {row} is text and has no picture")
        if image.exists():
            raise InputError(f"{image} exists; choose another file")
        image.write_bytes(picture)
    if as_json:
        click.echo(json.dumps(data))
        return
    layout = data.pop("layout")
    prompt = data.pop("prompt")
    for name, value in data.items():
        click.echo(f"{name + ':':22} {value}")
    if picture is not None and layout is not None:
        size = json.loads(layout)
        click.echo(f"{'picture:':22} {size['width']} x {size['height']}, {len(picture)} bytes")
    click.echo(f"\n{prompt}\n")
    task = TASKS[data["task"]]
    instance = task.decode(json.loads(data["instance"]))
    verdict = task.verify(instance, json.loads(data["reference_solution"]))
    click.echo(
        f"verdict on the reference: feasible={verdict.feasible} objective={verdict.objective}"
    )
