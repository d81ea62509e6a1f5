"""What the pages of the site show, as plain data: rankings, runs, published numbers."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from leaderboards.entry import EntryFile, Score, ShownSample
from leaderboards.papers import PaperFile, Row, Table
from leaderboards.tables import METRIC_NAMES, protocol_of, rank, splits_of
from npbench.splits import Row as SplitRow
from npbench.suites import OFFICIAL
from npbench.tasks import TASKS

__all__ = [
    "official_view",
    "published_view",
    "ranking_data",
    "ranking_view",
    "run_view",
    "title_of",
]

_STATE_WORDS = {
    "right": "optimal", "feasible": "feasible, not optimal", "wrong": "wrong",
    "infeasible": "infeasible", "unparsed": "no answer found", "truncated": "cut off",
    "empty": "empty", "judge_failed": "not judged", "failed": "failed",
}  # fmt: skip
_FLOORS = ("trivial", "random", "greedy", "heuristic")


def title_of(task: str) -> str:
    """A task's name for people."""
    title = TASKS[task].title if task in TASKS else task
    return title[:1].upper() + title[1:]


def bar(value: float | None, ends: tuple[float, float] | None) -> dict[str, str] | None:
    """A value and its interval on a line from 0 to 100."""
    if value is None:
        return None

    def at(share: float) -> float:
        return 100 * min(1.0, max(0.0, share))

    low, high = ends or (value, value)
    return {
        "low": f"{at(low):.2f}",
        "width": f"{max(0.6, at(high) - at(low)):.2f}",
        "at": f"{at(value):.2f}",
    }


def cell(score: Score, metric: str) -> dict[str, Any]:
    """A metric of a score as text, with its interval."""
    value, ends = score.metrics.get(metric), score.ci.get(metric)
    return {
        "text": "–" if value is None else f"{value:.3f}",
        "interval": f"{ends[0]:.3f}–{ends[1]:.3f}" if ends else "",
        "bar": bar(value, ends),
    }


def ranking_view(entries: Sequence[EntryFile]) -> list[dict[str, Any]]:
    """For each official split its entries, best first, by the overall score."""
    return [
        {
            "name": split,
            "rows": [
                {
                    "rank": "" if row.rank is None else str(row.rank),
                    "name": row.entry.name,
                    "url": f"runs/{row.entry.id}.html",
                    "kind": row.entry.kind,
                    "protocol": protocol_of(row.entry),
                    "n": row.score.n,
                    "cells": [cell(row.score, metric) for metric in METRIC_NAMES],
                }
                for row in rank(entries, split)
            ],
        }
        for split in splits_of(entries)
    ]


def ranking_data(entries: Sequence[EntryFile]) -> dict[str, Any]:
    """What the script of the rankings needs: every scope of every entry."""
    splits = []
    for split in splits_of(entries):
        rows = [row.entry for row in rank(entries, split)]
        groups: dict[str, None] = {}
        tasks: dict[str, None] = {}
        modalities: dict[str, None] = {}
        for entry in rows:
            groups |= dict.fromkeys(entry.scores.groups)
            tasks |= dict.fromkeys(entry.scores.tasks)
            modalities |= dict.fromkeys(entry.scores.modalities)
        splits.append(
            {
                "name": split,
                "groups": list(groups),
                "tasks": list(tasks),
                "modalities": list(modalities),
                "rows": [
                    {
                        "id": entry.id,
                        "name": entry.name,
                        "kind": entry.kind,
                        "protocol": protocol_of(entry),
                        "scopes": dict(_scopes(entry)),
                    }
                    for entry in rows
                ],
            }
        )
    every = dict.fromkeys(task for entry in entries for task in entry.scores.tasks)
    titles = {task: title_of(task) for task in every}
    return {"metrics": list(METRIC_NAMES.items()), "titles": titles, "splits": splits}


def _scopes(entry: EntryFile) -> list[tuple[str, dict[str, Any]]]:
    scores = entry.scores
    found = [("overall", _numbers(scores.overall))]
    for kind in ("groups", "tasks", "modalities"):
        parts: Mapping[str, Score] = getattr(scores, kind)
        found += [(f"{kind}.{name}", _numbers(score)) for name, score in parts.items()]
    return found


def _numbers(score: Score) -> dict[str, Any]:
    return {
        "n": score.n,
        "values": [score.metrics.get(metric) for metric in METRIC_NAMES],
        "ends": [score.ci.get(metric) for metric in METRIC_NAMES],
    }


def run_view(
    entry: EntryFile, rows: Mapping[str, SplitRow], pictures: Mapping[str, str]
) -> dict[str, Any]:
    """The page of a run.

    Args:
        entry: The run.
        rows: The rows of its shown questions by id.
        pictures: Their pictures' file names.
    """
    overall, scores = entry.scores.overall, entry.scores
    parts = [("tasks", scores.tasks), ("groups", scores.groups), ("levels", scores.levels)]
    states = [(name, overall.states.get(name, 0)) for name in _STATE_WORDS]
    total = sum(count for _, count in states) or 1
    start = 0.0
    shares = []
    for name, count in states:
        if not count:
            continue
        width = 100 * count / total
        shares.append(
            {
                "state": name,
                "words": _STATE_WORDS[name],
                "count": count,
                "share": f"{width:.1f}",
                "start": f"{start:.2f}",
                "width": f"{width:.2f}",
            }
        )
        start += width
    return {
        "entry": entry,
        "protocol": protocol_of(entry),
        "main": [
            {"name": METRIC_NAMES[metric], **cell(overall, metric)}
            for metric in METRIC_NAMES
            if overall.metrics.get(metric) is not None
        ],
        "metrics": list(METRIC_NAMES.values()),
        "floors": [name for name in _FLOORS if name in overall.floors],
        "floor_bars": [
            {
                "name": name,
                "text": f"{overall.floors[name]:.3f}",
                "bar": bar(overall.floors[name], None),
            }
            for name in _FLOORS
            if name in overall.floors
        ],
        "parts": [
            {
                "name": kind,
                "rows": [
                    {
                        "name": title_of(name) if kind == "tasks" else name,
                        "n": score.n,
                        "cells": [cell(score, metric) for metric in METRIC_NAMES],
                        "floors": [f"{score.floors[f]:.3f}" for f in _FLOORS if f in score.floors],
                    }
                    for name, score in of_kind.items()
                ],
            }
            for kind, of_kind in parts
            if of_kind
        ],
        "states": shares,
        "samples_count": total,
        "reasons": sorted(overall.reasons.items(), key=lambda pair: (-pair[1], pair[0])),
        "questions": [
            {
                "id": shown.id,
                "title": title_of(row.task),
                "sense": TASKS[row.task].sense.value,
                "level": row.level,
                "group": row.group,
                "prompt": row.prompt,
                "picture": pictures.get(shown.id),
                "size": picture_size(row),
                "reference": row.reference_objective,
                "status": row.reference_status,
                "samples": [_sample(sample) for sample in shown.samples],
                "states": sorted({sample.state.value for sample in shown.samples}),
            }
            for shown in entry.shown
            for row in [rows[shown.id]]
        ],
        "question_states": [
            (name, _STATE_WORDS[name])
            for name in _STATE_WORDS
            if any(sample.state.value == name for shown in entry.shown for sample in shown.samples)
        ],
    }


def picture_size(row: SplitRow) -> tuple[int, int] | None:
    """Width and height of a row's picture."""
    if row.layout is None:
        return None
    layout = json.loads(row.layout)
    return layout["width"], layout["height"]


def _sample(sample: ShownSample) -> dict[str, Any]:
    return {
        "name": "greedy" if sample.decode == "greedy" else f"sample {sample.sample}",
        "state": sample.state.value,
        "words": _STATE_WORDS[sample.state.value],
        "reply": sample.reply,
        "cut": sample.cut,
        "objective": "–" if sample.objective is None else str(sample.objective),
        "score": f"{sample.score:.3f}",
        "reason": sample.reason,
        "long": sample.reply is not None and len(sample.reply) > 160,
    }


def published_view(papers: Sequence[PaperFile]) -> list[dict[str, Any]]:
    """The published numbers, paper by paper."""
    return [
        {
            "paper": paper.paper,
            "tables": [_table(paper, table) for table in paper.tables],
            "entries": paper.entries,
            "notes": paper.notes_on(None),
        }
        for paper in papers
    ]


def _table(paper: PaperFile, table: Table) -> dict[str, Any]:
    heads = [
        {"name": column, "metrics": " / ".join(metrics)}
        for column, metrics in zip(table.columns, table.metrics, strict=True)
    ]
    return {
        "table": table,
        "heads": heads,
        "own_protocol": table.protocol if table.protocol != paper.paper.protocol else "",
        "rows": [
            {
                "labels": row.labels,
                "texts": row.texts,
                "cells": [
                    _figures(table, row, column, metrics, figures)
                    for column, metrics, figures in zip(
                        table.columns, table.metrics, row.cells, strict=True
                    )
                ],
            }
            for row in table.rows
        ],
        "missing": sorted({f.reason for row in table.rows for c in row.cells for f in c} - {""}),
        "notes": paper.notes_on(table.id),
    }


def _figures(
    table: Table, row: Row, column: str, metrics: Sequence[str], figures: Sequence[Any]
) -> list[dict[str, str]]:
    found = []
    for metric, figure in zip(metrics, figures, strict=True):
        wrong = [
            f"recomputed {one.recomputed}"
            for one in table.inconsistencies
            if (one.row, one.column, one.metric) == (row.name, column, metric)
        ]
        found.append({"text": figure.text, "reason": figure.reason, "wrong": "; ".join(wrong)})
    return found


def official_view() -> list[dict[str, Any]]:
    """The official splits, for those who want to submit."""
    return [
        {
            "name": one.name,
            "suite": one.suite,
            "levels": ", ".join(one.levels),
            "per_task": one.per_task,
            "hash": one.content_hash,
        }
        for one in OFFICIAL.values()
    ]
