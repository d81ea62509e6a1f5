r"""Reads which option a reply to a multiple-choice question names: a label, or an option's text.

The labels are those of the question. A label must stand apart from words: in brackets, alone, or
with punctuation behind it. Where two options are named, or none, the reading is empty.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evaluators.extraction import ExtractStage, Found, find_answers, tidy
from evaluators.labels import as_label, is_text_of, named_labels, text_key
from evaluators.normalization import normalize
from evaluators.reasoning import split_reasoning

__all__ = ["OptionReading", "gold_labels", "read_option"]

SameText = Callable[[str, str], bool]
"""Whether an option's text and a reply's text mean the same."""

_BEFORE_REASON = re.compile(r",?\s+(?:because|since|as)\b|[;,]\s+", re.IGNORECASE)
_TRAILING = re.compile(r"\s\(?(?:option\s+)?([A-Za-z0-9])\)$")
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
_YES_NO = {"yes": "yes", "no": "no", "true": "yes", "false": "no"}
_MAX_TEXT = 2_000
_MAX_LINES = 100


@dataclass(frozen=True, slots=True)
class OptionReading:
    """The options that a reply names."""

    labels: frozenset[str]
    """Labels as the question writes them; empty where none can be named."""
    stage: ExtractStage
    text: str | None = None
    """The statement they were read from; kept where it names an option's text only."""
    reason: str = ""

    @property
    def label(self) -> str | None:
        """The one label, or None where there is none or more than one."""
        return next(iter(self.labels)) if len(self.labels) == 1 else None


def read_option(
    reply: str, options: Mapping[str, str], *, same: SameText, several: bool = False
) -> OptionReading:
    """The option that ``reply`` names.

    Args:
        reply: A model's whole reply.
        options: Labels to texts, in the order of the question; texts may be empty.
        same: Decides whether an option's text and a stated text have the same value.
        several: Whether the question asks for a set of options.

    Example:
        >>> options = {"A": "10", "B": "12"}
        >>> read_option("Not A. The answer is (B).", options, same=str.__eq__).label
        'B'
        >>> read_option("Both options are fine.", options, same=str.__eq__).label is None
        True
    """
    split = split_reasoning(reply)
    if not split.closed:
        return _nothing("the think block never closes")
    if not split.answer:
        return _nothing("the reply is empty")
    reader = _Reader(options, same, several)
    unread: Found | None = None
    for found in find_answers(split.answer):
        if unread is not None and found.end <= unread.end:
            continue  # what stands before an unreadable box was superseded by it
        text = tidy(found.text)
        labels = reader.read(text, cued=True)
        if labels is None and found.stage is ExtractStage.BOX:
            unread = found
            continue
        if labels is None:
            continue
        if not labels:
            return _nothing("two options, or only rejected ones, are named", text)
        return OptionReading(labels, found.stage, text)
    if unread is not None:
        return _nothing("the last box names no option", tidy(unread.text))
    labels = reader.read_whole(split.answer)
    if labels:
        return OptionReading(labels, ExtractStage.WHOLE, tidy(split.answer)[:_MAX_TEXT])
    return _nothing("no option is named")


def gold_labels(gold: str, options: Mapping[str, str]) -> tuple[frozenset[str], bool]:
    r"""The labels that a gold stands for, and whether all of them are required.

    A gold is a label, several labels (``"A, C"``, ``"C\nD"``), or an option's text; a text that
    two options carry makes either right.

    Example:
        >>> gold_labels("(B)", {"A": "1", "B": "2"}), gold_labels("2", {"A": "2", "B": "3"})
        ((frozenset({'B'}), True), (frozenset({'A'}), False))
    """
    parts = [part for part in re.split(r"\s*[,;&\n]\s*|\s+and\s+", gold.strip()) if part]
    labels = [as_label(part, options) for part in parts]
    if labels and all(label is not None for label in labels):
        return frozenset(label for label in labels if label is not None), True
    wanted = text_key(gold)
    equal = [label for label, text in options.items() if wanted and text_key(text) == wanted]
    return frozenset(equal), False


@dataclass(frozen=True, slots=True)
class _Reader:
    options: Mapping[str, str]
    same: SameText
    several: bool

    def read(self, text: str, *, cued: bool) -> frozenset[str] | None:
        """Labels named by a statement; None where it names no option, empty where too many."""
        text = _plain(text)
        if not text:
            return None
        labels = self._labels(text, cued=cued)
        if labels is None and self._yes_no():
            labels = self._read_yes_no(text)
        return self._by_text(text) if labels is None else labels

    def read_whole(self, answer: str) -> frozenset[str] | None:
        """Labels named by a reply that is nothing but an answer, or an answer and its reason."""
        lines = [line.strip() for line in answer.strip().splitlines() if line.strip()]
        if len(lines) > _MAX_LINES:
            return None
        if any(self._labels(_plain(line), cued=False) for line in lines[1:]):
            return None  # a list of options, or labels that contradict each other
        labels = self._labels(_plain(lines[0]), cued=False)
        text = _plain(answer)
        if labels is None and self._yes_no():
            labels = self._read_yes_no(text)
        if labels is None and len(lines) == 1:
            labels = self._by_text(text)
        return labels

    def _labels(self, text: str, *, cued: bool) -> frozenset[str] | None:
        return named_labels(text, self.options, cued=cued, several=self.several)

    def _by_text(self, text: str) -> frozenset[str] | None:
        """The one option whose text or value the statement is; None where there is none."""
        trailing = _TRAILING.search(text)
        written_so = any(text_key(option) == text_key(text) for option in self.options.values())
        if trailing and not written_so and (label := as_label(trailing[1], self.options)):
            rest = text[: trailing.start()]
            return frozenset({label}) if is_text_of(rest, self.options[label]) else None
        short = _before_reason(text)
        forms = (text, _ARTICLE.sub("", text), short, _ARTICLE.sub("", short))
        for candidate in dict.fromkeys(forms):
            key = text_key(candidate)
            if not key:
                continue
            exact = [label for label, option in self.options.items() if text_key(option) == key]
            if len(exact) == 1:
                return frozenset(exact)
            if exact:
                return frozenset()
            equal = [
                label
                for label, option in self.options.items()
                if option.strip() and self.same(option, candidate)
            ]
            if equal:
                return frozenset(equal) if len(equal) == 1 else frozenset()
        return None

    def _yes_no(self) -> bool:
        texts = [normalize(text).casefold() for text in self.options.values()]
        return len(texts) == 2 and {_YES_NO.get(text) for text in texts} == {"yes", "no"}

    def _read_yes_no(self, text: str) -> frozenset[str] | None:
        words = {word.casefold() for word in re.findall(r"[A-Za-z]+", text)}
        found = [
            label for label, option in self.options.items() if normalize(option).casefold() in words
        ]
        return frozenset(found) if len(found) == 1 else None


def _plain(text: str) -> str:
    text = normalize(text[:_MAX_TEXT]).replace("**", "").replace("`", "")
    return tidy(text.strip("\"'_* "))


def _before_reason(text: str) -> str:
    return _BEFORE_REASON.split(text, maxsplit=1)[0]


def _nothing(reason: str, text: str | None = None) -> OptionReading:
    return OptionReading(frozenset(), ExtractStage.NONE, text, reason)
