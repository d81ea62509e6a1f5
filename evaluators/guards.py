"""Refuses texts that no comparison should see: empty, too long, unbalanced, nested too deeply."""

__all__ = ["MAX_ANSWER", "MAX_GOLD", "fault"]

MAX_ANSWER = 500
"""Characters of an extracted answer."""
MAX_GOLD = 2_000
"""Characters of a gold."""
_MAX_DEPTH = 30


def fault(text: str, limit: int) -> str:
    """What makes a text unfit to be compared at all, or nothing."""
    if not text.strip():
        return "empty"
    if len(text) > limit:
        return f"longer than {limit} characters"
    depth = braces = 0
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 2
            continue
        if character in "({[":
            depth += 1
        elif character in ")}]":
            depth -= 1
        if depth > _MAX_DEPTH:
            return f"nested more than {_MAX_DEPTH} brackets deep"
        braces += (character == "{") - (character == "}")
        if braces < 0:
            break
        position += 1
    return "unbalanced" if braces else ""
