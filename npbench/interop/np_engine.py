"""NP-Engine's JSON: files of questions read, splits written as its ``NP_Bench.json``.

Two layouts are read: ``NP_Bench.json``, an object of ``{"prompt", "question", "task_type",
"ground_truth"}``, and a generator's file ``{"questions": {...}}``, which holds one task and does
not name it. ``ground_truth`` is a heuristic's value, in cycles with the start counted twice.

What its evaluator does that a user of these files should know (none of it is repeated here):

- a cycle may be ``[0]`` or visit unknown vertices: success for free;
- positions of a subset sum, vertices of an independent set and meetings count as often as named;
- a person may be in two rooms at once; a meeting without attendees is never outside the day;
- ``Impossible`` is a set cover of size 0; colours from 0 and an empty knapsack are refused;
- the level is the first of easy, medium, hard, bench that occurs in the key; a key without one is
  skipped in silence; questions with equal prompt and question are merged.

References:
    NP-Engine, `arXiv 2510.16476 <https://arxiv.org/abs/2510.16476>`_, 2025, and its code.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from npbench.errors import InputError
from npbench.interop.json_text import Member, read_members
from npbench.interop.np_engine_payloads import PAYLOADS
from npbench.interop.payloads import require_keys, stated_objective
from npbench.interop.records import ForeignInstance
from npbench.interop.text import located, read_text
from npbench.prompts import Modality
from npbench.task import Task
from npbench.tasks import get_task

__all__ = [
    "LEVELS",
    "TASK_TYPES",
    "is_np_engine",
    "np_engine_entry",
    "np_engine_reply",
    "read_np_engine",
]

LEVELS = ("easy", "medium", "hard", "bench")
"""In the order in which its evaluator looks for them in a key."""

TASK_TYPES: Mapping[str, str] = {get_task(name).name: name for name in PAYLOADS}
"""NP-Engine's name of each of our tasks that it has."""


def is_np_engine(members: list[Member]) -> bool:
    """Whether the members of a JSON file are those of one of NP-Engine's layouts."""
    return any(
        member.key == "questions" or (isinstance(member.value, dict) and "question" in member.value)
        for member in members
    )


def read_np_engine(path: Path, *, task: str | None = None) -> tuple[ForeignInstance, ...]:
    """The questions of a file, all of them.

    Args:
        path: The file.
        task: The task of a generator's file, by our name or theirs; elsewhere a check.

    Raises:
        InputError: If the file breaks the format; the message names the file, the line of the
            question, the rule and the value.
    """
    text = read_text(path)
    members = read_members(path, text)
    inner = next((member for member in members if member.key == "questions"), None)
    if inner is not None:
        if task is None:
            raise InputError(f"{path} does not say its task; give --task")
        chosen = get_task(task)
        questions = read_members(path, text, inner.start)
        entries = [(member, chosen, member.value, None) for member in questions]
    else:
        entries = [_entry(path, member) for member in members]
    found = []
    for member, own_task, question, stated in entries:
        with located(path, member.line, member.key[:60]):
            if task is not None and own_task is not get_task(task):
                raise InputError(f"the task is {own_task.name}, not {get_task(task).name}")
            found.append(_question(member, own_task, question, stated))
    if not found:
        raise InputError(f"{path} line 1: the file holds no question")
    return tuple(found)


def _entry(path: Path, member: Member) -> tuple[Member, Task[Any, Any], Any, Any]:
    """Task, question and ground truth of a member of ``NP_Bench.json``."""
    with located(path, member.line, member.key[:60]):
        require_keys(member.value, ("question", "task_type"), "the entry")
        name = member.value["task_type"]
        if not isinstance(name, str):
            raise InputError(f"task_type must be text, got {str(name)[:40]!r}")
        task = get_task(name)
    return member, task, member.value["question"], member.value.get("ground_truth")


def _question(member: Member, task: Task[Any, Any], question: Any, stated: Any) -> ForeignInstance:
    if task.name not in TASK_TYPES:
        raise InputError(f"NP-Engine has no task {task.name}; its tasks: {', '.join(TASK_TYPES)}")
    if isinstance(question, dict) and "ground_truth" in question:
        stated = question["ground_truth"] if stated is None else stated
        question = {key: value for key, value in question.items() if key != "ground_truth"}
    entry = member.value if isinstance(member.value, dict) else {}
    prompt = entry.get("prompt")
    closed_walk = task.name == "longest_cycle"
    return ForeignInstance(
        name=member.key,
        task=task,
        instance=task.decode(PAYLOADS[TASK_TYPES[task.name]].read(question)),
        reference=stated_objective(stated, closed_walk=closed_walk),
        prompt=prompt if isinstance(prompt, str) else None,
    )


def np_engine_entry(task: Task[Any, Any], instance: Any, *, reference: int) -> dict[str, Any]:
    """The entry of ``NP_Bench.json`` for an instance.

    Args:
        task: One of the ten tasks.
        instance: Its instance.
        reference: The best known objective, counted as ours.

    Raises:
        InputError: If NP-Engine has no such task or would judge the instance by other rules.
    """
    if task.name not in TASK_TYPES:
        raise InputError(f"NP-Engine has no task {task.name}")
    prompt = task.prompt(instance, Modality.TEXT)
    if task.name in _EXTRA_RULES:
        prompt += f"\n\n## Form of the answer here\n{_EXTRA_RULES[task.name]}"
    return {
        "prompt": prompt,
        "question": PAYLOADS[TASK_TYPES[task.name]].write(instance),
        "task_type": TASK_TYPES[task.name],
        "ground_truth": reference + 1 if task.name == "longest_cycle" else reference,
    }


_EXTRA_RULES: Mapping[str, str] = {
    "graph_coloring": "Number the colours from 1.",
    "meeting_scheduling": (
        "Write the meetings as tuples with a comma and a blank between them: "
        "Answer: [(0, 1, 540), (2, 0, 600)]"
    ),
}


def np_engine_reply(task: Task[Any, Any], solution: Any) -> str:
    """A solution as its evaluator reads it: colours from 1, meetings as tuples.

    Example:
        >>> np_engine_reply(get_task("GCP-D"), [0, 1, 0])
        'Answer: [1, 2, 1]'
        >>> np_engine_reply(get_task("meeting-schedule"), [[0, 1, 540], [2, 0, 600]])
        'Answer: [(0, 1, 540), (2, 0, 600)]'
    """
    if task.name == "graph_coloring":
        solution = [colour + 1 for colour in solution]
    if task.name == "meeting_scheduling":
        rows = ", ".join(str(tuple(row)) for row in solution)
        return f"Answer: [{rows}]"
    return f"Answer: {json.dumps(solution)}"
