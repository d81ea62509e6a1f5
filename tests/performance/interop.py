"""Rewards a second on one core by signature, and rows a second of each export.

Run: OMP_NUM_THREADS=1 python tests/performance/interop.py [--level l2] [--per-task 20]
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from npbench.building import build_split
from npbench.interop.exports import FORMATS, export_split
from npbench.interop.parquet import ground_truth
from npbench.rewards import compute_score, np_reward
from npbench.splits import Request
from npbench.storage import open_split

REPEATS = 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", default="l2")
    parser.add_argument("--per-task", type=int, default=20)
    options = parser.parse_args()
    suite = "np-bench" if options.level in ("easy", "medium", "hard", "bench") else "mm-np-bench"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        request = Request.make(
            suite=suite,
            split="train",
            seed=1,
            per_task=options.per_task,
            levels=[options.level],
        )
        build_split(request, folder / "split")
        split = open_split(folder / "split")
        rows = list(split.rows())
        measure_rewards(rows)
        for form in FORMATS:
            if form == ("np-engine" if suite == "mm-np-bench" else "npmm"):
                continue
            started = time.perf_counter()
            summary = export_split(split, form, folder / form)
            rate = summary.rows / (time.perf_counter() - started)
            print(f"export {form:10s} {rate:8.0f} rows/s")


def measure_rewards(rows: list[dict]) -> None:
    replies = [f"I tried.\n\n**Answer:** {row['reference_solution']}\n" for row in rows]
    names = ("task", "instance", "reference_objective")
    columns = {name: [row[name] for row in rows] for name in names}
    truths = [ground_truth(row) for row in rows]
    assert np_reward(replies, replies, **columns) == [1.1] * len(rows)
    assert json.loads(truths[0])["task"] == rows[0]["task"]
    started = time.perf_counter()
    for _ in range(REPEATS):
        np_reward(replies, replies, **columns)
    count = REPEATS * len(rows)
    print(f"TRL   np_reward     {count / (time.perf_counter() - started):8.0f} rewards/s")
    started = time.perf_counter()
    for _ in range(REPEATS):
        for reply, truth in zip(replies, truths, strict=True):
            compute_score("npbench", reply, truth)
    print(f"verl  compute_score {count / (time.perf_counter() - started):8.0f} rewards/s")


if __name__ == "__main__":
    main()
