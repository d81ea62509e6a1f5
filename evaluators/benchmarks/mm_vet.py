"""MM-Vet: open questions over six capabilities; the official score is a judge's, from 0 to 1."""

import re

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._row import Row
from evaluators.families import mm_vet
from evaluators.golds import Mentions, Protocol
from evaluators.loading import Origin
from npbench.errors import InputError

__all__ = ["ADAPTERS", "load"]


def _question(row: Row) -> Question:
    """The question as it is."""
    capabilities = row.needed("capability")
    combination = ",".join(sorted(part.strip() for part in capabilities.split(",")))
    asked = row.needed("question")
    return Question(
        id=row.needed("id"),
        instance_id=row.needed("id"),
        parts=(row.needed_picture("image"), asked),
        gold=row.needed("answer"),
        category={
            "task": combination,
            "group": combination,
            "combination": combination,
            "capability": capabilities,
        },
        grading=_gold(row.needed("answer"), asked),
    )


def _gold(answer: str, asked: str) -> Mentions:
    """Alternatives apart by ``<OR>``, each of parts apart by ``<AND>``."""
    alternatives = tuple(
        tuple(part.strip() for part in re.split("<AND>", alternative))
        for alternative in re.split("<OR>", answer)
    )
    if not all(part for parts in alternatives for part in parts):
        raise InputError(f"the answer {answer!r:.80} has an empty part")
    return Mentions(answer, protocol=Protocol.SCORE, asked=asked, alternatives=alternatives)


ADAPTERS = {
    "mm-vet": Adapter(
        origin=Origin("lmms-lab/MMVet", ("test",)),
        rows=218,
        columns={
            "id": ("question_id",),
            "question": ("question",),
            "image": ("image",),
            "answer": ("answer",),
            "capability": ("capability",),
        },
        question=_question,
        family=mm_vet,
    )
}
load = loader(ADAPTERS)
