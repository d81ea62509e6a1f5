"""We-Math testmini: 525 composite problems, each with its steps as questions of their own."""

from evaluators.benchmark import Question
from evaluators.benchmarks._adapter import Adapter, loader
from evaluators.benchmarks._options import gold_of, written_options
from evaluators.benchmarks._row import Row
from evaluators.families import we_math
from evaluators.loading import Origin
from npbench.errors import InputError

__all__ = ["ADAPTERS", "load"]

# A label is followed by a full stop, of either width, and by text rather than a separator.
_BEFORE = r"^|[;\s]"
_AFTER = r"[.．](?=\s*[^;\s])"


def _question(row: Row) -> Question:
    """Question and options as they are written.

    The official template is not asked for: its extraction reads no other format.
    """
    key, problem = row.needed("key"), row.needed("id")
    if key[:7] not in ("2steps_", "3steps_"):
        raise InputError(f"key must begin with 2steps_ or 3steps_, got {key!r}")
    written = row.needed("options")
    options = written_options(written, before=_BEFORE, after=_AFTER, jumps=True)
    asked = f"{row.needed('question')}\nOptions: {written}\nChoose one option by its letter."
    return Question(
        id=f"{problem}/{key}",
        instance_id=problem,
        parts=(row.needed_picture("image"), asked),
        gold=row.needed("answer"),
        category={"task": key, "group": key.split("_")[0], "key": key},
        grading=gold_of(row.needed("answer"), options),
    )


ADAPTERS = {
    "we-math": Adapter(
        origin=Origin("We-Math/We-Math", ("testmini",)),
        rows=1740,
        columns={
            "id": ("ID",),
            "key": ("key",),
            "question": ("question",),
            "options": ("option",),
            "answer": ("answer",),
            "image": ("image_path", "image"),
        },
        question=_question,
        family=we_math,
    )
}
load = loader(ADAPTERS)
