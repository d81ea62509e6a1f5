"""The tables of a page as plain data: every number with its interval, taken from the summaries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluators.grading import State
from evaluators.question_scores import QuestionScores
from evaluators.reports.measures import DIVERSITY, known_interval, variant_gaps
from evaluators.uncertainty import Difference

__all__ = [
    "Cell",
    "Column",
    "Group",
    "Results",
    "Table",
    "diversity_table",
    "failure_tables",
    "is_hard",
    "main_metric",
    "metric_name",
    "number",
    "official_table",
    "overall_table",
    "p_value",
    "result_tables",
    "signed",
    "variants_table",
]

_HARD = ("sr", "qr", "acc@1", "acc@k", "mean@k", "sr_at_k", "qr_at_k", "sr_greedy", "qr_greedy")
_ANSWERED = ("score", "acc@1", "acc@k", "mean@1", "mean@k", "maj@k", "all@k")
_NAMES = {
    "sr": "SR",
    "qr": "QR",
    "sr_at_k": "SR@k",
    "qr_at_k": "QR@k",
    "sr_greedy": "SR greedy",
    "qr_greedy": "QR greedy",
    "distinct_replies": "distinct replies",
    "distinct_feasible": "distinct feasible",
    "solution_distance": "solution distance",
    "reasoning_distance": "reasoning distance",
}
_DIVERSITY_MEANS = {
    "distinct_replies": "different texts among the sampled replies to a question",
    "distinct_feasible": "different feasible solutions among the sampled replies to a question",
    "solution_distance": "mean pairwise distance of feasible solutions, over questions with two",
    "reasoning_distance": "mean pairwise cosine distance of the embedded reasoning",
}


@dataclass(frozen=True, slots=True)
class Results:
    """What the tables take of a run."""

    label: str
    summary: Mapping[str, Any]
    scores: Sequence[QuestionScores]
    """Empty where the data is not there."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column and what it means."""

    label: str
    means: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A number as it is shown, its interval and its full value."""

    shown: str
    ends: str = ""
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The rows of one task or category: one a run."""

    head: str
    rows: Sequence[tuple[str, Sequence[Cell]]]
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table."""

    title: str
    columns: Sequence[Column]
    groups: Sequence[Group]
    note: str = ""


def number(value: float | None, places: int = 3) -> str:
    """A value as it is shown; a dash where it is undefined."""
    return "–" if value is None else f"{value:.{places}f}"


def signed(value: float) -> str:
    """A difference as it is shown, with its sign."""
    return f"{value:+.3f}".replace("-", "−")


def p_value(value: float | None) -> str:
    """A p-value as it is shown; below what resampling can tell it is a bound."""
    if value is None:
        return "–"
    return f"{value:.4f}" if value >= 0.0001 else "< 0.0001"


def is_hard(summary: Mapping[str, Any]) -> bool:
    """Whether the questions are NP-hard tasks."""
    return summary["overall"]["sr"] is not None


def main_metric(summary: Mapping[str, Any]) -> str:
    """The one metric by which tasks are drawn beside each other."""
    overall = summary["overall"]
    names = ("qr",) if is_hard(summary) else ("acc@1", "mean@k", "score")
    return next((name for name in names if overall[name] is not None), "score")


def metric_name(name: str, ks: set[int]) -> str:
    """A metric's name for people, with the k of the runs where they share one."""
    label = _NAMES.get(name, name)
    # At k = 1 the name would be that of the greedy reply.
    return label.replace("@k", f"@{next(iter(ks))}") if len(ks) == 1 and min(ks) > 1 else label


def _shown(runs: Sequence[Results]) -> list[str]:
    """The metrics that any run has."""
    names = _HARD if is_hard(runs[0].summary) else _ANSWERED
    overalls = [run.summary["overall"] for run in runs]
    return [name for name in names if any(overall.get(name) is not None for overall in overalls)]


def _cells(
    row: Mapping[str, Any] | None, metrics: Sequence[str], floors: Sequence[str]
) -> list[Cell]:
    if row is None:
        return [Cell("–") for _ in range(1 + len(metrics) + len(floors))]
    cells = [Cell(str(row["n"]), value=row["n"])]
    for name in metrics:
        ends = row["ci"].get(name)
        cells.append(Cell(number(row[name]), _ends(ends), row[name]))
    for name in floors:
        value = row["floors"].get(name, {}).get("qr")
        cells.append(Cell(number(value), value=value))
    return cells


def _ends(ends: Sequence[float] | None) -> str:
    """An interval in as little room as can be: without the noughts before the point."""
    return "–".join(f"{end:.3f}".removeprefix("0") for end in ends) if ends else ""


def _columns(runs: Sequence[Results], metrics: Sequence[str]) -> tuple[list[Column], list[str]]:
    summary = runs[0].summary
    ks = {run.summary["overall"]["k"] for run in runs}
    columns = [Column("n", "questions", "n")]
    for name in metrics:
        means = summary["estimators"].get(name, "")
        columns.append(Column(metric_name(name, ks), means, name))
    floors = [name for name in summary["overall"]["floors"] if name != "reference"]
    columns += [
        Column(f"{name} QR", f"quality ratio of the {name} answer to the same questions", name)
        for name in floors
    ]
    return columns, floors


def overall_table(runs: Sequence[Results]) -> Table:
    """All questions, one row a run; its note names the floors."""
    metrics = _shown(runs)
    columns, floors = _columns(runs, metrics)
    rows = [(run.label, _cells(run.summary["overall"], metrics, [])) for run in runs]
    found = runs[0].summary["overall"]["floors"]
    named = ", ".join(f"{name} answer {number(found[name]['qr'])}" for name in floors)
    note = f"QR of the floors: {named}." if named else ""
    return Table("overall", columns[: 1 + len(metrics)], [Group("", rows)], note)


def result_tables(runs: Sequence[Results]) -> list[Table]:
    """Tasks, groups and every other category with several values, each with all metrics."""
    metrics = _shown(runs)
    columns, floors = _columns(runs, metrics)
    parts: list[tuple[str, list[Mapping[str, Any]]]] = [
        ("task", [run.summary["tasks"] for run in runs]),
        ("group", [run.summary["groups"] for run in runs]),
    ]
    categories = dict.fromkeys(name for run in runs for name in run.summary["by"])
    parts += [(name, [run.summary["by"].get(name, {}) for run in runs]) for name in categories]
    tables = []
    for title, by_run in parts:
        names = list(dict.fromkeys(name for rows in by_run for name in rows))
        if title == "group" and all(list(run.summary["tasks"]) == names for run in runs):
            continue
        if title not in ("task", "group") and len(names) < 2:
            continue
        groups = [
            Group(
                name,
                [
                    (run.label, _cells(rows.get(name), metrics, floors))
                    for run, rows in zip(runs, by_run, strict=True)
                ],
            )
            for name in names
        ]
        if title == "task":
            rows = [(run.label, _cells(run.summary["overall"], metrics, floors)) for run in runs]
            groups.append(Group("overall", rows, strong=True))
        tables.append(Table(f"by {title}", columns, groups))
    return tables


def diversity_table(runs: Sequence[Results]) -> Table | None:
    """How different the sampled replies to a question are; None where nothing is known."""
    rows = [("overall", [run.summary["overall"] for run in runs])]
    tasks = list(dict.fromkeys(name for run in runs for name in run.summary["tasks"]))
    if len(tasks) > 1:
        rows += [(name, [run.summary["tasks"].get(name) for run in runs]) for name in tasks]
    names = [
        name for name in DIVERSITY if any(row["diversity"][name] is not None for row in rows[0][1])
    ]
    if not names:
        return None
    groups = []
    for head, by_run in [*rows[1:], rows[0]]:
        cells = []
        for run, row in zip(runs, by_run, strict=True):
            found = [s for s in run.scores if head in ("overall", s.category.get("task"))]
            cells.append((run.label, [_diversity_cell(row, found, name) for name in names]))
        groups.append(Group(head, cells, strong=head == "overall"))
    columns = [Column(_NAMES[name], _DIVERSITY_MEANS[name], name) for name in names]
    embedders = sorted({str(row["diversity"]["embedder"]) for row in rows[0][1]})
    return Table(
        "diversity", columns, groups, f"Embedder of the reasoning: {', '.join(embedders)}."
    )


def _diversity_cell(
    row: Mapping[str, Any] | None, scores: Sequence[QuestionScores], name: str
) -> Cell:
    value = None if row is None else row["diversity"][name]
    if value is None:
        return Cell("–")
    return Cell(number(value), _ends(known_interval(scores, name)), value)


def failure_tables(runs: Sequence[Results]) -> list[Table]:
    """States of samples by task, and the violated rules and errors with their numbers."""
    overall = [run.summary["overall"] for run in runs]
    states = [s.value for s in State if any(row["states"].get(s.value) for row in overall)]
    tasks = list(dict.fromkeys(name for run in runs for name in run.summary["tasks"]))
    groups = [
        Group(
            name,
            [(run.label, _states(run.summary["tasks"].get(name), states)) for run in runs],
        )
        for name in tasks
        if len(tasks) > 1
    ]
    rows = [(run.label, _states(run.summary["overall"], states)) for run in runs]
    groups.append(Group("overall", rows, strong=True))
    columns = [Column("samples"), *(Column(name.replace("_", " "), key=name) for name in states)]
    tables = [Table("states of samples", columns, groups)]
    for title, field in (("violated rules", "reasons"), ("errors", "errors")):
        names = dict.fromkeys(name for row in overall for name in row[field])
        if not names:
            continue
        ranked = sorted(names, key=lambda name: -sum(row[field].get(name, 0) for row in overall))
        counted = [
            Group(
                name, [("", [_count(row[field].get(name, 0), row["samples"]) for row in overall])]
            )
            for name in ranked
        ]
        shown = [Column(run.label if len(runs) > 1 else "samples") for run in runs]
        tables.append(Table(title, shown, counted))
    return tables


def _states(row: Mapping[str, Any] | None, states: Sequence[str]) -> list[Cell]:
    if row is None:
        return [Cell("–")] * (1 + len(states))
    samples = row["samples"]
    counts = [_count(row["states"].get(name, 0), samples) for name in states]
    return [Cell(str(samples), value=samples), *counts]


def _count(count: int, samples: int) -> Cell:
    return Cell(str(count), f"{count / samples:.1%}" if samples and count else "", count)


def official_table(runs: Sequence[Results]) -> Table | None:
    """The metric families of the benchmark's authors, as the summaries have them."""
    columns: list[Column] = []
    found: list[dict[str, Any]] = []
    for run in runs:
        for part, metrics in _parts(run.summary["official"]):
            label = " ".join(word for word in (run.label if len(runs) > 1 else "", part) if word)
            columns.append(Column(label or "value"))
            found.append(dict(_flat(metrics)))
    names = list(dict.fromkeys(name for values in found for name in values))
    if not names:
        return None
    groups = [Group(name, [("", [_any(values.get(name)) for values in found])]) for name in names]
    return Table("official metrics", columns, groups)


def _parts(official: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The families by decoding, or all of them where they are not told apart."""
    if official and all(isinstance(value, Mapping) for value in official.values()):
        yield from official.items()
    elif official:
        yield "", official


def _flat(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", len(value) if isinstance(value, list) else value


def _any(value: Any) -> Cell:
    if value is None or isinstance(value, float):
        return Cell(number(value), value=value)
    return Cell(str(value), value=value if isinstance(value, int) else None)


def variants_table(runs: Sequence[Results]) -> Table | None:
    """Pictures minus text and style minus style; None where a run shows instances in one way."""
    gaps = [(run.label, gap) for run in runs for gap in variant_gaps(run.scores)]
    names = list(dict.fromkeys(name for _, gap in gaps for name in gap.metrics))
    if not gaps:
        return None
    ks = {run.summary["overall"]["k"] for run in runs}
    rows: dict[str, list[tuple[str, list[Cell]]]] = {}
    for label, gap in gaps:
        cells = [_difference(gap.metrics.get(name)) for name in names]
        rows.setdefault(f"{gap.variant} minus {gap.base}", []).append((label, cells))
    columns = [Column(metric_name(name, ks), key=name) for name in names]
    groups = [Group(head, cells) for head, cells in rows.items()]
    note = "Pooled over the instances that both show, not averaged task by task; p of a sign flip."
    return Table("differences paired by instance", columns, groups, note)


def _difference(found: Difference | None) -> Cell:
    if found is None:
        return Cell("–")
    ends = ""
    if found.low is not None and found.high is not None:
        ends = f"{signed(found.low)} to {signed(found.high)}"
    if found.p_value is not None:
        ends = f"{ends}, p {p_value(found.p_value)}" if ends else f"p {p_value(found.p_value)}"
    return Cell(signed(found.difference), ends, found.difference)
