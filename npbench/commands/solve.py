"""``npbench solve``: the five solvers on a split, on cases or on an instance file."""

import json
import time
from pathlib import Path
from typing import Any

import click

from npbench.commands.parse import text_field
from npbench.console import echo_cases, progress_bar
from npbench.errors import InputError
from npbench.interop.instances import read_instances
from npbench.policies import SOLVER_NAMES, policy_replies, require_solver, solve_instance
from npbench.storage import open_split
from npbench.task import Task
from npbench.tasks import get_task

__all__ = ["command"]


@click.command(short_help="Answer a split, cases or an instance with a solver.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="A split to answer.")
@click.option("--cases", type=click.Path(path_type=Path), help="JSONL of instances to solve.")
@click.option("--task", help="The task of FILE, where it does not say it.")
@click.option("--solver", default="reference", show_default=True, help=", ".join(SOLVER_NAMES))
@click.option("--out", type=click.Path(path_type=Path), help="Responses to write, with --data.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with FILE.")
def command(
    file: Path | None,
    data: Path | None,
    cases: Path | None,
    task: str | None,
    solver: str,
    out: Path | None,
    as_json: bool,
) -> None:
    """Answer the split DATA, the CASES or the instance FILE with one of the five solvers.

    FILE is the JSON form of an instance, {"task": ..., "instance": ...}, NP-Engine's JSON, a
    TSPLIB .tsp, a DIMACS .col or .clq, a knapsack .in or an npmm .tsv; each of its instances
    is solved.
    """
    if sum(source is not None for source in (file, data, cases)) != 1:
        raise InputError("solve needs one of FILE, --data and --cases")
    require_solver(solver)
    if data is not None:
        if out is None:
            raise InputError("--data needs --out, the responses file to write")
        _answer_split(data, solver, out)
        return
    if out is not None:
        raise InputError("--out goes with --data; results of FILE and --cases go to stdout")
    if cases is not None:
        failed = {"solution": None, "objective": None, "status": None, "bound": None}
        echo_cases(cases, lambda case: _solve_case(case, solver), failed=failed)
        return
    assert file is not None
    for number, found in enumerate(read_instances(file, task=task)):
        result = {"id": found.name, **_solve(found.task, found.instance, solver, found.name)}
        if as_json:
            click.echo(json.dumps(result))
            continue
        if number:
            click.echo()
        for name, value in result.items():
            click.echo(f"{name + ':':11} {value}")


def _solve_case(case: dict[str, Any], solver: str) -> dict[str, Any]:
    chosen = get_task(text_field(case, "task"))
    if "instance" not in case:
        raise InputError("the case has no 'instance'")
    return _solve(chosen, chosen.decode(case["instance"]), solver, str(case.get("id", "")))


def _solve(task: Task[Any, Any], instance: Any, solver: str, name: str) -> dict[str, Any]:
    started = time.perf_counter()
    result = solve_instance(task, instance, solver, name=name)
    return {**result, "seconds": round(time.perf_counter() - started, 4)}


def _answer_split(data: Path, solver: str, out: Path) -> None:
    split = open_split(data)
    if out.exists():
        raise InputError(f"{out} exists; choose another file")
    replies = policy_replies(split, solver)
    temporary = out.with_name(out.name + ".part")
    try:
        with progress_bar(solver) as progress, temporary.open("w", encoding="utf-8") as target:
            for done, response in enumerate(replies, 1):
                target.write(json.dumps(response) + "\n")
                progress(done, len(split))
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
