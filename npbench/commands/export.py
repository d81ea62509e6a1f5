"""``npbench export``: a split in the format of another program."""

from pathlib import Path

import click

from npbench.interop.exports import FORMATS, export_split
from npbench.storage import open_split

__all__ = ["command"]


@click.command(short_help="Write a split in the format of another program.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--format", "form", required=True, help=", ".join(FORMATS))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A new folder.")
def command(folder: Path, form: str, out: Path) -> None:
    """Write the split in FOLDER for VLMEvalKit, NP-Engine, verl, EasyR1, TRL or lmms-eval.

    Rows that the format cannot hold are counted, by reason. Nothing is overwritten.
    """
    summary = export_split(open_split(folder), form, out)
    click.echo(f"{summary.rows} rows in {', '.join(str(out / name) for name in summary.files)}")
    for reason, count in summary.left_out.items():
        click.echo(f"left out: {count} rows ({reason})")
