"""Finds the final answer of a reply: last box, last answer tag, last cue, or the whole reply.

There is no rule that takes the last number, the first letter or anything near a right answer:
where none of the four stages finds an answer, there is none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from evaluators.reasoning import split_reasoning

__all__ = ["ExtractStage", "Extraction", "Found", "extract", "find_answers", "tidy"]

# Bounds that keep every step linear in the length of a hostile reply.
_MAX_ANSWER_PART = 400_000
_MAX_STATEMENT = 2_000
_MAX_JOINED = 100
_MAX_CUES = 32
_WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|textrm|texttt|mathrm|mathbf|mathit|mathsf|mbox|hbox|operatorname)"
    r"\s*\{"
)
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)\s*\{")
_TAG_END = re.compile(r"</answer\s{0,3}>", re.IGNORECASE)
_MENTION = re.compile(r"\$?\\(?:boxed|fbox)(?![A-Za-z])\s*(?:\{[\s.…]*\}\$?|(?!\s*\{))")
_UNANSWERED = re.compile(r"<answer|^(?:the |my )?(?:final |correct )?answer\b", re.IGNORECASE)
_BETWEEN_BOXES = re.compile(r"(?:[\s,;$*~]|\\[,;:!\s()\[\]]|\\\\|\\q?quad)*")
_PLACEHOLDER = re.compile(r"(?:[\s.…~$]|\\[,;:! ]|\\[lc]?dots\b)*")

_DECORATION = r"[\s*_`#]*"
_DELIMITER = rf"{_DECORATION}[:：=]{_DECORATION}"
_BE = r"(?:is|are|was|equals|will\s+be|would\s+be|should\s+be|must\s+be)\b"
_CUE = re.compile(
    r"(?<![A-Za-z])(?:"
    # "the answer to part (b) is", "answers are", "Answer:", "**Answer:**"
    r"(?<!this )(?<!that )answers?(?:\s+(?:to|for|of|in)\s[^.,:;\n]{1,60}?)?"
    rf"{_DECORATION}(?:\s{_BE}|{_DELIMITER})"
    # "Final answer 12", and the heading "Final Answer" above the answer
    rf"|final\s+answer(?:\s+(?:to|for|of|in)\s[^.,:;\n]{{1,60}}?)?"
    rf"(?:\s+{_BE}|{_DELIMITER}|[*_`#]*\s*\n|\s+(?=[\d$\\(\[{{+-]))"
    rf"|(?:correct|right|best|final)\s+(?:option|choice|answer)(?:\s+{_BE}|{_DELIMITER})"
    rf"|\banswer\s*=>?\s*"
    r")",
    re.IGNORECASE,
)
_COLON_AFTER_BE = re.compile(rf"(?:{_DELIMITER}|{_DECORATION})")
# Words that speak about the answer instead of giving it: such a cue yields to an earlier one.
_COMMENT = re.compile(
    r"(?:also |indeed |clearly |thus |therefore |now )*"
    r"(?:correct|right|wrong|clear|reasonable|plausible|consistent|verified|confirmed|valid|"
    r"as follows|given (?:by|above|below)|shown|found|obtained|based on)\b",
    re.IGNORECASE,
)
_ABBREVIATION = re.compile(
    r"\b(?:approx|ca|sq|cu|ft|in|yd|mi|lb|oz|no|vs|e\.g|i\.e|St|Mr|Mrs|Ms|Dr|Mt|cf|fig|eq)$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?。](?=[\s*_`]|$)|\n")
_CLAUSE = re.compile(
    r"(?:,|;|\s[-–—])?\s+(?:because|since|whereas|although|given that)\b.*"
    r"|[,;]\s+(?:as|so|which|where|when|but|not|and not|and so|hence|thus|therefore)\b.*"
    r"|\s+(?:but|and|rather than|instead of)\s+not\b.*|\s+not\s+\S+$",
    re.IGNORECASE | re.DOTALL,
)
_DISPLAY = re.compile(r"\s*(?:\\\[(.*?)\\\]|\$\$(.*?)\$\$)", re.DOTALL)
_PROSE = re.compile(
    r"\b(?:i|we|you|he|she|it|they|this|that|these|those|there|is|are|was|were|be|been|has|have|"
    r"had|do|does|did|can|cannot|could|will|would|should|must|may|might|because|since|so|"
    r"therefore|thus|hence|if|when|who|which|what|please|sorry|let|put|see|gets?|gives?)\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"\\[A-Za-z]+")
_WORD = re.compile(r"[A-Za-z]{2,}")
_WHOLE_LIMIT = 500
_WHOLE_WORDS = 6


class ExtractStage(StrEnum):
    """Which rule found the answer."""

    BOX = "box"
    ANSWER_TAG = "answer_tag"
    CUE = "cue"
    WHOLE = "whole"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Found:
    """A piece of a reply that states the answer."""

    text: str
    """The statement as written; for a cue, the rest of its sentence."""
    stage: ExtractStage
    start: int
    """Where the statement begins in the answer part of the reply, its box, tag or cue included."""
    end: int
    """Where it ends."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was read from a reply."""

    text: str | None
    """The final answer, or None where none can be read."""
    stage: ExtractStage
    reason: str = ""
    """Why there is no answer; empty where there is one."""


def extract(reply: str) -> Extraction:
    r"""The final answer of a reply to a free-form question.

    Only the text after the last closing think tag is read. The last balanced, non-empty box
    wins; boxes with nothing but separators between them are one answer. Without a box: the last
    ``<answer>`` tag, then the last explicit cue, then the whole reply where it is nothing but an
    answer.

    Example:
        >>> extract(r"First \boxed{14}. No: \boxed{24}.")
        Extraction(text='24', stage=<ExtractStage.BOX: 'box'>, reason='')
        >>> extract("The figure is too blurred to read.").text is None
        True
    """
    split = split_reasoning(reply)
    if not split.closed:
        return Extraction(None, ExtractStage.NONE, "the think block never closes")
    if not split.answer:
        return Extraction(None, ExtractStage.NONE, "the reply is empty")
    for found in find_answers(split.answer):
        text = found.text
        if found.stage is not ExtractStage.BOX:
            text = _MENTION.sub(" ", text)
        if found.stage is ExtractStage.CUE:
            text = _CLAUSE.sub("", text.strip())
        text = tidy(text)
        if text:
            return Extraction(text, found.stage)
    whole = tidy(split.answer)
    if whole and _is_bare_answer(whole):
        return Extraction(whole, ExtractStage.WHOLE)
    return Extraction(None, ExtractStage.NONE, "no box, tag or cue, and more than an answer")


def find_answers(answer: str) -> Iterator[Found]:
    """The statements of an answer text, the deciding one first: box, tag, then cues.

    Args:
        answer: The part of a reply that follows its reasoning.
    """
    skipped = max(0, len(answer) - _MAX_ANSWER_PART)
    for found in _find(answer[skipped:]):
        yield replace(found, start=found.start + skipped, end=found.end + skipped)


def _find(answer: str) -> Iterator[Found]:
    scan = _scan_boxes(answer)
    if scan.boxes:
        yield _joined_boxes(answer, scan)
    # A box that was cut off is no answer, and neither is anything from it on.
    visible = answer[: scan.unfinished]
    tag = _last_tag(visible)
    if tag:
        yield tag
    comments = []
    for match in reversed(list(_CUE.finditer(visible))[-_MAX_CUES:]):
        found = _after_cue(visible, match)
        if found is None:
            continue
        if _COMMENT.match(found.text):
            comments.append(found)
        else:
            yield found
    yield from comments


def tidy(text: str) -> str:
    """``text`` without outer blanks, emphasis, dollar signs and a trailing full stop.

    Example:
        >>> tidy(" $2.5$. "), tidy("**D**")
        ('2.5', 'D')
    """
    if len(text) > _MAX_STATEMENT:
        return text.strip()
    previous = None
    while previous != text:
        previous = text
        text = text.strip()
        text = re.sub(r"^(?:\*\*|__|`{1,3})(.+?)(?:\*\*|__|`{1,3})$", r"\1", text, flags=re.DOTALL)
        text = re.sub(r"^[*_#>\s]+(?=\S)", "", text) if text.startswith(("**", "#", ">")) else text
        text = re.sub(r"\*\*$", "", text)
        if not text.endswith(("..", "\\.", r"\right.")):
            text = re.sub(r"(?:(?<!\\)[.,;:]|。)$", "", text)
        for opening, closing in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")):
            inner = text[len(opening) : len(text) - len(closing)]
            if (
                len(text) > len(opening) + len(closing)
                and text.startswith(opening)
                and text.endswith(closing)
                and not text.endswith(r"\$")
                and "$" not in inner.replace(r"\$", "")
                and closing not in inner.replace(r"\$", "")
            ):
                text = inner
    return text


@dataclass(frozen=True, slots=True)
class _Box:
    start: int
    end: int
    content: str


@dataclass(frozen=True, slots=True)
class _BoxScan:
    boxes: tuple[_Box, ...]
    empty: tuple[_Box, ...]
    unfinished: int | None
    """Start of the first box that never closes."""


def _scan_boxes(text: str) -> _BoxScan:
    full: list[_Box] = []
    empty: list[_Box] = []
    unfinished: int | None = None
    closing = _closing_braces(text)
    for match in _BOX.finditer(text):
        end = closing.get(match.end() - 1)
        if end is None:
            unfinished = match.start() if unfinished is None else unfinished
            continue
        content = text[match.end() : end]
        box = _Box(match.start(), end + 1, content)
        if _is_empty(content):
            empty.append(box)
            continue
        while full and box.end <= full[-1].end:  # the inner one of nested boxes counts
            full.pop()
        full.append(box)
    return _BoxScan(tuple(full), tuple(empty), unfinished)


def _closing_braces(text: str) -> dict[int, int]:
    """Position of the closing brace of each opening one; escaped braces are ordinary text."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 2
            continue
        if character == "{":
            stack.append(position)
        elif character == "}" and stack:
            pairs[stack.pop()] = position
        position += 1
    return pairs


def _joined_boxes(text: str, scan: _BoxScan) -> Found:
    last = scan.boxes[-1]
    group = [last]
    for box in reversed(scan.boxes[-_MAX_JOINED:-1]):
        between = text[box.end : group[0].start]
        for empty in scan.empty:
            if box.end <= empty.start and empty.end <= group[0].start:
                between = between.replace(text[empty.start : empty.end], "")
        if not _BETWEEN_BOXES.fullmatch(between):
            break
        group.insert(0, box)
    contents = [tidy(group[0].content)]
    for box in group[1:]:
        content = tidy(box.content)
        if content != contents[-1]:
            contents.append(content)
    return Found(", ".join(contents), ExtractStage.BOX, group[0].start, last.end)


def _is_empty(content: str) -> bool:
    content = content.strip()
    if len(content) > 200:
        return False
    previous = None
    while previous != content:
        previous = content
        match = _WRAPPER.match(content)
        if match and content.endswith("}"):
            content = content[match.end() : -1].strip()
    return _PLACEHOLDER.fullmatch(content) is not None


def _last_tag(text: str) -> Found | None:
    lowered = text.lower()
    for match in reversed(list(_TAG_END.finditer(text))):
        start = lowered.rfind("<answer>", 0, match.start())
        if start < 0:
            return None
        content = text[start + len("<answer>") : match.start()]
        if not _is_empty(content) and "</answer" not in content.lower():
            return Found(_inside_tag(content), ExtractStage.ANSWER_TAG, start, match.end())
    return None


def _inside_tag(text: str) -> str:
    cues = list(_CUE.finditer(text))
    found = _after_cue(text, cues[-1]) if cues else None
    return found.text if found else text.strip()


def _after_cue(text: str, cue: re.Match[str]) -> Found | None:
    """The statement that follows a cue: a display, or the rest of the sentence."""
    start = cue.end()
    start += match.end() if (match := _COLON_AFTER_BE.match(text[start : start + 50])) else 0
    display = _DISPLAY.match(text, start, start + _MAX_STATEMENT)
    if display:
        body = display[1] if display[1] is not None else display[2]
        return (
            None
            if _is_empty(body)
            else Found(body.strip(), ExtractStage.CUE, cue.start(), display.end())
        )
    end = _sentence_end(text, start)
    statement = " ".join(text[start:end].split())
    if _is_empty(re.sub(r"[*_`#]", "", statement)):
        return None
    return Found(statement, ExtractStage.CUE, cue.start(), end)


def _sentence_end(text: str, start: int) -> int:
    limit = min(len(text), start + _MAX_STATEMENT)
    for match in _SENTENCE_END.finditer(text, start, limit):
        before = text[start : match.start()]
        if before.replace(r"\$", "").count("$") % 2 and match[0] != "\n":
            continue
        if match[0] == "." and _ABBREVIATION.search(before):
            continue
        if match[0] == "!" and before[-1:].isalnum() and not text[match.end() :].strip():
            return match.end()
        return match.start()
    return limit


def _is_bare_answer(text: str) -> bool:
    """Whether a whole reply is a value, a formula or a short phrase and nothing else."""
    if len(text) > _WHOLE_LIMIT or "\n" in text:
        return False
    if _MENTION.search(text) or _BOX.search(text) or _UNANSWERED.search(text):
        return False
    plain = _COMMAND.sub(" ", text)
    if _PROSE.search(plain) or re.search(r"[?]|[.!]\s+\S", plain):
        return False
    return len(_WORD.findall(plain)) <= _WHOLE_WORDS
