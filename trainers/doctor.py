"""``npbench doctor``: what a machine has, what a run would use, and what is wrong."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from npbench.console import print_table
from npbench.errors import InputError
from npbench.launch import processes

if TYPE_CHECKING:
    from trainers.examination import Report

__all__ = ["doctor_command"]


@click.command(name="doctor", short_help="Say what this machine has and what a run would use.")
@click.option("--recipe", help="A shipped recipe, such as tiny-grpo, or a file ending in .toml.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change one setting.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor_command(recipe: str | None, changes: tuple[str, ...], as_json: bool) -> None:
    """Say what was found on this machine, what would be used, and what is wrong.

    With --recipe also whether its memory estimate fits the device, and if not, how much is missing
    and which settings would fit, and whether its rollout server answers. Under torchrun the memory
    is that of one of the processes. Exit code 1 where there is a problem, such as a library outside
    its window.
    """
    if changes and recipe is None:
        raise InputError("--set changes a recipe: give --recipe NAME|FILE.toml too")
    from trainers.distributed import first_process
    from trainers.examination import examine
    from trainers.machine import look_around
    from trainers.version_windows import libraries

    if not first_process():
        return
    report = examine(look_around(Path.cwd()), libraries(), recipe, changes)
    if recipe is not None:
        faults = tuple(_server_faults(recipe, changes))
        report = replace(report, problems=(*report.problems, *faults))
    if as_json:
        click.echo(json.dumps(report.as_json(), indent=1))
    else:
        _print(report)
    if report.problems:
        raise SystemExit(1)


def _server_faults(recipe: str, changes: Sequence[str]) -> Iterator[str]:
    """What is wrong with the server that a recipe names, if it names one."""
    from trainers.config import load_config
    from trainers.rollout_client import check_server

    address = load_config(recipe, changes).rollouts.address
    if address is None:
        return
    try:
        check_server(address)
    except InputError as error:
        yield str(error)


def _print(report: "Report") -> None:
    print_table("found", ("", "value"), list(_found(report)))
    header = ("", "eval", "train")
    rows = [
        (name, report.evaluation.get(name, "-"), report.training.get(name, "-"))
        for name in ("backend", "device", "precision", "attention")
    ]
    print_table("used by default", header, rows)
    for kind, lines in (("problem", report.problems), ("advice", report.advice)):
        for line in lines:
            click.echo(f"{kind}: {line}")
    if not report.problems:
        click.echo("no problem found")


def _found(report: "Report") -> Iterator[tuple[str, str]]:
    """Names and values of the table."""
    machine = report.machine
    for one in report.libraries:
        outside = list(one.faults())
        windows = sorted({window.versions for window in one.windows})
        state = "outside" if outside else "in"
        wanted = f" ({state} {', '.join(windows)})" if one.version and windows else ""
        yield one.name, f"{one.version or '-'}{wanted}"
    yield "CUDA build of torch", machine.cuda_build or "-"
    yield "NVIDIA driver", machine.driver or "-"
    for number, gpu in enumerate(machine.gpus):
        yield (
            f"GPU {number}",
            f"{gpu.name}, {gpu.free_bytes / 1e9:.1f} of {gpu.bytes / 1e9:.1f} GB free, compute "
            f"capability {gpu.capability}, bfloat16 {'yes' if gpu.bfloat16 else 'no'}",
        )
    if not machine.gpus:
        yield "GPUs", "none"
    yield "attention", ", ".join(machine.attention) or "-"
    yield "CPU cores", str(machine.cores)
    yield "OMP_NUM_THREADS", machine.threads or "not set"
    yield "bfloat16 on the CPU", machine.cpu_bfloat16
    yield "free memory (GB)", f"{machine.free_bytes / 1e9:.1f}"
    yield "free disk here (GB)", f"{machine.disk_free_bytes / 1e9:.1f}"
    if report.fit is not None:
        count = processes()
        yield (
            f"memory of the recipe (GB{f', each of {count} processes' if count > 1 else ''})",
            f"{report.fit.needed / 1e9:.3f} of {report.fit.available / 1e9:.3f}",
        )
