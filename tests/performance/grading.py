"""Measures answers graded a second on the handed cases without the hostile ones, on one core.

Run: ``python tests/performance/grading.py [--passes 5]``. The worker is warm and nothing is
remembered between passes. Exits with 1 where the target or a deadline is missed.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections import defaultdict
from pathlib import Path

from evaluators.grading import Gold, grade
from evaluators.verdicts import AnswerType
from evaluators.worker_pool import AlgebraPool

CASES = Path(__file__).parent.parent / "evaluators" / "cases" / "grading.jsonl"
TARGET = 300


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--passes", type=int, default=5)
    passes = arguments.parse_args().passes
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rows = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    rows = [row for row in rows if not row["id"].startswith("gr-hostile")]
    pairs = [(row["reply"], gold_of(row)) for row in rows]
    pool = AlgebraPool()
    for reply, gold in pairs:
        grade(reply, gold, pool=pool)
    rates, slowest = [], 0.0
    stages: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(passes):
        started = time.perf_counter()
        for reply, gold in pairs:
            before = time.perf_counter()
            graded = grade(reply, gold, pool=pool)
            seconds = time.perf_counter() - before
            slowest = max(slowest, seconds)
            stages[graded.stage].append(seconds)
        rates.append(len(pairs) / (time.perf_counter() - started))
    pool.close()
    print(f"{len(pairs)} answers, {passes} passes on one core, worker warm, memory off")
    print(
        f"answers a second: median {statistics.median(rates):.0f}, "
        f"lowest {min(rates):.0f}, highest {max(rates):.0f} (target {TARGET})"
    )
    print(f"slowest answer: {slowest * 1e3:.1f} ms (deadline {pool.deadline:g} s)")
    for stage, seconds in sorted(stages.items(), key=lambda item: -sum(item[1])):
        mean = statistics.mean(seconds) * 1e3
        print(f"  {stage:<11} {len(seconds) // passes:>4} answers, {mean:7.2f} ms each")
    return 0 if statistics.median(rates) >= TARGET and slowest < pool.deadline else 1


def gold_of(row: dict) -> Gold:
    return Gold(row["gold"], AnswerType(row["answer_type"]), row.get("precision"))


if __name__ == "__main__":
    sys.exit(main())
