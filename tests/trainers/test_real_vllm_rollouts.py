"""Rollouts by a real vLLM engine on a CPU; ``make test-vllm`` runs this in its own environment."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

pytest.importorskip("vllm", reason="vllm lives in an environment of its own: make test-vllm")

from trainers.config import read_config
from trainers.data import questions
from trainers.learner import Learner, load_learner
from trainers.loading import load_policy
from trainers.logs import read_log
from trainers.loop import train
from trainers.policy import Policy
from trainers.rollout_wire import PartCall, packed, parts_of
from trainers.rollouts import Request, TransformersBackend, sample_seed
from trainers.vllm_engine import Engine
from trainers.vllm_pictures import engine_input
from trainers.vllm_rollouts import EngineError, VllmBackend, rollout_backend
from trainers.vllm_weights import plain_weights

VLLM = {"rollouts": {"backend": "vllm"}, "sampling": {"max_tokens": 12, "temperature": 0.7}}


@pytest.fixture(scope="module")
def learner(widened) -> Learner:
    data = {"suite": "nano", "tasks": ["vertex_cover"], "per_task": 20, "modality": "image"}
    values = {"method": "grpo", "steps": 3, "prompts_per_step": 2, "group_size": 4, "data": data}
    rate = {"optimizer": {"learning_rate": 1e-2}}
    config = read_config({**values, **rate, **VLLM, "model": str(widened("picture"))})
    return load_learner(config, config.model)


@pytest.fixture(scope="module")
def backend(learner: Learner):
    """One engine for all tests of this file that train nothing."""
    with rollout_backend(learner.config, learner) as found:
        assert isinstance(found, VllmBackend)
        yield found


def requests_for(learner: Learner, *, count: int = 3, samples: int = 4) -> list[Request]:
    encoder = learner.policy.encoder
    return [
        Request(
            encoder.encode(question.prompt, question.images),
            tuple(sample_seed(0, 0, question.id, number) for number in range(samples)),
        )
        for question in questions(learner.config.data)[:count]
    ]


@torch.no_grad()
def gap(policy: Policy, requests: list[Request], found) -> float:
    """The largest difference between the engine's log-probabilities and the trainer's."""
    gaps = [0.0]
    for request, replies in zip(requests, found, strict=True):
        ours = policy.plain_logprobs(request.prompt, [reply.ids for reply in replies]).float()
        for line, reply in zip(ours, replies, strict=True):
            gaps.append(float((line[: len(reply.ids)] - reply.logprobs).abs().max()))
    return max(gaps)


def test_the_engine_follows_the_trainer_through_an_optimiser_step(
    learner: Learner, backend: VllmBackend
) -> None:
    requests = requests_for(learner)
    first = backend.generate(requests, max_tokens=12)
    assert gap(learner.policy, requests, first) < 1e-4
    seeds = [[reply.seed for reply in group] for group in first]
    assert seeds == [list(request.seeds) for request in requests]

    prefix = learner.policy.prefix(requests[0].prompt)
    learner.policy.logprobs(prefix, [first[0][0].ids]).sum().backward()
    vision = learner.policy.model.model.vision_model.embeddings.patch_embedding.weight
    assert float(vision.grad.abs().max()) > 0.0
    learner.optimizer.step()
    learner.optimizer.zero_grad()

    second = backend.generate(requests, max_tokens=12)
    assert gap(learner.policy, requests, second) < 1e-4
    assert gap(learner.policy, requests, first) > 1e-2


def test_seeds_decide_and_company_does_not(learner: Learner, backend: VllmBackend) -> None:
    requests = requests_for(learner)
    together = backend.generate(requests, max_tokens=12)
    one = Request(requests[1].prompt, requests[1].seeds[2:3])
    alone = backend.generate([one], max_tokens=12)
    again = backend.generate(requests, max_tokens=12)
    assert torch.equal(alone[0][0].ids, together[1][2].ids)
    for before, after in zip(together, again, strict=True):
        assert [a.ids.tolist() for a in before] == [b.ids.tolist() for b in after]
        assert len({tuple(reply.ids.tolist()) for reply in before}) > 1


def test_a_picture_is_encoded_once_for_its_group(learner: Learner, backend: VllmBackend) -> None:
    requests = requests_for(learner, count=2, samples=6)
    backend.generate(requests, max_tokens=4)
    seen: list[int] = []

    def watch(model) -> None:
        model.model.vision_model.register_forward_hook(
            lambda module, args, output: seen.append(len(output))
        )

    backend.engine.llm.apply_model(watch)
    backend.generate(requests, max_tokens=4)
    assert sum(seen) == len(requests)


def test_ends_and_placeholders_are_the_policys(
    learner: Learner, backend: VllmBackend, monkeypatch
) -> None:
    policy = learner.policy
    ends = tuple(range(0, 400, 2))
    banned = tuple(dict.fromkeys((*range(300), *policy.banned_ids)))
    monkeypatch.setattr(backend, "policy", replace(policy, end_ids=ends, banned_ids=banned))
    requests = requests_for(learner, count=2, samples=8)
    found = backend.generate(requests, max_tokens=6)
    assert gap(backend.policy, requests, found) < 1e-4
    for reply in (reply for group in found for reply in group):
        ended = int(reply.ids[-1]) in ends
        assert reply.finish_reason == ("stop" if ended else "length")
        assert not set(reply.ids[:-1].tolist()) & set(ends)
        assert not set(reply.ids.tolist()) & set(banned)


def test_greedy_replies_are_those_of_transformers(learner: Learner, backend: VllmBackend) -> None:
    requests = requests_for(learner, samples=1)
    theirs = TransformersBackend(learner.policy).generate(requests, max_tokens=12, greedy=True)
    ours = backend.generate(requests, max_tokens=12, greedy=True)
    for (one,), (two,) in zip(ours, theirs, strict=True):
        assert torch.equal(one.ids, two.ids)
        assert torch.allclose(one.logprobs, two.logprobs, atol=1e-4)


def test_workers_get_their_weights_through_a_folder(
    learner: Learner, backend: VllmBackend, monkeypatch, tmp_path: Path
) -> None:
    requests = requests_for(learner)
    load = backend.engine.llm.llm_engine.vllm_config.load_config
    monkeypatch.setattr(load, "load_format", "auto")
    monkeypatch.setattr(backend.engine, "alone", False)
    monkeypatch.setattr(backend.engine, "folder", tmp_path)
    with torch.no_grad():
        for parameter in learner.policy.trained():
            parameter.mul_(1.1)
    assert gap(learner.policy, requests, backend.generate(requests, max_tokens=8)) < 1e-4
    assert list(tmp_path.glob("*.safetensors"))


@pytest.mark.parametrize("alone", [True, False])
def test_weights_that_a_server_gathered_are_read_from_its_folder(
    alone: bool, learner: Learner, backend: VllmBackend, monkeypatch, tmp_path: Path
) -> None:
    requests = requests_for(learner)
    load = backend.engine.llm.llm_engine.vllm_config.load_config
    monkeypatch.setattr(load, "load_format", "auto")
    monkeypatch.setattr(backend.engine, "alone", alone)

    def by_parts(engine: Engine, policy: Policy) -> None:
        weights = plain_weights(policy.model)
        for number, names in enumerate(parts_of(weights, limit=2**16)):
            part = packed(PartCall(number=number), {name: weights[name] for name in names})
            (tmp_path / f"part-{number:06d}.safetensors").write_bytes(part)
        engine.load_folder(tmp_path)

    monkeypatch.setattr(Engine, "push", by_parts)
    with torch.no_grad():
        for parameter in learner.policy.trained():
            parameter.mul_(1.1)
    assert gap(learner.policy, requests, backend.generate(requests, max_tokens=8)) < 1e-4
    assert len(list(tmp_path.iterdir())) > 1


def test_weights_that_did_not_arrive_stop_the_run(
    learner: Learner, backend: VllmBackend, monkeypatch
) -> None:
    requests = requests_for(learner)
    with torch.no_grad():
        for parameter in learner.policy.trained():
            parameter.mul_(1.3)
    with monkeypatch.context() as patched:
        patched.setattr(type(backend.engine), "push", lambda engine, policy: None)
        with pytest.raises(EngineError, match=r"must agree to rollouts\.tolerance=0\.05"):
            backend.generate(requests, max_tokens=4)
    assert gap(learner.policy, requests, backend.generate(requests, max_tokens=8)) < 1e-4


def test_too_long_a_prompt_is_one_line(learner: Learner, backend: VllmBackend) -> None:
    with pytest.raises(EngineError, match=r"raise rollouts\.context"):
        backend.generate(requests_for(learner, count=1), max_tokens=2000)


def test_qwens_pictures_are_cut_by_their_grids(qwen_vl_model: Path, make_config) -> None:
    config = make_config(qwen_vl_model)
    encoder = load_policy(config.model, config).encoder
    question = questions(config.data)[0]
    prompt = encoder.encode("One, then another.", (*question.images, *question.images))
    found = engine_input(prompt, encoder.image_token_id)
    assert found["prompt_token_ids"] == prompt.ids_1L[0].tolist()
    pixels = [item["pixel_values"].data for item in found["mm_kwargs"]["image"]]
    assert torch.equal(torch.cat(pixels), prompt.pictures["pixel_values"])
    grids = [item["image_grid_thw"].data for item in found["mm_kwargs"]["image"]]
    assert torch.equal(torch.stack(grids), prompt.pictures["image_grid_thw"])
    for grid, place in zip(grids, found["mm_placeholders"]["image"], strict=True):
        assert place.length == int(grid.prod()) // encoder.pictures.merge_size**2
        ids = found["prompt_token_ids"][place.offset : place.offset + place.length]
        assert set(ids) == {encoder.image_token_id}
    assert len(set(found["mm_hashes"]["image"])) == 2


@pytest.mark.parametrize(("kind", "tied"), [("picture", True), ("text", False)])
def test_three_steps_of_grpo(kind: str, tied: bool, widened, make_config, tmp_path: Path) -> None:
    config = make_config(widened(kind, tied=tied), **VLLM)
    train(config, tmp_path / "run")
    rows = read_log(tmp_path / "run" / "scalars.jsonl")
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert all(row["gradient_norm"] > 0.0 for row in rows)
    rollouts = read_log(tmp_path / "run" / "rollouts.jsonl")
    assert len(rollouts) == 3 * config.prompts_per_step * config.group_size
