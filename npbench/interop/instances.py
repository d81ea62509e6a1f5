"""An instance file of any format that is read, told apart by its ending and nothing else."""

from pathlib import Path
from typing import Any

from npbench.errors import InputError, unknown_name
from npbench.graphs import WeightedGraph
from npbench.interop.dimacs import read_dimacs
from npbench.interop.ehop import read_knapsack
from npbench.interop.json_text import read_members
from npbench.interop.np_engine import is_np_engine, read_np_engine
from npbench.interop.npmm import read_npmm
from npbench.interop.records import ForeignInstance
from npbench.interop.text import located, read_text
from npbench.interop.tsplib import read_tsp
from npbench.task import Task
from npbench.tasks import TASKS, get_task

__all__ = ["ENDINGS", "read_instance", "read_instances"]

ENDINGS = (".json", ".tsp", ".col", ".clq", ".in", ".tsv")


def read_instances(path: Path, *, task: str | None = None) -> tuple[ForeignInstance, ...]:
    """All instances of a file: our JSON, NP-Engine's, TSPLIB, DIMACS, EHOP or npmm.

    Args:
        path: The file; its ending says the format.
        task: The task, where the file does not say it; a graph file may be read for any task on
            graphs, with weights of 1 for the cuts.

    Raises:
        InputError: If the ending is unknown, the task does not fit or the file is malformed.
    """
    ending = path.suffix.lower()
    if ending == ".json":
        return _read_json(path, task)
    if ending == ".tsv":
        return read_npmm(path, task=task)
    if ending == ".tsp":
        return (_single(path, "tsp", task, read_tsp(path)),)
    if ending == ".in":
        return (_single(path, "knapsack", task, read_knapsack(path)),)
    if ending in (".col", ".clq"):
        usual = "graph_coloring" if ending == ".col" else "maximum_clique"
        return (_graph(path, get_task(task or usual)),)
    raise unknown_name("ending of an instance file", ending or path.name, ENDINGS)


def read_instance(
    path: Path, *, task: str | None = None, key: str | None = None
) -> ForeignInstance:
    """One instance of a file.

    Args:
        path: The file.
        task: As for ``read_instances``.
        key: Which one, by its name, where the file holds several.

    Raises:
        InputError: As for ``read_instances``, or if the key is unknown or missing.
    """
    found = {instance.name: instance for instance in read_instances(path, task=task)}
    if key is not None:
        if key not in found:
            raise unknown_name("instance", key, list(found)[:20])
        return found[key]
    if len(found) > 1:
        names = ", ".join(list(found)[:3])
        raise InputError(f"{path} holds {len(found)} instances ({names}, ...); give --key")
    return next(iter(found.values()))


def _single(path: Path, own: str, asked: str | None, instance: Any) -> ForeignInstance:
    """The instance of a file whose format has one task only."""
    if asked is not None and get_task(asked) is not TASKS[own]:
        raise InputError(f"{path} holds a {own} instance, not one of {get_task(asked).name}")
    return ForeignInstance(path.stem, TASKS[own], instance)


def _graph(path: Path, task: Task[Any, Any]) -> ForeignInstance:
    """A graph file as an instance of a task on graphs."""
    graph = read_dimacs(path)
    try:
        empty = task.decode({"num_vertices": 1, "edges": []})
    except InputError:
        raise InputError(f"{path} holds a graph, and {task.name} is no task on graphs") from None
    if isinstance(empty, WeightedGraph):
        ones = tuple((u, v, 1) for u, v in graph.edges)
        return ForeignInstance(path.stem, task, WeightedGraph(graph.num_vertices, ones))
    return ForeignInstance(path.stem, task, graph)


def _read_json(path: Path, task: str | None) -> tuple[ForeignInstance, ...]:
    """NP-Engine's file, or one of ours: an instance, or ``{"task": ..., "instance": ...}``."""
    text = read_text(path)
    members = read_members(path, text)
    if is_np_engine(members):
        return read_np_engine(path, task=task)
    content = {member.key: member.value for member in members}
    line = members[0].line if members else 1
    if {"task", "instance"} <= set(content):
        name, data = task or content["task"], content["instance"]
    elif task is None:
        raise InputError(f"{path} does not say its task; give --task")
    else:
        name, data = task, content
    with located(path, line):
        if not isinstance(name, str):
            raise InputError(f"task must be text, got {str(name)[:40]!r}")
        chosen = get_task(name)
        return (ForeignInstance(path.stem, chosen, chosen.decode(data)),)
