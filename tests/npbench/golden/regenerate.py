"""Write the golden transcripts anew: ``python tests/npbench/golden/regenerate.py``.

A changed transcript means that instances, prompts, pictures or verdicts changed: such a change
comes with a new benchmark version.
"""

import json
from pathlib import Path

from npbench.generation import SPLITS
from npbench.manifest import pixel_hash
from npbench.rng import digest
from npbench.splits import load
from npbench.tasks import TASKS

FOLDER = Path(__file__).parent


def suite_of(level: str) -> str:
    """The suite that a level belongs to."""
    if level == "nano":
        return "nano"
    return "mm-np-bench" if level in ("l1", "l2", "l3") else "np-bench"


def transcript(task: str, level: str) -> dict[str, object]:
    """The first row of a task's level, in text and picture, its verdict and its hashes."""
    split = SPLITS[list(TASKS).index(task) % 3]
    modality = "both" if level in ("nano", "l1", "l2", "l3") else "text"
    rows = load(suite_of(level), level, split, 1, tasks=[task], per_task=1, modality=modality)
    row = rows[len(rows) - 1]
    record = TASKS[task]
    instance = record.decode(json.loads(row.instance))
    solution = record.parse(f"Answer: {row.reference_solution}")
    verdict = record.verify(instance, solution)
    return {
        "id": row.instance_id,
        "family": row.family,
        "class_key": row.class_key,
        "instance": json.loads(row.instance),
        "prompt": row.prompt,
        "reference_objective": row.reference_objective,
        "reference_status": row.reference_status,
        "floors": [
            row.trivial_objective,
            row.random_objective,
            row.greedy_objective,
            row.heuristic_objective,
        ],
        "verdict": [verdict.feasible, verdict.objective],
        "picture_prompt": rows[0].prompt if rows[0].image else None,
        "pixels": pixel_hash(rows[0].image) if rows[0].image else None,
    }


def item_hashes(task: str, level: str) -> list[str]:
    """A hash of the instance, text prompt and objectives of each of the first 20 items."""
    rows = load(suite_of(level), level, "test", 1, tasks=[task], per_task=20, modality="text")
    return [
        digest(row.instance, row.prompt, row.reference_objective, row.greedy_objective)[:16]
        for row in rows
    ]


def main() -> None:
    """Write one file of transcripts and one of hashes per task."""
    for task, record in TASKS.items():
        transcripts = {level: transcript(task, level) for level in record.levels}
        text = json.dumps(transcripts, indent=1) + "\n"
        (FOLDER / f"{task}.json").write_text(text, encoding="utf-8")
        hashes = {level: item_hashes(task, level) for level in record.levels}
        text = json.dumps(hashes, indent=1) + "\n"
        (FOLDER / f"{task}.hashes.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
