"""Every method: a gradient that does not depend on how rows are cut, and steps that repeat."""

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from npbench.errors import InputError
from trainers.batches import make_batch
from trainers.config import Config
from trainers.data import questions
from trainers.groups import collect, reward_terms
from trainers.learner import Learner, load_learner
from trainers.logs import read_log
from trainers.loop import train
from trainers.method_settings import METHODS
from trainers.methods import METHOD_TABLE, Scores
from trainers.rollouts import TransformersBackend
from trainers.updates import accumulate, complete_rows, learn, score

KL = {"loss": {"kl_coef": 0.05}}
CASES = [*((name, {}) for name in METHODS if name != "supervised"), ("grpo", KL)]
"""All reinforcement methods, and GRPO with a reference."""


def sample(config: Config, learner: Learner, *, count: int = 2):
    return collect(
        questions(config.data)[:count],
        config=config,
        encoder=learner.policy.encoder,
        backend=TransformersBackend(learner.policy),
        terms=reward_terms(config),
        step=0,
    )


def gradient(config: Config, learner: Learner, groups) -> dict[str, torch.Tensor]:
    from trainers.clusters import find_clusters

    batch = make_batch(groups, config)
    method = METHOD_TABLE[config.method]
    now = score(learner.policy, batch, config)
    # the old policy is another one here, so that ratios are not 1
    noise = torch.randn(now.shape, generator=torch.Generator().manual_seed(0))
    scores = Scores(
        now_BT=now,
        old_BT=now + 0.1 * noise,
        generator=torch.Generator().manual_seed(0),
        progress=(0, 3),
        max_tokens=config.sampling.max_tokens,
        clusters=find_clusters(learner.policy, batch, config, step=0)
        if method.needs_clusters
        else (),
    )
    credit = method.credit(config.method_settings, batch, scores)
    rows = complete_rows(credit.rows, batch, scores, config)
    if method.needs_reference(config.method_settings):
        rows["ref"] = now + 0.1 * noise.flip(0)
    accumulate(learner, batch, rows, batch.counts)
    found = {
        str(i): p.grad.clone() for i, p in enumerate(learner.parameters()) if p.grad is not None
    }
    for parameter in learner.parameters():
        parameter.grad = None
    return found


@pytest.mark.parametrize(("method", "changes"), CASES)
def test_the_gradient_does_not_depend_on_how_rows_are_cut_or_padded(
    method: str, changes: dict, text_model: Path, make_config
) -> None:
    base = make_config(text_model, method=method, **changes)
    learner = load_learner(base, base.model)
    groups = sample(base, learner)
    found = []
    for cut in ({"tokens_at_once": 1}, {"tokens_at_once": 300}, {"shared_prefix": False}):
        config = base.model_copy(update={"optimizer": base.optimizer.model_copy(update=cut)})
        other = Learner(
            config=config,
            policy=learner.policy,
            reference=learner.reference,
            log_z=learner.log_z,
            optimizer=learner.optimizer,
        )
        found.append(gradient(config, other, groups))
    size = sum(float(g.double().square().sum()) for g in found[0].values())
    assert size > 0.0
    for other in found[1:]:
        assert set(other) == set(found[0])
        gap = sum(float((found[0][n] - other[n]).double().square().sum()) for n in other)
        assert math.sqrt(gap / size) < 1e-5


@pytest.mark.parametrize(("method", "changes"), CASES)
def test_three_steps_train_and_repeat_bit_for_bit(
    method: str, changes: dict, text_model: Path, make_config, tmp_path: Path
) -> None:
    config = make_config(text_model, method=method, optimizer={"mini_batches": 2}, **changes)
    for name in ("one", "two"):
        train(config, tmp_path / name)
    one, two = (
        load_file(tmp_path / name / "checkpoints" / "last" / "model.safetensors")
        for name in ("one", "two")
    )
    start = load_file(text_model / "model.safetensors")
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert any(not torch.equal(one[name], start[name]) for name in start)
    rows = read_log(tmp_path / "one" / "scalars.jsonl")
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert rows[0]["gradient_norm"] > 0.0
    assert all(row["reward_vowels"] is not None for row in rows)


@pytest.mark.parametrize("model", ["idefics_model", "qwen_vl_model"])
def test_vision_language_models_go_through_the_same_loop(
    model: str, make_config, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(model)
    config = make_config(folder, method="dmpo", evaluate_every=2, evaluation={"questions": 2})
    train(config, tmp_path / "run")
    evaluations = read_log(tmp_path / "run" / "evaluations.jsonl")
    assert [row["step"] for row in evaluations] == [0, 2, 3]
    assert {"sr", "qr", "accuracy_at_k", "distinct"} <= set(evaluations[0])
    start = load_file(folder / "model.safetensors")
    end = load_file(tmp_path / "run" / "checkpoints" / "last" / "model.safetensors")
    moved = {name for name in start if not torch.equal(start[name], end[name])}
    assert any("vision" in name or "visual" in name for name in moved)


def test_the_reward_goes_up(text_model: Path, make_config, tmp_path: Path) -> None:
    config = make_config(text_model, steps=15, prompts_per_step=4, group_size=8)
    train(config, tmp_path / "run")
    rewards = [row["reward_vowels"] for row in read_log(tmp_path / "run" / "scalars.jsonl")]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.1


def test_a_rollout_can_be_traced_to_its_question_seed_and_terms(
    text_model: Path, make_config, tmp_path: Path
) -> None:
    train(make_config(text_model, steps=1), tmp_path / "run")
    rows = read_log(tmp_path / "run" / "rollouts.jsonl")
    assert len(rows) == 8
    assert len({row["seed"] for row in rows}) == 8
    assert set(rows[0]["terms"]) == {"format", "quality", "vowels"}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["config"]["method"] == "grpo"


def test_a_policy_that_differs_between_sampling_and_training_stops_the_first_step(
    text_model: Path, make_config
) -> None:
    config = make_config(text_model)
    learner = load_learner(config, config.model)
    groups = sample(config, learner)
    with torch.no_grad():
        learner.policy.model.lm_head.weight.mul_(1.3)
    with pytest.raises(InputError, match="sampler and trainer must agree"):
        learn(learner, groups, step=0)


def test_truncated_replies_can_be_left_out_of_masks_and_counts(
    text_model: Path, make_config
) -> None:
    config = make_config(text_model, sampling={"max_tokens": 10, "truncated": "mask"})
    learner = load_learner(config, config.model)
    groups = sample(config, learner, count=6)
    batch = make_batch(groups, config)
    cut = torch.tensor([reply.truncated for group in groups for reply in group.replies])
    assert bool(cut.any())
    assert not bool(batch.mask_BT[cut].any())
    assert batch.counts.sequences == int((~cut).sum())
    zero = make_batch(groups, make_config(text_model, sampling={"truncated": "zero"}))
    assert float(zero.rewards_PG.flatten()[cut].abs().max()) == 0.0
    assert bool(zero.mask_BT[cut].any())


def test_a_batch_of_nothing_but_masked_replies_moves_nothing(text_model: Path, make_config) -> None:
    config = make_config(text_model, sampling={"max_tokens": 1, "truncated": "mask"})
    learner = load_learner(config, config.model)
    before = [p.clone() for p in learner.policy.model.parameters()]
    numbers = learn(learner, sample(config, learner), step=1)
    assert numbers["gradient_norm"] == 0.0
    after = learner.policy.model.parameters()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_dynamic_sampling_ends_when_every_group_is_flat(
    text_model: Path, make_config, tmp_path: Path
) -> None:
    for shortage, groups in (("flat", 2), ("short", 0)):
        config = make_config(
            text_model,
            steps=1,
            dynamic_sampling={"enabled": True, "max_rounds": 2, "shortage": shortage},
        )
        train(config, tmp_path / shortage)
        (row,) = read_log(tmp_path / shortage / "scalars.jsonl")
        assert row["sampling_rounds"] == 2
        assert row["shortage"] == 2
        rollouts = read_log(tmp_path / shortage / "rollouts.jsonl")
        assert len(rollouts) == 4 * groups


def test_a_reward_that_is_not_a_number_stops_with_one_line(
    text_model: Path, make_config, toy_rewards: str, tmp_path: Path
) -> None:
    config = make_config(text_model, reward={"functions": {"bad": f"{toy_rewards}:broken"}})
    with pytest.raises(InputError, match=r"reward term 'bad'.*returned nan"):
        train(config, tmp_path / "run")


def test_share_grpo_scores_each_reply_under_every_variant(text_model: Path, make_config) -> None:
    config = make_config(text_model, method="share_grpo")
    learner = load_learner(config, config.model)
    groups = sample(config, learner)
    batch = make_batch(groups, config)
    assert [len(group.prompts) for group in groups] == [2, 2]
    assert len(batch.sections) == 4
    assert batch.reply_B.tolist() == [0, 1, 2, 3] * 2 + [4, 5, 6, 7] * 2
    assert not torch.equal(batch.sections[0].prompt.ids_1L, batch.sections[1].prompt.ids_1L)


@pytest.mark.parametrize("shared", [False, True])
def test_gradient_checkpointing_changes_no_gradient(
    shared: bool, text_model: Path, make_config
) -> None:
    found = []
    for checkpointing in (False, True):
        config = make_config(
            text_model,
            optimizer={"shared_prefix": shared, "gradient_checkpointing": checkpointing},
        )
        learner = load_learner(config, config.model)
        found.append(gradient(config, learner, sample(config, learner)))
    for name in found[0]:
        assert torch.allclose(found[0][name], found[1][name], atol=1e-6)


@pytest.mark.parametrize("embedding", ["policy", "sentence:all-MiniLM-L6-v2"])
def test_mupo_clusters_by_other_embeddings(embedding: str, text_model: Path, make_config) -> None:
    from trainers.clusters import find_clusters

    config = make_config(text_model, method="mupo", loss={"embedding": embedding})
    learner = load_learner(config, config.model)
    batch = make_batch(sample(config, learner), config)
    clusters = find_clusters(learner.policy, batch, config, step=0)
    assert all(sorted(found.labels) == [0, 0, 1, 1] for found in clusters)
    assert all(min(found.diversity) > 0.0 for found in clusters)
