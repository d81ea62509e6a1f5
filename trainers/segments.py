r"""The reasoning segment of a reply, the text that MUPO embeds.

The paper embeds "reasoning segments" and does not define them; the rule is that of the released
code: the first ``<think>...</think>`` with its tags, else the text before the first ``\boxed``,
else the whole reply. For scoring, :mod:`evaluators.reasoning` splits at the *last* closing tag.
"""

__all__ = ["reasoning_segment"]

_OPEN, _CLOSE = "<think>", "</think>"


def reasoning_segment(reply: str) -> str:
    r"""The part of ``reply`` whose embedding stands for its strategy.

    A reply that is nothing but its box has no text before it, and then the whole reply is taken.

    Example:
        >>> reasoning_segment("<think>try 3</think> so \\boxed{3}")
        '<think>try 3</think>'
        >>> reasoning_segment("We try 3. \\boxed{3}")
        'We try 3. '

    References:
        MUPO, `arXiv 2604.00479 <https://arxiv.org/abs/2604.00479>`_, 2026; rule of its code.
    """
    start = reply.find(_OPEN)
    stop = reply.find(_CLOSE, start) if start >= 0 else -1
    if stop >= 0:
        return reply[start : stop + len(_CLOSE)]
    before, box, _ = reply.partition("\\boxed")
    return before if box and before.strip() else reply
