"""Questions that training data share with what is evaluated on, by hashes of text and picture."""

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainers.config import Config
from trainers.data import Question, held_out, questions
from trainers.sections import DataSettings

__all__ = ["Overlap", "benchmark_questions", "find_overlap", "overlap_report"]

_PICTURE_PLACE = re.compile(r"<image(?:[ _]?\d{1,2})?>")


@dataclass(frozen=True, slots=True)
class Overlap:
    """How many training questions are among the evaluation's."""

    questions: int
    """Training questions looked at."""
    same_text: tuple[str, ...]
    """Ids of those whose words are also asked in the evaluation."""
    same_picture: tuple[str, ...]
    """Ids of those with a picture of the evaluation, pixel for pixel."""
    same_both: tuple[str, ...]
    """Ids of those in both lists: the question itself. A text alone may be a mere template."""

    def sentence(self, other: str = "the evaluation") -> str:
        """The counts in one line.

        Args:
            other: What the questions are compared with.
        """
        return (
            f"of {self.questions} training questions {len(self.same_text)} share their text, "
            f"{len(self.same_picture)} a picture and {len(self.same_both)} both with {other}"
        )


@dataclass(frozen=True, slots=True)
class _Keys:
    """What questions are known by."""

    texts: frozenset[str]
    pictures: frozenset[str]
    sizes: frozenset[tuple[int, int]]
    """Of the pictures: one of another size needs no decoding."""

    @staticmethod
    def of(asked: Iterable[Question]) -> "_Keys":
        texts: set[str] = set()
        pictures: set[str] = set()
        sizes: set[tuple[int, int]] = set()
        for question in asked:
            texts.add(_text_key(question))
            for image in question.images:
                size, key = _picture_key(image)
                sizes.add(size)
                pictures.add(key)
        return _Keys(frozenset(texts), frozenset(pictures), frozenset(sizes))


def _text_key(question: Question) -> str:
    text = _PICTURE_PLACE.sub(" ", question.prompt)
    words = re.sub(r"\W+", " ", text.lower()).strip()
    return hashlib.sha256(words.encode()).hexdigest()


def _picture_key(image: bytes) -> tuple[tuple[int, int], str]:
    """Size and hash of decoded pixels: the same picture may be encoded in several ways."""
    from PIL import Image

    with Image.open(io.BytesIO(image)) as opened:
        plain = opened.convert("RGB")
        content = repr(plain.size).encode() + plain.tobytes()
    return plain.size, hashlib.sha256(content).hexdigest()


def _size(image: bytes) -> tuple[int, int]:
    from PIL import Image

    with Image.open(io.BytesIO(image)) as opened:
        return opened.size


def find_overlap(training: Iterable[Question], evaluation: Iterable[Question]) -> Overlap:
    """Compares all training questions with all of the evaluation.

    Args:
        training: Questions to train on.
        evaluation: Questions that must not be among them.
    """
    (found,) = _find_overlaps(training, [_Keys.of(evaluation)])
    return found


def _find_overlaps(training: Iterable[Question], others: Sequence[_Keys]) -> list[Overlap]:
    """The overlap with each of several evaluations, in one pass over the training questions."""
    sizes = frozenset[tuple[int, int]]().union(*(keys.sizes for keys in others))
    count = 0
    found: list[tuple[list[str], list[str], list[str]]] = [([], [], []) for _ in others]
    for question in training:
        count += 1
        text = _text_key(question)
        pictures = {_picture_key(one)[1] for one in question.images if _size(one) in sizes}
        for keys, (same_text, same_picture, same_both) in zip(others, found, strict=True):
            by_text, by_picture = text in keys.texts, bool(pictures & keys.pictures)
            if by_text:
                same_text.append(question.id)
            if by_picture:
                same_picture.append(question.id)
            # without a picture the text is all there is
            if by_text and (by_picture or not question.images):
                same_both.append(question.id)
    return [Overlap(count, *(tuple(ids) for ids in lists)) for lists in found]


def benchmark_questions(name: str, folder: str) -> Iterator[Question]:
    """A benchmark's questions as they are asked, for comparison only: they have no gold.

    Args:
        name: A name of ``evaluators.benchmarks.BENCHMARKS``.
        folder: A folder of its data; empty for the Hub.

    Raises:
        InputError: If it cannot be loaded.
    """
    from evaluators.benchmark import get_benchmark

    benchmark = get_benchmark(name, source=Path(folder) if folder else None)
    for question in benchmark.questions:
        text = " ".join(part for part in question.parts if isinstance(part, str))
        images = tuple(part for part in question.parts if isinstance(part, bytes))
        yield Question(question.id, text, images, {})


def overlap_report(config: Config) -> list[str]:
    """One line for each source of training questions and each evaluation of a run.

    Suites are left out: their splits share no instance by construction.

    Args:
        config: Whose data, stages, held-out questions and ``evaluation.benchmarks`` are compared.

    Raises:
        InputError: If some data cannot be loaded.
    """
    mixes = (mix.data for stage in config.stages for mix in stage.mix)
    sources: list[DataSettings] = []
    for source in (config.data, *mixes):
        plain = source.model_copy(update={"prompt_format": "plain"})
        if plain.suite is None and plain not in sources:
            sources.append(plain)
    if not sources:
        return []
    others: dict[str, _Keys] = {}
    evaluation = config.evaluation
    if evaluation.name is not None or evaluation.folder is not None:
        data = config.data.model_copy(update={"prompt_format": "plain"})
        asked = held_out(config.model_copy(update={"data": data}))
        others["the held-out questions"] = _Keys.of(asked)
    for name, folder in evaluation.benchmarks.items():
        others[name] = _Keys.of(benchmark_questions(name, folder))
    return [line for source in sources for line in _lines(source, others)]


def _lines(source: DataSettings, others: Mapping[str, _Keys]) -> Iterator[str]:
    if not others:
        return
    for name, found in zip(
        others, _find_overlaps(questions(source), list(others.values())), strict=True
    ):
        yield f"{source.name or source.folder}: {found.sentence(name)}"
