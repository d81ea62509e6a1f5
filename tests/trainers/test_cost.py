"""The cost model against hand-worked cases, torch's own counter, and published steps."""

from dataclasses import replace

import pytest

from trainers.config import load_config
from trainers.cost import Assumptions, Figure, Gpu, Workload, estimate_step, workload_of
from trainers.cost_published import ASSUMED, PAPER_RUNS, PUBLISHED, predicted
from trainers.cost_sizes import QWEN_VL_3B, QWEN_VL_7B, QWEN_VL_32B, Sizes, forward_flops

SMALL = Sizes(
    name="small",
    width=8,
    mlp=16,
    layers=2,
    heads=2,
    kv_heads=1,
    vocabulary=10,
    tied=False,
    vision_width=4,
    vision_mlp=6,
    vision_layers=3,
    vision_heads=2,
    full_attention=(2,),
    patch=2,
    window=8,
)
WORK = Workload(
    prompts=6,
    group_size=4,
    mini_batches=3,
    longest_reply=20,
    scorings=1.5,
    steps=90,
    shared_prefix=False,
    recompute=True,
    whole_groups=False,
)


def figure(value: float) -> Figure:
    return Figure(value, "", "by hand")


def given(**changes: float) -> Assumptions:
    found = Assumptions(
        gpu=Gpu(name="slow", flops=1e6, bandwidth=1e5),
        gpu_source="by hand",
        training_share=figure(0.5),
        bandwidth_share=figure(0.4),
        decode_share=figure(0.25),
        picture_tokens=figure(0),
        text_tokens=figure(3),
        reply_tokens=figure(5),
        other_seconds=figure(7.0),
        verify_seconds=figure(0.5),
        verifiers=figure(4),
    )
    return replace(found, **{name: figure(value) for name, value in changes.items()})


def test_weights_of_a_small_model_by_hand() -> None:
    # q and o 8 x 8, k and v 8 x 4, three of 8 x 16; two layers
    assert SMALL.layer_weights == 2 * (64 + 64 + 32 + 32 + 3 * 128) == 1152
    assert SMALL.head_weights == 80
    # qkv 4 x 12 and o 4 x 4, three of 4 x 6, three layers; 3 colours x 2 frames x 2 x 2 pixels x 4
    assert SMALL.patch_weights == 3 * (48 + 16 + 72) + 96 == 504
    # four patches of 4 side by side: 16 x 16 and 16 x 8
    assert SMALL.merger_weights == 256 + 128
    # 2 bytes x (keys and values) x 2 layers x 1 head of 4
    assert SMALL.cache_bytes == 32
    assert SMALL.decoded_bytes == 2 * (1152 + 80)


@pytest.mark.parametrize(
    ("sizes", "published"),
    [(QWEN_VL_3B, 3_754_622_976), (QWEN_VL_7B, 8_292_166_656), (QWEN_VL_32B, 33_452_718_336)],
)
def test_parameters_are_those_of_the_checkpoints(sizes: Sizes, published: int) -> None:
    # the totals of the safetensors on the Hub's model pages
    assert sizes.parameters == published


def model_of(sizes: Sizes):
    from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

    quarter = sizes.head_width // 4
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": sizes.vocabulary,
            "hidden_size": sizes.width,
            "intermediate_size": sizes.mlp,
            "num_hidden_layers": sizes.layers,
            "num_attention_heads": sizes.heads,
            "num_key_value_heads": sizes.kv_heads,
            "rope_parameters": {
                "rope_type": "default",
                "mrope_section": [sizes.head_width // 2 - quarter, quarter // 2, quarter // 2],
            },
        },
        vision_config={
            "depth": sizes.vision_layers,
            "hidden_size": sizes.vision_width,
            "intermediate_size": sizes.vision_mlp,
            "num_heads": sizes.vision_heads,
            "out_hidden_size": sizes.width,
            "patch_size": sizes.patch,
            "spatial_merge_size": sizes.merge,
            "window_size": sizes.window,
            "fullatt_block_indexes": list(sizes.full_attention),
        },
        image_token_id=sizes.vocabulary - 1,
        video_token_id=sizes.vocabulary - 2,
        vision_start_token_id=sizes.vocabulary - 3,
        tie_word_embeddings=sizes.tied,
        attn_implementation="eager",
    )
    return Qwen2_5_VLForConditionalGeneration(config)


TINY = Sizes(
    name="tiny",
    width=64,
    mlp=96,
    layers=3,
    heads=4,
    kv_heads=2,
    vocabulary=300,
    tied=False,
    vision_width=32,
    vision_mlp=48,
    vision_layers=3,
    vision_heads=2,
    full_attention=(1,),
)


@pytest.mark.parametrize("sizes", [TINY, replace(TINY, tied=True, kv_heads=4), QWEN_VL_3B])
def test_parameters_are_those_of_transformers_own_model(sizes: Sizes) -> None:
    import torch

    with torch.device("meta"):
        model = model_of(sizes)
    assert sizes.parameters == sum(parameter.numel() for parameter in model.parameters())


def test_products_are_those_that_torch_counts() -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    model, side, reply = model_of(TINY).eval(), 8, 5
    picture, start = side**2, TINY.vocabulary - 3
    text = [start, 7, 8, 9]
    ids = torch.tensor([[*text, *[TINY.vocabulary - 1] * picture, *[5] * reply]])
    pixels = torch.randn(4 * picture, 3 * 2 * TINY.patch**2)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            pixel_values=pixels,
            image_grid_thw=torch.tensor([[1, 2 * side, 2 * side]]),
            mm_token_type_ids=(ids == TINY.vocabulary - 1).int(),
            logits_to_keep=reply,
        )
    found = forward_flops(
        TINY,
        picture_tokens=picture,
        text_tokens=len(text),
        reply_tokens=reply,
        replies=1,
        shared_prefix=True,
    )
    # eager attention computes the upper triangle, too, and the rotary angles are a product
    length = picture + len(text) + reply
    triangle = 4 * TINY.layers * TINY.width * (length * (length - 1) // 2)
    assert counter.get_total_flops() == pytest.approx(found + triangle, rel=2e-3)


def test_flops_of_a_prompt_and_its_replies_by_hand() -> None:
    def flops(*, shared: bool, picture: int = 0) -> int:
        return forward_flops(
            SMALL,
            picture_tokens=picture,
            text_tokens=3,
            reply_tokens=2,
            replies=4,
            shared_prefix=shared,
        )

    # three tokens that see 1 + 2 + 3; 4 x 2 layers x width 8 for each seen one
    prompt = 2 * 1152 * 3 + 64 * 6
    # two tokens that see 4 + 5, and their logits
    reply = 2 * 1152 * 2 + 64 * 9 + 2 * 80 * 2
    assert flops(shared=True) == prompt + 4 * reply
    assert flops(shared=False) == 4 * (prompt + reply)
    # five picture tokens are 20 patches: more than the 16 of a window of 8 pixels; one layer of
    # three sees all of them
    vision = 2 * 20 * 504 + 2 * 5 * 384 + 4 * 4 * 20 * (20 + 2 * 16)
    longer = 2 * 1152 * 8 + 64 * 36
    behind = 2 * 1152 * 2 + 64 * (9 + 10) + 2 * 80 * 2
    assert flops(shared=True, picture=5) == vision + longer + 4 * behind


def test_seconds_of_a_step_by_hand() -> None:
    cost = estimate_step(SMALL, WORK, given(), gpus=2)
    prompt = 2 * 1152 * 3 + 64 * 6
    reply = 2 * 1152 * 5 + 64 * (4 + 5 + 6 + 7 + 8) + 2 * 80 * 5
    group = 4 * (prompt + reply)
    # six questions on two GPUs of 1e6 x 0.5; forward, backward twice as much, forward again
    assert cost.update == pytest.approx(4 * 3 * group / 5e5)
    assert cost.scoring == pytest.approx(1.5 * 3 * group / 5e5)
    # 24 replies, half a second each, four at a time
    assert cost.verification == pytest.approx(3.0)
    # the longest reply reads the weights 20 times at 4e4 bytes a second; three prompts and twelve
    # replies of five tokens that see 3 + 3 tokens, at 2.5e5 FLOPs a second
    floor = 20 * 2464 / 4e4
    token = 2 * (1152 + 80) / 2.5e5 + 32 * 6 / 4e4
    assert cost.generation == pytest.approx(3 * prompt / 2.5e5 + floor + 60 * token)
    total = cost.update + cost.scoring + 3.0 + cost.generation + 7.0
    assert cost.seconds == pytest.approx(total)
    assert cost.tokens == 24 * 8
    assert cost.reply_tokens == 24 * 5
    assert cost.tokens_per_second == pytest.approx(192 / total)
    assert cost.gpu_hours == pytest.approx(total * 90 * 2 / 3600)
    assert cost.busy == 1.0


def test_a_mini_batch_of_whole_groups_leaves_gpus_without_work() -> None:
    whole = replace(WORK, whole_groups=True)
    four = estimate_step(SMALL, whole, given(), gpus=4)
    two = estimate_step(SMALL, whole, given(), gpus=2)
    # mini-batches of two groups: the third and fourth GPU have nothing to do
    assert four.busy == 0.5
    assert four.update == two.update
    # six questions on four GPUs: two on the fullest
    assert four.scoring == pytest.approx(two.scoring * 2 / 3)
    assert estimate_step(SMALL, WORK, given(), gpus=4).update == pytest.approx(two.update / 2)


def test_variants_are_drawn_once_and_trained_behind_each_prompt() -> None:
    once = estimate_step(SMALL, WORK, given(), gpus=2)
    twice = estimate_step(SMALL, replace(WORK, variants=2), given(), gpus=2)
    assert twice.update == pytest.approx(2 * once.update)
    assert twice.verification == once.verification
    prompt = 2 * 1152 * 3 + 64 * 6
    assert twice.generation - once.generation == pytest.approx(3 * prompt / 2.5e5)


def test_without_recomputation_an_update_is_three_forward_passes() -> None:
    again = estimate_step(SMALL, WORK, given(), gpus=2).update
    kept = estimate_step(SMALL, replace(WORK, recompute=False), given(), gpus=2).update
    assert kept == pytest.approx(again * 3 / 4)


def test_figures_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match=r"training_share must lie in \(0, 1\], got 1.2"):
        given(training_share=1.2)
    with pytest.raises(ValueError, match="verifiers must be at least 1, got 0"):
        given(verifiers=0)
    with pytest.raises(ValueError, match="gpus must be at least 1, got 0"):
        estimate_step(SMALL, WORK, given(), gpus=0)


@pytest.mark.parametrize(
    ("recipe", "scorings"),
    [
        # four mini-batches: old log-probabilities once
        ("qwen2.5-vl-7b-grpo", 1.0),
        # DMPO's target wants them at every update, three of four of them anew
        ("qwen2.5-vl-7b-dmpo", 1.75),
        # one update a step
        ("qwen2.5-vl-7b-gpg", 0.0),
    ],
)
def test_passes_without_gradient_are_those_of_the_trainer(recipe: str, scorings: float) -> None:
    assert workload_of(load_config(recipe)).scorings == scorings


def test_work_is_read_from_the_recipes() -> None:
    work = workload_of(load_config(PAPER_RUNS["Share-GRPO"]))
    # 512 x 2 x 6 replies, 512 x 2 x 2 x 6 rows, as the facts about the paper have it
    assert (work.replies, work.rows) == (6144, 12288)
    mupo = workload_of(load_config(PAPER_RUNS["MUPO on ViRL39K"]))
    assert (mupo.steps, mupo.replies, mupo.longest_reply) == (607, 1920, 2048)


def test_every_assumption_names_its_source() -> None:
    rows = ASSUMED.rows()
    assert len(rows) == len(Assumptions.__dataclass_fields__) - 1
    assert all(source for _, _, source in rows)


def test_tokens_of_published_steps_agree_with_each_other() -> None:
    # throughput x GPUs x seconds over 2,560 rows, for 7B on one data set: 725, 750, 743
    rows = [row.tokens / 2560 for row in PUBLISHED if row.sizes is QWEN_VL_7B]
    assert rows == pytest.approx([725, 750, 743.125])
    # what is left over for drawing is 43 and 47 s in two rows that draw in the same way
    left = [row.other_seconds for row in PUBLISHED[1:3]]
    assert left == pytest.approx([42.6, 46.9], abs=0.1)


def test_the_update_of_a_published_step_by_hand() -> None:
    row = PUBLISHED[2]
    # 7,615,283,200 weights, embedding and head among them; 1.92 million tokens in rows of 750
    flops = 6 * 7_615_283_200 * 1.92e6 + 12 * 28 * 3584 * 750 * 1.92e6
    assert row.update_seconds == pytest.approx(flops / (0.232 * 989e12 * 8))
    assert row.update_seconds == pytest.approx(48.7, abs=0.05)


@pytest.mark.parametrize(
    ("number", "own", "one_rate"),
    # how far off: with the row's own MFU, and with the one of the calibrating row for all
    [(0, 0.03, -0.39), (1, 0.03, -0.19), (2, 0.0, 0.0), (3, 0.11, 0.23), (4, -0.07, -0.03)],
)
def test_published_steps_are_met_as_well_as_we_say(
    number: int, own: float, one_rate: float
) -> None:
    row = PUBLISHED[number]
    assert predicted(row, ASSUMED, own_mfu=True).seconds / row.seconds - 1 == pytest.approx(
        own, abs=0.01
    )
    assert predicted(row, ASSUMED, own_mfu=False).seconds / row.seconds - 1 == pytest.approx(
        one_rate, abs=0.01
    )
