"""The questions and replies that can be read on a page: which, and in what form."""

import base64
import hashlib
import io
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluators.benchmark import Question
from evaluators.prompts import build_prompt
from evaluators.records import SampleRecord
from evaluators.reports.loading import LoadedRun
from evaluators.reports.text import clipped, visible
from npbench import scoring
from npbench.rng import digest

__all__ = ["MOST_PICTURE_BYTES", "Browsing", "browsing_of", "chosen_ids"]

_HEAD, _TAIL = 12_000, 4_000
"""Characters of a reply that a page holds."""

MOST_PICTURE_BYTES = 256 << 10
"""A picture of more bytes is reduced."""

_SIDE = 1024
"""Longest side of a reduced picture, in pixels."""

_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


@dataclass(slots=True)
class Browsing:
    """What the page's script reads."""

    runs: list[str]
    questions: list[dict[str, Any]] = field(default_factory=list)
    pictures: dict[str, str] = field(default_factory=dict)
    """Data addresses by the hash of their bytes: a picture is there once."""
    total: int = 0
    """Questions of the runs."""

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {"runs": self.runs, "questions": self.questions, "pictures": self.pictures}


def browsing_of(runs: Sequence[LoadedRun], *, most: int) -> Browsing:
    """The chosen questions of runs with the replies of each run.

    Args:
        runs: The runs; the words of a question are those of the first run that asked it.
        most: The number of questions to take.
    """
    cells: dict[str, tuple[str, ...]] = {}
    for run in runs:
        keys = run.index.by_question()
        if run.benchmark is None:
            cells |= {name: () for name in keys if name not in cells}
        else:
            for question in run.benchmark.questions:
                if question.id in keys and not cells.get(question.id):
                    cells[question.id] = tuple(question.category.values())
    chosen = chosen_ids(cells, most)
    found = Browsing([visible(run.label) for run in runs], total=len(cells))
    entries: dict[str, dict[str, Any]] = {
        name: {"id": visible(name)} for name in cells if name in chosen
    }
    for number, run in enumerate(runs):
        asked = _asked(run, chosen)
        keys = run.index.by_question()
        for name, entry in entries.items():
            if name in asked:
                _add_question(found, entry, asked[name], run, number)
            records = run.folder.records(run.index, keys.get(name, []))
            entry.setdefault("replies", []).extend(_reply(record, number) for record in records)
    anchors: set[str] = set()
    for name, entry in entries.items():
        entry["anchor"] = _anchor(name, anchors)
        found.questions.append(entry)
    return found


def chosen_ids(cells: Mapping[str, tuple[str, ...]], most: int) -> set[str]:
    """Ids of questions, as evenly as can be over the cells, in each by a hash of the id.

    Nothing that a reply says takes part in the choice.

    Args:
        cells: The cell of each question, such as its task, level and modality.
        most: How many to take.
    """
    by_cell: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in sorted(cells, key=lambda name: digest("report", name)):
        by_cell[cells[name]].append(name)
    chosen: set[str] = set()
    depth = 0
    while len(chosen) < min(most, len(cells)):
        layer = [names[depth] for names in by_cell.values() if len(names) > depth]
        chosen.update(layer[: most - len(chosen)])
        depth += 1
    return chosen


def _asked(run: LoadedRun, chosen: set[str]) -> dict[str, Question]:
    if run.benchmark is None:
        return {}
    return {question.id: question for question in run.benchmark.questions if question.id in chosen}


def _add_question(
    found: Browsing, entry: dict[str, Any], question: Question, run: LoadedRun, number: int
) -> None:
    """The words, pictures and right answer of a question, once for all runs that ask it alike."""
    manifest = run.manifest
    prompt = build_prompt(
        question.parts,
        prompt_format=manifest["prompt_format"],
        system=manifest.get("system_prompt"),
    )
    pictures, words = [], []
    for part in prompt.parts:
        if isinstance(part, str):
            words.append(part)
        else:
            pictures.append(_add_picture(found, part))
            words.append(f"⟦picture {len(pictures)}⟧")
    shown = {
        "system": visible(prompt.system or ""),
        "words": visible(clipped("\n".join(words), head=_HEAD, tail=_TAIL)),
    }
    prompts = entry.setdefault("prompts", [])
    same = next((known for known in prompts if known["shown"] == shown), None)
    if same is not None:
        same["runs"].append(number)
        return
    prompts.append({"runs": [number], "shown": shown})
    if len(prompts) > 1:
        return
    entry["category"] = {visible(k): visible(v) for k, v in question.category.items()}
    entry["pictures"] = pictures
    entry["gold"] = (
        None if question.gold is None else visible(clipped(question.gold, head=2000, tail=0))
    )
    if isinstance(question.grading, scoring.Question):
        hard = question.grading
        entry["reference"] = {
            "sense": hard.task.sense.value,
            "objective": hard.reference,
            "proven": hard.optimum is not None,
            "floors": dict(hard.floors),
        }


def _add_picture(found: Browsing, data: bytes) -> dict[str, Any]:
    key = hashlib.sha256(data).hexdigest()[:16]
    shown, note = data, ""
    kind = next((kind for start, kind in _KINDS if data.startswith(start)), None)
    if kind is None or len(data) > MOST_PICTURE_BYTES:
        shown, note = _reduced(data)
        kind = "image/jpeg"
    if shown and key not in found.pictures:
        found.pictures[key] = f"data:{kind};base64,{base64.b64encode(shown).decode()}"
    return {"key": key if shown else None, "note": note, "size": _size(shown)}


def _size(data: bytes) -> tuple[int, int] | None:
    """Width and height in pixels, so that the page keeps a picture's room; None if unreadable."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as picture:
            return picture.size
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError):
        return None


def _reduced(data: bytes) -> tuple[bytes, str]:
    """A smaller picture, empty where the bytes are no picture, and what was done to it."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as picture:
            size = picture.size
            plain = picture.convert("RGBA")
    except (UnidentifiedImageError, OSError, ValueError, Image.DecompressionBombError) as error:
        return b"", f"the picture cannot be shown: {visible(str(error))[:200]}"
    plain.thumbnail((_SIDE, _SIDE))
    paper = Image.new("RGB", plain.size, "white")
    paper.paste(plain, mask=plain)
    target = io.BytesIO()
    paper.save(target, "JPEG", quality=85)
    return (
        target.getvalue(),
        f"reduced from {size[0]} × {size[1]} to {paper.width} × {paper.height}",
    )


def _reply(record: SampleRecord, number: int) -> dict[str, Any]:
    """A sample with what was made of it; what it lacks is left out."""
    texts = {
        "text": record.reply,
        "reasoning": record.reasoning,
        "extracted": record.extracted,
        "reason": record.reason or None,
        "rule": record.rule or None,
        "error": record.error,
        "finish": record.finish_reason,
        "stop": record.stop_reason,
        "extractStage": record.extract_stage,
        "gradeStage": record.grade_stage,
    }
    shown = {
        name: visible(clipped(text, head=_HEAD, tail=_TAIL))
        for name, text in texts.items()
        if text is not None
    }
    anchor = "greedy" if record.decode == "greedy" else f"sample{record.sample}"
    return {
        "anchor": anchor if number == 0 else f"run{number + 1}.{anchor}",
        "run": number,
        "decode": visible(record.decode),
        "sample": record.sample,
        "state": record.state.value,
        "score": record.score,
        "objective": record.objective,
        "tokens": record.num_tokens,
        **shown,
    }


def _anchor(name: str, taken: set[str]) -> str:
    """A name for the fragment of an address that no other question has."""
    for candidate in _candidates("sample-" + re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:120]):
        if candidate not in taken:
            taken.add(candidate)
            return candidate
    raise AssertionError("there is always another candidate")


def _candidates(stem: str) -> Iterator[str]:
    yield stem
    number = 2
    while True:
        yield f"{stem}-{number}"
        number += 1
