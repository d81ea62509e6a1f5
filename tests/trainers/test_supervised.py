"""Supervised stages: targets, mixes, and steps in the same loop."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from npbench.errors import InputError
from trainers.config import Config, read_config
from trainers.data import Question, questions
from trainers.learner import load_learner
from trainers.logs import read_log
from trainers.loop import train
from trainers.reward_terms import judge
from trainers.sections import DataSettings
from trainers.supervised import READING, Lessons, imitate, target_reply


class StopError(Exception):
    """Ends a run from outside."""


def stages_of(*steps: int, target: str = "reference", modality: str = "image") -> list[dict]:
    tasks = ["vertex_cover", "maximum_independent_set"]
    data = {"suite": "nano", "tasks": tasks, "per_task": 6, "modality": modality}
    return [{"steps": n, "mix": [{"data": data, "target": target}]} for n in steps]


@pytest.fixture
def make(request: pytest.FixtureRequest):
    def make_(model: Path, stages: list[dict], **changes) -> Config:
        return read_config(
            {
                "method": "supervised",
                "model": str(model),
                "prompts_per_step": 6,
                "data": stages[0]["mix"][0]["data"],
                "optimizer": {"learning_rate": 3e-3},
                "stages": stages,
                **changes,
            }
        )

    return make_


@pytest.mark.parametrize("model", ["text_model", "idefics_model", "qwen_vl_model"])
def test_rows_side_by_side_have_the_log_probabilities_of_rows_alone(
    model: str, make, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(model)
    modality = "text" if model == "text_model" else "image"
    config = make(folder, stages_of(1, modality=modality))
    policy = load_learner(config, config.model).policy
    lessons = Lessons(config).rows(0)
    prompts = [policy.encoder.encode(one.prompt, one.question.images) for one in lessons]
    replies = [torch.tensor(policy.encoder.ids(one.reply)) for one in lessons]
    with torch.no_grad():
        found = policy.side_by_side(prompts, replies)
        for prompt, reply, line in zip(prompts, replies, found, strict=True):
            alone = policy.plain_logprobs(prompt, [reply])[0]
            assert torch.allclose(line[: len(reply)], alone, atol=1e-4)


@pytest.mark.parametrize("target", ["reference", "heuristic", "greedy", "random", "trivial"])
def test_targets_of_solvers_are_feasible_answers(target: str) -> None:
    for question in questions(DataSettings(suite="nano", per_task=1, modality="text")):
        lesson = target_reply(question, target, np.random.default_rng(0))
        verdict = judge(lesson.reply, question.row)
        assert verdict.feasible, (question.id, lesson.reply)
        assert target != "reference" or verdict.quality == 1.0


def test_edges_are_one_bit_a_pair() -> None:
    instance = {"num_vertices": 4, "edges": [[0, 1], [3, 1]]}
    question = Question("q", "?", (), {"task": "vertex_cover", "instance": json.dumps(instance)})
    lesson = target_reply(question, "edges", np.random.default_rng(0))
    assert (lesson.prompt, lesson.reply) == (READING, "100010")


def test_a_question_without_the_target_is_refused() -> None:
    question = Question("q", "?", (), {"gold": "1"})
    for target, message in (("column", "no column 'target'"), ("greedy", "is no NP task")):
        with pytest.raises(InputError, match=message):
            target_reply(question, target, np.random.default_rng(0))


def test_stages_follow_each_other_and_resume_bit_for_bit(
    idefics_model: Path, make, tmp_path: Path
) -> None:
    stages = [*stages_of(3, target="edges"), *stages_of(3, target="random")]
    config = make(idefics_model, stages, checkpoint_every=2)
    assert config.steps == 6
    train(config, tmp_path / "whole")

    def stop(step: int, numbers: object) -> None:
        if step == 4:
            raise StopError

    with pytest.raises(StopError):
        train(config, tmp_path / "run", progress=stop)
    train(config, tmp_path / "run", resume=True)
    one, two = (
        load_file(tmp_path / name / "checkpoints" / "last" / "model.safetensors")
        for name in ("whole", "run")
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    losses = [row["loss_cross_entropy"] for row in read_log(tmp_path / "run" / "scalars.jsonl")]
    assert len(losses) == 6
    prompts = [{lesson.prompt for lesson in Lessons(config).rows(step)} for step in (2, 3)]
    assert prompts[0] == {READING}
    assert READING not in prompts[1]


def test_the_loss_falls_and_does_not_depend_on_micro_batches(text_model: Path, make) -> None:
    norms = []
    for tokens in (1, 100_000):
        optimizer = {"learning_rate": 3e-3, "tokens_at_once": tokens}
        config = make(text_model, stages_of(20, modality="text"), optimizer=optimizer)
        learner, lessons = load_learner(config, config.model), Lessons(config)
        found = [imitate(learner, lessons.rows(0), step=0) for _ in range(8)]
        norms.append(found[0]["gradient_norm"])
        assert found[-1]["loss_cross_entropy"] < 0.8 * found[0]["loss_cross_entropy"]
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)


def test_supervised_settings_without_a_stage_are_refused() -> None:
    values = {"method": "supervised", "prompts_per_step": 1, "data": {"suite": "nano"}}
    with pytest.raises(InputError, match=r"needs at least one of \[\[stages\]\]"):
        read_config(values)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 5}, "steps must be the 1 of all stages, got 5"),
        ({"method": "grpo", "group_size": 2, "steps": 1}, "stages belong to the method supervised"),
    ],
)
def test_stages_that_do_not_fit_are_refused(
    changes: dict, message: str, text_model: Path, make
) -> None:
    with pytest.raises(InputError, match=message):
        make(text_model, stages_of(1), **changes)
