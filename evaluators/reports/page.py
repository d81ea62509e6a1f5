"""Writes the page of runs: tables, charts and replies in one file that asks no network."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from evaluators.paired import compare_folders, settings_that_differ
from evaluators.reports.browsing import Browsing, browsing_of
from evaluators.reports.charts import key_of
from evaluators.reports.figures import Figure, figures_of
from evaluators.reports.loading import LoadedRun
from evaluators.reports.tables import (
    Results,
    diversity_table,
    failure_tables,
    metric_name,
    official_table,
    overall_table,
    p_value,
    result_tables,
    signed,
    variants_table,
)
from evaluators.reports.text import script_json, visible
from evaluators.tables import warnings_of
from npbench.errors import InputError

__all__ = ["GENERATOR", "check_target", "page_of", "write_page"]

GENERATOR = "npbench report"
"""By which a page says what made it."""

_FACTS = (
    ("model", "model.name"),
    ("fingerprint", "model.fingerprint"),
    ("benchmark", "benchmark.name"),
    ("version", "benchmark.version"),
    ("dataset hash", "benchmark.dataset_hash"),
    ("questions", "benchmark.rows"),
    ("limit", "benchmark.limit"),
    ("modality", "benchmark.modality"),
    ("backend", "backend"),
    ("prompt format", "prompt_format"),
    ("system prompt", "system_prompt"),
    ("greedy reply", "sampling.greedy"),
    ("samples k", "sampling.k"),
    ("temperature", "sampling.temperature"),
    ("top p", "sampling.top_p"),
    ("top k", "sampling.top_k"),
    ("max tokens", "sampling.max_tokens"),
    ("seed", "sampling.seed"),
    ("pixels", "pixels"),
    ("grader", "grader"),
    ("judge", "judge"),
    ("commit", "commit"),
    ("started", "started"),
    ("command", "command"),
)
"""What a page says of a run, and where it stands in the manifest."""

_ABOUT = frozenset(
    ("benchmark", "version", "questions", "backend", "prompt format", "greedy reply", "samples k",
     "temperature", "top p", "max tokens", "seed", "commit", "command")
)  # fmt: skip
"""What the head of the page has of it."""


def check_target(out: Path) -> None:
    """Checks that a page can be written: nothing is there, or a page that was made before.

    Raises:
        InputError: If something else is there, or no folder to write to.
    """
    if not out.parent.is_dir():
        raise InputError(f"{out} cannot be written: {out.parent} is no folder")
    if not out.exists():
        return
    if not out.is_file():
        raise InputError(f"{out} is no file; choose another name with --out")
    try:
        with out.open("rb") as file:
            start = file.read(2000)
    except OSError as error:
        raise InputError(f"{out} cannot be read: {error.strerror}") from None
    if f'content="{GENERATOR}'.encode() not in start:
        raise InputError(f"{out} exists and is no report; choose another name with --out")


def write_page(out: Path, html: str) -> None:
    """Write a page at once: an interruption leaves what was there.

    Raises:
        InputError: If the file cannot be written.
    """
    temporary = out.with_name(out.name + ".part")
    try:
        temporary.write_text(html, encoding="utf-8")
        temporary.replace(out)
    except OSError as error:
        raise InputError(f"{out} cannot be written: {error.strerror}") from None


def page_of(runs: Sequence[LoadedRun], *, most_samples: int) -> str:
    """The page of runs as HTML; the same runs give the same text.

    Args:
        runs: The runs, the first one the base of differences.
        most_samples: How many questions can be read on it.

    Raises:
        InputError: If whole runs asked different questions.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    differences, notices = _differences(runs)
    known = [
        Results(visible(run.label), run.summary, run.scores())
        for run in runs
        if run.summary is not None
    ]
    environment = Environment(
        loader=PackageLoader("evaluators", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"visible": visible, "signed": signed, "p_value": p_value}
    browsing = browsing_of(runs, most=most_samples)
    facts = _facts(runs)
    script = _asset("report.js")
    return environment.get_template("report.html").render(
        generator=f"{GENERATOR} {version('npbench')}",
        title=_title(runs),
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=_asset("report.css"),
        labels=[visible(run.label) for run in runs],
        keys=[key_of(number) for number in range(len(runs))],
        facts=facts,
        about=[
            {**fact, "values": fact["values"] if fact["differ"] else fact["values"][:1]}
            for fact in facts
            if fact["name"] in _ABOUT
        ],
        manifests=[visible(json.dumps(run.manifest, indent=1)) for run in runs],
        notices=[visible(notice) for notice in [*_notices(runs), *notices]],
        **_numbers(known),
        differences=differences,
        browsing=browsing,
        data=script_json(browsing.as_json()),
        sampled=_sampled(browsing),
    )


def _asset(name: str) -> str:
    return files("evaluators").joinpath("templates", name).read_text(encoding="utf-8")


def _title(runs: Sequence[LoadedRun]) -> str:
    asked = list(dict.fromkeys(_asked(run.manifest["benchmark"]) for run in runs))
    names = [run.label for run in runs]
    shown = ", ".join(names) if len(names) < 4 else f"{len(names)} models"
    return visible(f"{shown} on {', '.join(asked)}")


def _asked(benchmark: Mapping[str, Any]) -> str:
    """The benchmark's name with its version, once where the version says the name."""
    name, edition = str(benchmark["name"]), str(benchmark["version"])
    return edition if edition.startswith(name) else f"{name}, version {edition}"


def _numbers(runs: Sequence[Results]) -> dict[str, Any]:
    """Tables and charts, empty where no run has a summary."""
    if not runs:
        return {"overall": None, "results": [], "diversity": None, "failures": [],
                "official": None, "figures": [], "variants": None, "estimators": {}}  # fmt: skip
    figures: list[Figure] = figures_of(runs)
    return {
        "overall": overall_table(runs),
        "results": result_tables(runs),
        "diversity": diversity_table(runs),
        "failures": failure_tables(runs),
        "official": official_table(runs),
        "figures": figures,
        "variants": variants_table(runs),
        "estimators": runs[0].summary["estimators"],
    }


def _notices(runs: Sequence[LoadedRun]) -> list[str]:
    several = len(runs) > 1
    found = [notice for run in runs for notice in run.notices]
    for run in runs:
        if run.summary is not None:
            where = f"{run.label}: " if several else ""
            found += [f"{where}{warning}" for warning in warnings_of(run.summary)]
    return found


def _facts(runs: Sequence[LoadedRun]) -> list[dict[str, Any]]:
    """Rows of the head: a name, a value of each run, and whether they differ."""
    rows = []
    for name, path in _FACTS:
        values = [_fact(run.manifest, path) for run in runs]
        if all(value is None for value in values):
            continue
        shown = [visible("–" if value is None else _as_text(value)) for value in values]
        rows.append({"name": name, "values": shown, "differ": len(set(shown)) > 1})
    return rows


def _fact(manifest: Mapping[str, Any], path: str) -> Any:
    value: Any = manifest
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    if isinstance(value, Mapping) and all(entry is None for entry in value.values()):
        return None
    return value


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {entry}" for name, entry in value.items() if entry is not None)
    return str(value)


def _differences(runs: Sequence[LoadedRun]) -> tuple[list[dict[str, Any]], list[str]]:
    """Each run minus the first, and why where there is no difference to show."""
    found, notices = [], []
    for run in runs[1:]:
        first = runs[0]
        try:
            result = compare_folders(run.folder.folder, first.folder.folder)
        except InputError as error:
            if run.whole and first.whole:
                raise
            asked = [one.manifest["benchmark"] for one in (run, first)]
            if asked[0]["dataset_hash"] != asked[1]["dataset_hash"]:
                raise
            notices.append(f"no paired difference of {run.label} and {first.label}: {error}")
            continue
        notices += [
            f"{run.label} and {first.label} differ in {difference}"
            for difference in settings_that_differ(run.manifest, first.manifest)
        ]
        found.append(
            {
                "run": visible(run.label),
                "base": visible(first.label),
                "metrics": [
                    (
                        metric_name(name, {one.manifest["sampling"]["k"] for one in (run, first)}),
                        row,
                    )
                    for name, row in result["metrics"].items()
                ],
            }
        )
    return found, notices


def _sampled(browsing: Browsing) -> str:
    shown, total = len(browsing.questions), browsing.total
    if shown == total:
        return f"all {total} questions"
    return (
        f"{shown} of {total} questions, taken evenly from the categories by a hash of their ids, "
        f"whatever was replied; --samples takes more"
    )
