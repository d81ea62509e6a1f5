"""``npbench gallery``: a page with every task, level and style, and the solutions drawn in."""

from pathlib import Path

import click

from npbench.commands.generate import split_names
from npbench.console import progress_bar
from npbench.errors import unknown_name
from npbench.gallery import LEVELS, write_gallery
from npbench.rendering.styles import STYLES, get_style
from npbench.tasks import TASKS, get_task

__all__ = ["command"]


@click.command(short_help="Draw a page with every task, level and style.")
@click.option("--task", "tasks", multiple=True, help="Repeat for several; default: all.")
@click.option("--level", "levels", multiple=True, help=f"Of {', '.join(LEVELS)}; default: all.")
@click.option("--style", "styles", multiple=True, help=f"Of {', '.join(STYLES)}; default: all.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the instances.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write.")
def command(
    tasks: tuple[str, ...],
    levels: tuple[str, ...],
    styles: tuple[str, ...],
    seed: int,
    out: Path,
) -> None:
    """Write OUT/index.html and OUT/pictures: PNG, SVG and SVG with the reference for each.

    Noise cannot be drawn as vectors, so styles with noise are refused.
    """
    wanted = split_names(levels) or LEVELS
    for level in wanted:
        if level not in LEVELS:
            raise unknown_name("level", level, LEVELS)
    names = split_names(styles) or tuple(STYLES)
    for name in names:
        get_style(name)
    with progress_bar("instances") as progress:
        page = write_gallery(
            out,
            tasks=[get_task(name).name for name in split_names(tasks)] or list(TASKS),
            levels=wanted,
            styles=names,
            seed=seed,
            progress=progress,
        )
    click.echo(str(page))
