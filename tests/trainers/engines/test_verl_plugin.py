"""The plug-in where verl is not: imports, settings, checks, rewards, recipes and the command."""

import json
import math
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner

from npbench.errors import InputError
from npbench.splits import load
from trainers.engines import verl
from trainers.engines.verl_checks import check_config
from trainers.engines.verl_groups import RaggedGroups
from trainers.engines.verl_launch import command
from trainers.engines.verl_recipes import ADDED, launch, overrides, read_recipe, recipe_names
from trainers.engines.verl_rewards import compute_score, gate_opens, truth_row
from trainers.engines.verl_settings import METHODS, method_of, read_settings
from trainers.method_settings import METHODS as ALL_METHODS
from trainers.reward_sets import REWARDS
from trainers.rewards import score_replies

TRUTH = {
    "task": "maximum_independent_set",
    "instance": {"num_vertices": 6, "edges": [[0, 1], [2, 3], [4, 5]]},
    "reference_objective": 3,
    "reference_status": "optimal",
}
HOSTILE = [
    "",
    "Answer: " + "[" * 100_000,
    "Answer: [" + "9" * 10_000 + "]",
    "Answer: [NaN, 1e400, -1]",
    "Answer: [0, 2" + "\0" * 50,
    "\ud800 Answer: [0, 2]",
    "Answer: __import__('os').system('true')",
    "a" * 2_000_000,
    "\\boxed{" * 5_000,
    "<answer>" * 20_000,
]
TRAINED = [name for name in recipe_names() if name != "common"]


def test_importing_it_imports_neither_verl_nor_ray() -> None:
    code = (
        "import sys, trainers.engines.verl, trainers.engines.verl_plugin, "
        "trainers.engines.verl_launch; "
        "sys.exit(any(name in sys.modules for name in ('verl', 'ray', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_verl_registering_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "verl", None)
    with pytest.raises(InputError, match=r"the verl plug-in needs: pip install 'verl") as caught:
        verl.register()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("version", ["0.8.0", "0.10.0", "1.0", "main"])
def test_another_version_of_verl_is_refused(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    stand_in = type(sys)("verl")
    stand_in.__version__ = version  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "verl", stand_in)
    with pytest.raises(InputError, match=f"got verl {version}"):
        verl.import_verl()


def test_a_verl_without_its_trainers_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = type(sys)("verl")
    stand_in.__version__ = "0.9.1"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "verl", stand_in)
    monkeypatch.setitem(sys.modules, "verl.trainer.ppo.core_algos", None)
    with pytest.raises(InputError, match=r"pip install 'verl\[verl-core\]'") as caught:
        verl.register()
    assert "\n" not in str(caught.value)


def test_every_method_is_carried_or_refused_with_its_reason() -> None:
    refused = {"flowrl": "log Z", "share_grpo": "other prompts", "supervised": "no groups"}
    assert set(METHODS) | set(refused) == set(ALL_METHODS)
    for method in METHODS:
        assert method_of(f"npbench_{method}") == method
    for method, reason in refused.items():
        with pytest.raises(InputError, match=f"npbench_{method} cannot run in verl.*{reason}"):
            method_of(f"npbench_{method}")
    for name in ("npbench_grop", "grpo", "gae"):
        with pytest.raises(InputError, match="unknown npbench method in verl"):
            method_of(name)


@pytest.mark.parametrize(
    ("method", "values", "message"),
    [
        ("dmpo", {"lamda": 1}, "unknown setting 'algorithm.npbench.lamda'"),
        ("dmpo", {"alpha": 0}, "algorithm.npbench.alpha: .* greater than 0, got 0"),
        ("dmpo", {"seed": 1}, "unknown setting 'algorithm.npbench.seed'"),
        ("grpo", {"clip_high": 0.3}, "has a place in verl: set actor_rollout_ref.actor.clip_ratio"),
        ("grpo", {"aggregation": "token-mean"}, "set actor_rollout_ref.actor.loss_agg_mode"),
        ("grpo", {"kl_coef": 0.1}, "set actor_rollout_ref.actor.kl_loss_coef"),
        ("gspo", {"form": "token"}, "form cannot be set"),
        ("dapo", {"token_mean": "group"}, "token_mean cannot be set: groups are split"),
        ("dapo", {"overlong_cache_tokens": 9}, "needs algorithm.npbench.max_tokens"),
        ("mupo", {"embedding": "policy"}, "'policy' cannot be had in verl"),
        ("mupo", {"gate": "open"}, "algorithm.npbench.gate: .*got 'open'"),
    ],
)
def test_a_bad_setting_is_one_line(method: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_settings(method, values)
    assert "\n" not in str(caught.value)


ESTIMATOR = "algorithm.adv_estimator"
LOSS = "actor_rollout_ref.actor.policy_loss.loss_mode"
MODE = "actor_rollout_ref.actor.loss_agg_mode"
MINI = "actor_rollout_ref.actor.ppo_mini_batch_size"


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("grpo", {ESTIMATOR: "grpo"}, "unknown npbench method in verl 'grpo'"),
        ("grpo", {LOSS: "vanilla"}, "loss_mode must be npbench_grpo .*got vanilla"),
        ("dapo", {}, "loss_agg_mode must be token-mean for npbench_dapo"),
        ("dr_grpo", {MODE: "seq-mean-token-sum-norm"}, "loss_scale_factor must be the generation"),
        ("grpo", {"actor_rollout_ref.rollout.n": 1}, "rollout.n must be at least 2, got 1"),
        ("mupo", {}, r"at most actor_rollout_ref.rollout.n=4, got 3 \* 3"),
        ("dmpo", {MINI: 2}, "must be data.train_batch_size=4 and ppo_epochs 1, got 2 and 1"),
        ("dmpo", {"actor_rollout_ref.actor.ppo_epochs": 2}, "got 4 and 2"),
        ("clip_cov", {MINI: 2}, "exact for one optimiser step a batch"),
        ("dmpo", {"algorithm.rollout_correction.rollout_is": "token"}, "rollout_is must be null"),
        ("gspo", {"algorithm.rollout_correction.bypass_mode": True}, "bypass_mode must be false"),
        ("dmpo", {"algorithm.npbench.beta": 1}, "unknown setting 'algorithm.npbench.beta'"),
        (
            "dapo",
            {
                MODE: "token-mean",
                "algorithm.npbench.overlong_cache_tokens": 8,
                "algorithm.npbench.max_tokens": 32,
            },
            "max_tokens must be data.max_response_length=64, got 32",
        ),
    ],
)
def test_a_configuration_that_would_run_something_else_is_one_line(
    configured: Callable[..., Any], method: str, changes: dict[str, Any], message: str
) -> None:
    names = {ESTIMATOR: f"npbench_{method}", LOSS: f"npbench_{method}"}
    with pytest.raises(InputError, match=message) as caught:
        check_config(configured(**{**names, **changes}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["grpo", "dmpo", "clip_cov", "gspo", "grpo_passk"])
def test_a_sound_configuration_passes(configured: Callable[..., Any], method: str) -> None:
    names = {ESTIMATOR: f"npbench_{method}", LOSS: f"npbench_{method}"}
    assert check_config(configured(**names)) == method


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Answer: [0, 2, 4]", {"score": 1.1, "acc": 1.0, "format": 1.0, "quality": 1.0}),
        ("Answer: [0, 2]", {"score": 0.1 + 2 / 3, "acc": 0.0, "format": 1.0, "quality": 2 / 3}),
        ("Answer: [0, 1]", {"score": 0.1, "acc": 0.0, "format": 1.0, "quality": 0.0}),
        ("no idea", {"score": 0.0, "acc": 0.0, "format": 0.0, "quality": 0.0}),
    ],
)
def test_rewards_by_hand(reply: str, expected: dict[str, float]) -> None:
    for truth in (TRUTH, json.dumps(TRUTH), {**TRUTH, "instance": json.dumps(TRUTH["instance"])}):
        assert compute_score("npbench/x", reply, truth) == pytest.approx(expected)


@pytest.mark.parametrize("reward", sorted(REWARDS))
def test_named_rewards_are_those_of_our_own_trainer(reward: str) -> None:
    gold = reward == "correct"
    row = {"gold": "42"} if gold else {**TRUTH, "instance": json.dumps(TRUTH["instance"])}
    replies = ["\\boxed{42}", "\\boxed{41}", "Answer: [0, 2, 4]", "Answer: [0, 1]", "", *HOSTILE]
    ours = score_replies(replies, [row] * len(replies), REWARDS[reward], timeout=None)
    truth = "42" if gold else TRUTH
    for reply, scored in zip(replies, ours.scored, strict=True):
        found = compute_score("x", reply, truth, reward=reward)
        assert not scored.faults
        total = math.nan if scored.total is None else scored.total
        assert found["score"] == pytest.approx(total, nan_ok=True)
        assert found.keys() == {"score", "acc", *scored.terms}


def test_references_of_all_tasks_earn_the_whole_reward() -> None:
    for row in load("nano", "nano", "train", 31, per_task=1, modality="text"):
        truth = {
            "task": row.task,
            "instance": row.instance,
            "reference_objective": row.reference_objective,
        }
        reply = f"Answer: {row.reference_solution}"
        assert compute_score("x", reply, truth)["score"] == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("truth", "reward", "message"),
    [
        (3, "dmpo", "must be text or an object, got int"),
        ({"task": "tsp"}, "dmpo", "has no 'instance', and no 'gold' either"),
        ("42", "dmpo", "reward 'dmpo' is for rows with an NP task"),
        (TRUTH, "correct", "reward 'correct' is for rows with a gold answer"),
        ({**TRUTH, "task": "tspp"}, "dmpo", "unknown task 'tspp'"),
        ({**TRUTH, "instance": "{"}, "dmpo", "ground_truth is broken"),
        ({**TRUTH, "reference_objective": None}, "dmpo", "ground_truth is broken"),
        (TRUTH, "dmop", "unknown reward 'dmop'; did you mean 'dmpo'"),
    ],
)
def test_a_broken_row_raises_instead_of_earning_zero(truth: Any, reward: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compute_score("x", "Answer: [0, 2, 4]", truth, reward=reward)


def test_gates() -> None:
    assert gate_opens("Answer: [0, 2]", TRUTH, gate="feasible")
    assert not gate_opens("Answer: [0, 1]", TRUTH, gate="feasible")
    assert not gate_opens("Answer: [0, 2]", TRUTH, gate="optimal")
    assert gate_opens("Answer: [0, 2, 4]", json.dumps(TRUTH), gate="optimal")
    assert gate_opens("\\boxed{42}", "42", gate="correct")
    assert not gate_opens("\\boxed{41}", '{"gold": "42"}', gate="correct")
    assert truth_row("[1, 2]") == {"gold": "[1, 2]"}
    with pytest.raises(InputError, match="gate=correct is for rows with a gold answer"):
        gate_opens("Answer: [0, 2]", TRUTH, gate="correct")


def test_groups_without_any_row() -> None:
    groups = RaggedGroups.of(["p", "q"], torch.zeros(2, dtype=torch.bool))
    assert groups.gather(torch.ones(2), missing=0.0).shape == (0, 0)
    assert groups.scatter(torch.zeros(0, 0), rows=2).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", TRAINED)
def test_every_recipe_is_a_sound_configuration_of_its_own_method(
    configured: Callable[..., Any], name: str
) -> None:
    values = read_recipe(name)
    config = configured(**values)
    method = check_config(config)
    assert method.replace("_", "-") == name.removesuffix("-summary")
    assert values["trainer.v1.trainer_mode"] == "npbench"
    assert values["reward.custom_reward_function.reward_kwargs.reward"] in REWARDS
    assert values["trainer.experiment_name"] == name
    assert values["data.train_batch_size"] % values[MINI] == 0


def test_there_is_a_recipe_for_every_method_that_verl_can_carry() -> None:
    assert {method_of(read_recipe(name)[ESTIMATOR]) for name in TRAINED} == set(METHODS)


def test_published_settings_stand_in_the_recipes() -> None:
    """From the papers, by ../shared/facts/losses.md, sections 3.3, 3.4, 3.9 and 3.10."""
    dapo, gspo, dmpo, mupo = (read_recipe(name) for name in ("dapo", "gspo", "dmpo", "mupo"))
    actor = "actor_rollout_ref.actor"
    assert (dapo["data.train_batch_size"], dapo["actor_rollout_ref.rollout.n"]) == (512, 16)
    assert dapo["data.train_batch_size"] / dapo[MINI] == 16
    assert (dapo[f"{actor}.clip_ratio_low"], dapo[f"{actor}.clip_ratio_high"]) == (0.2, 0.28)
    assert dapo[f"{actor}.optim.lr_warmup_steps"] == 20
    assert (gspo[f"{actor}.clip_ratio_low"], gspo[f"{actor}.clip_ratio_high"]) == (3e-4, 4e-4)
    assert gspo["data.train_batch_size"] / gspo[MINI] == 4
    assert (dmpo["algorithm.npbench.weight"], dmpo["algorithm.npbench.alpha"]) == (2.0, 1 / 15)
    assert (dmpo["data.train_batch_size"], dmpo["actor_rollout_ref.rollout.n"]) == (128, 8)
    assert mupo["actor_rollout_ref.rollout.n"] == 15
    assert (mupo["algorithm.npbench.clusters"], mupo["algorithm.npbench.min_size"]) == (3, 3)
    for name in TRAINED:
        assert read_recipe(name)[f"{actor}.optim.lr"] == 1e-6


def test_overrides_are_hydras_own_words() -> None:
    values = {
        "a.b": "null",
        "a.files": ["/data/it's here.parquet", "b"],
        "algorithm.npbench.embedding": "sentence:Qwen/Qwen3",
        "a.x": 1e-6,
        "algorithm.npbenchmark": False,
    }
    assert overrides(values) == [
        "a.b=null",
        "a.files=['/data/it\\'s here.parquet',b]",
        "+algorithm.npbench.embedding='sentence:Qwen/Qwen3'",
        "a.x=1e-06",
        "algorithm.npbenchmark=false",
    ]


def test_a_launch_wins_over_the_recipe_and_reaches_rays_workers() -> None:
    found = launch(
        "mupo",
        train=["/d/train.parquet"],
        validation=["/d/test.parquet"],
        changes=["trainer.nnodes=4", "algorithm.npbench.beta=0.0"],
        modules="mine",
    )
    plugin = "mine,trainers.engines.verl_plugin"
    assert found.environment == {"VERL_USE_EXTERNAL_MODULES": plugin}
    assert found.arguments[1:3] == ("-m", "verl.trainer.main_ppo")
    keys = [argument.split("=")[0].lstrip("+") for argument in found.arguments[3:]]
    assert len(keys) == len(set(keys))
    assert {"trainer.nnodes=4", "+algorithm.npbench.beta=0.0"} <= set(found.arguments)
    assert "data.train_files=['/d/train.parquet']" in found.arguments
    last = "+ray_kwargs.ray_init.runtime_env.env_vars.VERL_USE_EXTERNAL_MODULES"
    assert f"{last}='{plugin}'" in found.arguments
    assert all(
        argument.startswith(tuple(f"+{section}." for section in ADDED))
        for argument in found.arguments
        if argument.startswith("+")
    )


def test_the_command_is_printed_or_refused_in_one_line(tmp_path: Path) -> None:
    train, test = tmp_path / "train set.parquet", tmp_path / "test.parquet"
    files = ["--train", str(train), "--val", str(test)]
    shown = CliRunner().invoke(command, ["--recipe", "dmpo", *files, "--print", "trainer.nnodes=2"])
    assert shown.exit_code == 0, shown.output
    words = shlex.split(shown.output)
    assert words[0] == "VERL_USE_EXTERNAL_MODULES=trainers.engines.verl_plugin"
    assert f"data.train_files=['{train}']" in words
    assert words[-1] == "trainer.nnodes=2"
    for arguments, message in (
        (["--recipe", "dmop", *files], "unknown recipe for verl 'dmop'; did you mean 'dmpo'"),
        (["--recipe", "dmpo", *files, "nnodes"], "must be given as key=value, got 'nnodes'"),
        (["--recipe", "dmpo", *files], f"there is no file {train}"),
    ):
        refused = CliRunner().invoke(command, arguments)
        assert refused.exit_code == 2
        assert message in refused.output
        assert refused.output.count("\n") == 1
