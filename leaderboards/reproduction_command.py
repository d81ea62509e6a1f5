"""``npbench reproduce``; importing it imports neither torch nor the trainers."""

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from npbench.console import print_table, progress_bar
from npbench.errors import InputError
from npbench.launch import must_be_alone

if TYPE_CHECKING:
    from leaderboards.reproduction_report import Report
    from leaderboards.reproduction_runs import Base, Unit
    from leaderboards.reproduction_settings import Preset

__all__ = ["reproduce_command"]

_FOLDER = click.Path(path_type=Path)


@click.command("reproduce", short_help="Train and compare GRPO, DMPO and MUPO, seed by seed.")
@click.option("--preset", help="smoke, cpu, gpu, or a file ending in .toml.")
@click.option("--study", "studies", multiple=True, help="table, groups, lambda, dmpo or share.")
@click.option("--methods", multiple=True, help="Methods or arms, or all; default: the study's.")
@click.option("--base", "bases", multiple=True, help="NAME, FOLDER or LABEL=FOLDER; repeat.")
@click.option("--seeds", type=click.IntRange(min=1), help="How many; default: the preset's.")
@click.option("--first-seed", type=click.IntRange(min=0), help="Default: the preset's.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--keep-checkpoints", is_flag=True, help="Keep them after they are evaluated.")
@click.option("--dry-run", is_flag=True, help="Print what there is to do and stop.")
@click.option("--out", type=_FOLDER, help="Folder; the same call on it goes on.")
@click.option("--report", "reported", type=_FOLDER, help="Rebuild table, verdicts and plots.")
@click.option("--brief", type=click.Path(path_type=Path), help="With --report: a Markdown file.")
@click.option("--check", "checked", type=_FOLDER, help="Grade every kept reply again.")
@click.option("--collect", "collected", type=_FOLDER, nargs=2, help="DIR OUT: for keeping.")
def reproduce_command(
    preset: str | None,
    studies: tuple[str, ...],
    methods: tuple[str, ...],
    bases: tuple[str, ...],
    seeds: int | None,
    first_seed: int | None,
    jobs: int,
    keep_checkpoints: bool,
    dry_run: bool,
    out: Path | None,
    reported: Path | None,
    brief: Path | None,
    checked: Path | None,
    collected: tuple[Path, Path] | None,
) -> None:
    """Train a base with each method on several seeds, and compare on held-out questions.

    All methods of a seed see the same prompts with the same group size. Each checkpoint and split
    is a small file below OUT/cells; the same call skips what is finished and goes on with what was
    interrupted, and further studies, seeds, methods and bases may be added to a folder. At the end
    the table, the verdicts on the papers' claims and the plots are written to OUT/report.

    --report DIR rebuilds these from the cells alone, and --brief FILE puts a short form between its
    marks in a Markdown file, or into a new one; --collect DIR OUT keeps manifest, cells,
    curves and raw replies in at most 10 MB, which --report takes as well. --check DIR makes the
    questions anew, grades every kept reply and refuses cells that do not follow from them.
    """
    if sum(folder is not None for folder in (out, reported, checked, collected)) != 1:
        raise InputError("give one of --out DIR, --report DIR, --check DIR, --collect DIR OUT")
    if out is None and preset is not None:
        raise InputError("--preset belongs to --out")
    if reported is None and brief is not None:
        raise InputError("--brief belongs to --report")
    if reported is not None:
        _report(reported, brief)
    elif checked is not None:
        _check(checked)
    elif collected is not None:
        from leaderboards.reproduction_collect import collect

        click.echo(json.dumps(collect(*collected)))
    else:
        assert out is not None
        if preset is None:
            raise InputError("--out needs --preset smoke, cpu, gpu or FILE.toml")
        wanted = studies or ("table",)
        words = _stated(preset, wanted, methods, bases, seeds, first_seed)
        units, manifest = _plan(
            preset, wanted, methods, bases, seeds, first_seed, out, keep_checkpoints
        )
        if dry_run:
            _print_plan(units)
            return
        must_be_alone("npbench reproduce", "--jobs trains several runs at once")
        _run(units, manifest, out, jobs=jobs, command=words)


def _stated(
    preset: str,
    studies: Sequence[str],
    methods: Sequence[str],
    bases: Sequence[str],
    seeds: int | None,
    first_seed: int | None,
) -> str:
    """The call in one line, without folders of this machine."""
    words = ["npbench", "reproduce", "--preset", Path(preset).name]
    for option, values in (
        ("--study", studies),
        ("--methods", methods),
        ("--base", [_label(base)[0] for base in bases]),
        ("--seeds", [] if seeds is None else [str(seeds)]),
        ("--first-seed", [] if first_seed is None else [str(first_seed)]),
    ):
        words += [word for value in values for word in (option, value)]
    return shlex.join(words)


def _label(base: str) -> tuple[str, str]:
    """Label and source of ``LABEL=SOURCE`` or of a bare source."""
    label, sign, source = base.partition("=")
    if not sign:
        label, source = Path(base).name, base
    if not re.fullmatch(r"[\w.-]+", label):
        raise InputError(f"a base's label must be made of letters, digits, . and -, got {label!r}")
    return label, source


def _resolved(bases: Sequence[str]) -> "list[Base]":
    """The bases, each checked to be a checkpoint, with a hash of its weights."""
    from evaluators.checkpoints import find_checkpoint
    from leaderboards.reproduction_runs import Base, weights_hash

    found: dict[str, Base] = {}
    for base in bases:
        label, source = _label(base)
        if label in found:
            raise InputError(f"two bases are called {label}; give LABEL=FOLDER")
        checkpoint = find_checkpoint(source)
        path = str(Path(source).resolve()) if Path(source).is_dir() else source
        found[label] = Base(label, path, weights_hash(checkpoint.folder))
    return list(found.values())


def _plan(
    preset_name: str,
    studies: Sequence[str],
    methods: Sequence[str],
    bases: Sequence[str],
    seeds: int | None,
    first_seed: int | None,
    out: Path,
    keep_checkpoints: bool,
) -> "tuple[list[Unit], Any]":
    """Everything to do, and the manifest that the folder will have."""
    from leaderboards.reproduction_plan import make_manifest, make_units, origin
    from leaderboards.reproduction_settings import chosen_arms, load_preset, load_study

    preset: Preset = load_preset(preset_name)
    arms: dict[str, None] = {}
    for study in studies:
        names = [word for option in methods for word in option.split(",") if word]
        arms |= dict.fromkeys(chosen_arms(load_study(study), preset, names))
    found = _resolved(bases or preset.bases)
    start = preset.first_seed if first_seed is None else first_seed
    about = origin(_commit())
    manifest = make_manifest(out, Path(preset_name).stem, preset, found, studies)
    units = make_units(
        preset,
        found,
        tuple(arms),
        range(start, start + (seeds or preset.seeds)),
        out=out,
        about=about,
        keep_checkpoints=keep_checkpoints,
    )
    return units, manifest


def _run(units: "Sequence[Unit]", manifest: Any, out: Path, *, jobs: int, command: str) -> None:
    from leaderboards.reproduction_cells import MANIFEST, write_json
    from leaderboards.reproduction_plan import with_call
    from leaderboards.reproduction_pool import quiet_libraries, run_units, work_bar, writing

    with writing(out):
        started = datetime.now(UTC).isoformat(timespec="seconds")
        whole = with_call(manifest, command, units[0].origin, started)
        write_json(out / MANIFEST, whole.model_dump(mode="json", by_alias=True))
        quiet_libraries()
        with work_bar(units) as advance:
            run_units(units, jobs=jobs, advance=advance)
        _report(out)


def _check(folder: Path) -> None:
    """Checks a folder and prints what was gone over."""
    from leaderboards.reproduction_check import check

    with progress_bar("cells") as progress:
        found = check(folder, progress)
    kept = f"; {found.without_replies} kept no replies" if found.without_replies else ""
    click.echo(
        f"passed: {found.cells} cells follow from {found.replies} replies, graded again{kept}; "
        f"learning curves, seconds and the diversity of reasoning cannot be"
    )


def _report(folder: Path, brief: Path | None = None) -> None:
    """Builds, writes and prints the report of a folder."""
    from leaderboards.reproduction_brief import marked, put_brief
    from leaderboards.reproduction_report import build_report, write_report

    if brief is not None:
        marked(brief)
    report = build_report(folder)
    if brief is not None:
        put_brief(brief, report)
    _print_report(report)
    click.echo(str(write_report(folder, report)))


def _print_report(report: "Report") -> None:
    marker = report.results.manifest.marker
    for sheet in report.sheets:
        print_table(
            f"{sheet.title} ({marker})" if marker else sheet.title, sheet.columns, sheet.rows
        )
    rows = [(one.verdict, one.base, one.hypothesis.claim, one.reason) for one in report.verdicts]
    title = f"Hypotheses ({marker})" if marker else "Hypotheses"
    print_table(title, ("verdict", "base", "claim", "why"), rows)


def _print_plan(units: "Sequence[Unit]") -> None:
    """Each unit and what is left of it."""
    from leaderboards.reproduction_runs import unit_weight

    rows = []
    for unit in units:
        total, done = unit_weight(unit)
        cells = len(unit.cells())
        made = cells - len(unit.missing())
        rows.append((unit.name, f"{made} of {cells}", f"{done / total:.0%}" if total else "–"))
    print_table("plan", ("unit", "cells", "done"), rows)


def _commit() -> str | None:
    """The commit of this code where it is a checkout, with a mark where files were changed."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    call = ["git", "-C", str(root)]
    try:
        found = subprocess.run(
            [*call, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
