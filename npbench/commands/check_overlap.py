"""``npbench check-overlap``: do two splits share an instance, up to relabelling?"""

from collections import Counter
from pathlib import Path

import click

from npbench.storage import open_split

__all__ = ["command"]


@click.command(short_help="Prove that two splits share no instance.")
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
def command(first: Path, second: Path) -> None:
    """Compare the isomorphism classes of all instances of two splits; exit with 1 on overlap."""
    classes = [_classes(folder) for folder in (first, second)]
    shared = classes[0] & classes[1]
    counts = Counter(task for task, _ in shared)
    click.echo(f"{first}: {len(classes[0])} classes; {second}: {len(classes[1])} classes")
    if not shared:
        click.echo("no instance of one is a relabelled copy of an instance of the other")
        return
    for task, count in sorted(counts.items()):
        click.echo(f"{task}: {count} shared classes")
    raise click.exceptions.Exit(1)


def _classes(folder: Path) -> set[tuple[str, str]]:
    rows = open_split(folder).rows(("task", "class_key"))
    return {(row["task"], row["class_key"]) for row in rows}
