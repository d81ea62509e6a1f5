"""Rollouts of several processes: who draws what, and how everybody learns of it.

A group stays on the process that drew it. Of the groups of others a process gets replies and
rewards, but no pictures. An engine draws for the process it lives in; a server draws for all, and
the first process speaks with it. What one process cannot draw stops all of them at the same place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trainers.data import Question
from trainers.distributed import (
    collected_by_first,
    first_process,
    handed_out_by_first,
    merged,
    own,
    processes,
    rank,
    stop_together,
    together,
)
from trainers.encoding import Prompt
from trainers.groups import Group
from trainers.rollouts import Backend, Reply, Request

__all__ = ["FarPrompt", "FirstDraws", "SharedBackend", "draw_groups", "is_near"]

Replies = list[tuple[Reply, ...]]


@dataclass(frozen=True, slots=True)
class FarPrompt(Prompt):
    """A prompt whose pictures and rows are another process's: its length is all that counts."""


def is_near(prompt: Prompt) -> bool:
    """Whether the rows behind a prompt are this process's."""
    return not isinstance(prompt, FarPrompt)


def draw_groups(
    questions: Sequence[Question], collect_own: Callable[[Sequence[Question]], list[Group]]
) -> list[Group]:
    """The groups of some questions, each drawn and scored by one process.

    Args:
        questions: The same on all processes.
        collect_own: Draws the groups of some of them.

    Returns:
        All groups in the order of the questions; those of others without their pictures.

    Raises:
        InputError: On all processes, if one of them cannot draw.
    """
    if processes() == 1:
        return collect_own(questions)
    near: list[Group] = []
    with together():
        near += collect_own(own(questions))
    places = range(rank(), len(questions), processes())
    found = merged({place: _sent(group) for place, group in zip(places, near, strict=True)})
    for place, group in zip(places, near, strict=True):
        found[place] = group
    return found


def _sent(group: Group) -> Group:
    """What other processes get of a group."""
    prompts = tuple(FarPrompt(prompt.ids_1L, {}) for prompt in group.prompts)
    return replace(group, question=replace(group.question, images=()), prompts=prompts)


@dataclass(frozen=True, slots=True)
class SharedBackend:
    """A backend that draws a share of the requests and gets the other replies from the others."""

    backend: Backend

    def generate(
        self, requests: Sequence[Request], *, max_tokens: int, greedy: bool = False
    ) -> Replies:
        """The replies to each request, on every process.

        Raises:
            InputError: On all processes, if one of them cannot draw.
        """
        drawn: Replies = []
        with together():
            drawn += self.backend.generate(own(requests), max_tokens=max_tokens, greedy=greedy)
        places = range(rank(), len(requests), processes())
        return merged(dict(zip(places, drawn, strict=True)))


@dataclass(frozen=True, slots=True)
class FirstDraws:
    """A backend of the first process alone, which draws what all of them ask for, at once."""

    backend: Backend | None
    """None on all others."""

    def generate(
        self, requests: Sequence[Request], *, max_tokens: int, greedy: bool = False
    ) -> Replies:
        """The replies to this process's requests; all processes call it together.

        Raises:
            InputError: On all processes, if the first one cannot draw.
        """
        # a process that failed before it came here is heard of now
        stop_together(None)
        asked = collected_by_first(list(requests))
        drawn: list[Replies] | None = None
        with together():
            if first_process():
                assert self.backend is not None
                wanted = [request for some in asked for request in some]
                found = iter(self.backend.generate(wanted, max_tokens=max_tokens, greedy=greedy))
                drawn = [[next(found) for _ in some] for some in asked]
        return handed_out_by_first(drawn)
