r"""Options of multiple-choice questions: read from a question's text, shown, and as golds."""

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase

from evaluators.grading import Gold
from evaluators.labels import as_label
from evaluators.options import gold_labels
from evaluators.verdicts import AnswerType
from npbench.errors import InputError

__all__ = [
    "bare_labels",
    "by_letter",
    "chosen_text",
    "gold_of",
    "listed",
    "named_gold",
    "written_options",
]

_LAST_JUMP = 7


def by_letter(texts: Sequence[str]) -> dict[str, str]:
    """The texts under A, B, C ... in order.

    Raises:
        InputError: If there are more than 26.
    """
    if len(texts) > len(ascii_uppercase):
        raise InputError(f"{len(texts)} options, at most {len(ascii_uppercase)} have a letter")
    return dict(zip(ascii_uppercase, texts, strict=False))


def bare_labels(labels: Sequence[str]) -> dict[str, str]:
    """Labels whose texts are drawn in the picture."""
    return dict.fromkeys(labels, "")


def listed(options: Mapping[str, str]) -> str:
    """The options as lines ``(A) ...``; only the labels where no option has a text."""
    if not any(options.values()):
        return f"The options are labelled {', '.join(options)} in the picture."
    return "\n".join(f"({label}) {text}" for label, text in options.items())


def written_options(text: str, *, before: str, after: str, jumps: bool = False) -> dict[str, str]:
    r"""The options that a text lists, found by expecting their labels in order.

    Only the next label is looked for: another letter inside an option's text is passed over.

    Args:
        text: The part of a question that lists options.
        before: Pattern of what stands in front of a label.
        after: Pattern of what follows a label.
        jumps: Whether a label that does not come may be followed by one of those after it, up to
            the eighth.

    Example:
        >>> written_options("A. 3, 4;B. to B.;C. C", before=r"^|[;\s]", after=r"[.](?=\s*[^;\s])")
        {'A': '3, 4', 'B': 'to B.', 'C': 'C'}
    """
    found: list[tuple[str, int, int]] = []
    position, expected = 0, 0
    while expected < len(ascii_uppercase):
        last = max(_LAST_JUMP, expected) if jumps and found else expected
        for number in range(expected, last + 1):
            label = ascii_uppercase[number]
            pattern = re.compile(rf"(?:{before}){label}(?:{after})", re.MULTILINE)
            match = pattern.search(text, position)
            if match:
                found.append((label, match.start(), match.end()))
                position, expected = match.end(), number + 1
                break
        else:
            break
    ends = [start for _, start, _ in found[1:]] + [len(text)]
    return {
        label: text[begin:end].strip().rstrip(";,").strip()
        for (label, _, begin), end in zip(found, ends, strict=False)
    }


def gold_of(answer: str, options: Mapping[str, str]) -> Gold:
    """The gold of a question whose answer is a label, several labels or an option's text.

    Raises:
        InputError: If the answer names no option.
    """
    gold = named_gold(answer, options)
    if gold is None:
        raise InputError(
            f"the answer {answer!r:.60} names none of the options {', '.join(options)}"
        )
    return gold


def named_gold(answer: str, options: Mapping[str, str]) -> Gold | None:
    r"""The same, and None where the answer names no option.

    Example:
        >>> named_gold("C\nA", {"A": "1", "B": "2", "C": "3"}).text
        'A, C'
    """
    labels, all_required = gold_labels(answer, options)
    if not labels:
        return None
    named = ", ".join(label for label in options if label in labels)
    return Gold(named if all_required else answer, AnswerType.OPTION, options=options)


def chosen_text(answer: str, options: Mapping[str, str]) -> Gold:
    """The gold of a question whose answer is the text of an option, not its label.

    A text that two options carry makes either right.

    Raises:
        InputError: If no option has the text, or two have one that looks like a label.
    """
    labels = [label for label, text in options.items() if text == answer]
    if not labels:
        raise InputError(f"the answer {answer!r:.60} is the text of no option")
    if len(labels) == 1:
        return Gold(labels[0], AnswerType.OPTION, options=options)
    if as_label(answer, options):
        raise InputError(f"the options {', '.join(labels)} have the text {answer!r}, a label")
    return Gold(answer, AnswerType.OPTION, options=options)
