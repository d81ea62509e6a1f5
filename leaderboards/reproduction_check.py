"""Checks a reproduction: every kept reply is graded again, and the cells must follow from them."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.benchmark import Question
from evaluators.embedders import Unavailable
from evaluators.records import SampleRecord
from evaluators.rescoring import graded
from leaderboards.reproduction_cells import Cell, Key, Results, read_results
from leaderboards.reproduction_evaluation import (
    Numbers,
    held_out_questions,
    numbers_of,
    question_values,
)
from leaderboards.reproduction_replies import read_replies
from leaderboards.reproduction_settings import BASE, HeldOut, known_arms, protocol_hash
from npbench.errors import InputError

__all__ = ["Checked", "check"]

_FROM_THE_MODEL = "reasoning_distance"
"""The one metric that takes hidden states, which no reply holds."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check went over."""

    cells: int
    """Cells that were computed again from their replies."""
    without_replies: int
    """Cells whose replies were not kept."""
    replies: int


def check(
    folder: Path,
    progress: Callable[[int, int], None] = lambda done, all_: None,
    *,
    seeds: Collection[int] | None = None,
) -> Checked:
    """Grades every kept reply of a reproduction again and compares the cells with what follows.

    The questions are made anew from the protocol. Each cell must be one that it asks for and have
    the greedy reply and all sampled ones of every question, once; the stored verdicts, and all
    metrics, counts and floors of the cell but the diversity of reasoning, which takes the model,
    must come out again. What a training logged, seconds and vectors cannot be checked.

    Args:
        folder: Of a reproduction, collected or not.
        progress: Called with (cells done, cells in all).
        seeds: Only cells of these; all where None.

    Raises:
        InputError: If anything is missing, foreign, doubled, or does not follow.
    """
    results = read_results(folder)
    manifest = results.manifest
    if protocol_hash(manifest.protocol) != manifest.protocol_hash:
        raise InputError(f"{folder}: the protocol's hash is not that of its settings")
    plan = manifest.protocol["evaluation"]
    splits = {one["name"]: HeldOut.model_validate(one) for one in plan["splits"]}
    for one in results.cells.values():
        _check_place(one, manifest.protocol)
    left_out = _left_out(folder, results)
    chosen = {key for key in results.cells if seeds is None or key.seed in seeds}
    expected = [key for key in results.cells if key in chosen and key.seed not in left_out]
    if not expected:
        raise InputError(f"{folder} has no cell whose replies were kept")
    seen: set[Key] = set()
    replies = 0
    for key, rows in read_replies(folder, collected=manifest.collected is not None):
        cell = results.cells.get(key)
        if cell is None or key.seed in left_out:
            raise InputError(f"{_name(key)}: replies without a cell")
        if key not in chosen:
            continue
        _check_cell(cell, splits[key.split], rows)
        seen.add(key)
        replies += len(rows)
        progress(len(seen), len(expected))
    for key in expected:
        if key not in seen:
            raise InputError(f"{_name(key)}: a cell without its replies")
    return Checked(len(seen), len(chosen) - len(seen), replies)


def _check_place(cell: Cell, protocol: Mapping[str, Any]) -> None:
    """Refuses a cell that the protocol does not ask for."""
    plan, steps = protocol["evaluation"], protocol["training"]["steps"]
    at = {0} if cell.arm == BASE else {*plan["checkpoints"], steps}
    for name, value, known in (
        ("arm", cell.arm, {BASE, *known_arms()}),
        ("step", cell.step, at),
        ("split", cell.split, {one["name"] for one in plan["splits"]}),
        ("samples", cell.samples, {plan["samples"]}),
    ):
        if value not in known:
            wanted = ", ".join(sorted(map(str, known)))
            raise InputError(f"{_name(cell.key)}: {name} must be one of {wanted}, got {value!r}")


def _left_out(folder: Path, results: Results) -> set[int]:
    """The seeds whose replies were not kept; what a collected folder says of itself must hold."""
    collected = results.manifest.collected
    if collected is None:
        return set()
    for name, stated, found in (
        ("cells", collected.cells, len(results.cells)),
        ("curves", collected.curves, len(results.curves)),
    ):
        if stated != found:
            raise InputError(f"{folder} says that it holds {stated} {name}, there are {found}")
    kept, left = set(collected.replies_of_seeds), set(collected.replies_left_out_of_seeds)
    if kept & left or kept | left != {key.seed for key in results.cells}:
        raise InputError(f"{folder} says of other seeds than its cells' whether replies were kept")
    return left


def _name(key: Key) -> str:
    return f"{key.run}/step-{key.step}/{key.split}"


def _check_cell(cell: Cell, split: HeldOut, rows: Sequence[Mapping[str, Any]]) -> None:
    questions = held_out_questions(split)
    asked: dict[str, dict[tuple[str, int], Mapping[str, Any]]] = {q.id: {} for q in questions}
    where = _name(cell.key)
    for row in rows:
        own = asked.get(row["id"])
        place = (row["decode"], row["sample"])
        if own is None:
            raise InputError(f"{where}: {row['id']!r} is no question of {split.name}")
        if place in own:
            raise InputError(f"{where}: {row['id']} has {place[0]} sample {place[1]} twice")
        own[place] = row
    wanted = [("greedy", 0), *(("sampled", i) for i in range(cell.samples))]
    values: list[Mapping[str, float | None]] = []
    records: list[SampleRecord] = []
    for question in questions:
        own = asked[question.id]
        for place in wanted:
            if place not in own:
                raise InputError(f"{where}: {question.id} lacks {place[0]} sample {place[1]}")
        if len(own) > len(wanted):
            raise InputError(
                f"{where}: {question.id} has {len(own)} replies, {len(wanted)} belong to it"
            )
        fresh = [_graded(question, split, own[place], where) for place in wanted]
        entropies = [own[place]["entropy"] for place in wanted]
        words = Unavailable("base", "hidden states of the base")
        values.append(question_values(question, fresh, entropies, words))
        records += fresh
    tokens = sum(record.num_tokens or 0 for record in records)
    _compare(cell, numbers_of(split, questions, values, records), len(questions), tokens, where)


def _graded(question: Question, split: HeldOut, row: Mapping[str, Any], where: str) -> SampleRecord:
    """A stored reply, graded again; the stored verdict must be the same."""
    record = graded(
        question,
        SampleRecord(
            benchmark=split.benchmark or split.suite,
            id=question.id,
            instance_id=question.instance_id,
            decode=row["decode"],
            sample=row["sample"],
            seed=None,
            reply=row["reply"],
            finish_reason=row["finish_reason"],
            num_tokens=row["num_tokens"],
            gold=question.gold,
        ),
    )
    same = (
        record.state.value == row["state"]
        and record.objective == row["objective"]
        and row["task"] == question.category.get("task", split.name)
        and _close(record.score, row["score"])
    )
    if not same:
        raise InputError(
            f"{where}: {row['decode']} sample {row['sample']} of {question.id} is stored as "
            f"{row['state']}, score {row['score']:.6g}, task {row['task']}; its reply gives "
            f"{record.state.value}, score {record.score:.6g}"
        )
    return record


def _compare(cell: Cell, found: Numbers, questions: int, tokens: int, where: str) -> None:
    """Refuses a cell that says something else than its replies."""
    groups: list[tuple[str, Mapping[str, float | None], Mapping[str, float | None]]] = [
        ("", cell.metrics, found.metrics),
        ("states.", {n: float(c) for n, c in cell.states.items()}, dict(found.states)),
        ("floors.", dict(cell.floors), dict(found.floors)),
        (
            "",
            {
                "questions": float(cell.questions),
                "evaluation_tokens": cell.cost.get("evaluation_tokens"),
            },
            {"questions": float(questions), "evaluation_tokens": float(tokens)},
        ),
    ]
    groups += [
        (f"{task}.", cell.tasks.get(task, {}), found.tasks.get(task, {}))
        for task in dict.fromkeys((*cell.tasks, *found.tasks))
    ]
    for prefix, stored, fresh in groups:
        for name in dict.fromkeys((*stored, *fresh)):
            if name == _FROM_THE_MODEL:
                continue
            if name not in stored or name not in fresh:
                side = "the cell" if name not in stored else "what its replies give"
                raise InputError(f"{where}: {prefix}{name} is missing in {side}")
            if not _close(stored[name], fresh[name]):
                raise InputError(
                    f"{where}: the cell says {prefix}{name} = {stored[name]}, its replies give "
                    f"{fresh[name]}"
                )


def _close(first: float | None, second: float | None) -> bool:
    """Equal in the six digits that are stored."""
    if first is None or second is None:
        return first is second
    return math.isclose(first, second, rel_tol=1e-5, abs_tol=1e-9)
