"""``npbench report``: the page of a run, or of several runs side by side."""

from pathlib import Path

import click

from npbench.errors import InputError

__all__ = ["report_command"]

_PATH = click.Path(path_type=Path)


@click.command("report", short_help="Write an HTML page of a run or of several.")
@click.argument("runs", type=_PATH, nargs=-1, required=True)
@click.option("--out", type=_PATH, help="The page; default: RUN/report.html of a single run.")
@click.option("--data", type=_PATH, help="Where the data lies now; default: as in run.json.")
@click.option(
    "--samples",
    type=int,
    default=200,
    show_default=True,
    help="Questions whose replies can be read on the page; 0 for none.",
)
def report_command(
    runs: tuple[Path, ...], out: Path | None, data: Path | None, samples: int
) -> None:
    """Write one self-contained HTML page: tables, charts, and questions with their replies.

    Several RUNS stand side by side, with paired differences from the first one. A page that was
    made before is replaced, any other file is left alone.
    """
    from evaluators.reports.loading import load_runs
    from evaluators.reports.page import check_target, page_of, write_page

    if samples < 0:
        raise InputError(f"samples must be at least 0, got {samples}")
    if len({run.resolve() for run in runs}) < len(runs):
        raise InputError("a run is given twice")
    if out is None and len(runs) > 1:
        raise InputError("several runs need --out, the page to write")
    loaded = load_runs(runs, data=data)
    target = out or runs[0] / "report.html"
    check_target(target)
    write_page(target, page_of(loaded, most_samples=samples))
    for run in loaded:
        for notice in run.notices:
            click.echo(f"warning: {notice}", err=True)
    click.echo(f"{target}")
