"""Reads the labels of options at the head of a statement: ``(B)``, ``B. 12``, ``D, not B``.

A label must stand apart from words: in brackets, alone, with punctuation behind it, or in front of
its own option's text. A lower-case letter counts only alone, in brackets, or right after a cue, and
an ``a`` in front of a word is the article.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evaluators.normalization import comparison_key, normalize

__all__ = ["as_label", "is_text_of", "named_labels", "text_key"]

_JOINER = re.compile(
    r"(?:\s*[,;/&+]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s*,?\s+)(?P<but>(?:but\s+)?)"
)
_LAST = re.compile(r"(?:\s*[,;/&+]\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s+)\S+\s*$")
_NOR = re.compile(r"\s*,?\s*nor\s+")
_BUT = re.compile(r"\s*,?\s*(?:but|rather)\s+")
_LEADING = re.compile(
    r"^(?:(?:the|is|it|it's|either|both|only|just|clearly|therefore|thus|so|indeed|definitely|"
    r"options?|choices?|letters?|labels?|statements?|answers?)\b[\s:]*)+",
    re.IGNORECASE,
)
_OPTION_WORD = re.compile(r"(?:option|choice)\b", re.IGNORECASE)
_NOT = re.compile(r"^(?:is\s+|it\s+is\s+)?(?:not|never|neither)\s+", re.IGNORECASE)
_REJECTED = re.compile(
    r"\s*(?:is|was|are|would be|cannot be|can't be|isn't|fails)?\s*"
    r"(?:not\b|wrong|incorrect|false|ruled out|excluded|impossible|fails\b)",
    re.IGNORECASE,
)
_CONNECTOR = re.compile(
    r"\s+(?:because|since|as|due|but|not|rather|is|which|where|while|for|from|by|with|given)\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"\s+(?:because|since|as|due to|given that)\b", re.IGNORECASE)
_FORMULA = re.compile(r"\s*(?:[=<>+*^_(\\]|/(?!\s*\w(?!\w))|-\s*\d|\s-\s*\w+\s*=)|\.\d|[:,]\d|°|%")
_PUNCTUATION = re.compile(r"\s*[.:;,!\-–—]")


def named_labels(
    text: str, options: Mapping[str, str], *, cued: bool, several: bool = False
) -> frozenset[str] | None:
    """The labels that a statement begins with, rejected ones left out.

    Args:
        text: A normalised statement.
        options: Labels to texts.
        cued: Whether the statement stands in a box or tag or behind a cue.
        several: Whether the question asks for a set of options.

    Returns:
        None where no label is named; empty where labels are rejected only, or too many are named.

    Example:
        >>> options = {"B": "12", "D": "16"}
        >>> named_labels("D, not B", options, cued=True), named_labels("B or D", options, cued=True)
        (frozenset({'D'}), frozenset())
        >>> named_labels("Both", options, cued=True) is None
        True
    """
    if not options:
        return None
    if cued or _OPTION_WORD.match(text):
        text = _LEADING.sub("", text)
    if several and re.fullmatch(r"[A-Z]{2,}", text) and set(text) <= set(options):
        return frozenset(text)  # "ACD"
    head = _Head(options, cued)
    named: list[str] = []
    rejected = False
    following: str | None = text
    while following is not None:
        negated = _NOT.match(following)
        if negated:
            following = _LEADING.sub("", following[negated.end() :])
        found = head.label(following, first=not named and not rejected)
        if found is None:
            break
        if negated or _REJECTED.match(found.rest):
            rejected = True
        elif found.label not in named:
            named.append(found.label)
        following = head.continuation(found, negated=negated is not None)
        if following is None and not cued and head.names_another(found):
            return frozenset()
    if not named:
        return frozenset() if rejected else None
    return frozenset(named) if several or len(named) == 1 else frozenset()


def as_label(written: str, options: Mapping[str, str]) -> str | None:
    """The label that a text is, brackets and case aside; None where it is none."""
    written = written.strip().strip("()[]{}.:* ")
    if written in options:
        return written
    return next((label for label in options if label.casefold() == written.casefold()), None)


def is_text_of(rest: str, option: str) -> bool:
    """Whether what follows a label is that option's text."""
    text = re.sub(r"^[\s.:;,)\-–—]+", "", rest)
    text = re.sub(r"^\((.*)\)$", r"\1", text)
    return bool(option.strip()) and bool(text) and text_key(text) == text_key(option)


def text_key(text: str) -> str:
    """What the texts of options are compared by; empty for an empty text."""
    return comparison_key(normalize(text)) if text.strip() else ""


@dataclass(frozen=True, slots=True)
class _Found:
    label: str
    rest: str
    """The statement behind the label."""


@dataclass(frozen=True, slots=True)
class _Head:
    """Reads one label at a time from the front of a statement."""

    options: Mapping[str, str]
    cued: bool

    def label(self, text: str, *, first: bool, last: bool = False) -> _Found | None:
        """The label at the front, if it is delimited.

        Args:
            text: A statement or its remainder.
            first: Whether no label stood before it.
            last: Whether it continues a list of labels, where one word may follow.
        """
        names = self._alternatives(self.options)
        bracketed = re.match(
            rf"[(\[{{<]\s*({names})\s*[)\]}}>]|({names})\s*\)", text, re.IGNORECASE
        )
        match = bracketed or re.match(rf"({names})(?![\w'])", text, re.IGNORECASE)
        if match is None:
            return None
        written = match[1] or match[2]
        label = as_label(written, self.options)
        if label is None:
            return None
        found = _Found(label, text[match.end() :])
        if bracketed or not found.rest.strip(" .:;,!\"'"):
            return found
        if written != label and not (self.cued and first):
            return None
        if is_text_of(found.rest, self.options[label]):
            return found
        return found if self._delimited(found, written, names, last=last) else None

    def continuation(self, found: _Found, *, negated: bool) -> str | None:
        """What is left to read behind a label; None where only an explanation follows."""
        joiner = _JOINER.match(found.rest)
        following = found.rest[joiner.end() :] if joiner else ""
        if joiner and _NOT.match(following):
            return following
        if nor := _NOR.match(found.rest):
            return "not " + found.rest[nor.end() :]
        if negated and (but := _BUT.match(found.rest)):
            return found.rest[but.end() :]
        if not joiner or is_text_of(found.rest, self.options[found.label]):
            return None
        strict = _Head(self.options, cued=False)
        return following if strict.label(following, first=False, last=True) else None

    def names_another(self, found: _Found) -> bool:
        """Whether another label with a bracket follows: a list of options, not a choice."""
        others = [label for label in self.options if label != found.label]
        if not others or is_text_of(found.rest, self.options[found.label]):
            return False
        return re.search(rf"(?<!\w)(?:{self._alternatives(others)})\)", found.rest) is not None

    def _delimited(self, found: _Found, written: str, names: str, *, last: bool) -> bool:
        rest = found.rest
        if _FORMULA.match(rest):
            return False
        if _PUNCTUATION.match(rest) or (last and _LAST.match(rest)):
            return re.match(r"-\w", rest) is None
        if written == "a" and re.match(r"\s+\w", rest):
            return False
        joined = re.match(rf"(?:\s+(?:and|or)\s+|\s*[/&]\s*)[(\[]?(?:{names})(?!\w)", rest)
        connector = _CONNECTOR if self.cued else _REASON
        return bool(joined or connector.match(rest))

    @staticmethod
    def _alternatives(labels: "Mapping[str, str] | list[str]") -> str:
        return "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
