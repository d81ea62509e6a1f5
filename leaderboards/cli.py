"""``npbench leaderboard``: published numbers, submissions, rankings and the site."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npbench.console import print_table, progress_bar
from npbench.errors import InputError, unknown_name

if TYPE_CHECKING:
    from leaderboards.formats import Sheet
    from leaderboards.submissions import Checked
    from npbench.suites import OfficialSplit

    Officials = Mapping[str, OfficialSplit] | None

__all__ = ["leaderboard_command"]

_FOLDER = click.Path(path_type=Path)
_FORMATS = ("table", "markdown", "csv", "latex", "json")
_format_option = click.option(
    "--format",
    "form",
    default="table",
    show_default=True,
    help="table, markdown, csv, latex or json.",
)
_split_option = click.option(
    "--split", type=_FOLDER, help="The official split on disk; default: made anew, in minutes."
)


@click.group("leaderboard", short_help="Published numbers, submissions, rankings and the site.")
def leaderboard_command() -> None:
    """Published numbers as data, and runs on the official splits: checked, ranked and shown."""


@leaderboard_command.command("show", short_help="Print published tables.")
@click.argument("table", required=False)
@_format_option
def show(table: str | None, form: str) -> None:
    """Print a published TABLE, or all of a paper; without a name, the list of them."""
    from leaderboards.published_sheets import (
        chosen,
        entries_csv,
        entries_json,
        overview,
        sheet_of_figures,
        sheet_of_table,
    )

    _known(form)
    picked = chosen(table) if table is not None else []
    if form == "json" and picked:
        figures = [figure for paper, one in picked for figure in entries_json(paper, one)]
        click.echo(json.dumps({"entries": figures}, indent=1, ensure_ascii=False))
    elif form == "csv" and picked:
        click.echo(entries_csv(picked), nl=False)
    elif picked:
        _print(
            [
                sheet_of_figures(paper) if one is None else sheet_of_table(paper, one)
                for paper, one in picked
            ],
            form,
        )
    else:
        _print([overview()], form)


@leaderboard_command.command("compare", short_help="Print published numbers and our own, apart.")
@click.argument("results", nargs=-1, required=True, type=_FOLDER)
@click.option("--table", "tables", multiple=True, help="A published table; repeat for several.")
@_format_option
def compare(results: tuple[Path, ...], tables: tuple[str, ...], form: str) -> None:
    """Print published numbers and, in a section of its own, our RESULTS.

    RESULTS are folders of runs, files summary.json, or entries of the leaderboard. Without --table
    the published tables about their benchmarks are shown.
    """
    from leaderboards.compare import (
        comparison_csv,
        comparison_json,
        comparison_sheets,
        read_ours,
    )

    _known(form)
    ours = [read_ours(path) for path in results]
    if form == "json":
        click.echo(json.dumps(comparison_json(ours, tables), indent=1, ensure_ascii=False))
    elif form == "csv":
        click.echo(comparison_csv(ours, tables), nl=False)
    else:
        published, mine = comparison_sheets(ours, tables)
        _print([*published, mine], form)


@leaderboard_command.command("check", short_help="Grade a submission from its raw replies.")
@click.argument("submission", type=_FOLDER)
@_split_option
@click.option("--json", "as_json", is_flag=True, help="Print the recomputed summary as JSON.")
@click.pass_obj
def check(officials: "Officials", submission: Path, split: Path | None, as_json: bool) -> None:
    """Grade every raw reply of SUBMISSION again, and refuse what does not follow from them.

    SUBMISSION is the folder of npbench eval on an official split, or what pack made of it. Altered
    data, samples that are missing, extra or doubled, unofficial splits, claims that the replies do
    not give and other schemas are refused in one line, with exit code 2.
    """
    from evaluators.tables import summary_table, warnings_of

    passed = _checked(officials, submission, split)
    if as_json:
        click.echo(json.dumps(passed.summary))
        return
    summary_table(passed.summary)
    for warning in warnings_of(passed.summary):
        click.echo(f"warning: {warning}", err=True)
    click.echo(_verdict(passed))


@leaderboard_command.command("add", short_help="Check a submission and rank it.")
@click.argument("submission", type=_FOLDER)
@click.option("--to", "folder", type=_FOLDER, required=True, help="The folder of entries.")
@_split_option
@click.option("--name", help="How the table calls it; default: the model's name.")
@click.option("--link", help="An https address where to read about it.")
@click.pass_obj
def add(
    officials: "Officials",
    submission: Path,
    folder: Path,
    split: Path | None,
    name: str | None,
    link: str | None,
) -> None:
    """Check SUBMISSION and rank it: its entry is written into the folder --to."""
    from leaderboards.entry import check_target, make_entry, read_entries, write_entry
    from leaderboards.tables import rank

    check_target(folder, name=name, link=link)
    passed = _checked(officials, submission, split)
    entry = make_entry(passed, name=name, link=link)
    outcome = write_entry(entry, folder)
    table = rank(read_entries(folder), entry.benchmark.name)
    placed = next(row for row in table if row.entry.id == entry.id)
    ranked = sum(row.rank is not None for row in table)
    place = "a baseline, not ranked" if placed.rank is None else f"rank {placed.rank} of {ranked}"
    click.echo(_verdict(passed))
    click.echo(f"{outcome}: {folder / entry.id}.json, {place} on {entry.benchmark.name} by QR")


@leaderboard_command.command("pack", short_help="Make a compact submission of a run.")
@click.argument("run", type=_FOLDER)
@click.argument("out", type=_FOLDER)
@click.option("--name", help="How the leaderboard calls it; default: the model's name.")
@click.option("--link", help="An https address where to read about it.")
@click.option("--contact", help="Whom to ask; never published.")
def pack_command(
    run: Path, out: Path, name: str | None, link: str | None, contact: str | None
) -> None:
    """Write RUN as a compact submission into OUT: a manifest and the raw replies as Parquet."""
    from leaderboards.packing import pack

    count = pack(run, out, name=name, link=link, contact=contact)
    size = sum(path.stat().st_size for path in out.iterdir())
    click.echo(f"{out}: {count} replies in {size / 1e6:.2f} MB; check it with: "
               f"npbench leaderboard check {out}")  # fmt: skip


@leaderboard_command.command("build", short_help="Write the static site.")
@click.argument("out", type=_FOLDER)
@click.option("--entries", type=_FOLDER, help="A folder of entries; default: those that ship.")
@click.option(
    "--results",
    type=_FOLDER,
    help="A reproduction to show; default: the one that ships, where --entries is not given.",
)
@click.option("--no-results", is_flag=True, help="Show no reproduction.")
@click.pass_obj
def build(
    officials: "Officials", out: Path, entries: Path | None, results: Path | None, no_results: bool
) -> None:
    """Write the site into the folder OUT: static pages that need no network."""
    from leaderboards.entry import read_entries
    from leaderboards.site import build_site, shipped_entries, shipped_results

    found = read_entries(entries) if entries is not None else shipped_entries()
    if no_results and results is not None:
        raise InputError("give --results or --no-results, not both")
    if results is None and entries is None and not no_results:
        results = shipped_results()
    study = None
    if results is not None:
        from leaderboards.reproduction_report import read_reproduction

        study = read_reproduction(results)
    with progress_bar("pictures") as progress:
        pages = build_site(
            out, found, officials=_officials(officials), reproduction=study, progress=progress
        )
    click.echo(f"{out / 'index.html'}: {pages} pages, {len(found)} runs")


def _checked(given: "Officials", submission: Path, split: Path | None) -> "Checked":
    from leaderboards.entry import is_shown
    from leaderboards.submissions import check_submission

    with progress_bar("rows") as progress:
        return check_submission(
            submission,
            split=split,
            officials=_officials(given),
            show=is_shown,
            progress=progress,
        )


def _officials(given: "Officials") -> "Mapping[str, OfficialSplit]":
    """The official splits; tests hand small ones over as the context's object, users cannot."""
    from npbench.suites import OFFICIAL

    return OFFICIAL if given is None else given


def _known(form: str) -> None:
    if form not in _FORMATS:
        raise unknown_name("format", form, _FORMATS)


def _print(sheets: "Sequence[Sheet]", form: str) -> None:
    from leaderboards.formats import as_csv, as_latex, as_markdown

    if form == "markdown":
        click.echo(as_markdown(sheets), nl=False)
    elif form == "latex":
        click.echo(as_latex(sheets), nl=False)
    elif form == "csv":
        for sheet in sheets:
            click.echo(as_csv(sheet.columns, sheet.rows), nl=False)
    elif form == "json":
        rows = [
            dict(zip(sheet.columns, row, strict=True)) for sheet in sheets for row in sheet.rows
        ]
        click.echo(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        for sheet in sheets:
            print_table(sheet.title, *_left(sheet))
            for note in sheet.notes:
                click.echo(f"  {note}")
            click.echo()


def _left(sheet: "Sheet") -> tuple[list[str], list[list[str]]]:
    """Columns and rows with words filled up to one width, because a table puts them right."""
    columns, rows = list(sheet.columns), [list(row) for row in sheet.rows]
    for i in range(len(columns)):
        cells = [row[i] for row in rows]
        if any(sign.isalpha() for cell in cells for sign in cell):
            width = max(map(len, [columns[i], *cells]))
            columns[i] = columns[i].ljust(width)
            for row in rows:
                row[i] = row[i].ljust(width)
    return columns, rows


def _verdict(passed: "Checked") -> str:
    from leaderboards.formats import plain

    overall = passed.summary["overall"]
    claimed = f", {passed.claims} claimed numbers follow" if passed.claims else ""
    return (
        f"passed: {plain(passed.submission.name)} on {passed.official.name}, "
        f"{overall['samples']} samples of {overall['n']} questions graded again{claimed}; "
        f"prompts: {passed.prompts}"
    )
