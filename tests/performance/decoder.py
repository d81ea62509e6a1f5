"""Decodes pictures and compares what is read with what was drawn, by style and level.

Run: ``python tests/performance/decoder.py [--per-task 15] [--style S ...] [--level L ...]``.
Fifteen instances of fourteen tasks are 210 pictures a style and level. Every picture must give back
its instance exactly; failures are listed, and the exit code is 1 where there is one. Take a new
seed: pictures that were once misread are tests of the decoder. ``--per-task 25`` takes about two
hours of one core; ``--level`` and ``--task`` split it.
"""

import argparse
import json
import sys
import time
from collections import Counter

from npbench.decoding.decoder import decode
from npbench.decoding.instances import as_instance
from npbench.errors import InputError
from npbench.rendering.styles import STYLES, get_style
from npbench.splits import load
from npbench.tasks import TASKS

DISTURBED = ("light-rotate15", "dark-rotate-30", "paper-noise12", "print-noise20", "sketch-rotate8")


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--per-task", type=int, default=15)
    arguments.add_argument("--seed", type=int, default=3)
    arguments.add_argument("--style", nargs="*", default=[*STYLES, *DISTURBED])
    arguments.add_argument("--level", nargs="*", default=["nano", "l1", "l2", "l3"])
    arguments.add_argument("--task", nargs="*", default=list(TASKS))
    given = arguments.parse_args()
    started = time.perf_counter()
    pictures: Counter[tuple[str, str]] = Counter()
    exact: Counter[tuple[str, str]] = Counter()
    for level in given.level:
        for task in given.task:
            rows = load(
                "nano",
                level,
                "test",
                given.seed,
                per_task=given.per_task,
                tasks=[task],
                styles=given.style,
                modality="image",
            )
            for row in rows:
                pictures[row.style, level] += 1
                problem = compared(row)
                exact[row.style, level] += not problem
                if problem:
                    print(f"{row.id}: {problem}", flush=True)
        done = {
            style: f"{exact[style, level]} of {pictures[style, level]}" for style in given.style
        }
        print(f"{level} after {time.perf_counter() - started:.0f} s: {done}", flush=True)
    print(f"{'style':18}" + "".join(f"{level:>14}" for level in given.level))
    for style in given.style:
        cells = (f"{exact[style, level]} of {pictures[style, level]}" for level in given.level)
        print(f"{style:18}" + "".join(f"{cell:>14}" for cell in cells))
    seconds = time.perf_counter() - started
    total = sum(pictures.values())
    print(f"{sum(exact.values())} of {total} pictures read exactly, {seconds:.0f} s in all")
    return 0 if exact == pictures else 1


def compared(row) -> str:
    """Where the instance that was read differs from the one that was drawn; empty if nowhere."""
    wanted = json.loads(row.instance)
    wanted.pop("coordinates", None)
    try:
        found = as_instance(row.task, decode(row.image, degrees=get_style(row.style).rotation))
    except InputError as error:
        return str(error)
    return "; ".join(
        f"{key}: read {found[key]}, drawn {wanted[key]}"
        for key in wanted
        if found[key] != wanted[key]
    )


if __name__ == "__main__":
    sys.exit(main())
