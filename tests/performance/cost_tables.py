"""The cost model as Markdown: runs on 8 to 64 GPUs, sources, how far off it is."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainers.config import load_config
from trainers.cost import Figure, StepCost, Workload, estimate_step, workload_of
from trainers.cost_published import ASSUMED, PAPER_RUNS, PUBLISHED, predicted
from trainers.cost_sizes import QWEN_VL_7B, Sizes

GPUS = (8, 16, 32, 64)
LLAMA_8B = Sizes(
    name="Llama-3.1-8B",
    width=4096,
    mlp=14336,
    layers=32,
    heads=32,
    kv_heads=8,
    vocabulary=128256,
    tied=False,
)
NEMO = Workload(
    prompts=64,
    group_size=32,
    mini_batches=4,
    longest_reply=4096,
    scorings=2.0,
    steps=1,
    shared_prefix=False,
    recompute=False,
    whole_groups=False,
)
"""NeMo RL v0.4's row Llama-3.1-8B, on policy, 16 H100 (docs/about/performance-summary.md): 2,048
replies of at most 4,096 tokens and 1,060 in the mean, four updates, 97.7 s. How they fall into
groups, the prompt's share of the length, and recomputation are not in the row: assumed."""
NEMO_SECONDS, NEMO_GPUS, NEMO_LENGTH, NEMO_PROMPT = 97.7, 16, 1060, 160


HEAD = (
    "run",
    "GPUs",
    "s/step",
    "draw",
    "judge",
    "score",
    "update",
    "other",
    "busy in the update",
    "drawn tokens/s/GPU",
    "tokens/s",
    "GPU-hours",
)
FAR_OFF = (
    "EasyR1 v0.3.2, Geometry3K",
    "published s",
    "its update",
    "drawing and other, left over",
    "ours, its own MFU",
    "off",
    "ours, one rate for all",
    "off",
)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are numbers unless they hold words."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_others(work: Workload) -> Workload:
    """The same work with the prompt before each reply, rows dealt out one by one, recomputing."""
    return replace(work, shared_prefix=False, recompute=True, whole_groups=False)


def as_ours(work: Workload) -> Workload:
    """The same work with the prompt shared by its replies, groups whole, recomputing."""
    return replace(work, shared_prefix=True, recompute=True, whole_groups=True)


def nemo() -> StepCost:
    """The step of another engine, by assumptions that were not fitted to it."""
    given = replace(
        ASSUMED,
        picture_tokens=Figure(0, "", ""),
        text_tokens=Figure(NEMO_PROMPT, "", ""),
        reply_tokens=Figure(NEMO_LENGTH - NEMO_PROMPT, "", ""),
    )
    return estimate_step(LLAMA_8B, NEMO, given, gpus=NEMO_GPUS)


def cost_page() -> Iterator[str]:
    """The paragraphs of the section."""
    yield "## On paper: 7B on 8 to 64 GPUs"
    yield (
        "Nothing of this section was run. `trainers/cost.py` and `trainers/cost_published.py` hold "
        "formulas and figures; steps, "
        "prompts and group sizes are the shipped recipes'. Tokens are those of prompt and reply "
        "over all trained rows."
    )
    for words, change in (
        (
            "As most engines do it: the prompt before each reply, rows dealt out one by one",
            as_others,
        ),
        ("With the prompt shared by its replies, groups whole", as_ours),
    ):
        yield f"### {words}"
        yield table(
            HEAD,
            [
                _line(name, estimate_step(QWEN_VL_7B, change(work), ASSUMED, gpus=gpus))
                for name, work in _runs()
                for gpus in GPUS
            ],
        )
    bytes_held = 16 * QWEN_VL_7B.parameters
    yield (
        f"Weights, gradients and AdamW's moments of the whole model in float32 are "
        f"{bytes_held / 1e9:.0f} GB: they must be spread over GPUs, which this trainer does not do "
        f"(every process holds the model). The second table says what sharing the prompt would be "
        f"worth at this size, not what `npbench train` does there today; verl's engines do the "
        f"first. `other` is a remainder that off-loading is part of, and an upper bound; without "
        f"it a step is that much shorter."
    )
    yield "### What is assumed"
    yield table(["what", "value", "source"], ASSUMED.rows())
    yield "### How far off"
    yield table(
        FAR_OFF,
        [
            [
                row.name,
                f"{row.seconds:g}",
                f"{row.update_seconds:.0f}",
                f"{row.other_seconds:.0f}",
                *_against(predicted(row, ASSUMED, own_mfu=True), row.seconds),
                *_against(predicted(row, ASSUMED, own_mfu=False), row.seconds),
            ]
            for row in PUBLISHED
        ],
    )
    off = ", ".join(_against(nemo(), NEMO_SECONDS))
    yield (
        f"The row 7B, AMP, 4/8 calibrates and is met by construction. With a row's own MFU only "
        f"drawing and the rest are predicted; with one rate the whole step is, and the rate that "
        f"micro-batches of 4 reach is too good for those of 1. A row of another engine, not on the "
        f"facts page and not fitted to: NeMo RL v0.4, Llama-3.1-8B on {NEMO_GPUS} H100, "
        f"{NEMO_SECONDS:g} s published; ours {off}."
    )
    yield (
        "Not comparable, because batch, lengths or steps are not printed: simple_GRPO (60 steps in "
        "16 min 40 s on 2 A800), Open-R1 7B (about 3 h on 8 H100), Dr.GRPO (27 h on 8 A100), "
        "nano-aha-moment, GRPO-Zero. Rows of Qwen3-VL-30B-A3B are of a mixture of experts."
    )


def _runs() -> list[tuple[str, Workload]]:
    return [(name, workload_of(load_config(recipe))) for name, recipe in PAPER_RUNS.items()]


def _line(name: str, cost: StepCost) -> list[str]:
    seconds = (cost.generation, cost.verification, cost.scoring, cost.update, cost.other)
    return [
        name,
        str(cost.gpus),
        f"{cost.seconds:.0f}",
        *(f"{one:.1f}" for one in seconds),
        f"{cost.busy:.0%}",
        f"{cost.reply_tokens / cost.generation / cost.gpus:,.0f}",
        f"{cost.tokens_per_second:,.0f}",
        f"{cost.gpu_hours:.0f}",
    ]


def _against(cost: StepCost, published: float) -> tuple[str, str]:
    return f"{cost.seconds:.0f} s", f"{cost.seconds / published - 1:+.0%}"
