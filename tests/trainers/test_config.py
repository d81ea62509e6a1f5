"""Settings: TOML, changes on the command line, and what is refused in one line."""

from pathlib import Path

import pytest

from npbench.errors import InputError
from trainers.config import Config, as_toml, load_config, read_config, recipe_names
from trainers.method_settings import METHODS
from trainers.plan import make_plan
from trainers.sweeps import load_sweep, sweep_names

BASE = {
    "method": "grpo",
    "steps": 1,
    "prompts_per_step": 4,
    "group_size": 6,
    "data": {"suite": "nano"},
}


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_loads_survives_its_toml_and_plans(name: str, tmp_path: Path) -> None:
    config = load_config(name)
    (tmp_path / "again.toml").write_text(as_toml(config))
    assert load_config(str(tmp_path / "again.toml")) == config
    plan = make_plan(config.model_copy(update={"model": ""}))
    assert plan.rollouts_per_step == config.prompts_per_step * config.group_size
    assert plan.rows_per_step == plan.rollouts_per_step * config.variants


@pytest.mark.parametrize("name", sweep_names())
def test_every_sweep_loads_and_differs_in_what_it_sweeps(name: str) -> None:
    found = load_sweep(name, ("seed=5",))
    assert len(found) >= 2
    assert len({as_toml(run.config) for run in found}) == len(found)
    assert len({run.folder for run in found}) == len(found)
    assert {run.config.seed for run in found} == {5}


def test_every_method_has_a_tiny_recipe() -> None:
    tiny = {load_config(name).method for name in recipe_names() if name.startswith("tiny-")}
    assert tiny == set(METHODS)


def test_the_papers_settings_stand_in_the_recipes() -> None:
    mupo = load_config("qwen2.5-vl-7b-mupo")
    settings = mupo.method_settings
    assert (mupo.group_size, settings.clusters, settings.min_size, settings.beta) == (15, 3, 3, 1)
    assert (settings.lambda_high, settings.lambda_low) == (0.4, 0.1)
    assert (mupo.optimizer.learning_rate, mupo.sampling.temperature) == (1e-6, 1.0)
    assert make_plan(mupo.model_copy(update={"model": ""})).epochs == 2.0
    own = load_config("qwen2.5-vl-7b-mupo-virl39k")
    assert own.method_settings == settings
    assert make_plan(own.model_copy(update={"model": ""})).epochs == pytest.approx(2.0, abs=2e-3)
    share = load_config("qwen2.5-vl-32b-share-grpo")
    assert (share.variants, share.group_size, share.method_settings.probability) == (2, 12, 0.3)
    replication = load_config("qwen2.5-vl-7b-dmpo").method_settings
    assert (replication.weight, replication.alpha) == (2.0, pytest.approx(1 / 15))
    summary = load_config("qwen2.5-vl-7b-dmpo-summary").method_settings
    assert (summary.weight, summary.alpha) == (0.5, 1.0)


def test_changes_reach_sections_and_read_toml_or_bare_words() -> None:
    config = load_config(
        "tiny-grpo",
        ["model=/a/b", "seed=7", "optimizer.learning_rate=1e-4", 'data.tasks=["tsp"]'],
    )
    assert (config.model, config.seed) == ("/a/b", 7)
    assert config.optimizer.learning_rate == 1e-4
    assert config.data.tasks == ("tsp",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "grop"}, "unknown method 'grop'; did you mean 'grpo'"),
        ({"stepz": 3}, "unknown setting 'stepz'; did you mean 'steps'"),
        (
            {"optimizer": {"learning_rat": 1}},
            "unknown setting 'optimizer.learning_rat'; did you mean 'optimizer.learning_rate'",
        ),
        ({"loss": {"kl_coeff": 1}}, "did you mean 'loss.kl_coef'"),
        (
            {
                "method": "supervised",
                "stages": [{"steps": 1, "mix": [{"data": {"suite": "nano"}, "wight": 2.0}]}],
            },
            r"unknown setting 'stages\.0\.mix\.0\.wight'; did you mean 'stages\.0\.mix\.0\.weight'",
        ),
        ({"loss": {"alpha": 1}}, "unknown setting 'loss.alpha'"),
        (
            {"group_size": 1},
            "setting group_size: input should be greater than or equal to 2, got 1",
        ),
        ({"steps": "many"}, "setting steps: .* got 'many'"),
        ({"data": {"suite": "nano", "tasks": ["tps"]}}, "unknown task 'tps'; did you mean 'tsp'"),
        ({"data": {"suite": "nanno"}}, "unknown suite 'nanno'; did you mean 'nano'"),
        ({"data": {}}, "either a suite or a folder or published set"),
        ({"data": {"suite": "nano", "folder": "x"}}, "either a suite or a folder or published set"),
        ({"data": {"folder": "x"}, "evaluate_every": 1}, "needs evaluation.folder"),
        ({"reward": {"name": "dmpoo"}}, "unknown reward 'dmpoo'; did you mean 'dmpo'"),
        ({"method": "mupo"}, r"clusters \* loss.min_size must be at most group_size=6, got 3 \* 3"),
        (
            {"method": "mupo", "loss": {"clusters": 2}},
            "reward.name must be one with accuracy, format and gate",
        ),
        ({"method": "share_grpo", "group_size": 5}, "must be a multiple of loss.variants=2"),
        ({"optimizer": {"mini_batches": 3}}, "must divide prompts_per_step=4, got 3"),
        ({"method": "gpg", "sampler_correction": {"rule": "mask"}}, "must be 'none' for gpg"),
        ({"reward": {"weights": {"own": 1.0}}}, "unknown term in reward.weights 'own'"),
        ({"reward": {"functions": {"format": "a:b"}}}, "must have new names, got 'format'"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(changes: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_config({**BASE, **changes})
    assert "\n" not in str(error.value)


def test_unknown_recipes_and_broken_files_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown recipe 'tiny-grop'; did you mean 'tiny-grpo'"):
        load_config("tiny-grop")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_config(str(tmp_path / "none.toml"))
    (tmp_path / "broken.toml").write_text("method = ")
    with pytest.raises(InputError, match="is no TOML file"):
        load_config(str(tmp_path / "broken.toml"))
    with pytest.raises(InputError, match="must be given as key=value"):
        load_config("tiny-grpo", ["seed"])
    with pytest.raises(InputError, match="'seed' is a value, not a section"):
        load_config("tiny-grpo", ["seed.x=1"])


def test_a_configuration_cannot_be_changed() -> None:
    config: Config = read_config(BASE)
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 1  # type: ignore[misc]
