"""Splits a reply into the model's reasoning and the text that is meant for the reader."""

import re
from dataclasses import dataclass

__all__ = ["SplitReply", "split_reasoning"]

_NAMES = r"(?:think|thinking|thought|reasoning)"
_OPENING = re.compile(rf"<{_NAMES}>|◁think▷", re.IGNORECASE)
_CLOSING = re.compile(rf"</{_NAMES}>|◁/think▷", re.IGNORECASE)
_TEMPLATE_TOKEN = re.compile(
    r"<\|[A-Za-z0-9_/ ]{1,40}\|>|</?s>|<(?:end_of_turn|start_of_turn|eos|bos|pad)>"
)


@dataclass(frozen=True, slots=True)
class SplitReply:
    """A reply cut at its last closing think tag."""

    reasoning: str | None
    """Text of the think block without its tags; None where the reply has no think tag."""
    answer: str
    """What follows the block, without chat-template tokens; empty while a block stands open."""
    closed: bool
    """False where a think block opens and never closes."""


def split_reasoning(reply: str) -> SplitReply:
    """The reasoning and the answer text of ``reply``.

    The last closing tag decides. A closing tag without an opening one counts, because many chat
    templates put the opening tag into the prompt. A block that opens after the last closing tag
    leaves no answer.

    Example:
        >>> split_reasoning("<think>2 + 2</think> 4")
        SplitReply(reasoning='2 + 2', answer='4', closed=True)
        >>> split_reasoning("<think>2 + 2").closed
        False
    """
    closings = list(_CLOSING.finditer(reply))
    rest = reply[closings[-1].end() :] if closings else reply
    opening = _OPENING.search(rest)
    if opening:
        return SplitReply(reasoning=_untagged(reply), answer="", closed=False)
    answer = _TEMPLATE_TOKEN.sub(" ", rest).strip()
    if not closings:
        return SplitReply(reasoning=None, answer=answer, closed=True)
    return SplitReply(
        reasoning=_untagged(reply[: closings[-1].start()]), answer=answer, closed=True
    )


def _untagged(text: str) -> str:
    return _CLOSING.sub("", _OPENING.sub("", _TEMPLATE_TOKEN.sub(" ", text))).strip()
