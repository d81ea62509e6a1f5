"""Measures a small model on held-out nano questions: the table of npbench-tiny's card.

Run: ``python tests/performance/tiny_model.py --out DIR [--model npbench-tiny] [--per-task 30]``.
Sixteen samples at temperature 1 and a greedy reply to each of the ten tasks' test questions, on
pictures, on text, and with the pictures of two questions of one task and size swapped; and the
facts that the model reads from the same pictures. Everything goes through ``npbench eval``'s own
runner, is kept in DIR, and is not made again where it is there; ``--only`` gives two processes
something to do each.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from evaluators.backends import BackendOptions, make_backend
from evaluators.backends.base import Sampling
from evaluators.embedders import get_embedder
from evaluators.runner import RunSettings
from evaluators.sessions import Choice, choose, evaluate
from npbench.building import build_split
from npbench.console import progress_bar
from npbench.splits import Request
from npbench.storage import open_split
from npbench.suites import SUITES

TASKS = SUITES["mm-np-bench"].tasks
CHOICE_FREE = ("minimum_bisection", "maximum_cut", "tsp")
"""Tasks in which feasibility depends on the number of vertices alone."""
RUNS = ("image", "text", "swapped", "perception")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--model", default="npbench-tiny")
    arguments.add_argument("--per-task", type=int, default=30)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("-k", type=int, default=16, help="at least 8")
    arguments.add_argument("--only", nargs="*", choices=RUNS, help="make these runs, no table")
    given = arguments.parse_args()
    split = given.out / "split"
    if not (split / "manifest.json").exists():
        request = Request.make(
            suite="nano",
            split="test",
            seed=given.seed,
            per_task=given.per_task,
            levels=("nano",),
            tasks=TASKS,
            modality="both",
        )
        with progress_bar("rows") as progress:
            build_split(request, split, workers=1, progress=progress)
    image = choose(None, source=split, modality="image")
    runs = {
        "image": (image, given.k, 64),
        "text": (choose(None, source=split, modality="text"), given.k, 64),
        "swapped": (swapped(image, split), given.k, 64),
        "perception": (choose("np-perception", source=split), 0, 192),
    }
    found = {}
    for name in given.only or RUNS:
        choice, k, max_tokens = runs[name]
        found[name] = measured(choice, given, k=k, max_tokens=max_tokens, out=given.out / name)
    if not given.only:
        print(table(found, given))


def swapped(choice: Choice, split: Path) -> Choice:
    """Each question with the picture of another one of its task and, where there is one, size."""
    sizes = {
        row["id"]: len(json.loads(row["instance"]).get("distances", ()))
        or json.loads(row["instance"])["num_vertices"]
        for row in open_split(split).rows()
    }
    questions = list(choice.benchmark.questions)
    order = sorted(range(len(questions)), key=lambda i: (questions[i].category["task"],
                                                         sizes[questions[i].id], i))  # fmt: skip
    parts = {}
    for here, there in zip(order, [*order[1:], order[0]], strict=True):
        one, other = questions[here], questions[there]
        if one.category["task"] != other.category["task"]:
            other = questions[order[order.index(here) - 1]]
        picture = next(part for part in other.parts if isinstance(part, bytes))
        parts[here] = tuple(picture if isinstance(part, bytes) else part for part in one.parts)
    asked = [replace(question, parts=parts[i]) for i, question in enumerate(questions)]
    benchmark = replace(choice.benchmark, questions=asked, name="swapped", version="swapped")
    return replace(choice, benchmark=benchmark)


def measured(choice: Choice, given: argparse.Namespace, *, k: int, max_tokens: int, out: Path):
    """The summary of one run."""
    sampling = Sampling(greedy=True, k=k, temperature=1.0, max_tokens=max_tokens, seed=given.seed)
    options = BackendOptions(model=given.model, sampling=sampling, batch_size=64)
    with progress_bar(out.name) as progress:
        _, summary = evaluate(
            choice,
            make_backend("transformers", options),
            RunSettings(sampling=sampling),
            out,
            command=f"tests/performance/tiny_model.py --seed {given.seed} ({out.name})",
            embedder=get_embedder("none"),
            progress=progress,
        )
    if summary is None:
        raise SystemExit(1)
    return summary


def table(found: dict, given: argparse.Namespace) -> str:
    """The table as Markdown."""
    image = found["image"]
    lines = [
        f"{given.per_task} test questions a task, seed {given.seed}, k = {given.k} at temperature "
        f"1; commit {image['manifest']['commit']}",
        "",
        "| task | SR | QR | QR greedy floor | optimum among 8 | distinct feasible of "
        f"{given.k} | SR greedy | SR swapped | F1 perception | SR text |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    rows = [(name, name) for name in TASKS]
    for name, task in rows:
        cells = [image["tasks"][task], found["swapped"]["tasks"][task],
                 found["perception"]["tasks"][task], found["text"]["tasks"][task]]  # fmt: skip
        lines.append(line(name, *cells))
    lines.append(line("mean", *(found[n]["overall"] for n in
                                ("image", "swapped", "perception", "text"))))  # fmt: skip
    drop = [
        image["tasks"][task]["sr"] - found["swapped"]["tasks"][task]["sr"]
        for task in TASKS
        if task not in CHOICE_FREE
    ]
    lines += [
        "",
        f"Mean SR lost by swapped pictures, where feasibility depends on the picture: "
        f"{sum(drop) / len(drop):.3f}. "
        f"Mean tokens of a reply: {image['overall']['mean_tokens']:.1f}.",
    ]
    return "\n".join(lines)


def line(name: str, image: dict, swap: dict, seen: dict, text: dict) -> str:
    """One row; SR and QR with their 95 % interval."""
    sr, qr = (f"{image[m]:.3f} [{image['ci'][m][0]:.3f}, {image['ci'][m][1]:.3f}]" for m in
              ("sr", "qr"))  # fmt: skip
    cells = [
        name,
        sr,
        qr,
        f"{image['floors']['greedy']['qr']:.3f}" if "greedy" in image["floors"] else "-",
        f"{image['pass@k']['8']:.3f}",
        f"{image['diversity']['distinct_feasible']:.1f}",
        f"{image['sr_greedy']:.3f}",
        f"{swap['sr']:.3f}",
        f"{seen['score']:.3f}",
        f"{text['sr']:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
