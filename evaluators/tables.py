"""Tables of runs for people, and what is to be said beside a score."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluators.reports.text import clipped, visible
from npbench.console import print_table

__all__ = ["comparison_table", "summary_table", "warnings_of"]

TRUNCATED_SHARE = 0.05
"""A larger share of truncated replies is a warning."""

_OF_TASKS = {
    "sr": "SR",
    "qr": "QR",
    "acc@1": "acc@1",
    "acc@k": "acc@k",
    "mean@k": "mean@k",
    "sr_at_k": "SR@k",
    "qr_at_k": "QR@k",
}
_OF_QUESTIONS = {name: name for name in ("score", "acc@1", "acc@k", "mean@k", "maj@k", "all@k")}


def summary_table(summary: Mapping[str, Any]) -> None:
    """Tasks, groups, other categories and overall, with intervals of the main metrics."""
    overall = summary["overall"]
    hard = overall["sr"] is not None
    names = _OF_TASKS if hard else _OF_QUESTIONS
    shown = [name for name in names if overall[name] is not None]
    if overall["k"] == 0:
        shown = [name for name in shown if name in ("score", "sr", "qr", "acc@1")]
    floors = [name for name in overall["floors"] if name != "reference"]
    sure = ("sr", "qr") if hard else ("score", "acc@1", "acc@k")
    columns = ["", "n", "k"]
    for name in shown:
        columns += [names[name], "95 %"] if name in sure else [names[name]]
    columns += ["cut", "unparsed", "failed", *floors]
    rows = [_row(name, row, shown, sure, floors) for name, row in summary["tasks"].items()]
    if list(summary["groups"]) != list(summary["tasks"]):
        rows += [
            _row(f"[{name}]", row, shown, sure, floors) for name, row in summary["groups"].items()
        ]
    for category, values in summary["by"].items():
        if len(values) > 1:
            rows += [
                _row(f"{category} {name}", row, shown, sure, floors) for name, row in values.items()
            ]
    rows.append(_row("overall", overall, shown, sure, floors))
    manifest = summary["manifest"]
    title = f"{_name(manifest['model']['name'])} on {_name(manifest['benchmark']['version'])}"
    if floors:
        title += f"; the last {len(floors)} columns are the QR of the floors"
    print_table(title, columns, rows)
    official = list(_flat(summary["official"]))
    if official:
        print_table("official metrics", ["", "value"], official)


def _row(
    name: str,
    row: Mapping[str, Any],
    metrics: Sequence[str],
    sure: Sequence[str],
    floors: Sequence[str],
) -> list[str]:
    cells = [name, str(row["n"]), str(row["k"])]
    for metric in metrics:
        cells.append(_number(row[metric]))
        if metric in sure:
            ends = row["ci"][metric]
            cells.append(f"{ends[0]:.2f}-{ends[1]:.2f}" if ends else "-")
    cells += [f"{row['rates'][rate]:.1%}" for rate in ("truncated", "unparsed", "failed")]
    return [*cells, *(f"{row['floors'][floor]['qr']:.3f}" for floor in floors)]


def _name(name: object) -> str:
    """A name from a manifest in one line that a terminal can show."""
    return " ".join(visible(clipped(str(name), head=160, tail=40)).split())


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _flat(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[list[str]]:
    """Names and values; of a list its length."""
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name} ")
        elif isinstance(value, list):
            yield [f"{prefix}{name}", str(len(value))]
        else:
            yield [f"{prefix}{name}", _number(value) if isinstance(value, float) else str(value)]


def warnings_of(summary: Mapping[str, Any]) -> list[str]:
    """What a reader of the score must know: cut replies, failures, torn and repeated lines."""
    overall = summary["overall"]
    found = []
    truncated = overall["rates"]["truncated"]
    if truncated > TRUNCATED_SHARE:
        limit = summary["manifest"]["sampling"]["max_tokens"]
        found.append(
            f"{truncated:.1%} of the replies were cut at max_tokens={limit} before they answered; "
            f"among answered samples the accuracy is {_number(overall['acc_answered'])}"
        )
    failed = overall["states"]["failed"] + overall["states"]["judge_failed"]
    if failed:
        first = next(iter(overall["errors"]), "no reason recorded")
        found.append(f"{failed} of {overall['samples']} samples failed, such as: {first}")
    if summary["torn_bytes"]:
        found.append(f"a torn last line of {summary['torn_bytes']} bytes was dropped")
    if summary["repeated_lines"]:
        found.append(f"{summary['repeated_lines']} repeated lines were counted once")
    return found


def comparison_table(result: Mapping[str, Any]) -> None:
    """The paired differences of two runs."""
    columns = ["", "first", "second", "difference", "95 %", "p", "wins", "losses", "ties"]
    rows = []
    for name, row in result["metrics"].items():
        interval = f"{row['low']:+.3f}..{row['high']:+.3f}" if row["low"] is not None else "-"
        rows.append(
            [
                name,
                f"{row['first']:.3f}",
                f"{row['second']:.3f}",
                f"{row['difference']:+.3f}",
                interval,
                "-" if row["p_value"] is None else f"{row['p_value']:.4f}",
                str(row["wins"]),
                str(row["losses"]),
                str(row["ties"]),
            ]
        )
    first, second = map(_name, result["models"])
    print_table(f"{first} minus {second}, paired by question", columns, rows)
