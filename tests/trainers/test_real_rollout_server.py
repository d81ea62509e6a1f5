"""A real vLLM behind an address on a CPU; ``make test-vllm`` runs this in its own environment."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

pytest.importorskip("vllm", reason="vllm lives in an environment of its own: make test-vllm")

from trainers.checkpoints import last_checkpoint
from trainers.config import Config
from trainers.data import questions
from trainers.learner import load_learner
from trainers.logs import read_log
from trainers.loop import train
from trainers.rollouts import Request, sample_seed
from trainers.vllm_rollouts import EngineError, VllmBackend, rollout_backend


@pytest.fixture(scope="module")
def model(widened) -> Path:
    return widened("picture", tied=True)


@pytest.fixture
def served(model: Path, serving, tmp_path: Path) -> Iterator:
    with serving(model, log=tmp_path / "server.log") as found:
        yield found


@pytest.fixture
def config_at(model: Path, make_config) -> Callable[..., Config]:
    """A function from an address, or none, to three steps of GRPO."""

    def make(address: str | None = None, **changes) -> Config:
        rollouts = {"backend": "vllm", "address": address, "tolerance": 1e-3}
        sampling = {"max_tokens": 12, "temperature": 0.7}
        return make_config(model, rollouts=rollouts, sampling=sampling, **changes)

    return make


@torch.no_grad()
def largest_gap(policy, requests, found) -> float:
    """Between the server's log-probabilities and the trainer's."""
    gaps = []
    for request, replies in zip(requests, found, strict=True):
        ours_RT = policy.plain_logprobs(request.prompt, [reply.ids for reply in replies])
        for line, reply in zip(ours_RT, replies, strict=True):
            gaps.append(float((line[: len(reply.ids)] - reply.logprobs).abs().max()))
    return max(gaps)


def test_the_server_follows_the_trainer_and_a_second_run_is_told_who_holds_it(
    served, config_at
) -> None:
    config = config_at(served.address)
    learner = load_learner(config, config.model)
    policy = learner.policy
    requests = [
        Request(
            policy.encoder.encode(question.prompt, question.images),
            tuple(sample_seed(0, 0, question.id, number) for number in range(4)),
        )
        for question in questions(config.data)[:3]
    ]
    with rollout_backend(config, learner) as backend:
        assert isinstance(backend, VllmBackend)
        first = backend.generate(requests, max_tokens=12)
        assert largest_gap(policy, requests, first) < 1e-4
        with (
            pytest.raises(EngineError, match=rf"process {os.getpid()} on .* \(grpo\) has held it"),
            rollout_backend(config, learner),
        ):
            pass
        prefix = policy.prefix(requests[0].prompt)
        policy.logprobs(prefix, [first[0][0].ids]).sum().backward()
        vision = policy.model.model.vision_model.embeddings.patch_embedding.weight
        assert float(vision.grad.abs().max()) > 0.0
        learner.optimizer.step()
        second = backend.generate(requests, max_tokens=12)
        assert largest_gap(policy, requests, second) < 1e-4
        assert largest_gap(policy, requests, first) > 1e-2
        again = backend.generate(requests, max_tokens=12, greedy=True)
        assert [[r.seed for r in group] for group in again] == [list(r.seeds) for r in requests]
    with rollout_backend(config, learner) as backend:
        third = backend.generate(requests, max_tokens=12)
    for before, after in zip(second, third, strict=True):
        assert [a.ids.tolist() for a in before] == [b.ids.tolist() for b in after]


def test_three_steps_are_those_of_an_engine_in_the_trainers_process(
    served, config_at, tmp_path: Path
) -> None:
    train(config_at(), tmp_path / "colocated")
    train(config_at(served.address), tmp_path / "served")
    logs = [read_log(tmp_path / name / "rollouts.jsonl") for name in ("colocated", "served")]
    assert len(logs[0]) == 3 * 2 * 4
    assert logs[0] == logs[1]
    rows = [read_log(tmp_path / name / "scalars.jsonl") for name in ("colocated", "served")]
    for colocated, away in zip(*rows, strict=True):
        assert colocated["gradient_norm"] > 0.0
        for name in set(colocated) - {"seconds", "tokens_per_second"}:
            assert colocated[name] == away[name], name


def test_a_killed_server_leaves_a_run_that_goes_on_to_the_same_end(
    served, serving, model: Path, config_at, tmp_path: Path
) -> None:
    config = config_at(served.address)
    train(config, tmp_path / "whole")

    def kill(step: int, numbers: object) -> None:
        if step == 1:
            served.process.kill()
            served.process.wait()

    with pytest.raises(EngineError, match=r"cannot be reached .*with --resume"):
        train(config, tmp_path / "run", progress=kill)
    found = last_checkpoint(tmp_path / "run")
    assert found is not None
    assert found.name == "step-000002"
    with pytest.raises(EngineError, match="cannot be reached"):
        train(config, tmp_path / "run", resume=True)
    with serving(model, log=tmp_path / "second.log") as second:
        train(config_at(second.address), tmp_path / "run", resume=True)
    logs = [read_log(tmp_path / name / "rollouts.jsonl") for name in ("whole", "run")]
    assert logs[0] == logs[1]
    assert len(logs[0]) == 3 * 2 * 4


def test_a_model_of_another_shape_is_refused(served, config_at, idefics_model: Path) -> None:
    config = config_at(served.address).model_copy(update={"model": str(idefics_model)})
    learner = load_learner(config, config.model)
    with (
        pytest.raises(EngineError, match="server and run must have the same model: ") as error,
        rollout_backend(config, learner),
    ):
        pass
    assert "\n" not in str(error.value)
