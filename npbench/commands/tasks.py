"""``npbench tasks``: what there is."""

import click

from npbench.console import print_table
from npbench.levels import LEVEL_NAMES
from npbench.suites import OFFICIAL, SUITES
from npbench.tasks import TASKS

__all__ = ["command"]


@click.command(short_help="List tasks, suites, levels and official splits.")
def command() -> None:
    """List tasks with their groups, sizes and families, then suites and official splits."""
    rows = []
    for task in TASKS.values():
        sizes = [
            "/".join(_size(level.params[name]) for name in task.limits if name in level.params)
            if (level := task.levels.get(label))
            else "-"
            for label in LEVEL_NAMES
        ]
        rows.append([task.name, task.sense.value, task.group, task.category, *sizes])
    print_table("Tasks and sizes", ["task", "sense", "group", "category", *LEVEL_NAMES], rows)
    for task in TASKS.values():
        limits = ", ".join(f"{name} {low}-{high}" for name, (low, high) in task.limits.items())
        click.echo(f"{task.name}: --param {limits}")
        click.echo(f"  families {', '.join(task.families)}; aliases {', '.join(task.aliases)}")
    click.echo()
    for suite in SUITES.values():
        levels = ", ".join(suite.levels)
        click.echo(
            f"suite {suite.name}: {len(suite.tasks)} tasks, levels {levels}, {suite.modality}"
        )
    for official in OFFICIAL.values():
        click.echo(
            f"official {official.name}: {official.split}, levels {', '.join(official.levels)}, "
            f"{official.per_task} per task and level, seed {official.seed}"
        )


def _size(value: int | tuple[int, int]) -> str:
    return str(value) if isinstance(value, int) else f"{value[0]}-{value[1]}"
