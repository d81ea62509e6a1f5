"""What a reproduction found, written out: table, verdicts and plots, rebuilt from the cells."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from leaderboards.formats import Sheet, as_latex, as_markdown
from leaderboards.plots import draw_all
from leaderboards.reproduction import VERDICTS, Finding, Picture, Reproduction, Said, Section
from leaderboards.reproduction_brief import brief_notes, brief_table
from leaderboards.reproduction_cells import Results, read_results, write_json
from leaderboards.reproduction_settings import load_study
from leaderboards.reproduction_table import (
    INTERVALS,
    Row,
    rows_csv,
    rows_json,
    seeds_of,
    table_rows,
    table_sheets,
)
from leaderboards.verdicts import Verdict, judge, rule_note
from npbench.errors import InputError

__all__ = ["REPORT", "Report", "build_report", "read_reproduction", "verdict_sheet", "write_report"]

REPORT = "report"
"""The folder, inside that of the reproduction, that reports are written to."""


@dataclass(frozen=True, slots=True)
class Report:
    """Table, verdicts and plots of a reproduction."""

    results: Results
    rows: tuple[Row, ...]
    sheets: tuple[Sheet, ...]
    verdicts: tuple[Verdict, ...]
    pictures: tuple[tuple[Picture, bytes], ...]
    """Each as SVG and as PNG."""


def build_report(folder: Path, *, pictures: bool = True) -> Report:
    """The report of a folder, collected or not.

    Raises:
        InputError: If it is no reproduction, or has no finished cell yet.
    """
    results = read_results(folder)
    if not results.cells:
        raise InputError(f"{folder} has no finished cell yet")
    rows = tuple(table_rows(results))
    return Report(
        results,
        rows,
        tuple(table_sheets(results, rows)),
        tuple(judge(results)),
        tuple(draw_all(results, folder)) if pictures else (),
    )


def verdict_sheet(report: Report) -> Sheet:
    """All hypotheses, supported or not, in one table."""
    marker = [report.results.manifest.marker] if report.results.manifest.marker else []
    rows = tuple(
        (v.hypothesis.claim, v.base, v.verdict, v.evidence(), v.hypothesis.source)
        for v in report.verdicts
    )
    columns = ("claim", "base", "verdict", "evidence", "source")
    return Sheet("Hypotheses", columns, rows, (*marker, rule_note()), labels=len(columns))


def write_report(folder: Path, report: Report) -> Path:
    """Writes a report below its folder and returns where it is.

    Markdown, CSV, LaTeX and JSON of the table, Markdown and JSON of the verdicts, and the plots as
    SVG and PNG. The same cells give the same bytes.
    """
    out = folder / REPORT
    (out / "plots").mkdir(parents=True, exist_ok=True)
    marker = report.results.manifest.marker
    sheets = [*report.sheets, verdict_sheet(report)]
    shown = "".join(
        f"![{picture.alt}](plots/{picture.name})\n\n{picture.caption}\n\n"
        for picture, _ in report.pictures
    )
    texts = {
        "report.md": as_markdown(sheets) + "\n" + shown,
        "table.csv": rows_csv(report.rows, marker=marker),
        "table.tex": as_latex(sheets),
    }
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    write_json(out / "table.json", rows_json(report.results, report.rows))
    write_json(out / "verdicts.json", _verdicts_json(report.verdicts, marker))
    for picture, png in report.pictures:
        path = out / "plots" / picture.name
        path.write_bytes(picture.data)
        path.with_suffix(".png").write_bytes(png)
    return out


def _verdicts_json(verdicts: Sequence[Verdict], marker: str) -> dict[str, Any]:
    return {
        "schema": 1,
        "marker": marker,
        "verdicts": [
            {
                "id": one.hypothesis.id,
                "claim": one.hypothesis.claim,
                "source": one.hypothesis.source,
                "base": one.base,
                "verdict": one.verdict,
                "reason": one.reason,
                "p": one.p,
                "p_holm": one.adjusted,
                "parts": [
                    {
                        "says": part.part.says,
                        "direction": part.part.direction,
                        "found": None if part.found is None else asdict(part.found),
                    }
                    for part in one.parts
                ],
            }
            for one in verdicts
        ],
    }


def read_reproduction(folder: Path) -> Reproduction:
    """A reproduction as the site shows it.

    Raises:
        InputError: If the folder is no reproduction or has no finished cell.
    """
    report = build_report(folder)
    results = report.results
    titles = [load_study(name).title for name in results.manifest.studies]
    seeds = len(seeds_of(results))
    counted = [
        f"From {base} {_counted([v.verdict for v in report.verdicts if v.base == base])}."
        for base in results.manifest.bases
    ]
    summary = (
        f"{'; '.join(titles)}: {seeds} {'seed' if seeds == 1 else 'seeds'} from "
        f"{' and '.join(results.manifest.bases)}. {' '.join(counted)}"
    )
    return Reproduction(
        title="GRPO, DMPO and MUPO, reproduced",
        summary=summary,
        notes=(*brief_notes(report), INTERVALS, rule_note()),
        sections=tuple(_section(report, base) for base in results.manifest.bases),
        findings=_findings(report.verdicts),
        marker=results.manifest.marker,
    )


def _section(report: Report, base: str) -> Section:
    """What was found from a base; notes are the page's."""
    sheets = table_sheets(report.results, report.rows, bases=[base])
    return Section(
        f"From {base}",
        brief_table(report, base),
        tuple(picture for picture, _ in report.pictures if picture.base == base),
        tuple(replace(sheet, notes=()) for sheet in sheets),
    )


def _findings(verdicts: Sequence[Verdict]) -> tuple[Finding, ...]:
    """Each claim once, with what is said from each base."""
    said: dict[str, list[Said]] = {}
    claims = {one.hypothesis.id: one.hypothesis for one in verdicts}
    for one in verdicts:
        said.setdefault(one.hypothesis.id, []).append(Said(one.base, one.verdict, one.evidence()))
    return tuple(Finding(one.claim, one.source, tuple(said[name])) for name, one in claims.items())


def _counted(verdicts: Sequence[str]) -> str:
    """How many claims met which verdict, those that hold and those that do not alike."""
    numbers = [verdicts.count(name) for name in VERDICTS]
    return (
        f"{numbers[0]} of {len(verdicts)} claims are supported, {numbers[1]} are not, "
        f"{numbers[2]} were not tested"
    )
