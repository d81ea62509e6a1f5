"""A published table of steps, the assumptions that follow from it, and the papers' own runs.

Nothing here was run at that size by us. Sizes of models and runs are exact; what a GPU delivers
comes from data sheets and from one published step that calibrates the rest.
"""

from dataclasses import dataclass, replace

from trainers.cost import (
    H100,
    L20,
    Assumptions,
    Figure,
    Gpu,
    StepCost,
    Workload,
    estimate_step,
    generation_seconds,
)
from trainers.cost_sizes import BACKWARD, QWEN_VL_3B, QWEN_VL_7B, QWEN_VL_32B, Sizes

__all__ = ["ASSUMED", "PAPER_RUNS", "PUBLISHED", "PublishedStep", "predicted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedStep:
    """A row of EasyR1's table of steps: Geometry3K, 512 prompts of 5 replies, with a KL term.

    References:
        EasyR1 v0.3.2, ``assets/baselines.md``; throughput is all tokens of a step over its seconds
        and GPUs (``verl/trainer/metrics.py``), MFU is that of the update alone, counted by
        ``verl/utils/flops_counter.py``; the rest is in ``examples/config.yaml``.
    """

    name: str
    sizes: Sizes
    gpu: Gpu
    seconds: float
    tokens_per_gpu_second: float
    mfu: float
    tensor_parallel: int = 2
    gpus: int = 8

    @property
    def tokens(self) -> float:
        """Of the step, as the row's own figures imply."""
        return self.tokens_per_gpu_second * self.gpus * self.seconds

    @property
    def update_seconds(self) -> float:
        """As MFU and tokens imply, with FLOPs as that counter has them.

        It multiplies every token by embedding and head, and leaves the vision tower out.
        """
        sizes, row = self.sizes, self.tokens / GEOMETRY.rows
        weights = sizes.layer_weights + 2 * sizes.head_weights
        flops = 6 * weights * self.tokens + 12 * sizes.layers * sizes.width * row * self.tokens
        return flops / (self.mfu * self.gpu.flops * self.gpus)

    @property
    def other_seconds(self) -> float:
        """Of the step without update and scoring: drawing, rewards, weights, off-loading."""
        return self.seconds - self.update_seconds - self.scoring_seconds

    @property
    def scoring_seconds(self) -> float:
        """Of two forward passes, the update being four of them: it recomputes."""
        return self.update_seconds * GEOMETRY.scorings / (1 + BACKWARD + GEOMETRY.recompute)


GEOMETRY = Workload(
    prompts=512,
    group_size=5,
    mini_batches=4,
    longest_reply=2048,
    scorings=2.0,
    steps=1,
    shared_prefix=False,
    recompute=True,
    whole_groups=False,
)
"""EasyR1's default settings."""
GEOMETRY_PICTURE = 334
"""The fewest that its ``min_pixels`` of 262,144 allow: 28 x 28 pixels a token. Assumed."""
GEOMETRY_TEXT = 120
"""Question and instructions. Assumed: the table does not say."""

PUBLISHED = (
    PublishedStep(
        name="3B, AMP, 1/2",
        sizes=QWEN_VL_3B,
        gpu=H100,
        seconds=120,
        tokens_per_gpu_second=1800,
        mfu=0.081,
    ),
    PublishedStep(
        name="7B, AMP, 1/2",
        sizes=QWEN_VL_7B,
        gpu=H100,
        seconds=145,
        tokens_per_gpu_second=1600,
        mfu=0.16,
    ),
    PublishedStep(
        name="7B, AMP, 4/8",
        sizes=QWEN_VL_7B,
        gpu=H100,
        seconds=120,
        tokens_per_gpu_second=2000,
        mfu=0.232,
    ),
    PublishedStep(
        name="7B, AMP, 1/2, L20",
        sizes=QWEN_VL_7B,
        gpu=L20,
        seconds=580,
        tokens_per_gpu_second=410,
        mfu=0.265,
    ),
    PublishedStep(
        name="32B, bf16, 1/2",
        sizes=QWEN_VL_32B,
        gpu=H100,
        seconds=530,
        tokens_per_gpu_second=620,
        mfu=0.258,
        tensor_parallel=8,
    ),
)
VERIFY_SECONDS = 8.5e-5
VERIFY_SOURCE = (
    "measured by us on one core of a busy machine: 11,711 replies a second parsed and verified, "
    "mean over the tasks at l2 (tests/performance/verdicts.py)"
)

_CALIBRATING = PUBLISHED[2]
"""The fastest row of the size that is priced here."""


def _geometry(row: PublishedStep, given: Assumptions) -> Assumptions:
    """Assumptions for a published row: its GPU, its tokens."""
    reply = row.tokens / GEOMETRY.rows - GEOMETRY_PICTURE - GEOMETRY_TEXT
    return replace(
        given,
        gpu=row.gpu,
        picture_tokens=Figure(GEOMETRY_PICTURE, "", "see GEOMETRY_PICTURE"),
        text_tokens=Figure(GEOMETRY_TEXT, "", "see GEOMETRY_TEXT"),
        reply_tokens=Figure(reply, "", "what is left of the row's tokens"),
    )


def predicted(row: PublishedStep, given: Assumptions, *, own_mfu: bool) -> StepCost:
    """A published step by our formulas.

    Args:
        row: The step.
        given: Assumptions; GPU and token counts are the row's.
        own_mfu: Update and scoring at the row's own MFU, so that only the rest is predicted; else
            at the training share of ``given``, like everything else.
    """
    here = _geometry(row, given)
    cost = estimate_step(row.sizes, GEOMETRY, here, gpus=row.gpus)
    generation = generation_seconds(
        row.sizes,
        GEOMETRY,
        here,
        questions=GEOMETRY.prompts / row.gpus,
        tensor_parallel=row.tensor_parallel,
    )
    return replace(
        cost,
        generation=generation,
        scoring=row.scoring_seconds if own_mfu else cost.scoring,
        update=row.update_seconds if own_mfu else cost.update,
    )


def _calibrated() -> Assumptions:
    """The assumptions, of which two are solved for so that one published row comes out exactly."""
    row, easyr1 = _CALIBRATING, "EasyR1 v0.3.2 baselines, row 7B AMP 4/8 on 8 H100"
    given = Assumptions(
        gpu=H100,
        gpu_source="NVIDIA's data sheet; the peak is also the one of EasyR1's flops_counter.py",
        training_share=Figure(1.0, "", ""),
        bandwidth_share=Figure(0.6, "", "assumed: no source gives decoding apart from the step"),
        decode_share=Figure(0.3, "", "assumed, near what the update reaches in the same row"),
        picture_tokens=Figure(1000, "tokens", "the figure of issue 11; a square of 28 * 32 pixels"),
        text_tokens=Figure(200, "tokens", "assumed"),
        reply_tokens=Figure(512, "tokens", "the figure of issue 11; no paper prints its lengths"),
        other_seconds=Figure(0.0, "s", ""),
        verify_seconds=Figure(VERIFY_SECONDS, "s", VERIFY_SOURCE),
        verifiers=Figure(1, "process", "the worst case: the trainer's own process alone"),
    )
    ideal = predicted(row, given, own_mfu=False)
    share = ideal.update / row.update_seconds
    known = ideal.generation + ideal.verification
    return replace(
        given,
        training_share=Figure(
            share,
            "",
            f"{easyr1}: MFU {row.mfu:.1%} of the update by its counter, which leaves out vision "
            f"tower and recomputation; as counted here",
        ),
        other_seconds=Figure(
            row.other_seconds - known,
            "s",
            f"{easyr1}: its {row.seconds:g} s less update, scoring and what drawing takes here; "
            f"off-loading of parameters and optimiser is in it, so for weights alone too much",
        ),
    )


ASSUMED = _calibrated()
"""Figures for 7B on H100s."""

PAPER_RUNS = {
    "GRPO, DMPO's budget": "qwen2.5-vl-7b-grpo",
    "DMPO": "qwen2.5-vl-7b-dmpo",
    "MUPO on ViRL39K": "qwen2.5-vl-7b-mupo-virl39k",
    "Share-GRPO": "qwen2.5-vl-7b-share-grpo",
}
"""Recipes that hold the papers' numbers of steps, prompts and replies."""
