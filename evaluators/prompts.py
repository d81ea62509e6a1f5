"""How a model is asked: the four formats, and the prompt of a question.

A model scores near zero under a format that it was not trained on, so the format is part of a
run's manifest.
"""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType

from evaluators.backends.base import Prompt
from npbench.errors import unknown_name
from npbench.rng import digest

__all__ = ["PROMPT_FORMATS", "build_prompt", "format_hash", "image_hash", "prompt_hash"]

PROMPT_FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "answer-line": "End your reply with one line of this form and write nothing after it:\n"
        "Answer: YOUR ANSWER",
        "think-boxed": "First reason inside <think> </think> tags. Then give the final answer in "
        r"\boxed{} and write nothing after it.",
        "answer-tag": "First reason inside <think> </think> tags. Then give the final answer "
        "inside <answer> </answer> tags and write nothing after it.",
        "plain": "",
    }
)
"""What each format adds below a question; ``plain`` adds nothing."""

# The prompts of the NP-hard tasks end with an answer-line instruction of their own, in full or
# brief words, and may show a valid last line before it.
_OWN_FORMAT = re.compile(
    r"\n\n## Response format\n[^#]*\Z"
    r"|\s+End your reply with one line of this form and write nothing after it:\nAnswer: "
    r"(?P<object>\{.*\})\Z"
    r"|\nThink briefly, then end with one line of the form\nAnswer: (?P<form>.*)\Z"
)
_LAST_LINE = re.compile(r"\nA valid last line:\nAnswer: ")
_PICTURE_TOKEN = re.compile(
    r"<image(?:[ _]?\d{1,2})?>|</?img>|<\|(?:image|image_pad|vision_start|vision_end)\|>"
    r"|<fake_token_around_image>"
)


def build_prompt(
    parts: tuple[str | bytes, ...], *, prompt_format: str, system: str | None = None
) -> Prompt:
    """A question's parts with the words of a format below them.

    The prompts of the NP-hard tasks carry the answer-line format: it is left as it is, and gives
    way to another one. Tokens by which models mark pictures are removed from the text, because a
    chat template would turn them into pictures that are not there.

    Args:
        parts: Text and encoded pictures.
        prompt_format: A name of ``PROMPT_FORMATS``.
        system: The system prompt.

    Raises:
        InputError: If the format is unknown.

    Example:
        >>> build_prompt(("2 + 2 = ?",), prompt_format="plain").parts
        ('2 + 2 = ?',)
    """
    words = _words(prompt_format)
    asked = [_PICTURE_TOKEN.sub("", part) if isinstance(part, str) else part for part in parts]
    last = max((i for i, part in enumerate(asked) if isinstance(part, str)), default=None)
    text = asked[last] if last is not None else ""
    assert isinstance(text, str)
    own = _OWN_FORMAT.search(text)
    if own and prompt_format == "answer-line":
        return Prompt(tuple(asked), system)
    if last is not None and own:
        text = _LAST_LINE.sub("\nA valid answer: ", text[: own.start()])
        text += f"\nThink briefly. An answer has the form {own['form']}." if own["form"] else ""
        text += f"\nThe answer has the form {own['object']}." if own["object"] else ""
        asked[last] = text
    if words and last is not None and last == len(asked) - 1:
        asked[last] = f"{text}\n\n{words}" if text.strip() else words
    elif words:
        asked.append(words)
    return Prompt(tuple(part for part in asked if part), system)


def format_hash(prompt_format: str) -> str:
    """A hash of a format's words, which tells a changed wording from the same one.

    Raises:
        InputError: If the format is unknown.
    """
    return digest(prompt_format, _words(prompt_format))[:16]


def _words(prompt_format: str) -> str:
    if prompt_format not in PROMPT_FORMATS:
        raise unknown_name("prompt format", prompt_format, PROMPT_FORMATS)
    return PROMPT_FORMATS[prompt_format]


def prompt_hash(prompt: Prompt) -> str:
    """A hash of the text of a prompt and of the places of its pictures."""
    parts = [part if isinstance(part, str) else None for part in prompt.parts]
    return digest(prompt.system, parts)[:16]


def image_hash(prompt: Prompt) -> str | None:
    """A hash of a prompt's encoded pictures, None without pictures."""
    if not prompt.pictures:
        return None
    whole = hashlib.sha256()
    for picture in prompt.pictures:
        whole.update(hashlib.sha256(picture).digest())
    return whole.hexdigest()[:16]
