"""A task folder for lmms-eval, and the functions that its task file names.

The folder works with ``lmms-eval --include_path FOLDER --tasks NAME`` where npbench is installed
beside lmms-eval; its task file finds the data next to itself (lmms-eval 0.7 and later).

References:
    lmms-eval, ``docs/task_guide.md``.
"""

from collections import defaultdict
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from npbench.scoring import Question, grade

__all__ = ["doc_to_text", "doc_to_visual", "macro_mean", "process_results", "write_task_files"]

_TASK_FILE = """\
task: {name}
dataset_path: parquet
dataset_kwargs:
  data_files:
    test: data.parquet
test_split: test
output_type: generate_until
doc_to_visual: !function utils.doc_to_visual
doc_to_text: !function utils.doc_to_text
doc_to_target: reference_objective
process_results: !function utils.process_results
generation_kwargs:
  max_new_tokens: 4096
  temperature: 0
  do_sample: false
metric_list:
  - metric: sr
    aggregation: !function utils.macro_mean
    higher_is_better: true
  - metric: qr
    aggregation: !function utils.macro_mean
    higher_is_better: true
metadata:
  version: {version}
"""

_FUNCTIONS = '''\
"""What {name}.yaml names; the verdicts are npbench's."""

from npbench.interop.lmms_eval import doc_to_text, doc_to_visual, macro_mean, process_results

__all__ = ["doc_to_text", "doc_to_visual", "macro_mean", "process_results"]
'''


def write_task_files(folder: Path, *, name: str, version: str) -> None:
    """Write the task file and its functions; the data are ``data.parquet`` beside them.

    Args:
        folder: Where to.
        name: The task's name.
        version: The version of the split's suite.
    """
    task_file = _TASK_FILE.format(name=name, version=version)
    (folder / f"{name}.yaml").write_text(task_file, encoding="utf-8", newline="\n")
    functions = _FUNCTIONS.format(name=name)
    (folder / "utils.py").write_text(functions, encoding="utf-8", newline="\n")


def doc_to_text(doc: dict[str, Any], lmms_eval_specific_kwargs: Any = None) -> str:
    """The question's text, the same for every model."""
    prompt: str = doc["prompt"]
    return prompt


def doc_to_visual(doc: dict[str, Any]) -> list[Any]:
    """The picture in a list, empty where the question is text."""
    image = doc.get("image")
    if image is None:
        return []
    if isinstance(image, dict):
        from PIL import Image

        image = Image.open(BytesIO(image["bytes"]))
    return [image.convert("RGB")]


def process_results(doc: dict[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Whether the replies to a question are feasible, and their quality ratios: the means.

    Raises:
        AssertionError: If a reply beats a proven optimum: the data are broken.
    """
    question = Question.from_row(doc)
    answers = [grade(question, reply) for reply in results]
    place = {"group": doc["group"], "task": doc["task"]}
    count = len(answers)
    return {
        "sr": {**place, "value": sum(answer.feasible for answer in answers) / count},
        "qr": {**place, "value": sum(answer.ratio for answer in answers) / count},
    }


def macro_mean(items: Sequence[dict[str, Any]]) -> float:
    """Mean over the groups of the mean over their tasks, as ``npbench score`` averages.

    Example:
        >>> rows = [("a", "x", 1.0), ("a", "x", 0.0), ("a", "y", 1.0), ("b", "z", 0.0)]
        >>> macro_mean([{"group": g, "task": t, "value": v} for g, t, v in rows])
        0.375
    """
    tasks: defaultdict[str, defaultdict[str, list[float]]]
    tasks = defaultdict(lambda: defaultdict(list))
    for item in items:
        tasks[item["group"]][item["task"]].append(item["value"])
    groups = [
        sum(sum(values) / len(values) for values in group.values()) / len(group)
        for group in tasks.values()
    ]
    return sum(groups) / len(groups)
