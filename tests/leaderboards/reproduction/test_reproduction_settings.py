"""Presets and studies as data: every file loads, every combination makes a training run."""

import pytest

from leaderboards.reproduction_settings import (
    STUDIES,
    arm_config,
    chosen_arms,
    known_arms,
    load_preset,
    load_study,
    preset_names,
)
from npbench.errors import InputError


@pytest.mark.parametrize("preset", preset_names())
@pytest.mark.parametrize("study", STUDIES)
def test_every_arm_of_every_study_runs_under_every_preset(study, preset):
    settings, stated = load_preset(preset), load_study(study)
    configs = {
        name: arm_config(settings, known_arms()[name], model="m", seed=5)
        for name in (*stated.arms, *stated.all)
    }
    for config in configs.values():
        assert config.seed == 5
        # what all arms share
        first = next(iter(configs.values()))
        for shared in ("steps", "prompts_per_step", "group_size", "data", "sampling"):
            assert getattr(config, shared) == getattr(first, shared)
        assert config.optimizer.learning_rate == first.optimizer.learning_rate
        assert config.keep_checkpoints * config.checkpoint_every > config.steps


def test_the_presets_keep_what_they_promise():
    cpu, smoke = load_preset("cpu"), load_preset("smoke")
    assert cpu.seeds >= 8
    assert cpu.marker == ""
    assert smoke.marker == "smoke: not evidence"
    assert set(chosen_arms(load_study("groups"), cpu)) >= {"mupo-k1", "mupo", "mupo-k5"}
    for preset in (cpu, smoke, load_preset("gpu")):
        splits = {split.name: split for split in preset.evaluation.splits}
        trained = set(preset.training["data"]["tasks"])
        assert trained >= set(splits["in-domain"].tasks)
        assert not trained & set(splits["left-out"].tasks)
        assert splits["text"].modality == "text"
    benchmarks = [split.benchmark for split in load_preset("gpu").evaluation.splits]
    assert {"mathvista", "mathverse", "logicvista"} <= set(benchmarks)


def test_methods_name_arms_or_all_arms_of_a_method():
    study, cpu = load_study("table"), load_preset("cpu")
    assert chosen_arms(study, cpu) == study.arms
    assert chosen_arms(study, cpu, ["dmpo"]) == ("dmpo", "dmpo-replication")
    assert chosen_arms(study, cpu, ["dmpo-replication"]) == ("dmpo-replication",)
    assert chosen_arms(study, cpu, ["mupo", "gspo", "grpo"]) == ("grpo", "mupo", "gspo")
    assert len(chosen_arms(study, cpu, ["all"])) == 12
    with pytest.raises(InputError, match="did you mean 'mupo'"):
        chosen_arms(study, cpu, ["muppo"])


def test_training_settings_of_the_arms_are_those_of_the_papers():
    cpu = load_preset("cpu")
    loss = {
        name: arm_config(cpu, known_arms()[name], model="m", seed=0).method_settings
        for name in ("dmpo", "dmpo-replication", "mupo")
    }
    assert (loss["dmpo"].weight, loss["dmpo"].alpha) == (0.5, 1.0)
    assert (loss["dmpo-replication"].weight, loss["dmpo-replication"].alpha) == (2.0, 1 / 15)
    mupo = loss["mupo"]
    assert (mupo.clusters, mupo.min_size, mupo.beta) == (3, 3, 1.0)
    assert (mupo.lambda_high, mupo.lambda_low, mupo.schedule) == (0.4, 0.1, "cosine")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training": {"steps": 2, "seed": 1}}, "training.seed is the arm's"),
        ({"colour": 1}, "colour"),
        ({"evaluation": {"samples": 1, "splits": []}}, "evaluation.samples"),
        (
            {"evaluation": {"samples": 2, "splits": [{"name": "a", "suite": "nano"}] * 2}},
            "one name",
        ),
        ({"evaluation": {"samples": 2, "splits": [{"name": "a"}]}}, "a suite or a benchmark"),
        (
            {
                "evaluation": {
                    "samples": 2,
                    "checkpoints": [5],
                    "splits": [{"name": "a", "suite": "nano"}],
                }
            },
            "multiples of training.checkpoint_every=1",
        ),
    ],
)
def test_a_wrong_preset_is_refused_in_one_line(small_preset, changes, message):
    with pytest.raises(InputError, match=message) as caught:
        load_preset(str(small_preset(**changes)))
    assert "\n" not in str(caught.value)
