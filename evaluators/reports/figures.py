"""Which charts a page has, and their numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evaluators.reports.charts import (
    Line,
    Mark,
    PlanePoint,
    TaskRow,
    curves_chart,
    plane_chart,
    tasks_chart,
)
from evaluators.reports.measures import curve
from evaluators.reports.tables import Results, is_hard, main_metric, metric_name

__all__ = ["Figure", "figures_of"]

_FLOOR_LABELS = {
    "trivial": "trivial answer",
    "random": "random answer",
    "greedy": "greedy rule",
    "heuristic": "OR-Tools heuristic",
    "reference": "reference",
}

_ACCURACY = ("acc@k", "pass@k", "maj@k")
_QUALITY = ("sr@k", "qr@k")
_CURVE_NAMES = {"sr@k": "SR@k", "qr@k": "QR@k"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with its caption."""

    svg: str
    title: str
    caption: str


def figures_of(runs: Sequence[Results]) -> list[Figure]:
    """The SR-QR plane where tasks are NP-hard, tasks beside each other, curves over k."""
    figures = []
    if is_hard(runs[0].summary):
        figures.append(_plane(runs))
    if len(runs[0].summary["tasks"]) > 1:
        figures.append(_tasks(runs))
    if len(runs) == 1:
        figures += _own_curves(runs[0])
    else:
        figures += [
            figure for name in (*_ACCURACY, *_QUALITY) if (figure := _shared_curve(runs, name))
        ]
    return figures


def _ends(row: dict[str, Any], name: str) -> tuple[float, float] | None:
    found = row["ci"].get(name)
    return (found[0], found[1]) if found else None


def _plane(runs: Sequence[Results]) -> Figure:
    floors: dict[tuple[float, float], list[PlanePoint]] = {}
    for name, floor in runs[0].summary["overall"]["floors"].items():
        place = (round(floor["sr"], 2), round(floor["qr"], 2))
        point = PlanePoint(_FLOOR_LABELS.get(name, name), floor["sr"], floor["qr"], None)
        floors.setdefault(place, []).append(point)
    # Floors that lie on top of each other share a mark and a label.
    points = [
        replace(same[0], label=", ".join(point.label for point in same)) for same in floors.values()
    ]
    for number, run in enumerate(runs):
        row = run.summary["overall"]
        both = len(runs) == 1 and row["k"] > 0
        if row["sr"] is None:
            continue
        label = "sampled replies" if both else run.label
        points.append(
            PlanePoint(label, row["sr"], row["qr"], number, _ends(row, "sr"), _ends(row, "qr"))
        )
        if both and row["sr_greedy"] is not None:
            sr, qr = row["sr_greedy"], row["qr_greedy"]
            points.append(PlanePoint("greedy decoding", sr, qr, number, minor=True))
        if both and row["k"] > 1:
            name = f"best of {row['k']}"
            points.append(PlanePoint(name, row["sr_at_k"], row["qr_at_k"], number, minor=True))
    title = "Success rate and quality ratio"
    caption = (
        "Overall means (task, then group, then all). Rings are floors: answers to the same "
        "questions that are always feasible. Bars are 95 % intervals, clustered by instance."
    )
    return Figure(plane_chart(points, title=title), title, caption)


def _tasks(runs: Sequence[Results]) -> Figure:
    name = main_metric(runs[0].summary)
    shown = metric_name(name, {run.summary["overall"]["k"] for run in runs})
    tasks = dict.fromkeys(task for run in runs for task in run.summary["tasks"])
    rows = []
    for task in tasks:
        marks = []
        floors: dict[str, float] = {}
        for number, run in enumerate(runs):
            row = run.summary["tasks"].get(task)
            if row is not None and row[name] is not None:
                marks.append(Mark(number, row[name], _ends(row, name)))
                floors = floors or {
                    floor: entry["qr"]
                    for floor, entry in row["floors"].items()
                    if floor in ("random", "greedy")
                }
        labelled = [(_FLOOR_LABELS[floor], value) for floor, value in floors.items()]
        rows.append(TaskRow(task.replace("_", " "), marks, labelled))
    title = f"{shown} by task"
    caption = f"{shown} of each task with 95 % intervals" + (
        "; upright lines are the floors of the task." if rows[0].floors else "."
    )
    names = [run.label for run in runs]
    return Figure(tasks_chart(rows, title=title, axis=shown, names=names), title, caption)


def _points(run: Results, name: str) -> list[tuple[int, float, tuple[float, float] | None]]:
    overall = run.summary["overall"]
    values = overall["pass@k"] if name == "pass@k" else overall["curves"].get(name, {})
    return [(point.k, point.value, point.interval) for point in curve(values, run.scores, name)]


def _own_curves(run: Results) -> list[Figure]:
    """The curves of one run: accuracy, and for NP-hard tasks success and quality."""
    figures = []
    for names, axis in ((_ACCURACY, "accuracy"), (_QUALITY, "SR, QR")):
        lines = []
        for series, name in enumerate(names):
            points = _points(run, name)
            if len(points) > 1:
                lines.append(Line(_CURVE_NAMES.get(name, name), series, points))
        if lines:
            listed = ", ".join(line.label for line in lines)
            title = f"{listed} over k"
            svg = curves_chart(lines, title=title, axis=axis)
            figures.append(Figure(svg, title, _curve_caption(names, run)))
    return figures


def _shared_curve(runs: Sequence[Results], name: str) -> Figure | None:
    """One metric over k of all runs."""
    lines = []
    for number, run in enumerate(runs):
        points = _points(run, name)
        if len(points) > 1:
            lines.append(Line(run.label, number, points))
    if not lines:
        return None
    label = _CURVE_NAMES.get(name, name)
    title = f"{label} over k"
    svg = curves_chart(lines, title=title, axis=label)
    return Figure(svg, title, _curve_caption((name,), runs[0]))


def _curve_caption(names: Sequence[str], run: Results) -> str:
    estimators = run.summary["estimators"]
    means = [
        f"{_CURVE_NAMES.get(name, name)}: {estimators[name]}"
        for name in names
        if name in estimators and _points_there(run, name)
    ]
    bars = " Bars are 95 % intervals, clustered by instance." if run.scores else ""
    return f"{'; '.join(means)}.{bars}"


def _points_there(run: Results, name: str) -> bool:
    overall = run.summary["overall"]
    return bool(overall["pass@k"] if name == "pass@k" else overall["curves"].get(name))
