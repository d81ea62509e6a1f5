"""Measures pictures drawn, proven and encoded a second at l2 on one core, and the memory it takes.

Run: ``python tests/performance/pictures.py [--instances 12] [--rounds 5] [--style S]
[--many 10000]``. With ``--many`` that many more pictures are drawn, and memory must stay flat
from the thousandth on; it is printed there, half-way and at the end.
Exits with 1 where the rate over the tasks of mm-np-bench misses the target or memory grows.
"""

import argparse
import itertools
import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path

from npbench.rendering.styles import STYLES, get_style
from npbench.splits import load
from npbench.suites import SUITES
from npbench.tasks import TASKS

TARGET = 40
GROWTH = 8
"""MiB by which the largest memory may grow after a thousand pictures."""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--instances", type=int, default=12)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--style", default=next(iter(STYLES)))
    arguments.add_argument("--many", type=int, default=0)
    given = arguments.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    style = get_style(given.style)
    pools = {name: instances(name, given.instances) for name in TASKS}
    rates = {}
    for name, pool in pools.items():
        seconds = []
        for _ in range(given.rounds):
            started = time.process_time()
            for instance in pool:
                TASKS[name].draw(instance, style, 768)
            seconds.append((time.process_time() - started) / len(pool))
        rates[name] = 1 / statistics.median(seconds)
        print(f"{name:24} {rates[name]:6.1f} pictures a second")
    vision = [1 / rates[name] for name in SUITES["mm-np-bench"].tasks]
    rate = len(vision) / sum(vision)
    print(f"mm-np-bench at l2, 768 px, {style.label}: {rate:.1f} a second (target {TARGET})")
    grown = growth(pools, style, given.many)
    return 0 if rate >= TARGET and grown <= GROWTH else 1


def instances(task, count):
    rows = load("nano", "l2", "train", 1, per_task=count, tasks=[task], modality="text")
    return [TASKS[task].decode(json.loads(row.instance)) for row in rows]


def growth(pools, style, many) -> float:
    """MiB by which the largest memory grew over many pictures, from the first thousand on."""
    if not many:
        return 0.0
    every = itertools.cycle(
        [(TASKS[name], instance) for name, pool in pools.items() for instance in pool]
    )
    marks = {1000, many // 2, many}
    peaks = []
    for drawn, (task, instance) in enumerate(itertools.islice(every, many), 1):
        task.draw(instance, style, 768)
        if drawn in marks:
            peaks.append(peak())
            print(f"{drawn} more pictures: {resident():.1f} MiB resident, {peaks[-1]:.1f} at most")
    print(f"the most that was resident grew by {peaks[-1] - peaks[0]:.1f} MiB")
    return peaks[-1] - peaks[0]


def resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
