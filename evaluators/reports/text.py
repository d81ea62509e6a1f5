"""Foreign text on a page: nothing in it can act, hide or be out of bounds."""

import json
import re
from typing import Any

__all__ = ["clipped", "script_json", "visible"]

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control and format characters, among them those that turn the direction of text, and halves of
characters; tab and line feed are text."""

_ENDS_A_SCRIPT = re.compile("[<>&\u2028\u2029]")


def visible(text: str) -> str:
    r"""The text with characters that cannot be seen written as their code points.

    A carriage return before a line feed is part of the line's end and is left out.

    Example:
        >>> visible("a\u202eb\x00")
        'a⟦U+202E⟧b⟦U+0000⟧'
    """
    return _UNSEEN.sub(lambda found: f"⟦U+{ord(found[0]):04X}⟧", text.replace("\r\n", "\n"))


def clipped(text: str, *, head: int, tail: int) -> str:
    """The text, or its first and last characters with the number of those left out.

    Example:
        >>> clipped("abcdefghij", head=3, tail=2)
        'abc ⟦5 characters left out⟧ ij'
    """
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    return f"{text[:head]} ⟦{left_out} characters left out⟧ {text[len(text) - tail :]}"


def script_json(data: Any) -> str:
    r"""Data as JSON that can stand in a script element: no text of it ends the element.

    Example:
        >>> script_json({"reply": "</script>"})
        '{"reply":"\\u003c/script\\u003e"}'
    """
    plain = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _ENDS_A_SCRIPT.sub(lambda found: f"\\u{ord(found[0]):04x}", plain)
