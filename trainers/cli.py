"""The subcommands that this package adds to ``npbench``; importing it does not import torch."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from npbench.console import progress_bar
from npbench.errors import InputError

__all__ = ["rewrite_command"]


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
