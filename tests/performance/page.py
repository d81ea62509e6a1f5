"""The performance page in Markdown: against TRL, where a step's time goes, scaling, cost on paper.

Run: ``OMP_NUM_THREADS=1 .venv/bin/python tests/performance/page.py > page.md`` on a CPU, where the
comparison is on the random Idefics3 of ``training.py`` (or ``--against npbench-tiny``) and scaling
on a shrunken Qwen2.5-VL; with ``--device cuda`` both are on random weights of the true
Qwen2.5-VL-3B in bfloat16. ``--only SECTION`` prints some of it. TRL runs in the environment that
``make test-oracles`` builds; ``--trl PYTHON`` names another one. ``--rollouts vllm`` compares with
replies drawn by vLLM on our side: ``OMP_NUM_THREADS=1 .venv-vllm/bin/python
tests/performance/page.py --only against --against npbench-tiny --rollouts vllm``.
"""

import argparse
import base64
import gc
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from cost_tables import cost_page, table
from qwen import SIDE, SIZES, build_qwen, with_side
from steps import Step, changed, matrix_rate, measure
from training import build_model, make_config

from evaluators.models import shipped_model
from trainers.config import Config
from trainers.cost_sizes import forward_flops
from trainers.data import Question, questions
from trainers.learner import Learner, load_learner

SECTIONS = ("against", "scaling", "cost")
MODELS = ("idefics", "npbench-tiny", *SIZES)
TRL = Path(__file__).parents[2] / ".venv-oracles-trl" / "bin" / "python"


DRAWN = {
    "transformers": "transformers' own sampling on both sides",
    "vllm": "vLLM on our side, pushes of weights and their proof included, transformers' own "
    "sampling on TRL's",
}
"""What draws the replies, in words."""


@dataclass(frozen=True, slots=True)
class Grid:
    """What is measured: one size at a time differs from the first of each."""

    groups: tuple[int, ...]
    sides: tuple[int, ...]
    """Picture tokens a side."""
    replies: tuple[int, ...]
    prompts: int


GRIDS = {
    "cpu": Grid(groups=(16, 4, 8), sides=(8, 4, 12), replies=(16, 8, 32), prompts=2),
    # 32 x 32 picture tokens, G = 15, 512 reply tokens: the figures of issue 11
    "cuda": Grid(groups=(15, 8, 32), sides=(32, 16, 48), replies=(512, 128, 1024), prompts=4),
}


@dataclass(frozen=True)
class Bench:
    """A model on a device, loaded when it is first wanted."""

    name: str
    device: str
    folder: Path

    @property
    def big(self) -> bool:
        """Whether it is to be computed in bfloat16 and trained like the papers' models."""
        return self.name in SIZES and SIZES[self.name].parameters > 1e9

    @cached_property
    def model(self) -> Path:
        """The checkpoint's folder."""
        folder = self.folder / self.name
        if (folder / "config.json").exists():
            return folder
        if self.name == "idefics":
            return build_model(folder, width=64, layers=2)
        if self.name == "npbench-tiny":
            found = shipped_model(self.name)
            assert found is not None
            return Path(found)
        return build_qwen(folder, SIZES[self.name], device=self.device)

    def config(self, **changes: Any) -> Config:
        """Settings of ``tiny-grpo`` on it; a big model's are those of the papers' recipes."""
        optimizer: dict[str, Any] = {"learning_rate": 3e-4, "tokens_at_once": 1_000_000}
        if self.big:
            optimizer = {"learning_rate": 1e-6, "precision": "bfloat16", "tokens_at_once": 32_768}
        return make_config(self.model, device=self.device, optimizer=optimizer, **changes)

    @cached_property
    def learner(self) -> Learner:
        """Policy and optimiser."""
        return load_learner(self.config(), str(self.model))

    @cached_property
    def examples(self) -> Sequence[Question]:
        """Questions with pictures."""
        return questions(self.config().data)


def asked(bench: Bench, count: int, *, side: int | None) -> list[Question]:
    """The first questions, pictures scaled where a side is given."""
    some = [bench.examples[i] for i in range(count)]
    return some if side is None else [with_side(question, side) for question in some]


def ours_on(
    bench: Bench,
    some: Sequence[Question],
    given: argparse.Namespace,
    *,
    prompts: int,
    group: int,
    reply: int,
    rollouts: str = "transformers",
) -> tuple[Step, Config]:
    """Our step on some questions, and its settings."""
    sizes = {"prompts_per_step": prompts, "group_size": group, "sampling": {"max_tokens": reply}}
    learner = changed(bench.learner, {**sizes, "rollouts": {"backend": rollouts}})
    return measure(learner, some, steps=given.steps), learner.config


def flops_of(bench: Bench, step: Step, *, group: int, side: int | None, shared: bool) -> float:
    """FLOPs of the training pass without recomputation; by formula where we have one."""
    if bench.name not in SIZES or side is None:
        return step.flops or 0.0
    forward = forward_flops(
        SIZES[bench.name],
        picture_tokens=side**2,
        text_tokens=round(step.prompt_tokens) - side**2,
        reply_tokens=round(step.reply_tokens / step.rows),
        replies=group,
        shared_prefix=shared,
    )
    return 3.0 * forward * step.rows / group


def against(bench: Bench, given: argparse.Namespace, grid: Grid, rates: dict[str, float]) -> str:
    """Our step beside TRL's, on the same model, questions, sizes and rewards."""
    side = grid.sides[0] if bench.name in SIZES else None
    group, reply, prompts = grid.groups[0], grid.replies[0], grid.prompts
    some = asked(bench, prompts * (given.steps + 1), side=side)
    ours, config = ours_on(
        bench, some, given, prompts=prompts, group=group, reply=reply, rollouts=given.rollouts
    )
    assert ours.plain is not None
    plain = replace(ours, training=ours.plain)
    theirs = run_trl(bench, given.trl, some, config, steps=given.steps)
    rate = rates["bfloat16" if bench.big else "float32"]
    head = ["", "s/step", "draw", "judge", "train", "reply tokens", "reply tokens/s"]
    head += ["trained tokens/s", "ours is faster: step", "ours is faster: training pass"]
    rows = [
        _line("ours, prompt shared", ours, ours),
        _line("ours, plain path", plain, ours),
        _line("TRL 1.16", theirs, ours) if theirs else ["TRL: not measured", *["-"] * 9],
    ]
    counted = ours.flops or 0.0
    formula = flops_of(bench, ours, group=group, side=side, shared=True)
    parts = (ours.generation, ours.training, ours.verification, ours.encoding)
    shares = ", ".join(
        f"{name} {seconds / ours.seconds:.1%}"
        for name, seconds in zip(
            ("drawing replies", "training", "verification", "encoding prompts"), parts, strict=True
        )
    )
    words = [
        f"## Against TRL's GRPOTrainer: {bench.name}",
        f"{prompts} prompts of {ours.prompt_tokens:.0f} tokens, G = {group}, replies of at most "
        f"{reply} tokens, {'bfloat16' if bench.big else 'float32'}, no KL term, "
        f"{DRAWN[given.rollouts]}; medians of {given.steps} steps after one. Tokens trained on are "
        f"those of prompt and reply over all rows, however often a path passes them. In TRL's "
        f"line drawing holds the encoding of prompts, in ours it does not.",
        table(head, rows),
        f"Of our step: {shares}.",
        f"The training pass executes {counted / 1e9:,.4g} GFLOP (counted by torch"
        + (f"; by the formula of `trainers/cost.py` {formula / 1e9:,.4g}" if side else "")
        + f") in {ours.training:.4g} s: {formula / ours.training / rate:.1%} of the measured rate "
        f"of {'bfloat16' if bench.big else 'float32'} products.",
    ]
    return "\n\n".join(words)


def _line(name: str, step: Step, ours: Step) -> list[str]:
    return [
        name,
        f"{step.seconds:.4g}",
        *(f"{one:.4g}" for one in (step.generation, step.verification, step.training)),
        f"{step.reply_tokens:.0f}",
        f"{step.reply_tokens / step.seconds:,.0f}",
        f"{step.trained_tokens / step.training:,.0f}",
        _ratio(step.reply_tokens / step.seconds, ours.reply_tokens / ours.seconds),
        _ratio(step.trained_tokens / step.training, ours.trained_tokens / ours.training),
    ]


def _ratio(theirs: float, ours: float) -> str:
    """How many times as many tokens a second we pass."""
    return f"{ours / theirs:.2f}x"


def run_trl(
    bench: Bench, python: Path, some: Sequence[Question], config: Config, *, steps: int
) -> Step | None:
    """TRL's step, in its own environment; None, with a word on stderr, where there is none."""
    if not python.exists():
        print(f"{python} is missing: make test-oracles builds it", file=sys.stderr)
        return None
    rows = []
    for question in some:
        (picture,) = question.images
        columns = ("task", "instance", "reference_objective")
        rows.append(
            {
                "prompt": question.prompt,
                "image": base64.b64encode(picture).decode(),
                **{name: question.row[name] for name in columns},
            }
        )
    width = max(bench.learner.policy.encoder.encode(q.prompt, q.images).length for q in some)
    room = config.optimizer.tokens_at_once // (width + config.sampling.max_tokens)
    total = config.prompts_per_step * config.group_size
    job = {
        "model": str(bench.model),
        "device": config.device,
        "precision": config.optimizer.precision,
        "recompute": config.optimizer.gradient_checkpointing,
        "learning_rate": config.optimizer.learning_rate,
        "prompts": config.prompts_per_step,
        "group": config.group_size,
        "reply": config.sampling.max_tokens,
        "rows_at_once": max(n for n in range(1, total + 1) if not total % n and n <= max(room, 1)),
        "steps": steps,
        "rows": rows,
    }
    if config.device.startswith("cuda"):
        # both learners do not fit beside each other
        bench.__dict__.pop("learner")
        gc.collect()
        torch.cuda.empty_cache()
    path = bench.folder / "job.json"
    path.write_text(json.dumps(job), encoding="utf-8")
    command = [str(python), str(Path(__file__).with_name("trl_steps.py")), str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"TRL stopped with {found.returncode}:\n{found.stderr[-3000:]}")
    values = json.loads(found.stdout.splitlines()[-1])
    parts = values["generation"] + values["verification"] + values["training"]
    return Step(
        encoding=values["seconds"] - parts,
        generation=values["generation"],
        verification=values["verification"],
        training=values["training"],
        reply_tokens=values["reply_tokens"],
        prompt_tokens=values["prompt_tokens"],
        rows=int(values["rows"]),
    )


def scaling(bench: Bench, given: argparse.Namespace, grid: Grid, rates: dict[str, float]) -> str:
    """Our step as G, picture and reply grow, one at a time."""
    group, side, reply = grid.groups[0], grid.sides[0], grid.replies[0]
    runs = [
        *(("G", g, side, reply) for g in sorted(grid.groups)),
        *(("picture", group, s, reply) for s in sorted(grid.sides)),
        *(("reply", group, side, r) for r in sorted(grid.replies)),
    ]
    rate = rates["bfloat16" if bench.big else "float32"]
    seen: dict[tuple[int, int, int], list[str]] = {}
    rows = []
    for what, *size in runs:
        g, s, r = size
        if (g, s, r) not in seen:
            seen[g, s, r] = _size(bench, given, grid, group=g, side=s, reply=r, rate=rate)
        rows.append([what, *seen[g, s, r]])
    head = ["varied", "G", "picture tokens", "prompt tokens", "reply tokens", "s/step", "draw"]
    head += ["judge", "train", "draw / train / judge", "reply tokens/s"]
    head += ["plain pass / ours", "FLOPs counted / formula", "of the matrix rate"]
    sizes = SIZES[bench.name]
    words = [
        f"## Scaling: {sizes.name}, random weights, {sizes.parameters:,} parameters",
        f"{grid.prompts} prompts a step; a picture token is {SIDE} x {SIDE} pixels; medians of "
        f"{given.steps} steps after one.",
        table(head, rows),
    ]
    return "\n\n".join(words)


def _size(
    bench: Bench,
    given: argparse.Namespace,
    grid: Grid,
    *,
    group: int,
    side: int,
    reply: int,
    rate: float,
) -> list[str]:
    """One line of the table, but for what is varied."""
    some = asked(bench, grid.prompts * (given.steps + 1), side=side)
    ours, _ = ours_on(bench, some, given, prompts=grid.prompts, group=group, reply=reply)
    flops = flops_of(bench, ours, group=group, side=side, shared=True)
    print(f"measured: G = {group}, {side**2} picture tokens, {reply}", file=sys.stderr)
    return [
        *(str(one) for one in (group, side**2, round(ours.prompt_tokens), reply)),
        *(f"{one:.4g}" for one in (ours.seconds, ours.generation, ours.verification)),
        f"{ours.training:.4g}",
        f"{ours.generation / ours.seconds:.0%} / {ours.training / ours.seconds:.0%} / "
        f"{ours.verification / ours.seconds:.1%}",
        f"{ours.reply_tokens / ours.seconds:,.0f}",
        f"{(ours.plain or 0.0) / ours.training:.2f}x",
        f"{(ours.flops or 0.0) / flops:.3f}",
        f"{flops / ours.training / rate:.1%}",
    ]


def paragraphs(given: argparse.Namespace, folder: Path) -> Iterator[str]:
    """The page."""
    device = torch.device(given.device)
    cuda = device.type == "cuda"
    yield "# Performance"
    where = torch.cuda.get_device_name(device) if cuda else f"CPU ({platform.machine()}), 1 thread"
    yield (
        f"{where}, torch {torch.__version__}. "
        + (
            "Seconds are the clock's."
            if cuda
            else "Seconds are the process's own; on a machine that does other work only ratios "
            "within one page mean anything. Nothing here was run on a GPU."
        )
    )
    grid = GRIDS["cuda" if cuda else "cpu"]
    if {"against", "scaling"} & set(given.only):
        rates = {
            name: matrix_rate(device, getattr(torch, name)) for name in ("bfloat16", "float32")
        }
        yield (
            "Measured rate of matrix products: "
            + ", ".join(f"{name} {rate / 1e12:,.4g} TFLOP/s" for name, rate in rates.items())
            + "."
        )
    # the scaling first: a comparison on CUDA gives the learner's memory to TRL
    if "scaling" in given.only:
        yield scaling(Bench(given.scaling, given.device, folder), given, grid, rates)
    if "against" in given.only:
        yield against(Bench(given.against, given.device, folder), given, grid, rates)
    if "cost" in given.only:
        yield from cost_page()


def main() -> None:
    """Prints the page, paragraph by paragraph as they are measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--against", choices=MODELS)
    parser.add_argument("--scaling", choices=tuple(SIZES))
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--trl", type=Path, default=TRL)
    parser.add_argument("--rollouts", choices=tuple(DRAWN), default="transformers")
    given = parser.parse_args()
    if given.steps < 1:
        parser.error(f"--steps must be at least 1, got {given.steps}")
    cuda = given.device.startswith("cuda")
    given.against = given.against or ("qwen-3b" if cuda else "idefics")
    given.scaling = given.scaling or ("qwen-3b" if cuda else "qwen-tiny")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for words in paragraphs(given, Path(folder)):
            print(words, end="\n\n", flush=True)


if __name__ == "__main__":
    main()
