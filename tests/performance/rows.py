"""Rows a second with picture, reference, floors and rejections, and the memory that they take.

Run: OMP_NUM_THREADS=1 python tests/performance/rows.py [--level l2] [--rows 300] [--tasks tsp,...]
"""

import argparse
import resource
import statistics
import time

from npbench.splits import Request, make_rows
from npbench.suites import SUITES
from npbench.tasks import TASKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", default="l2")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--tasks", default=",".join(SUITES["mm-np-bench"].tasks))
    parser.add_argument("--split", default="test")
    arguments = parser.parse_args()
    tasks = arguments.tasks.split(",") if arguments.tasks != "all" else list(TASKS)
    request = Request.make(
        suite="mm-np-bench",
        split=arguments.split,
        seed=1,
        per_task=-(-arguments.rows // len(tasks)),
        levels=[arguments.level],
        tasks=tasks,
        modality="image",
    )
    make_rows(request, request.unit(0))
    seconds: dict[str, list[float]] = {}
    memory: list[int] = []
    started = time.perf_counter()
    for position in range(request.num_units):
        before = time.perf_counter()
        unit = request.unit(position)
        make_rows(request, unit)
        seconds.setdefault(unit.task, []).append(time.perf_counter() - before)
        if position % max(1, request.num_units // 10) == 0:
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
    elapsed = time.perf_counter() - started
    for task, row in seconds.items():
        ordered = sorted(row)
        print(
            f"{task:24s} median {1000 * statistics.median(row):7.1f} ms, "
            f"p99 {1000 * ordered[int(0.99 * (len(row) - 1))]:7.1f} ms"
        )
    print(f"{request.num_units / elapsed:.1f} rows a second on one core, {request.num_units} rows")
    print(f"peak memory in MiB after each tenth of the rows: {memory}")


if __name__ == "__main__":
    main()
