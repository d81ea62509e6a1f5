"""Supervised stages: targets, mixes, and steps in the same loop."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from npbench.errors import InputError
from npbench.perception import facts, parse_facts
from npbench.tasks import get_task
from trainers.config import Config, read_config
from trainers.data import Question, questions
from trainers.forest import Tree, forest_logprobs
from trainers.learner import learning_rate, load_learner
from trainers.logs import read_log
from trainers.loop import train
from trainers.reward_terms import judge
from trainers.sections import DataSettings, MixSettings
from trainers.supervised import READING, Lessons, imitate, lesson_of
from trainers.teachers import TAUGHT_TASKS


class StopError(Exception):
    """Ends a run from outside."""


def stages_of(
    *steps: int, target: str = "reference", modality: str = "image", replies: int = 1
) -> list[dict]:
    tasks = ["vertex_cover", "maximum_independent_set"]
    data = {"suite": "nano", "tasks": tasks, "per_task": 6, "modality": modality}
    mix = {"data": data, "targets": {target: 1.0}, "replies": replies}
    return [{"steps": n, "mix": [mix]} for n in steps]


def mix_of(target: str, **changes) -> MixSettings:
    return MixSettings(data=DataSettings(suite="nano"), targets={target: 1.0}, **changes)


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
def test_replies_in_one_row_have_the_log_probabilities_of_replies_alone(
    model: str, make, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(model)
    modality = "text" if model == "text_model" else "image"
    config = make(folder, stages_of(1, target="teacher", modality=modality, replies=3))
    policy = load_learner(config, config.model).policy
    trees = [
        Tree(
            policy.encoder.encode(one.prompt, one.images),
            tuple(torch.tensor(policy.encoder.ids(reply)) for reply in one.replies),
        )
        for one in Lessons(config).rows(0)
    ]
    assert {len(tree.replies) for tree in trees} == {3}
    assert len({tree.width for tree in trees}) > 1
    with torch.no_grad():
        found = iter(forest_logprobs(policy, trees))
        for tree in trees:
            alone = policy.plain_logprobs(tree.prompt, tree.replies)
            for reply, one, line in zip(tree.replies, alone, found, strict=False):
                assert torch.allclose(line[: len(reply)], one[: len(reply)], atol=1e-4)
    assert next(found, None) is None


def test_gradients_of_a_row_are_those_of_its_replies_alone(idefics_model: Path, make) -> None:
    config = make(idefics_model, stages_of(1, target="teacher", replies=3))
    policy = load_learner(config, config.model).policy
    one = Lessons(config).rows(0)[0]
    prompt = policy.encoder.encode(one.prompt, one.images)
    replies = tuple(torch.tensor(policy.encoder.ids(reply)) for reply in one.replies)
    lengths = [len(reply) for reply in replies]

    def gradient(logprobs: torch.Tensor) -> torch.Tensor:
        policy.model.zero_grad()
        sum(row[:n].sum() for row, n in zip(logprobs, lengths, strict=True)).backward()
        return torch.cat([p.grad.flatten() for p in policy.trained() if p.grad is not None])

    together = gradient(forest_logprobs(policy, [Tree(prompt, replies)]))
    alone = gradient(policy.plain_logprobs(prompt, replies))
    assert float((together - alone).norm() / alone.norm()) < 1e-5


SINGLE = ("reference", "heuristic", "greedy", "trivial")
"""Targets with one reply to a question."""


@pytest.mark.parametrize(
    "target",
    ["reference", "heuristic", "greedy", "random", "trivial", "teacher", "careful_teacher"],
)
def test_targets_of_solvers_are_feasible_answers(target: str) -> None:
    tasks = TAUGHT_TASKS if "teacher" in target else ()
    for question in questions(DataSettings(suite="nano", per_task=1, modality="text", tasks=tasks)):
        lesson = lesson_of(question, mix_of(target, replies=4), np.random.default_rng(0))
        assert len(lesson.replies) == (1 if target in SINGLE else 4)
        for reply in lesson.replies:
            verdict = judge(reply, question.row)
            assert verdict.feasible, (question.id, reply)
            assert target != "reference" or verdict.quality == 1.0


def test_a_stage_may_begin_warm_up_and_schedule_anew(text_model: Path, make) -> None:
    plain, anew = stages_of(4)[0], {**stages_of(6)[0], "restart": True}
    optimizer = {"warmup_steps": 2, "schedule": "linear"}
    config = make(text_model, [plain, plain, anew], optimizer=optimizer)
    rates = [learning_rate(config, step) for step in range(config.steps)]
    first = make(text_model, [plain, plain], optimizer=optimizer)
    second = make(text_model, [plain, {**plain, "steps": 2}], optimizer=optimizer)
    assert rates[:8] == [learning_rate(first, step) for step in range(8)]
    assert rates[8:] == [learning_rate(second, step) for step in range(6)]
    assert rates[7] < 0.2 < rates[8] == 0.5


def test_the_checkpoint_at_the_end_of_a_stage_is_kept(
    text_model: Path, make, tmp_path: Path
) -> None:
    stages = stages_of(1, 3, modality="text")
    config = make(text_model, stages, keep_checkpoints=1, checkpoint_every=2)
    train(config, tmp_path / "run")
    kept = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("step-*"))
    assert kept == ["step-000001", "step-000004"]


def test_edges_are_a_numbered_row_of_bits_for_each_vertex() -> None:
    instance = {"num_vertices": 4, "edges": [[0, 1], [3, 1]]}
    question = Question("q", "?", (), {"task": "vertex_cover", "instance": json.dumps(instance)})
    lesson = lesson_of(question, mix_of("edges"), np.random.default_rng(0))
    assert (lesson.prompt, lesson.replies) == (READING, ("0:100\n1:01\n2:0",))


def test_perception_is_the_full_score_of_np_perception() -> None:
    for question in questions(DataSettings(suite="nano", per_task=1, modality="image")):
        lesson = lesson_of(question, mix_of("perception"), np.random.default_rng(0))
        task = question.row["task"]
        drawn = facts(task, json.loads(question.row["instance"]))
        assert parse_facts(task, lesson.replies[0]) == drawn
        assert "Read the picture" in lesson.prompt


def test_a_picture_may_be_asked_for_another_task_of_the_same_kind() -> None:
    source = DataSettings(suite="nano", per_task=1, modality="image", tasks=("vertex_cover",))
    question = questions(source)[0]
    mix = mix_of("teacher", ask=("maximum_clique",))
    lesson = lesson_of(question, mix, np.random.default_rng(0))
    assert "every two of them are joined" in lesson.prompt
    row = {**question.row, "task": "maximum_clique"}
    assert (
        get_task("maximum_clique")
        .verify(
            get_task("maximum_clique").decode(json.loads(row["instance"])),
            json.loads(lesson.replies[0].split("Answer: ")[1]),
        )
        .feasible
    )
    with pytest.raises(InputError, match="no picture that could be asked for tsp"):
        lesson_of(question, mix_of("teacher", ask=("tsp",)), np.random.default_rng(0))


def test_a_tree_is_not_asked_for_its_cycles() -> None:
    instance = {"num_vertices": 4, "edges": [[0, 1], [1, 2], [2, 3]]}
    row = {"task": "vertex_cover", "instance": json.dumps(instance)}
    question = Question("q", "own prompt", (b"png",), row)
    lesson = lesson_of(
        question, mix_of("teacher", ask=("longest_cycle",)), np.random.default_rng(0)
    )
    assert lesson.prompt == "own prompt"


def test_a_question_without_the_target_is_refused() -> None:
    question = Question("q", "?", (), {"gold": "1"})
    for target, message in (("column", "no column 'target'"), ("greedy", "is no NP task")):
        with pytest.raises(InputError, match=message):
            lesson_of(question, mix_of(target), np.random.default_rng(0))
    question = next(iter(questions(DataSettings(suite="nano", per_task=1, tasks=("knapsack",)))))
    with pytest.raises(InputError, match="unknown task with a teacher 'knapsack'"):
        lesson_of(question, mix_of("teacher"), np.random.default_rng(0))


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


def test_a_task_that_does_not_exist_cannot_be_asked(text_model: Path, make) -> None:
    stages = stages_of(1)
    stages[0]["mix"][0]["ask"] = ["vertex_covr"]
    with pytest.raises(InputError, match=r"unknown task 'vertex_covr'.*vertex_cover"):
        make(text_model, stages)


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
