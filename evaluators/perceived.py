"""Replies to np-perception: how many of the facts that a picture shows were read."""

import json
from dataclasses import dataclass, field

from evaluators.extraction import ExtractStage, find_answers
from evaluators.golds import Scored
from evaluators.grading import Gold, State
from evaluators.reasoning import split_reasoning
from npbench.errors import ParseError
from npbench.perception import KINDS, Facts, agreement, mean_f1, parse_facts

__all__ = ["Perceived", "score_facts"]


@dataclass(frozen=True, slots=True)
class Perceived(Gold):
    """The facts that a picture shows."""

    task: str = ""
    drawn: Facts = field(default_factory=dict)


def score_facts(reply: str, gold: Perceived, *, truncated: bool = False) -> Scored:
    """The mean of F1 over the kinds of facts; right where every fact was read and no other.

    Args:
        reply: A model's whole reply.
        gold: What the picture shows.
        truncated: Whether the reply ran into the token limit.
    """
    split = split_reasoning(reply)
    try:
        stage, read = _read(gold.task, split.answer)
    except ParseError as error:
        state = State.UNPARSED if split.answer or not split.closed else State.EMPTY
        state = State.TRUNCATED if truncated else state
        return Scored(state, 0.0, None, ExtractStage.NONE.value, "parser", str(error))
    parts = [agreement(gold.drawn[kind], read[kind]) for kind in KINDS[gold.task]]
    score = mean_f1(parts)
    shown = json.dumps({kind: sorted(rows) for kind, rows in read.items()})
    exact = all(gold.drawn[kind] == read[kind] for kind in KINDS[gold.task])
    missed = sum(len(gold.drawn[kind] - read[kind]) for kind in KINDS[gold.task])
    added = sum(len(read[kind] - gold.drawn[kind]) for kind in KINDS[gold.task])
    reason = "" if exact else f"{missed} facts were missed and {added} are not in the picture"
    return Scored(State.RIGHT if exact else State.WRONG, score, shown, stage, "facts", reason)


def _read(task: str, answer: str) -> tuple[str, Facts]:
    """The facts behind the last answer marker, or in the last box or answer tag."""
    try:
        return ExtractStage.CUE.value, parse_facts(task, answer)
    except ParseError:
        found = next(iter(find_answers(answer)), None)
        if found is None or found.stage is ExtractStage.CUE:
            raise
        return found.stage.value, parse_facts(task, f"Answer: {found.text}")
