"""Builds the leaderboard's site: static pages with their own style and script, and no network.

Rankings of our own runs and published numbers stand on pages of their own. Texts of models are
text: templates escape everything, and a content security policy allows no foreign code.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leaderboards.entry import EntryFile, read_entries
from leaderboards.official import instance_id, official_request
from leaderboards.papers import load_papers
from leaderboards.reproduction import Reproduction, reproduction_page
from leaderboards.site_views import (
    official_view,
    published_view,
    ranking_data,
    ranking_view,
    run_view,
    title_of,
)
from leaderboards.tables import METRIC_NAMES
from npbench.errors import InputError
from npbench.gallery import exhibits
from npbench.splits import Row, make_rows
from npbench.suites import OFFICIAL, OfficialSplit
from npbench.tasks import TASKS

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["build_site", "shipped_entries", "shipped_results"]

_GALLERY_LEVEL = "l1"
_GALLERY_SEED = 20261130
_ASSETS = ("site.css", "site.js")

Progress = Callable[[int, int], None]


def shipped_entries() -> list[EntryFile]:
    """The entries that ship with the package."""
    folder = Path(str(files("leaderboards").joinpath("entries")))
    return read_entries(folder) if folder.is_dir() else []


def shipped_results() -> Path | None:
    """The reproduction that ships with the package."""
    folder = Path(str(files("leaderboards").joinpath("results", "cpu")))
    return folder if folder.is_dir() else None


def build_site(
    out: Path,
    entries: Sequence[EntryFile],
    *,
    officials: Mapping[str, OfficialSplit] = OFFICIAL,
    reproduction: Reproduction | None = None,
    tasks: Sequence[str] = tuple(TASKS),
    progress: Progress | None = None,
) -> int:
    """Write the site; returns its number of pages. The same entries give the same bytes.

    Args:
        out: Must not exist, or be empty.
        entries: The ranked runs.
        officials: The official splits by name.
        reproduction: A study to show; without one there is no such page.
        tasks: Tasks of the gallery.
        progress: Called with (pictures made, pictures in all).

    Raises:
        InputError: If the folder holds something, or an entry answers no official split.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is not empty; choose another folder")
    for entry in entries:
        official = officials.get(entry.benchmark.name)
        if official is None or official.content_hash != entry.benchmark.content_hash:
            raise InputError(
                f"the entry {entry.id} answers {entry.benchmark.name} with content hash "
                f"{entry.benchmark.content_hash[:12]}, no official split of this version"
            )
        _check_shown(entry, official)
    site = _Site(out, reproduction, entries, officials, tasks, progress)
    site.write()
    return site.pages


def _check_shown(entry: EntryFile, official: OfficialSplit) -> None:
    """Refuse shown questions that are not where the entry says, before a page is written."""
    request = official_request(official)
    for question in entry.shown:
        if question.position >= request.num_units:
            raise InputError(
                f"the entry {entry.id} shows position {question.position} of {official.name}, "
                f"which has {request.num_units} instances"
            )
        instance = instance_id(request, question.position)
        if not question.id.startswith(f"{instance}-"):
            raise InputError(f"the entry {entry.id} shows {question.id!r} at a false place")
        if question.id not in {f"{instance}-{shown}" for shown in request.modalities}:
            raise InputError(f"the entry {entry.id} shows {question.id!r}, no official row")


class _Site:
    """The pages of one build."""

    def __init__(
        self,
        out: Path,
        reproduction: Reproduction | None,
        entries: Sequence[EntryFile],
        officials: Mapping[str, OfficialSplit],
        tasks: Sequence[str],
        progress: Progress | None,
    ) -> None:
        self.pages = 0
        self._out = out
        self._reproduction = reproduction
        self._entries = sorted(entries, key=lambda entry: entry.id)
        self._officials = officials
        self._tasks = tasks
        self._progress = progress
        self._environment = _environment()
        shown = {(e.benchmark.name, q.position) for e in self._entries for q in e.shown}
        self._total = len(tasks) + len(shown)
        self._done = 0

    def write(self) -> None:
        """Write all files."""
        for name in ("runs", "pictures", "assets"):
            (self._out / name).mkdir(parents=True, exist_ok=True)
        assets = files("leaderboards").joinpath("templates", "assets")
        for name in _ASSETS:
            (self._out / "assets" / name).write_bytes(assets.joinpath(name).read_bytes())
        self._page(
            "index.html",
            page="rankings",
            splits=ranking_view(self._entries),
            data=ranking_data(self._entries),
            metrics=METRIC_NAMES,
            officials=official_view(),
        )
        self._page("published.html", page="published", papers=published_view(load_papers()))
        self._page("gallery.html", page="gallery", cards=[self._card(task) for task in self._tasks])
        if self._reproduction is not None:
            pictures = [one for part in self._reproduction.sections for one in part.pictures]
            for picture in pictures:
                (self._out / "pictures" / Path(picture.name).name).write_bytes(picture.data)
            self._page(
                "reproduction.html",
                page="reproduction",
                **reproduction_page(self._reproduction),
            )
        rows = self._shown_rows()
        for entry in self._entries:
            self._page(
                f"runs/{entry.id}.html",
                template="run.html",
                page="run",
                **run_view(entry, rows, {name: f"{name}.png" for name in rows if rows[name].image}),
            )

    def _page(self, path: str, *, template: str | None = None, **context: Any) -> None:
        html = self._environment.get_template(template or path).render(
            root="../" * path.count("/"), has_reproduction=self._reproduction is not None, **context
        )
        (self._out / path).write_text(html, encoding="utf-8")
        self.pages += 1

    def _step(self) -> None:
        self._done += 1
        if self._progress:
            self._progress(self._done, self._total)

    def _card(self, task: str) -> dict[str, Any]:
        """One task of the gallery: picture, prompt and reference."""
        (exhibit,) = exhibits(task, _GALLERY_LEVEL, ["light"], seed=_GALLERY_SEED)
        folder = self._out / "pictures"
        (folder / f"task-{task}.png").write_bytes(exhibit.png)
        (folder / f"task-{task}-solution.svg").write_text(exhibit.solution_svg, encoding="utf-8")
        self._step()
        layout = json.loads(exhibit.row.layout)
        return {
            "task": task,
            "title": title_of(task),
            "sense": TASKS[task].sense.value,
            "group": TASKS[task].group,
            "level": _GALLERY_LEVEL,
            "prompt": exhibit.row.prompt,
            "answer": exhibit.row.reference_solution,
            "objective": exhibit.row.reference_objective,
            "status": exhibit.row.reference_status,
            "legend": exhibit.legend,
            "width": layout["width"],
            "height": layout["height"],
        }

    def _shown_rows(self) -> dict[str, Row]:
        """The rows of all shown questions, made anew; their pictures are written."""
        rows: dict[str, Row] = {}
        for name, official in self._officials.items():
            request = official_request(official)
            shown = {q.position for e in self._entries if e.benchmark.name == name for q in e.shown}
            for position in sorted(shown):
                for row in make_rows(request, request.unit(position)):
                    rows[row.id] = row
                    if row.image is not None:
                        (self._out / "pictures" / f"{row.id}.png").write_bytes(row.image)
                self._step()
        return rows


def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("leaderboards", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
