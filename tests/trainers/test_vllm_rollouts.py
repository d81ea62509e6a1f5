"""Rollouts by a vLLM that is a script: order, seeds, suppression, and what stops a run.

``test_real_vllm_rollouts.py`` has the rest.
"""

import copy
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from npbench.errors import InputError
from trainers.checkpoints import last_checkpoint
from trainers.config import differing_setting, read_config
from trainers.encoding import Prompt
from trainers.learner import Learner, load_learner
from trainers.logs import read_log
from trainers.loop import train
from trainers.rollouts import Request, sample_seed
from trainers.vllm_engine import start_engine
from trainers.vllm_pictures import engine_input, token_runs
from trainers.vllm_rollouts import EngineError, VllmBackend, rollout_backend

VLLM = {"rollouts": {"backend": "vllm"}}


@dataclass
class Run:
    learner: Learner
    backend: VllmBackend
    llm: Any

    def requests(self, *texts: str, samples: int = 3) -> list[Request]:
        encoder = self.learner.policy.encoder
        seeds = [tuple(sample_seed(0, 0, text, i) for i in range(samples)) for text in texts]
        return [Request(encoder.encode(t), s) for t, s in zip(texts, seeds, strict=True)]

    def update(self) -> None:
        policy = self.learner.policy
        prompt = policy.encoder.encode("Find as few vertices as possible.")
        policy.logprobs(policy.prefix(prompt), [torch.tensor([5, 6, 7])]).sum().backward()
        self.learner.optimizer.step()
        self.learner.optimizer.zero_grad()


@pytest.fixture
def run(fake_vllm, text_model: Path, make_config):
    """A learner and the backend of its run."""
    config = make_config(text_model, sampling={"temperature": 0.7}, **VLLM)
    learner = load_learner(config, config.model)
    with rollout_backend(config, learner) as backend:
        assert isinstance(backend, VllmBackend)
        yield Run(learner, backend, fake_vllm.latest)
    assert fake_vllm.latest.events[-1] == "shutdown"


RESET = ["reset prefix", "reset pixels", "reset features"]
PUSHED = ["wake weights", "push", "wake kv_cache", *RESET, "draw", *RESET]
"""The weights before the cache that needs their memory, and the probe on clean caches."""


def test_sleep_push_wake_and_reset_come_in_this_order(run: Run) -> None:
    run.backend.engine.can_sleep = True
    run.llm.sleep(1)
    ask = run.requests("What?", samples=1)
    for _ in range(2):
        run.backend.generate(ask, max_tokens=4)
    run.update()
    run.backend.generate(ask, max_tokens=4)
    drawn = ["draw", "sleep 1"]
    unchanged = ["wake weights", "wake kv_cache", *RESET]
    assert run.llm.events == ["sleep 1", *PUSHED, *drawn, *unchanged, *drawn, *PUSHED, *drawn]


def test_without_a_gpu_nothing_sleeps(run: Run) -> None:
    run.backend.generate(run.requests("What?"), max_tokens=4)
    assert not any(event.startswith(("sleep", "wake")) for event in run.llm.events)
    assert run.llm.options["enable_sleep_mode"] is False
    assert "gpu_memory_utilization" not in run.llm.options


def test_on_a_gpu_the_settings_reach_the_engine(run: Run, fake_vllm, monkeypatch) -> None:
    changes = {"memory_fraction": 0.3, "dtype": "bfloat16", "context": 512}
    config = run.learner.config
    rollouts = config.rollouts.model_copy(update=changes)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    engine = start_engine(config.model_copy(update={"rollouts": rollouts}), run.learner.policy)
    engine.close()
    options = fake_vllm.latest.options
    assert (options["gpu_memory_utilization"], options["max_model_len"]) == (0.3, 512)
    assert (options["dtype"], options["enable_sleep_mode"]) == ("bfloat16", True)
    assert (options["enforce_eager"], engine.can_sleep) == (False, True)
    fake_vllm.latest = run.llm


def test_replies_follow_the_trainer_and_stand_in_the_order_asked_for(run: Run) -> None:
    requests = run.requests("What is this?", "And that one, in other words?", samples=4)
    for _ in range(2):
        found = run.backend.generate(requests, max_tokens=12)
        for request, replies in zip(requests, found, strict=True):
            assert tuple(reply.seed for reply in replies) == request.seeds
            with torch.no_grad():
                ours_RT = run.learner.policy.plain_logprobs(
                    request.prompt, [reply.ids for reply in replies]
                )
            for line, reply in zip(ours_RT, replies, strict=True):
                assert torch.allclose(line[: len(reply.ids)], reply.logprobs, atol=1e-4)
                assert reply.entropy == pytest.approx(-float(reply.logprobs.mean()))
        run.update()


def test_every_sample_is_asked_for_with_its_own_seed_and_the_policys_distribution(
    run: Run,
) -> None:
    run.backend.policy = replace(run.backend.policy, banned_ids=(7, 9))
    requests = run.requests("What?", "Why?")
    run.backend.generate(requests, max_tokens=4)
    probe, *asked = run.llm.asked
    assert probe.seed == 0
    assert [one.seed for one in asked] == [seed for r in requests for seed in r.seeds]
    for one in asked:
        assert (one.n, one.temperature, one.max_tokens, one.logprobs) == (1, 0.7, 4, 0)
        assert one.logit_bias == {7: -torch.inf, 9: -torch.inf}
        assert tuple(one.stop_token_ids) == run.backend.policy.end_ids
        assert one.ignore_eos
    assert run.llm.options["logprobs_mode"] == "processed_logprobs"


def test_an_adapter_is_pushed_merged(fake_vllm, text_model: Path, make_config) -> None:
    pytest.importorskip("peft")
    config = make_config(text_model, lora={"rank": 2}, **VLLM)
    learner = load_learner(config, config.model)
    with torch.no_grad():
        for parameter in learner.policy.trained():
            parameter.add_(0.1)
    with rollout_backend(config, learner) as backend:
        one = Request(learner.policy.encoder.encode("What?"), (1,))
        assert len(backend.generate([one], max_tokens=4)[0]) == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"takes_weights": False}, r"must agree to rollouts\.tolerance=0\.05 nats a token"),
        ({"dies_after": 1}, "engine failed .RuntimeError: EngineCore encountered an issue"),
        ({"returns_all": False}, "engine failed .RuntimeError: 1 of 1 replies did not come back"),
        ({"model_config": SimpleNamespace(max_model_len=8)}, r"raise rollouts\.context"),
    ],
)
def test_an_engine_that_fails_is_one_line(run: Run, fault: dict, message: str) -> None:
    for name, value in fault.items():
        setattr(run.llm, name, value)
    with pytest.raises(EngineError, match=message) as error:
        run.backend.generate(run.requests("What?"), max_tokens=4)
    assert "\n" not in str(error.value)
    assert "can go on from its last checkpoint with --resume" in str(error.value)


def test_a_sampled_placeholder_stops_the_run(run: Run) -> None:
    run.llm.wrong_token = 7
    run.backend.policy = replace(run.backend.policy, banned_ids=(7,))
    with pytest.raises(EngineError, match="holds the picture placeholder 7"):
        run.backend.generate(run.requests("What?"), max_tokens=4)


def test_a_stale_cache_is_what_the_probe_finds(run: Run, monkeypatch) -> None:
    run.backend.generate(run.requests("What?"), max_tokens=4)
    run.update()
    run.update()
    monkeypatch.setattr(run.backend, "tolerance", 1e-3)
    monkeypatch.setattr(run.llm, "reset_prefix_cache", lambda: True)
    with pytest.raises(EngineError, match="must agree"):
        run.backend.generate(run.requests("What?"), max_tokens=4)


def test_greedy_replies_are_scored_by_the_trainer(run: Run) -> None:
    (request,) = run.requests("What?", samples=1)
    ((reply,),) = run.backend.generate([request], max_tokens=4, greedy=True)
    with torch.no_grad():
        ours = run.learner.policy.plain_logprobs(request.prompt, [reply.ids])[0]
    assert run.llm.asked[-1].temperature == 0.0
    assert torch.allclose(reply.logprobs, ours, atol=1e-5)
    assert math.isnan(reply.entropy)


def test_a_dead_engine_leaves_a_run_that_goes_on_to_the_same_end(
    fake_vllm, text_model: Path, make_config, tmp_path: Path, monkeypatch
) -> None:
    config = make_config(text_model, **VLLM)
    train(config, tmp_path / "whole")
    per_step = 1 + config.prompts_per_step * config.group_size

    with monkeypatch.context() as patched:
        patched.setattr(fake_vllm, "dies_after", 2 * per_step + 3)
        with pytest.raises(EngineError, match="--resume"):
            train(config, tmp_path / "run")
    assert fake_vllm.latest.events[-1] == "shutdown"
    found = last_checkpoint(tmp_path / "run")
    assert found is not None
    assert found.name == "step-000002"
    train(config, tmp_path / "run", resume=True)
    logs = [read_log(tmp_path / name / "rollouts.jsonl") for name in ("whole", "run")]
    assert logs[0] == logs[1]
    assert len(logs[0]) == 3 * config.prompts_per_step * config.group_size


def test_an_engine_that_dies_in_an_evaluation_costs_no_step(
    fake_vllm, text_model: Path, make_config, tmp_path: Path, monkeypatch
) -> None:
    evaluation = {"evaluate_every": 2, "evaluation": {"questions": 2, "samples": 2}}
    config = make_config(text_model, steps=4, **evaluation, **VLLM)
    train(config, tmp_path / "whole")
    per_step = 1 + config.prompts_per_step * config.group_size
    # the first evaluation has a push, a probe and four replies
    with monkeypatch.context() as patched:
        patched.setattr(fake_vllm, "dies_after", 1 + 4 + 2 * per_step + 1)
        with pytest.raises(EngineError, match="--resume"):
            train(config, tmp_path / "run")
    found = last_checkpoint(tmp_path / "run")
    assert found is not None
    assert found.name == "step-000002"
    train(config, tmp_path / "run", resume=True)
    for name in ("rollouts.jsonl", "evaluations.jsonl"):
        logs = [read_log(tmp_path / run / name) for run in ("whole", "run")]
        assert logs[0] == logs[1]


@pytest.mark.parametrize("version", ["0.31.4", "0.34.0", "1.0", "dev"])
def test_a_version_outside_the_window_is_refused_before_anything_is_written(
    version: str, fake_vllm, text_model: Path, make_config, tmp_path: Path
) -> None:
    sys.modules["vllm"].__version__ = version
    with pytest.raises(InputError, match=r"needs: pip install 'vllm>=0\.32,<0\.34', got vllm"):
        train(make_config(text_model, **VLLM), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_missing_library_is_one_line(
    text_model: Path, make_config, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(InputError, match="'vllm' needs: pip install 'vllm>=0"):
        train(make_config(text_model, **VLLM), tmp_path / "run")


def test_settings_are_checked_and_older_runs_had_the_default() -> None:
    base = {"method": "grpo", "steps": 1, "prompts_per_step": 1, "group_size": 2}
    base["data"] = {"suite": "nano"}
    for changes, message in (
        ({"memory_fracton": 0.5}, r"did you mean 'rollouts\.memory_fraction'"),
        ({"backend": "vlm"}, r"setting rollouts\.backend: .* got 'vlm'"),
        ({"memory_fraction": 1.0}, r"setting rollouts\.memory_fraction: .* less than 1, got 1\.0"),
    ):
        with pytest.raises(InputError, match=message):
            read_config({**base, "rollouts": changes})
    now = read_config(base).model_dump(mode="json")
    before = {key: value for key, value in copy.deepcopy(now).items() if key != "rollouts"}
    assert differing_setting(before, now) is None
    del before["optimizer"]["share_states"]
    assert differing_setting(before, now) is None
    sharing = read_config({**base, "optimizer": {"share_states": True}}).model_dump(mode="json")
    found = differing_setting(before, sharing)
    assert found == "optimizer.share_states is false in the run and true now"
    other = read_config({**base, **VLLM}).model_dump(mode="json")
    found = differing_setting(before, other)
    assert found == 'rollouts.backend is "transformers" in the run and "vllm" now'


def test_prompts_go_over_as_ids_and_pictures_by_their_runs_of_tokens() -> None:
    prompt = Prompt(torch.tensor([[4, 2, 2, 5]]), {})
    assert engine_input(prompt, 2) == {"type": "token", "prompt_token_ids": [4, 2, 2, 5]}
    assert token_runs([4, 2, 2, 5, 2], 2) == [(1, 2), (4, 1)]
    assert token_runs([4], 2) == []
