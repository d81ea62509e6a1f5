"""The gallery: every task, level and style with prompt, picture and solution, on one page."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from npbench.errors import InputError
from npbench.gallery_overlays import Ground, overlay
from npbench.rendering.styles import get_style
from npbench.rendering.svg import as_svg
from npbench.splits import load
from npbench.tasks import TASKS

__all__ = ["LEVELS", "Exhibit", "exhibits", "write_gallery"]

LEVELS = ("nano", "l1", "l2", "l3")
_FRAME = 8
"""Around a picture with its solution, whose marks reach a little further than the vertices."""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One instance in one style."""

    name: str
    """Stem of its files."""
    row: Any
    png: bytes
    svg: str
    """The picture as vectors."""
    solution_svg: str
    """The same with the reference drawn into it."""
    legend: str


def exhibits(task: str, level: str, styles: Sequence[str], *, seed: int) -> list[Exhibit]:
    """One instance of a task and level in several styles.

    Args:
        task: The task's name.
        level: A level with pictures.
        styles: Styles without noise, which vectors cannot show.
        seed: The seed of the split from which it is taken.
    """
    kind = TASKS[task]
    found = []
    for row in load("nano", level, "test", seed, per_task=1, tasks=[task], styles=styles):
        assert row.style is not None
        style = get_style(row.style)
        instance = kind.decode(json.loads(row.instance))
        picture = kind.draw(instance, style, kind.levels[level].picture_size)
        solution = json.loads(row.reference_solution)
        marks = overlay(task, instance, solution, Ground(picture.scene, style, _FRAME))
        solved = as_svg(
            picture.scene,
            style,
            under=marks.under,
            over=marks.over,
            margin=marks.margin,
            frame=_FRAME,
        )
        found.append(
            Exhibit(
                name=f"{task}-{level}-{row.style}",
                row=row,
                png=picture.png,
                svg=as_svg(picture.scene, style),
                solution_svg=solved,
                legend=marks.legend,
            )
        )
    return found


def write_gallery(
    folder: Path,
    *,
    tasks: Sequence[str],
    levels: Sequence[str],
    styles: Sequence[str],
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the page and its pictures; returns the page.

    Args:
        folder: Must not exist, or be empty.
        tasks: Names of tasks.
        levels: Names of levels.
        styles: Names of styles.
        seed: Seed of the instances.
        progress: Called with (instances done, instances in all).

    Raises:
        InputError: If the folder holds something.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; choose another folder")
    pictures = folder / "pictures"
    pictures.mkdir(parents=True)
    sections = []
    done, total = 0, len(tasks) * len(levels)
    for task in tasks:
        cards = []
        for level in levels:
            shown = exhibits(task, level, styles, seed=seed)
            for exhibit in shown:
                _write(pictures, exhibit)
            cards.append(_card(level, shown))
            done += 1
            if progress:
                progress(done, total)
        sections.append({"name": task, "title": TASKS[task].title, "cards": cards})
    environment = Environment(
        loader=PackageLoader("npbench", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = folder / "index.html"
    html = environment.get_template("gallery.html").render(
        sections=sections, styles=styles, levels=levels, seed=seed
    )
    page.write_text(html, encoding="utf-8")
    return page


def _write(folder: Path, exhibit: Exhibit) -> None:
    (folder / f"{exhibit.name}.png").write_bytes(exhibit.png)
    (folder / f"{exhibit.name}.svg").write_text(exhibit.svg, encoding="utf-8")
    (folder / f"{exhibit.name}-solution.svg").write_text(exhibit.solution_svg, encoding="utf-8")


def _card(level: str, shown: Sequence[Exhibit]) -> dict[str, Any]:
    row = shown[0].row
    layout = json.loads(row.layout)
    return {
        "level": level,
        "sense": TASKS[row.task].sense.value,
        "family": row.family,
        "prompt": row.prompt,
        "answer": row.reference_solution,
        "objective": row.reference_objective,
        "status": row.reference_status,
        "legend": shown[0].legend,
        "width": layout["width"],
        "height": layout["height"],
        "names": [exhibit.name for exhibit in shown],
        "labels": [exhibit.row.style for exhibit in shown],
    }
