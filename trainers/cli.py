"""The subcommands that this package adds to ``npbench``; importing it does not import torch."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npbench.console import print_table, progress_bar
from npbench.errors import InputError

if TYPE_CHECKING:
    from trainers.config import Config

__all__ = ["plot_command", "rewrite_command", "train_command"]


@click.command(name="rewrite", short_help="Reword the prompts of a data set for Share-GRPO.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write.")
@click.option("--base-url", help="OpenAI-compatible server, such as http://localhost:8000/v1.")
@click.option("--model", help="The model's name on that server.")
@click.option("--variants", default=2, show_default=True, help="Variants, the original included.")
@click.option("--seed", default=0, show_default=True, help="Seed of templates and requests.")
@click.option("--temperature", default=0.7, show_default=True)
@click.option("--max-tokens", default=1024, show_default=True)
@click.option("--attempts", default=3, show_default=True, help="Replies asked for per rewording.")
@click.option("--workers", default=8, show_default=True, help="Requests under way at a time.")
@click.option("--timeout", default=120.0, show_default=True, help="Seconds for one request.")
@click.option(
    "--api-key-variable",
    default="OPENAI_API_KEY",
    show_default=True,
    help="Environment variable that holds the server's key.",
)
def rewrite_command(
    folder: Path,
    out: Path,
    base_url: str | None,
    model: str | None,
    variants: int,
    seed: int,
    temperature: float,
    max_tokens: int,
    attempts: int,
    workers: int,
    timeout: float,
    api_key_variable: str,
) -> None:
    """Reword the column ``prompt`` of the Parquet files in FOLDER.

    Rows of NP tasks (column ``task``) are reworded by templates, all others by the model behind
    --base-url. OUT gets the same files with a column ``variants``: the original first, null where
    the model gave too few acceptable rewordings (exit code 1). Replies are kept in
    OUT/rewrites.jsonl, so an interrupted run goes on where it stopped.
    """
    from trainers.rewrite import ChatServer, reword_all
    from trainers.rewrite_files import Job, read_done, read_jobs, write_variants

    for name, value in (("variants", variants), ("attempts", attempts), ("workers", workers)):
        if value < 1:
            raise InputError(f"--{name} must be at least 1, got {value}")
    if out.resolve() == folder.resolve():
        raise InputError(f"--out must be another folder than the input, got {out}")
    settings = {
        "model": model,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "variants": variants,
        "seed": seed,
    }
    jobs = read_jobs(folder, settings)
    finished: dict[str, tuple[str, ...] | None] = {
        job.key: job.from_template(variants=variants) for job in jobs if job.task is not None
    }
    asking = {job.key: job for job in jobs if job.task is None}
    out.mkdir(parents=True, exist_ok=True)
    journal = out / "rewrites.jsonl"
    finished |= {key: found for key, found in read_done(journal).items() if key in asking}
    waiting: list[Job] = [job for key, job in asking.items() if key not in finished]
    if waiting:
        if base_url is None or model is None:
            raise InputError(
                f"--base-url and --model are needed for {len(waiting)} rows that are no NP tasks"
            )
        server = ChatServer(
            base_url=base_url,
            model=model,
            api_key=os.environ.get(api_key_variable, ""),
            temperature=temperature,
            max_tokens=max_tokens,
            timeout=timeout,
        )
        results = reword_all(
            lambda prompt, number: server.ask(prompt, seed=number),
            [(job.key, job.prompt, job.seed) for job in waiting],
            variants=variants,
            attempts=attempts,
            workers=workers,
        )
        finished |= dict(_journalled(results, journal, total=len(waiting)))
    report = write_variants(folder, out, jobs, finished)
    summary = {**settings, **report}
    (out / "rewrite.json").write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    click.echo(json.dumps(report))
    if report["failed"]:
        click.echo(f"{report['failed']} rows have no variants", err=True)
        raise SystemExit(1)


def _journalled(
    results: Iterator[Any], journal: Path, *, total: int
) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Writes each result down before it is used; only whole sets of variants are kept."""
    with journal.open("a", encoding="utf-8") as file, progress_bar("reworded") as progress:
        for number, found in enumerate(results, start=1):
            line = {
                "key": found.key,
                "variants": found.variants,
                "asked": found.asked,
                "faults": found.faults,
            }
            file.write(json.dumps(line) + "\n")
            file.flush()
            progress(number, total)
            yield found.key, found.variants


@click.command(name="train", short_help="Train a model by a recipe, or go on with a run.")
@click.option("--recipe", help="A shipped recipe, such as tiny-grpo, or a file ending in .toml.")
@click.option("--sweep", help="A shipped sweep, such as tiny-mupo-groups, or a .toml file.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Change one setting.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of a new run, or of a sweep.")
@click.option("--resume", type=click.Path(path_type=Path), help="Folder of a run to go on with.")
@click.option("--dry-run", is_flag=True, help="Print the plan and stop.")
def train_command(
    recipe: str | None,
    sweep: str | None,
    changes: tuple[str, ...],
    out: Path | None,
    resume: Path | None,
    dry_run: bool,
) -> None:
    """Train a model: rollouts, rewards, and the loss of the recipe's method.

    OUT gets config.toml, scalars.jsonl, evaluations.jsonl, rollouts.jsonl and checkpoints/, each
    a Hugging Face folder, the newest also as checkpoints/last. --resume takes the run's own
    settings and goes on from there to the very steps that the uninterrupted run takes.

    Under torchrun or accelerate launch the prompts of a step are shared out among the processes,
    with the gradient of one process; a run may go on with another number of them.

    --sweep trains every combination of a sweep's values, each in a folder below OUT, and ends with
    one table and OUT/sweep.json. The same command again skips finished runs and goes on with an
    interrupted one.
    """
    from trainers.config import load_config

    if sum(given is not None for given in (recipe, sweep, resume)) != 1:
        raise InputError(
            "give one of --recipe NAME|FILE.toml, --sweep NAME|FILE.toml, --resume RUN"
        )
    if resume is not None and out is not None:
        raise InputError("--resume goes on in its own folder: leave --out away")
    if resume is not None and not (resume / "config.toml").is_file():
        raise InputError(f"{resume} is no run: it has no config.toml")
    if sweep is not None:
        _sweep(sweep, changes, out, dry_run=dry_run)
        return
    config = load_config(recipe or str(resume) + "/config.toml", changes)
    if dry_run:
        _print_plan(config, recipe or str(resume))
        return
    if not config.model:
        raise InputError(f"{recipe} names no model: add --set model=FOLDER_OR_NAME")
    run = resume or out
    if run is None:
        raise InputError("a new run needs --out RUN")
    _train(config, run, resume=resume is not None)
    from trainers.distributed import first_process

    if first_process():
        click.echo(str(run / "checkpoints" / "last"))


def _train(config: "Config", run: Path, *, resume: bool) -> None:
    """One run with its bar on stderr; of several processes the first one says something."""
    from trainers.checkpoints import claim_run, last_checkpoint, steps_of
    from trainers.distributed import first_process
    from trainers.logs import training_bar
    from trainers.loop import train

    begins_at = claim_run(config, run, resume=resume)
    _quiet_transformers()
    if not first_process():
        train(config, run, resume=resume)
        return
    if not resume:
        _say_what_is_shared(config)
    if resume and begins_at is None:
        click.echo(f"{run} has no checkpoint: it begins anew", err=True)
    try:
        done = 0 if begins_at is None else steps_of(begins_at)
        with training_bar(config.steps, done=done) as progress:
            train(config, run, resume=resume, progress=progress)
    except KeyboardInterrupt:
        found = last_checkpoint(run)
        if found is not None:
            click.echo(f"go on from {found.name} with: npbench train --resume {run}", err=True)
        raise


def _sweep(name: str, changes: tuple[str, ...], out: Path | None, *, dry_run: bool) -> None:
    """All runs of a sweep, or their plans."""
    from trainers.sweeps import load_sweep

    runs = load_sweep(name, changes)
    if not dry_run and out is None:
        raise InputError("a sweep needs --out FOLDER")
    if not dry_run and not runs[0].config.model:
        raise InputError(f"sweep {name} names no model: add --set model=FOLDER_OR_NAME")
    from npbench.launch import must_be_alone
    from trainers.sweep_runs import read_progress, result_rows, results, train_sweep

    must_be_alone("a sweep", "train its runs apart")
    if dry_run:
        from trainers.plan import make_plan

        states = ["new" if out is None else str(read_progress(run, out)) for run in runs]
        plans = [make_plan(run.config).lines() for run in runs]
        header = ["run", *(label for label, _ in plans[0]), "state"]
        rows = [
            [run.folder, *(value for _, value in plan), state]
            for run, plan, state in zip(runs, plans, states, strict=True)
        ]
        print_table(f"plan of sweep {name}", header, rows)
        return
    assert out is not None
    train_sweep(runs, out, train=_train, say=lambda line: click.echo(line, err=True))
    found = list(results(runs, out))
    text = json.dumps({"schema": 1, "sweep": name, "runs": found}, indent=1)
    (out / "sweep.json").write_text(text + "\n", encoding="utf-8")
    header, rows = result_rows(found)
    print_table(f"sweep {name}", header, rows)


def _say_what_is_shared(config: "Config") -> None:
    """What was left out of published sets, and questions shared with the evaluation, on stderr."""
    from trainers.data import opened_sets
    from trainers.overlap import overlap_report

    for line in (*opened_sets(config), *overlap_report(config)):
        click.echo(line, err=True)


def _quiet_transformers() -> None:
    """Leaves stderr to the bar of the training itself."""
    from transformers.utils import logging

    silence: Callable[[], None] = logging.disable_progress_bar
    silence()


def _print_plan(config: "Config", name: str) -> None:
    """The plan and all settings, on stdout."""
    from trainers.config import as_toml
    from trainers.plan import make_plan

    print_table(f"plan of {name}", ("", "value"), make_plan(config).lines())
    click.echo(as_toml(config), nl=False)
    if not config.model:
        click.echo("no model yet: add --set model=FOLDER_OR_NAME", err=True)


@click.command(name="plot", short_help="Draw the learning curves of runs.")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), default=Path("curves.png"))
@click.option("--curve", "names", multiple=True, help="A logged number; the usual ones if none.")
@click.option("--smoothing", default=0.9, show_default=True, help="Weight of what came before.")
def plot_command(
    runs: tuple[Path, ...], out: Path, names: tuple[str, ...], smoothing: float
) -> None:
    """Draw the logged numbers of RUNS over their steps, smoothed, into one picture.

    Runs of one method are drawn as one line, their mean, with a band from the lowest to the
    highest.
    """
    from npbench.console import read_json
    from trainers.plots import CURVES, draw_curves

    groups: dict[str, list[Path]] = {}
    for run in runs:
        if not (run / "run.json").is_file():
            raise InputError(f"{run} is no run: it has no run.json")
        groups.setdefault(read_json(run / "run.json")["config"]["method"], []).append(run)
    draw_curves(groups, out, names=names or CURVES, weight=smoothing)
    click.echo(str(out))
