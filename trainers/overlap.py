"""Questions that training data share with what is evaluated on, by hashes of text and picture."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from trainers.data import Question

__all__ = ["Overlap", "find_overlap"]


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

    def sentence(self) -> str:
        """The counts in one line."""
        return (
            f"of {self.questions} training questions {len(self.same_text)} share their text, "
            f"{len(self.same_picture)} a picture and {len(self.same_both)} both with the evaluation"
        )


def _text_key(question: Question) -> str:
    words = re.sub(r"\W+", " ", question.prompt.replace("<image>", " ").lower()).strip()
    return hashlib.sha256(words.encode()).hexdigest()


def _picture_keys(question: Question) -> set[str]:
    """Hashes of decoded pixels: the same picture may be encoded in several ways."""
    import io

    from PIL import Image

    found = set()
    for image in question.images:
        with Image.open(io.BytesIO(image)) as opened:
            plain = opened.convert("RGB")
            content = repr(plain.size).encode() + plain.tobytes()
        found.add(hashlib.sha256(content).hexdigest())
    return found


def find_overlap(training: Iterable[Question], evaluation: Iterable[Question]) -> Overlap:
    """Compares all training questions with all of the evaluation.

    Args:
        training: Questions to train on.
        evaluation: Questions that must not be among them.
    """
    texts: set[str] = set()
    pictures: set[str] = set()
    for question in evaluation:
        texts.add(_text_key(question))
        pictures |= _picture_keys(question)
    count = 0
    same_text, same_picture, same_both = [], [], []
    for question in training:
        count += 1
        by_text = _text_key(question) in texts
        keys = _picture_keys(question)
        by_picture = bool(keys & pictures)
        if by_text:
            same_text.append(question.id)
        if by_picture:
            same_picture.append(question.id)
        # without a picture the text is all there is
        if by_text and (by_picture or not keys):
            same_both.append(question.id)
    return Overlap(count, tuple(same_text), tuple(same_picture), tuple(same_both))
