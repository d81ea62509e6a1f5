"""Verdicts and parsed replies a second on one core, and the time to refuse a reply above 1 MiB.

Run: OMP_NUM_THREADS=1 python tests/performance/verdicts.py [--level l2]
"""

import argparse
import json
import time

from npbench.answers import MAX_REPLY_CHARS, Shape, parse_answer
from npbench.errors import ParseError
from npbench.splits import load
from npbench.tasks import TASKS

REPEATS = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", default="l2")
    level = parser.parse_args().level
    verified, parsed = [], []
    for name, task in TASKS.items():
        rows = load("nano", level, "train", 1, tasks=[name], per_task=10, modality="text")
        pairs = []
        for row in rows:
            solution = json.loads(row.reference_solution)
            reply = f"I tried a few ways.\n\n**Answer:** {json.dumps(solution)}\n"
            pairs.append((task.decode(json.loads(row.instance)), solution, reply))
            task.verify(pairs[-1][0], solution)
        started = time.perf_counter()
        for _ in range(REPEATS):
            for instance, solution, _reply in pairs:
                task.verify(instance, solution)
        verified.append((time.perf_counter() - started) / REPEATS / len(pairs))
        started = time.perf_counter()
        for _ in range(REPEATS):
            for instance, _solution, reply in pairs:
                task.verify(instance, task.parse(reply))
        parsed.append((time.perf_counter() - started) / REPEATS / len(pairs))
        print(
            f"{name:24s} verify {1 / verified[-1]:9.0f}/s, parse + verify {1 / parsed[-1]:9.0f}/s"
        )
    count = len(verified)
    rates = f"verify {count / sum(verified):.0f}/s, parse + verify {count / sum(parsed):.0f}/s"
    print(f"all tasks: {rates}")
    started = time.perf_counter()
    try:
        parse_answer("Answer: [" + "1," * MAX_REPLY_CHARS + "1]", shape=Shape.FLAT)
    except ParseError as error:
        elapsed = 1000 * (time.perf_counter() - started)
        print(f"{elapsed:.2f} ms to refuse: {error}")


if __name__ == "__main__":
    main()
