"""The plug-in inside the real verl, on a CPU (`make test-verl`); skipped where verl is not.

No GPU, no Ray and no engine take part: verl's own functions are called as its trainer and workers
call them, and its queue is a dictionary.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from npbench.building import build_split
from npbench.errors import InputError
from npbench.interop.exports import export_split
from npbench.splits import Request
from npbench.storage import open_split
from trainers import losses
from trainers.engines.verl import register
from trainers.engines.verl_advantages import ESTIMATORS
from trainers.engines.verl_checks import check_config
from trainers.engines.verl_groups import rows_at_hand
from trainers.engines.verl_recipes import ADDED, launch, read_recipe, recipe_names
from trainers.engines.verl_rewards import compute_score
from trainers.engines.verl_settings import METHODS
from trainers.engines.verl_trainer import fetch_rows, trainer_class
from trainers.losses import Counts

pytestmark = pytest.mark.filterwarnings("ignore")

TRAINED = [name for name in recipe_names() if name != "common"]
PROMPT = 2


@pytest.fixture(scope="module", autouse=True)
def verl() -> ModuleType:
    reason = "verl is not installed here; see requirements/verl.txt"
    found: ModuleType = pytest.importorskip("verl", reason=reason)
    pytest.importorskip("transfer_queue", reason=reason)
    return found


@pytest.fixture(scope="module")
def registered(verl: ModuleType) -> tuple[str, ...]:
    return register()


@pytest.fixture
def composed(registered: tuple[str, ...]) -> Iterator[Callable[..., Any]]:
    """verl's configuration as its command line would compose it from a recipe."""
    hydra = import_module("hydra")
    folder = Path(str(import_module("verl").__file__)).parent / "trainer" / "config"
    with hydra.initialize_config_dir(str(folder), version_base=None):

        def build(name: str, *changes: str) -> Any:
            found = launch(name, train=["a.parquet"], validation=["b.parquet"], changes=changes)
            return hydra.compose("ppo_trainer", overrides=list(found.arguments[3:]))

        yield build


def test_registering_again_is_harmless_and_verl_finds_all_names(
    registered: tuple[str, ...],
) -> None:
    assert register() == registered == tuple(f"npbench_{method}" for method in METHODS)
    core = import_module("verl.trainer.ppo.core_algos")
    for name in registered:
        assert core.get_adv_estimator_fn(name) is ESTIMATORS[name]
        assert callable(core.get_policy_loss_fn(name))
    modes = import_module("verl.trainer.ppo.v1")
    assert modes.get_trainer_cls("npbench") is trainer_class()
    assert issubclass(trainer_class(), modes.get_trainer_cls("sync"))


def test_verl_loads_the_plugin_by_its_variable_in_a_new_process() -> None:
    code = (
        "import verl; from verl.trainer.ppo import core_algos as c; "
        "from verl.trainer.ppo.v1 import get_trainer_cls; get_trainer_cls('npbench'); "
        "print(sorted(set(c.ADV_ESTIMATOR_REGISTRY) & set(c.POLICY_LOSS_REGISTRY)))"
    )
    environment = {**os.environ, **launch("grpo", train=["a"], validation=["b"]).environment}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    for method in METHODS:
        assert f"'npbench_{method}'" in done.stdout


def proto(ragged: Any) -> Any:
    """verl's DataProto of the rows."""
    return import_module("verl").DataProto.from_dict(
        tensors={
            "token_level_rewards": ragged.token_rewards,
            "response_mask": ragged.mask.long(),
            "old_log_probs": ragged.old,
        },
        non_tensors={"uid": np.array(ragged.uids, dtype=object)},
    )


def whole_groups(ragged: Any, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Our function on each group alone, put back at the rows."""
    found = torch.zeros(len(ragged.uids), dtype=torch.float64)
    rewards = torch.tensor(ragged.rewards, dtype=torch.float64)
    for rows in ragged.members().values():
        found[rows] = function(rewards[rows][None])[0]
    return found


def advantages_by_verl(
    ragged: Any, name: str, composed: Callable[..., Any], *changes: str
) -> Tensor:
    """verl's own call, with the section ``algorithm`` of a recipe."""
    ray_trainer = import_module("verl.trainer.ppo.ray_trainer")
    config = composed(name, *changes).algorithm
    data = ray_trainer.compute_advantage(
        proto(ragged), adv_estimator=config.adv_estimator, config=config
    )
    advantages: Tensor = data.batch["advantages"]
    assert torch.equal(advantages, data.batch["returns"])
    return advantages


@pytest.mark.parametrize(
    ("recipe", "function"),
    [
        ("grpo", losses.group_relative_advantages),
        ("gspo", losses.group_relative_advantages),
        ("dr-grpo", losses.mean_centred_advantages),
        ("grpo-passk", losses.pass_at_k_advantages),
        # 11 replies, 8 of them in groups that differ
        ("gpg", lambda rewards: losses.gpg_advantages(rewards, alpha=11 / 8)),
    ],
)
def test_advantages_over_a_dataproto_are_ours(
    ragged: Any,
    composed: Callable[..., Any],
    recipe: str,
    function: Callable[[Tensor], Tensor],
) -> None:
    expected = whole_groups(ragged, function)[:, None] * ragged.mask
    found = advantages_by_verl(ragged, recipe, composed)
    assert expected.abs().max() > 0.1
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_where_verls_own_grpo_is_sound_ours_is_the_same(
    ragged: Any, composed: Callable[..., Any]
) -> None:
    ragged.lengths[4], ragged.uids = 3, tuple("qprqrprqprpq")
    ragged.rewards = [0.1 * row for row in range(12)]
    theirs = import_module("verl.trainer.ppo.ray_trainer").compute_advantage(
        proto(ragged), adv_estimator="grpo", config=None
    )
    found = advantages_by_verl(ragged, "grpo", composed)
    torch.testing.assert_close(found, theirs.batch["advantages"], rtol=1e-9, atol=1e-9)


def test_dapo_punishes_length_over_a_dataproto(ragged: Any, composed: Callable[..., Any]) -> None:
    changes = ("+algorithm.npbench.overlong_cache_tokens=3", "+algorithm.npbench.max_tokens=7")
    found = advantages_by_verl(ragged, "dapo", composed, *changes)
    lengths = torch.tensor(ragged.lengths).double()
    punished = losses.overlong_punishment(lengths, max_tokens=7, cache_tokens=3)
    ragged.rewards = (torch.tensor(ragged.rewards, dtype=torch.float64) + punished).tolist()
    expected = whole_groups(ragged, losses.group_relative_advantages)[:, None] * ragged.mask
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_an_estimator_without_our_trainer_says_what_to_set(
    ragged: Any, composed: Callable[..., Any]
) -> None:
    for recipe in ("dmpo", "mupo", "clip-cov"):
        with pytest.raises(InputError, match=r"set trainer\.v1\.trainer_mode=npbench"):
            advantages_by_verl(ragged, recipe, composed)


@pytest.mark.parametrize("name", TRAINED)
def test_every_recipe_fits_verls_own_configuration(composed: Callable[..., Any], name: str) -> None:
    config = composed(name)
    plain = import_module("omegaconf").OmegaConf
    for key, value in read_recipe(name).items():
        expected = None if value == "null" else value
        assert plain.select(config, key, throw_on_missing=True) == expected, key
    environment = import_module("verl.trainer.constants_ppo").get_ppo_ray_runtime_env(config)
    environment = plain.merge(environment, config.ray_kwargs.ray_init.runtime_env)
    assert environment.env_vars.VERL_USE_EXTERNAL_MODULES == "trainers.engines.verl_plugin"
    schema = import_module("hydra").compose("ppo_trainer")
    added = tuple(f"{section}." for section in ADDED)
    for key in read_recipe(name):
        # a key that verl lacks would have been refused without its plus sign
        assert key.startswith(added) or plain.select(schema, key.rpartition(".")[0]) is not None
    utils = import_module("verl.trainer.ppo.utils")
    reference, critic = utils.need_reference_policy(config), utils.need_critic(config)
    assert (reference, critic) == (False, False)
    import_module("verl.utils.config").validate_config(
        config, use_reference_policy=reference, use_critic=critic
    )
    assert check_config(config).replace("_", "-") == name.removesuffix("-summary")


@pytest.mark.parametrize(
    ("recipe", "changes", "message"),
    [
        ("grpo", ["algorithm.adv_estimator=grpo"], "unknown npbench method in verl 'grpo'"),
        ("dmpo", ["actor_rollout_ref.actor.ppo_mini_batch_size=32"], "got 32 and 1"),
        ("mupo", ["actor_rollout_ref.rollout.n=8"], r"rollout.n=8, got 3 \* 3"),
        ("gspo", ["+algorithm.npbench.clip_low=1"], "set actor_rollout_ref.actor.clip_ratio_low"),
        ("gpg", ["+algorithm.npbench.rul=verl"], "unknown setting 'algorithm.npbench.rul'"),
    ],
)
def test_the_trainer_refuses_a_bad_configuration_before_it_starts(
    composed: Callable[..., Any], recipe: str, changes: list[str], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        trainer_class()(composed(recipe, *changes))
    assert "\n" not in str(caught.value)


def test_the_trainer_starts_as_verls_synchronous_one(
    composed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mode decides in verl between replay buffers; another name would take the wrong one."""
    base = import_module("verl.trainer.ppo.v1.trainer_base")
    made = []
    monkeypatch.setattr(base, "ReplayBuffer", lambda **settings: made.append(settings))
    monkeypatch.setattr(base, "RolloutMoELoadBalanceMetricsAccumulator", lambda **settings: None)
    trainer = trainer_class()(composed("mupo"))
    assert trainer.trainer_mode == "sync"
    assert made[0]["trainer_mode"] == "sync"


def nested(values: Tensor, lengths: list[int]) -> Tensor:
    rows = [row[:length] for row, length in zip(values, lengths, strict=True)]
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def widths(ragged: Any) -> list[int]:
    """verl's padding has one token, which its mask hides."""
    return [max(length, 1) for length in ragged.lengths]


def micro_batch(ragged: Any, new: Tensor, advantages: Tensor, part: list[int]) -> Any:
    """Rows as a worker has them: model output over prompt and reply, shifted by one token."""
    tensordict = import_module("tensordict").TensorDict
    lengths = [widths(ragged)[row] for row in part]
    shifted = torch.nn.functional.pad(new[part], (PROMPT - 1, 1))
    output = {
        "log_probs": nested(shifted, [length + PROMPT for length in lengths]),
    }
    data = tensordict(
        {
            "prompts": nested(torch.zeros(len(part), PROMPT).long(), [PROMPT] * len(part)),
            "responses": nested(torch.zeros(len(part), 7).long(), lengths),
            "response_mask": nested(ragged.mask[part].long(), lengths),
            "old_log_probs": nested(ragged.old[part], lengths),
            "advantages": nested(advantages[part], lengths),
        },
        batch_size=[len(part)],
    )
    import_module("verl.utils.tensordict_utils").assign_non_tensor(
        data,
        dp_size=1,
        batch_num_tokens=int(ragged.mask.sum()),
        global_batch_size=11,
    )
    return output, data


@pytest.mark.parametrize("recipe", ["grpo", "dapo", "dr-grpo", "gspo", "gpg", "grpo-passk", "mupo"])
def test_verls_loss_over_micro_batches_is_our_own_trainers_loss(
    ragged: Any, composed: Callable[..., Any], recipe: str
) -> None:
    """``ppo_loss`` with the actor's configuration of a recipe, groups cut in two."""
    config = composed(recipe).actor_rollout_ref.actor
    actor = import_module("verl.utils.config").omega_conf_to_dataclass(config)
    ppo_loss = import_module("verl.workers.utils.losses").ppo_loss
    values = whole_groups(ragged, losses.group_relative_advantages)
    new = ragged.new.clone().requires_grad_(True)
    total = torch.zeros((), dtype=torch.float64)
    for part in ([3, 0, 10, 4, 7], [1, 9, 2], [11, 5, 8, 6]):
        output, data = micro_batch(ragged, new, values[:, None] * ragged.mask, part)
        loss, metrics = ppo_loss(actor, output, data)
        assert "actor/pg_loss" in metrics
        total = total + loss
    total.backward()

    other = ragged.new.clone().requires_grad_(True)
    arguments = (other, ragged.old, values, ragged.mask)
    counts = Counts(int(ragged.mask.sum()), 11, 3)
    expected = {
        "grpo": lambda: losses.grpo_loss(*arguments, counts=counts),
        "grpo-passk": lambda: losses.grpo_loss(*arguments, counts=counts),
        "mupo": lambda: losses.mupo_loss(
            *arguments[:3], torch.ones(12, dtype=torch.float64), ragged.mask, counts=counts
        ),
        "dapo": lambda: losses.dapo_loss(*arguments, counts=counts, dual_clip=10.0),
        "dr-grpo": lambda: losses.dr_grpo_loss(*arguments, counts=counts, max_tokens=3000),
        "gspo": lambda: losses.gspo_loss(*arguments, counts=counts),
        "gpg": lambda: losses.gpg_loss(other, values, ragged.mask, counts=counts),
    }[recipe]()
    expected.backward()
    assert other.grad is not None
    assert other.grad.abs().max() > 1e-6
    torch.testing.assert_close(total, expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(new.grad, other.grad, rtol=1e-12, atol=1e-15)


class Queue:
    """verl's TransferQueue as a dictionary: rows by key, columns made as verl makes them."""

    def __init__(self, rows: dict[str, dict[str, Any]]) -> None:
        self.rows = rows
        self.asked: list[list[str]] = []

    def kv_batch_get(self, keys: list[str], partition_id: str, select_fields: list[str]) -> Any:
        self.asked.append(select_fields)
        known = [name for name in select_fields if name in self.rows[keys[0]]]
        return import_module("verl.utils.tensordict_utils").list_of_dict_to_tensordict(
            [{name: self.rows[key][name] for name in known} for key in keys]
        )

    def kv_batch_put(self, keys: list[str], partition_id: str, fields: Any) -> list[str]:
        for name in fields.keys():  # noqa: SIM118
            for key, value in zip(keys, fields[name].unbind(), strict=True):
                self.rows[key][name] = value
        return keys


class Characters:
    """A tokenizer whose ids are code points."""

    eos_token_id = 0

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> str:
        values = ids.tolist() if isinstance(ids, Tensor) else ids
        return "".join(map(chr, values))

    def batch_decode(self, rows: list[list[int]], skip_special_tokens: bool = True) -> list[str]:
        return [self.decode(row) for row in rows]


@pytest.fixture
def trained(
    ragged: Any,
    replies: tuple[str, ...],
    composed: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    """Our trainer in the middle of a step: replies are sampled, rewards are known.

    Replies differ in length from the log-probabilities of the ragged batch, so those are made anew.
    """
    base = import_module("verl.trainer.ppo.v1.trainer_base")
    texts = [reply or "\0" for reply in replies]
    generator = torch.Generator().manual_seed(5)
    rows = {}
    for row, (uid, text) in enumerate(zip(ragged.uids, texts, strict=True)):
        ids = torch.tensor([ord(letter) for letter in text])
        alive = uid != "pad"
        scores = torch.zeros(len(ids))
        scores[-1] = ragged.rewards[row] if alive else 0.0
        rows[f"{uid}_{row}_0"] = {
            "uid": uid,
            "responses": ids,
            "response_mask": torch.full_like(ids, int(alive)),
            "old_log_probs": -torch.rand(len(ids), generator=generator),
            "rollout_log_probs": -torch.rand(len(ids), generator=generator),
            "rm_scores": scores,
            "reward_model": {"style": "rule", "ground_truth": json.dumps(KNAPSACK)},
        }
    queue = Queue(rows)
    monkeypatch.setattr(base, "tq", queue)

    def build(recipe: str, *changes: str) -> Any:
        trainer = object.__new__(trainer_class())
        trainer.config = composed(recipe, *changes)
        trainer.tokenizer = Characters()
        trainer.global_steps, trainer.total_training_steps = 3, 10
        batch = import_module("transfer_queue").KVBatchMeta(
            keys=list(rows), tags=[{} for _ in rows], partition_id="train"
        )
        return trainer, queue, batch

    return build


KNAPSACK = {
    "task": "knapsack",
    "instance": {"capacity": 9, "weights": [3, 3, 3, 3, 3, 3], "values": [1, 2, 3, 4, 5, 6]},
    "reference_objective": 15,
}
"""Any three of the six items fit."""


@pytest.mark.parametrize(
    ("recipe", "changes"),
    [
        ("grpo", ()),
        ("dmpo", ()),
        ("dmpo", ("actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean",)),
        ("clip-cov", ("+algorithm.npbench.share=0.1", "+algorithm.npbench.low=0.01")),
        (
            "mupo",
            (
                "+algorithm.npbench.embedding=solution",
                "+algorithm.npbench.clusters=2",
                "+algorithm.npbench.min_size=1",
            ),
        ),
    ],
)
def test_verls_own_step_reaches_our_estimators_with_what_they_need(
    trained: Callable[..., Any], recipe: str, changes: tuple[str, ...]
) -> None:
    """``_compute_advantage`` of verl's trainer, from its queue and back into it."""
    trainer, queue, batch = trained(recipe, *changes)
    metrics: dict[str, Any] = {}
    rows = fetch_rows(trainer, batch)
    assert rows.step == 2
    assert rows.replies is not None
    assert rows.replies[0] == "Answer: [0, 2, 4]"
    trainer._compute_advantage(batch, metrics)

    order = batch.keys
    masks = torch.nn.utils.rnn.pad_sequence(
        [queue.rows[key]["response_mask"] for key in order], batch_first=True
    )
    rewards = torch.nn.utils.rnn.pad_sequence(
        [queue.rows[key]["rm_scores"] for key in order], batch_first=True
    )
    own = trainer.config.algorithm
    with rows_at_hand(rows):
        expected, _ = ESTIMATORS[own.adv_estimator](
            rewards, masks, index=[key.split("_")[0] for key in order], config=own
        )
    found = torch.nn.utils.rnn.pad_sequence(
        [queue.rows[key]["advantages"] for key in order], batch_first=True
    )
    assert found.shape == masks.shape
    assert found.abs().max() > 0.1
    assert not found[~masks.bool()].any()
    torch.testing.assert_close(found, expected)
    reported = {
        "grpo": set(),
        "dmpo": {"npbench/dmpo_term"},
        "clip-cov": {"npbench/dropped_tokens"},
        "mupo": {
            "npbench/mupo_lambda",
            "npbench/mupo_diversity",
            "npbench/starved_share",
            "npbench/short_groups",
        },
    }[recipe]
    assert {name for name in metrics if name.startswith("npbench/")} == reported


def test_sequences_and_updates_are_those_by_which_verl_divides(
    trained: Callable[..., Any],
) -> None:
    for changes, updates, sequences in (
        ((), 1, 128 * 8),
        (("actor_rollout_ref.actor.ppo_mini_batch_size=32",), 4, 32 * 8),
        (("actor_rollout_ref.actor.ppo_mini_batch_size=50",), 3, 50 * 8),
        (("actor_rollout_ref.actor.ppo_epochs=2",), 2, 128 * 8),
    ):
        trainer, _, batch = trained("dmpo", *changes)
        rows = fetch_rows(trainer, batch)
        assert (rows.updates, rows.sequences) == (updates, sequences)
        assert rows.aggregation == "token-mean"


def test_a_batch_without_ground_truths_stops_in_one_line(trained: Callable[..., Any]) -> None:
    trainer, queue, batch = trained("mupo")
    for row in queue.rows.values():
        del row["reward_model"]
    with pytest.raises(InputError, match="must hold 'reward_model' for npbench methods"):
        trainer._compute_advantage(batch, {})


HOSTILE = [
    "",
    "Answer: [0, 2, 4]",
    "Answer: [0, 0, 0]",
    "Answer: [5, 4, 3, 2]",
    "Answer: " + "[" * 50_000,
    "Answer: [" + "9" * 5_000 + "]",
    "Answer: [NaN, 1e400, -1]",
    "Answer: [0, 2" + "\0" * 50,
    "Answer: __import__('os').system('true')",
    "\u202e]4 ,2 ,0[ :rewsnA",
]


def test_rewards_over_a_dataproto_through_verls_own_manager(
    composed: Callable[..., Any],
) -> None:
    verl = import_module("verl")
    config = composed("mupo")
    function = import_module("verl.trainer.ppo.reward").get_custom_reward_fn(config)
    managers = import_module("verl.experimental.reward_loop.reward_manager.naive")
    width = max(map(len, HOSTILE)) + 1
    ids, mask = torch.zeros(len(HOSTILE), width).long(), torch.zeros(len(HOSTILE), width).long()
    for row, text in enumerate(HOSTILE):
        ids[row, : len(text)] = torch.tensor([ord(letter) for letter in text]).long()
        mask[row, : len(text)] = 1
    truth = {"style": "rule", "ground_truth": json.dumps(KNAPSACK)}
    data = verl.DataProto.from_dict(
        tensors={"responses": ids, "attention_mask": mask},
        non_tensors={
            "data_source": np.array(["npbench/knapsack"] * len(HOSTILE), dtype=object),
            "reward_model": np.array([truth] * len(HOSTILE), dtype=object),
            "extra_info": np.array([{"id": str(n)} for n in range(len(HOSTILE))], dtype=object),
        },
    )

    async def score() -> list[dict[str, Any]]:
        manager = managers.NaiveRewardManager(config, Characters(), function)
        return [await manager.run_single(data[row : row + 1]) for row in range(len(HOSTILE))]

    found = asyncio.run(score())
    scores = [one["reward_score"] for one in found]
    # items 0, 2 and 4 are worth 9 of 15
    assert scores[:4] == pytest.approx([0.0, 0.1 + 9 / 15, 0.1, 0.1])
    for text, one in zip(HOSTILE, found, strict=True):
        expected = compute_score("x", text, KNAPSACK, reward="mupo")
        assert one["reward_score"] == expected["score"]
        assert one["reward_extra_info"] == expected
        assert set(expected) == {"score", "acc", "accuracy", "format", "gate"}


def test_what_npbench_exports_is_what_verl_and_the_reward_read(
    composed: Callable[..., Any], tmp_path: Path
) -> None:
    """A split with pictures through verl's own data set, up to the reward of its references."""
    request = Request.make(suite="nano", split="train", seed=3, per_task=1, levels=["nano"])
    build_split(request, tmp_path / "split")
    split = open_split(tmp_path / "split")
    export_split(split, "verl", tmp_path / "verl")
    config = composed("grpo", f"+data.cache_dir='{tmp_path}'").data
    read = import_module("verl.utils.dataset.rl_dataset").RLHFDataset
    found = read([str(tmp_path / "verl" / "train.parquet")], None, config, SimpleNamespace())
    ours = list(split.rows())
    assert len(found) == len(ours) >= 10
    pictures = 0
    for row, own in zip(found, ours, strict=True):
        (message,) = row["raw_prompt"]
        parts = message["content"]
        if not isinstance(parts, str):
            pictures += [part["type"] for part in parts] == ["image", "text"]
        truth = row["reward_model"]["ground_truth"]
        reply = f"Answer: {own['reference_solution']}"
        assert compute_score("x", reply, truth)["score"] == pytest.approx(1.1)
    assert pictures == sum(own["image"] is not None for own in ours) > 0
