"""``npbench generate``: build a split on disk."""

import os
import re
from functools import partial
from pathlib import Path

import click

from npbench.building import ChunkSource, build_split
from npbench.console import print_table, progress_bar
from npbench.errors import InputError, unknown_name
from npbench.rendering.styles import STYLES, disturbed
from npbench.splits import Request
from npbench.suites import OFFICIAL, SUITES, get_official

__all__ = ["command", "parse_params", "split_names"]


def split_names(values: tuple[str, ...]) -> tuple[str, ...]:
    """Names from a repeated option, each of which may hold several with commas."""
    names = tuple(name.strip() for value in values for name in value.split(","))
    if "" in names:
        raise InputError("an option that takes names got an empty one")
    return names


def parse_params(values: tuple[str, ...]) -> dict[str, int | tuple[int, int]]:
    """Sizes from ``name=30`` or ``name=20-30``.

    Raises:
        InputError: If a value has another form.
    """
    params: dict[str, int | tuple[int, int]] = {}
    for value in values:
        name, sign, size = value.partition("=")
        ends = size.split("-")
        if (
            not sign
            or not 1 <= len(ends) <= 2
            or not all(re.fullmatch("[0-9]{1,9}", end) for end in ends)
        ):
            raise InputError(f"--param takes NAME=SIZE or NAME=LOW-HIGH, got {value!r}")
        if name in params:
            raise InputError(f"--param {name} is given twice")
        params[name] = int(ends[0]) if len(ends) == 1 else (int(ends[0]), int(ends[1]))
    return params


def _styles(names: tuple[str, ...], rotate: float | None, noise: float | None) -> tuple[str, ...]:
    """The styles, each with the disturbances that are asked for of all."""
    if rotate is None and noise is None:
        return names
    every = names or (next(iter(STYLES)),)
    return tuple(disturbed(name, rotation=rotate, noise=noise) for name in every)


def _elsewhere(engine: str, workers: int, address: str | None) -> ChunkSource | None:
    """Where chunks are made, if not in processes of this machine."""
    if engine == "ray":
        from npbench.ray_building import ray_chunks

        return ray_chunks(workers=workers, address=address, notify=partial(click.echo, err=True))
    if engine != "local":
        raise unknown_name("engine", engine, ("local", "ray"))
    if address is not None:
        raise InputError("--address goes with --engine ray")
    return None


@click.command(short_help="Build a split of a suite.")
@click.option("--suite", help=f"One of {', '.join(SUITES)}.")
@click.option("--level", "levels", multiple=True, help="Repeat for several; default: the suite's.")
@click.option("--split", help="train, validation or test; needed.")
@click.option("--seed", type=int, help="Any non-negative integer; needed.")
@click.option("--per-task", type=int, help="Instances per task and level; default: 100.")
@click.option("--task", "tasks", multiple=True, help="Repeat for several; default: the suite's.")
@click.option("--modality", help="image, text or both; default: the suite's.")
@click.option("--style", "styles", multiple=True, help="Picture styles; default: light.")
@click.option("--rotate", type=float, help="Turn every picture clockwise by these degrees.")
@click.option("--noise", type=float, help="Gaussian noise on every picture, 0 to 20.")
@click.option(
    "--param",
    "params",
    multiple=True,
    help="Another size, NAME=30 or NAME=20-40; npbench tasks lists the names.",
)
@click.option("--official", help=f"An official split: {', '.join(OFFICIAL)}.")
@click.option("--workers", type=int, default=0, help="Processes; default: one per core.")
@click.option(
    "--engine",
    default="local",
    show_default=True,
    help="Where the processes run: local or ray, a cluster.",
)
@click.option(
    "--address",
    help="A running Ray cluster, auto or HOST:PORT; default: a Ray of this machine's own.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write.")
def command(
    suite: str | None,
    levels: tuple[str, ...],
    split: str | None,
    seed: int | None,
    per_task: int | None,
    tasks: tuple[str, ...],
    modality: str | None,
    styles: tuple[str, ...],
    rotate: float | None,
    noise: float | None,
    params: tuple[str, ...],
    official: str | None,
    workers: int,
    engine: str,
    address: str | None,
    out: Path,
) -> None:
    """Build a split: Parquet shards, manifest.json and a dataset card in the folder OUT.

    The same options give the same bytes, whatever the number of processes. An interrupted build
    goes on where it stopped when the command is run again.
    """
    expected = None
    if official:
        given = (
            *(suite, split, seed, per_task, levels, tasks),
            *(styles, rotate, noise, params, modality),
        )
        if any(value not in (None, ()) for value in given):
            raise InputError("--official fixes all other options but those of where it runs")
        fixed = get_official(official)
        expected = fixed.content_hash
        request = Request.make(
            suite=fixed.suite,
            split=fixed.split,
            seed=fixed.seed,
            per_task=fixed.per_task,
            levels=fixed.levels,
        )
    else:
        if split is None or seed is None:
            raise InputError("generate needs --split and --seed (or --official NAME)")
        request = Request.make(
            suite=suite or "mm-np-bench",
            split=split,
            seed=seed,
            per_task=100 if per_task is None else per_task,
            levels=split_names(levels),
            tasks=split_names(tasks),
            modality=modality,
            styles=_styles(split_names(styles), rotate, noise),
            params=parse_params(params),
        )
    if not 0 <= workers <= 1024:
        raise InputError(f"workers must lie in [0, 1024], got {workers}")
    workers = workers or os.cpu_count() or 1
    elsewhere = _elsewhere(engine, workers, address)
    with progress_bar("rows") as progress:
        manifest = build_split(
            request,
            out,
            workers=workers,
            progress=progress,
            expected_hash=expected,
            elsewhere=elsewhere,
        )
    rows = [
        [
            name,
            str(cell["instances"]),
            str(cell["repeats"]),
            f"{cell['proven_optimal']:.1%}",
            f"{cell['greedy_optimal']:.1%}",
            *(f"{value:.3f}" for value in cell["floor_qr"].values()),
        ]
        for name, cell in manifest["tasks"].items()
    ]
    columns = ["task/level", "instances", "repeats", "proven", "greedy optimal"]
    columns += [f"QR {name}" for name in next(iter(manifest["tasks"].values()))["floor_qr"]]
    print_table(f"{out}: {manifest['rows']} rows, {manifest['version']}", columns, rows)
