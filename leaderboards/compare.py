"""Published numbers beside our own results: in sheets of their own, never in one ranking."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.run_folder import MANIFEST, read_manifest
from evaluators.sessions import SUMMARY
from leaderboards.entry import ENTRY_SCHEMA, EntryFile
from leaderboards.formats import Sheet, as_csv, plain
from leaderboards.paper_figures import entries
from leaderboards.papers import PaperFile, Table, load_papers
from leaderboards.published_sheets import chosen, entries_json, sheet_of_table
from leaderboards.submission_records import Sampling, checked
from leaderboards.tables import protocol_of, protocol_words
from npbench.console import read_json
from npbench.errors import InputError

__all__ = ["Ours", "comparison_csv", "comparison_json", "comparison_sheets", "read_ours"]

_HARD = ("qr", "sr", "acc@1", "acc@k", "qr_at_k", "sr_at_k")
_OTHER = ("score", "acc@1", "acc@k", "mean@k", "maj@k")
_METRICS = tuple(dict.fromkeys((*_HARD, *_OTHER)))
_TABLES = {"mm-np-bench": ("dmpo-1",), "np-bench": ("dmpo-1", "np-engine-1", "np-engine-staging")}
"""Published tables about the suites, which call them otherwise."""
_ALIASES = {
    "aime24": "AIME24", "aime25": "AIME25", "ai2d": "AI2D", "geometry3k": "Geometry3K",
    "we_math": "WeMath", "math500": "MATH-500",
}  # fmt: skip
_NEVER_MIXED = (
    "Published and reproduced numbers stand apart: protocols, prompts and references differ, and "
    "a difference between the two sections is no result."
)


@dataclass(frozen=True, slots=True)
class Ours:
    """A result of our own commands."""

    source: str
    model: str
    benchmark: str
    """The suite or benchmark."""
    version: str
    protocol: str
    n: int
    k: int
    values: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]


def read_ours(path: Path) -> Ours:
    """A result: the folder of a run, its ``summary.json``, or an entry of the leaderboard.

    Raises:
        InputError: If it is none of them, has no manifest, or is of another schema.
    """
    if path.is_dir():
        read_manifest(path)
        if not (path / SUMMARY).is_file():
            raise InputError(f"{path} has no {SUMMARY}: finish the run, or npbench grade {path}")
        return _of_summary(path / SUMMARY, read_json(path / SUMMARY))
    data = read_json(path)
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema == ENTRY_SCHEMA:
        return _of_entry(path, checked(EntryFile, data, path))
    return _of_summary(path, data)


def _of_summary(path: Path, data: Any) -> Ours:
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != 1:
        raise InputError(
            f"{path} has the schema {plain(str(schema))}; this version reads summaries of schema 1 "
            f"and entries of {ENTRY_SCHEMA}"
        )
    try:
        manifest, overall = data["manifest"], data["overall"]
        drawn = checked(Sampling, manifest["sampling"], f"{path}: manifest.sampling")
        shown = _HARD if overall["sr"] is not None else _OTHER
        return Ours(
            source=str(path),
            model=plain(str(manifest["model"]["name"])),
            benchmark=plain(str(manifest["benchmark"]["name"])),
            version=plain(str(manifest["benchmark"]["version"])),
            protocol=protocol_words(drawn, plain(str(manifest["prompt_format"]))),
            n=int(overall["n"]),
            k=int(overall["k"]),
            values={name: float(v) for name in shown if (v := overall.get(name)) is not None},
            intervals={
                name: (float(ends[0]), float(ends[1]))
                for name in shown
                if (ends := overall["ci"].get(name)) is not None
            },
        )
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(f"{path} is no summary with its {MANIFEST}: {error!r:.120}") from None


def _of_entry(path: Path, entry: EntryFile) -> Ours:
    overall = entry.scores.overall
    return Ours(
        source=str(path),
        model=entry.name,
        benchmark=entry.benchmark.suite,
        version=entry.benchmark.name,
        protocol=protocol_of(entry),
        n=overall.n,
        k=entry.protocol.sampling.k,
        values={name: v for name in _HARD if (v := overall.metrics.get(name)) is not None},
        intervals={name: c for name in _HARD if (c := overall.ci.get(name)) is not None},
    )


def _published(ours: Sequence[Ours], names: Sequence[str]) -> list[tuple[PaperFile, Table]]:
    """The tables that were asked for, or those about our benchmarks."""
    if names:
        picked = [pair for name in names for pair in chosen(name)]
        return [(paper, table) for paper, table in picked if table is not None]
    wanted = {one.benchmark for one in ours}
    columns = {_key(_ALIASES.get(name, name)) for name in wanted}
    ids = {name for one in wanted for name in _TABLES.get(one, ())}
    return [
        (paper, table)
        for paper in load_papers()
        for table in paper.tables
        if table.id in ids or columns & {_key(column) for column in table.columns}
    ]


def _key(name: str) -> str:
    return "".join(sign for sign in name.casefold() if sign.isalnum())


def comparison_sheets(ours: Sequence[Ours], names: Sequence[str]) -> tuple[list[Sheet], Sheet]:
    """The published sheets, one a table, and the sheet of our own results.

    Args:
        ours: Our results.
        names: Published tables to show; empty picks those about our benchmarks.
    """
    published = [sheet_of_table(paper, table) for paper, table in _published(ours, names)]
    shown = [name for name in _METRICS if any(name in one.values for one in ours)]
    rows = [
        (one.model, one.version, str(one.n), str(one.k),
         *(_cell(one, name) for name in shown), one.protocol)
        for one in ours
    ]  # fmt: skip
    sheet = Sheet(
        "reproduced: our own results (fractions, 95 % intervals clustered by instance)",
        ("model", "benchmark", "n", "k", *shown, "protocol"),
        tuple(rows),
        (_NEVER_MIXED,),
        labels=2,
    )
    return published, sheet


def _cell(one: Ours, name: str) -> str:
    if name not in one.values:
        return "-"
    ends = one.intervals.get(name)
    interval = f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
    return f"{one.values[name]:.3f}{interval}"


def comparison_json(ours: Sequence[Ours], names: Sequence[str]) -> dict[str, Any]:
    """Both sections as plain data."""
    return {
        "note": _NEVER_MIXED,
        "published": [
            figure
            for paper, table in _published(ours, names)
            for figure in entries_json(paper, table)
        ],
        "reproduced": [
            {
                "source": one.source,
                "model": one.model,
                "benchmark": one.benchmark,
                "version": one.version,
                "protocol": one.protocol,
                "n": one.n,
                "k": one.k,
                "values": dict(one.values),
                "ci": {name: list(ends) for name, ends in one.intervals.items()},
            }
            for one in ours
        ],
    }


def comparison_csv(ours: Sequence[Ours], names: Sequence[str]) -> str:
    """Both sections, one figure a line, the section first."""
    columns = ("section", "method", "model", "benchmark", "metric", "value", "low", "high", "n",
               "source", "where", "protocol")  # fmt: skip
    rows = [
        ["published", one.method, one.model, one.benchmark, one.metric,
         "" if one.value is None else str(one.value), "", "", "", one.paper, one.where,
         one.protocol]
        for paper, table in _published(ours, names)
        for one in entries(paper, table)
    ]  # fmt: skip
    for mine in ours:
        for name, value in mine.values.items():
            low, high = mine.intervals.get(name, ("", ""))
            rows.append(
                ["reproduced", "", mine.model, mine.version, name, str(value), str(low), str(high),
                 str(mine.n), mine.source, "overall", mine.protocol]
            )  # fmt: skip
    return as_csv(columns, rows)
