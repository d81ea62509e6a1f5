"""Questions to train on: splits of npbench, on the fly or from disk, published sets, and folders.

A question carries its pictures and the columns that rewards look at; rows are refused, not
skipped, where something is missing.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from npbench.errors import InputError, unknown_name
from npbench.rng import stream
from npbench.splits import LazySplit, load
from npbench.storage import open_split
from trainers.config import Config
from trainers.sections import DataSettings

if TYPE_CHECKING:
    from trainers.named_data import NamedQuestions

__all__ = [
    "FolderQuestions",
    "PromptStream",
    "Question",
    "SplitQuestions",
    "asked_for",
    "held_out",
    "opened_sets",
    "questions",
]


KEPT = 1 << 15
"""Questions kept in memory: at nano sizes some 10 kB each."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question, its pictures, and what its replies are judged by."""

    id: str
    prompt: str
    images: tuple[bytes, ...]
    """Encoded pictures in the order of their placeholders."""
    row: Mapping[str, Any]
    """The columns of the data set, pictures left out."""

    @property
    def is_np(self) -> bool:
        """Whether npbench judges the replies."""
        return "instance" in self.row


def _question_of_split(row: Mapping[str, Any]) -> Question:
    picture = row["image"]
    if row["modality"] == "image" and picture is None:
        raise InputError(f"row {row['id']} has no picture, though its modality is image")
    rest = {name: value for name, value in row.items() if name not in ("image", "layout")}
    return Question(row["id"], row["prompt"], () if picture is None else (picture,), rest)


class SplitQuestions(Sequence[Question]):
    """The rows of a split that is made on the fly."""

    def __init__(self, split: LazySplit) -> None:
        """The questions of a lazy split; those made last are kept, since drawing them is slow."""
        self._split = split
        self._made = lru_cache(maxsize=KEPT)(self._make)

    def _make(self, index: int) -> Question:
        return _question_of_split(asdict(self._split[index]))

    def __len__(self) -> int:
        """Number of questions."""
        return len(self._split)

    @overload
    def __getitem__(self, index: int) -> Question: ...
    @overload
    def __getitem__(self, index: slice) -> list[Question]: ...
    def __getitem__(self, index: int | slice) -> Question | list[Question]:
        """One question, or those of a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"question {index} of {len(self)}")
        return self._made(index % len(self))


class FolderQuestions(Sequence[Question]):
    """The rows of a ``datasets`` folder: ``prompt``, ``answer``, and ``images`` or ``image``.

    Optional, too: ``id``, ``variants`` (rewordings), ``answer_type``, ``precision``, ``options``.
    """

    def __init__(self, folder: Path, columns: Mapping[str, str]) -> None:
        """Opens the folder, in which columns may have other names.

        Raises:
            InputError: If it cannot be read or lacks a column.
        """
        self._folder = folder
        self._rows = _open_dataset(folder)
        for name, own in columns.items():
            if own not in self._rows.column_names:
                raise unknown_name(f"column of {folder}", own, self._rows.column_names)
            if own != name:
                taken = [name] if name in self._rows.column_names else []
                self._rows = self._rows.remove_columns(taken).rename_column(own, name)
        for name in ("prompt", "answer"):
            if name not in self._rows.column_names:
                known = ", ".join(self._rows.column_names)
                raise InputError(f"{folder} has no column {name!r}; its columns: {known}")

    def __len__(self) -> int:
        """Number of questions."""
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Question: ...
    @overload
    def __getitem__(self, index: slice) -> list[Question]: ...
    def __getitem__(self, index: int | slice) -> Question | list[Question]:
        """One question, or those of a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        row = dict(self._rows[index])
        found = row.pop("images", None)
        found = [row.pop("image", None)] if found is None else found
        images = tuple(_png(image) for image in found if image is not None)
        where = f"row {index} of {self._folder}"
        if not row["prompt"]:
            raise InputError(f"{where} has no prompt")
        if row["answer"] in (None, ""):
            raise InputError(f"{where} has no answer")
        if "<image>" in row["prompt"] and not images:
            raise InputError(f"{where} has no picture, though its prompt holds <image>")
        name = str(row.get("id") or f"{self._folder.name}-{index}")
        return Question(name, row["prompt"], images, {**row, "gold": str(row["answer"])})


def _png(image: Any) -> bytes:
    """Encoded bytes of a picture as ``datasets`` gives it."""
    if isinstance(image, Mapping):
        return bytes(image["bytes"])
    if isinstance(image, bytes):
        return image
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def _open_dataset(folder: Path) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise InputError("folders of questions need: pip install 'npbench[eval]'") from error
    try:
        if (folder / "state.json").exists():
            return datasets.load_from_disk(str(folder))
        found = datasets.load_dataset(str(folder))
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{folder} cannot be read as a data set: {reason}") from None
    names = list(found)
    if len(names) != 1:
        raise InputError(f"{folder} must hold one split, got {', '.join(names)}")
    return found[names[0]]


def questions(settings: DataSettings) -> Sequence[Question]:
    """The questions of the section ``[data]``.

    Raises:
        InputError: If a name is unknown or a folder unusable.
    """
    if settings.name is not None:
        return asked_for(_named(settings), settings.prompt_format)
    if settings.folder is not None:
        return asked_for(
            _from_folder(Path(settings.folder), settings.columns), settings.prompt_format
        )
    assert settings.suite is not None
    return SplitQuestions(
        load(
            settings.suite,
            settings.levels,
            settings.split,
            settings.seed,
            per_task=settings.per_task,
            tasks=settings.tasks,
            modality=settings.modality,
        )
    )


def _named(settings: DataSettings) -> "NamedQuestions":
    from trainers.named_data import open_named

    assert settings.name is not None
    return open_named(
        settings.name,
        split=settings.split,
        folder=settings.folder,
        revision=settings.revision,
        columns=settings.columns,
    )


def opened_sets(config: Config) -> list[str]:
    """What was found in the published sets of a run, one line each.

    Raises:
        InputError: If one cannot be loaded.
    """
    mixes = (mix.data for stage in config.stages for mix in stage.mix)
    sources = [source for source in (config.data, *mixes) if source.name is not None]
    return list(dict.fromkeys(_named(source).sentence() for source in sources))


def _from_folder(folder: Path, columns: Mapping[str, str]) -> Sequence[Question]:
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    if (folder / "manifest.json").exists():
        return [_question_of_split(row) for row in open_split(folder).rows()]
    return FolderQuestions(folder, columns)


class _Formatted(Sequence[Question]):
    """Questions with words below their prompts; questions of NP tasks have their own already."""

    def __init__(self, source: Sequence[Question], words: str) -> None:
        self._source = source
        self._words = words

    def __len__(self) -> int:
        return len(self._source)

    @overload
    def __getitem__(self, index: int) -> Question: ...
    @overload
    def __getitem__(self, index: slice) -> list[Question]: ...
    def __getitem__(self, index: int | slice) -> Question | list[Question]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        question = self._source[index]
        if question.is_np:
            return question
        return replace(question, prompt=f"{question.prompt}\n\n{self._words}")


def asked_for(source: Sequence[Question], prompt_format: str) -> Sequence[Question]:
    """The questions with the evaluators' words for a form of answer below them.

    Args:
        source: Questions.
        prompt_format: A name of ``evaluators.prompts.PROMPT_FORMATS``; ``plain`` adds nothing.
    """
    from evaluators.prompts import PROMPT_FORMATS

    words = PROMPT_FORMATS[prompt_format]
    return _Formatted(source, words) if words else source


def held_out(config: Config) -> Sequence[Question]:
    """The questions of the evaluation: named, of the folder, else the suite's validation split."""
    wanted = config.evaluation
    if wanted.name is not None:
        from trainers.named_data import open_named
        from trainers.named_sets import named_set

        split = named_set(wanted.name).held_out
        assert split is not None
        own = open_named(wanted.name, split=split, folder=wanted.folder)
        return asked_for(own, config.data.prompt_format)[: wanted.questions]
    if wanted.folder is not None:
        found = _from_folder(Path(wanted.folder), config.data.columns)
        return asked_for(found, config.data.prompt_format)[: wanted.questions]
    return questions(
        config.data.model_copy(
            update={"split": "validation", "seed": wanted.seed, "per_task": wanted.questions}
        )
    )[: wanted.questions]


class PromptStream:
    """Questions in an order that depends on seed and epoch alone: a position is all its state."""

    def __init__(self, source: Sequence[Question], *, seed: int, position: int = 0) -> None:
        """A stream at a position.

        Raises:
            InputError: If there is no question.
        """
        if not len(source):
            raise InputError("the data must hold at least 1 question, got none")
        self._source = source
        self.position = position
        self._order = lru_cache(maxsize=2)(lambda epoch: _permuted(len(source), seed, epoch))

    def take(self, count: int) -> Iterator[Question]:
        """The next questions; a question comes again only after all the others."""
        for _ in range(count):
            epoch, place = divmod(self.position, len(self._source))
            self.position += 1
            yield self._source[int(self._order(epoch)[place])]


def _permuted(length: int, seed: int, epoch: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return stream("npbench-train", "order", seed, epoch).permutation(length)
