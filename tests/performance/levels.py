"""The measured table of levels: proven share, solver times, floors, greedy-optimal share.

Run: OMP_NUM_THREADS=1 python tests/performance/levels.py [--levels l1,l2,l3] [--instances 100]
The times are those of the reference alone, on one core, on the accepted instances.
"""

import argparse
import time

from npbench.generation import draw_instance
from npbench.suites import SUITES
from npbench.task import Budget, ratio
from npbench.tasks import TASKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", default="l1,l2,l3")
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--split", default="test")
    arguments = parser.parse_args()
    version = SUITES["mm-np-bench"].version
    print(
        "| task | level | proven | reference ms median | p99 | worst | greedy optimal "
        "| QR trivial | random | greedy | heuristic | draws |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name, task in TASKS.items():
        for level in arguments.levels.split(","):
            if level not in task.levels:
                continue
            times, proven, greedy, draws = [], 0, 0, 0
            floors = dict.fromkeys(("trivial", "random", "greedy", "heuristic"), 0.0)
            for index in range(arguments.instances):
                drawn = draw_instance(
                    task,
                    task.levels[level],
                    version=version,
                    split=arguments.split,
                    seed=0,
                    index=index,
                )
                started = time.perf_counter()
                best = task.reference(drawn.instance, Budget())
                times.append(1000 * (time.perf_counter() - started))
                proven += best.status == "optimal"
                greedy += drawn.floors["greedy"] == best.objective
                draws += drawn.draws
                for floor, objective in drawn.floors.items():
                    floors[floor] += ratio(
                        task.sense, objective=objective, reference=best.objective
                    )
            n = arguments.instances
            times.sort()
            print(
                f"| {name} | {level} | {proven / n:.0%} | {times[n // 2]:.1f} "
                f"| {times[int(0.99 * (n - 1))]:.1f} | {times[-1]:.1f} | {greedy / n:.0%} | "
                + " | ".join(f"{floors[floor] / n:.2f}" for floor in floors)
                + f" | {draws / n:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
