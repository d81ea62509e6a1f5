"""Reward callables: their values by hand, hostile replies, threads, pickles, TRL's own call."""

import asyncio
import functools
import json
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npbench import rewards
from npbench.errors import InputError
from npbench.reward_terms import Terms, reward_terms
from npbench.rewards import (
    compute_score,
    compute_score_terms,
    easyr1_score,
    feasibility_reward,
    format_reward,
    np_reward,
    quality_reward,
)
from npbench.splits import load

TRIANGLE = {"num_vertices": 3, "edges": [[0, 1], [0, 2], [1, 2]]}
ROW = {"task": "vertex_cover", "instance": json.dumps(TRIANGLE), "reference_objective": 2}
TRUTH = json.dumps({**ROW, "instance": TRIANGLE, "reference_status": "optimal"})
VALUES = [
    ("Answer: [0, 1]", 1.0, 1.0, 1.0),
    ("Answer: [0, 1, 2]", 1.0, 1.0, 2 / 3),
    ("Answer: [0]", 1.0, 0.0, 0.0),
    ("Answer: [0, 0, 1]", 1.0, 0.0, 0.0),
    ("Answer: [0, 7]", 1.0, 0.0, 0.0),
    ("Answer: none", 0.0, 0.0, 0.0),
    ("[0, 1]", 0.0, 0.0, 0.0),
    ("", 0.0, 0.0, 0.0),
]
HOSTILE = [
    "Answer: " + "[" * 100_000,
    "Answer: [" + "9" * 10_000 + "]",
    "Answer: [NaN, 1e400, -1]",
    "Answer: [0, 1" + "\0" * 50,
    "\ud800 Answer: [0, 1]",
    "Answer: __import__('os').system('true')",
    "a" * 2_000_000,
    None,
    3.5,
    [],
    [{"role": "assistant"}],
    [{"role": "assistant", "content": None}],
    [{"role": "assistant", "content": [{"type": "image"}, "text", {"text": 3}]}],
    [None],
]


def columns(count):
    return {key: [value] * count for key, value in ROW.items()}


@pytest.mark.parametrize(("reply", "form", "feasible", "quality"), VALUES)
def test_every_signature_gives_the_values_found_by_hand(reply, form, feasible, quality):
    terms = reward_terms(reply, **ROW)
    assert (terms.format, terms.feasibility) == (form, feasible)
    assert terms.quality == pytest.approx(quality)
    total = pytest.approx(0.1 * form + quality)
    assert np_reward(["?"], [reply], **columns(1)) == [total]
    assert format_reward(["?"], [reply], **columns(1)) == [form]
    assert feasibility_reward(["?"], [reply], **columns(1)) == [feasible]
    assert quality_reward(["?"], [reply], **columns(1)) == [pytest.approx(quality)]
    assert compute_score("npbench/vertex_cover", reply, TRUTH) == total
    logged = compute_score_terms("npbench/vertex_cover", reply, TRUTH, {"id": "x"})
    assert logged["score"] == total
    assert logged["acc"] == (quality == 1.0)
    batch = easyr1_score([{"response": reply, "response_length": 9, "ground_truth": TRUTH}])
    assert batch[0]["overall"] == total
    assert batch[0]["accuracy"] == (quality == 1.0)
    assert easyr1_score({"response": reply, "ground_truth": TRUTH}) == batch[0]


def test_weights_are_options_of_every_signature():
    weights = {"format_weight": 0.5, "feasibility_weight": 2.0, "quality_weight": 3.0}
    reply = "Answer: [0, 1, 2]"
    expected = pytest.approx(0.5 + 2.0 + 2.0)
    assert np_reward(["?"], [reply], **columns(1), **weights) == [expected]
    assert compute_score("x", reply, TRUTH, None, **weights) == expected
    assert compute_score_terms("x", reply, TRUTH, None, **weights)["score"] == expected
    assert (
        easyr1_score([{"response": reply, "ground_truth": TRUTH}], **weights)[0]["overall"]
        == expected
    )
    assert Terms(1.0, 1.0, 0.5, 0.0).total(**weights) == 4.0


def test_an_answer_better_than_an_unproven_reference_is_worth_more_than_1():
    row = {**ROW, "reference_objective": 3}
    assert reward_terms("Answer: [0, 1]", **row).quality == 1.5
    assert reward_terms("Answer: [0, 1]", **row).optimal == 0.0
    assert reward_terms("Answer: [0, 1]", **ROW, reference_status="optimal").optimal == 1.0


@pytest.mark.parametrize("reply", HOSTILE, ids=range(len(HOSTILE)))
def test_no_reply_raises(reply):
    expected = 1.1 if isinstance(reply, str) and reply.startswith("\ud800") else 0.0
    rewards_of = np_reward(["?"], [reply], **columns(1))
    assert rewards_of[0] in (0.0, 0.1, pytest.approx(expected))
    assert compute_score("x", reply, TRUTH) == rewards_of[0]


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.text(max_size=80))
def test_no_text_behind_the_marker_raises(text):
    (reward,) = np_reward(["?"], [f"Answer: {text}"], **columns(1))
    assert 0.0 <= reward <= 1.1


def test_the_last_message_of_a_chat_is_the_reply():
    chat = [
        {"role": "assistant", "content": "Answer: [0]"},
        {"role": "user", "content": "Are you sure?"},
        {"role": "assistant", "content": [{"type": "text", "text": "No. Answer: [0, 1]"}]},
    ]
    assert np_reward(["?"], [chat], **columns(1)) == [pytest.approx(1.1)]


def test_rows_of_other_datasets_get_none_and_leave_references_as_floats():
    row = {
        "task": [None, "vertex_cover", "vertex_cover"],
        "instance": [None, ROW["instance"], TRIANGLE],
        "reference_objective": [float("nan"), 2.0, np.int64(2)],
    }
    replies = ["Answer: [0, 1]"] * 3
    assert np_reward(["?"] * 3, replies, **row) == [None, pytest.approx(1.1), pytest.approx(1.1)]
    for function in (format_reward, feasibility_reward, quality_reward):
        assert function(["?"] * 3, replies, **row) == [None, 1.0, 1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": ["vertex_cove"]}, "unknown task 'vertex_cove'; did you mean 'vertex_cover'"),
        ({"task": [7]}, "task must be text, got '7'"),
        ({"instance": ["{"]}, "the instance is no JSON"),
        ({"instance": ["{}"]}, "a graph instance needs the key 'num_vertices'"),
        ({"reference_objective": [None]}, "reference_objective must be a whole number, got 'None'"),
        ({"reference_objective": [2.5]}, "reference_objective must be a whole number, got '2.5'"),
        ({"reference_objective": [True]}, "must be a whole number, got 'True'"),
        ({"reference_objective": [-1]}, "must lie in"),
        ({"task": ["tsp", "tsp"]}, r"equally many, got \[1, 2\]"),
    ],
)
def test_a_broken_row_raises_instead_of_earning_zero(change, message):
    with pytest.raises(InputError, match=message):
        np_reward(["?"], ["Answer: [0, 1]"], **{**columns(1), **change})


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ("{", "ground_truth is no JSON"),
        ("[]", "ground_truth must be an object"),
        ("{}", "ground_truth has no 'task'"),
        (json.dumps({"task": "tsp", "instance": {}}), "has no 'reference_objective'"),
    ],
)
def test_a_broken_ground_truth_raises(truth, message):
    for call in (
        lambda: compute_score("x", "Answer: [0]", truth),
        lambda: easyr1_score([{"response": "Answer: [0]", "ground_truth": truth}]),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_functions_pickle_and_work_in_threads_and_processes():
    partial = functools.partial(np_reward, format_weight=0.2)
    for function in (np_reward, partial, compute_score, compute_score_terms, easyr1_score):
        assert pickle.loads(pickle.dumps(function))
    replies = ["Answer: [0, 1]", "Answer: [0, 1, 2]", "no"] * 20
    alone = [compute_score("x", reply, TRUTH) for reply in replies]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda reply: compute_score("x", reply, TRUTH), replies)) == alone
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        future = pool.submit(partial, ["?"], ["Answer: [0, 1]"], **columns(1))
        assert future.result() == [pytest.approx(1.2)]


def test_references_of_all_tasks_earn_the_whole_reward():
    rows = load("nano", "nano", "train", 31, per_task=1, modality="text")
    batch = {key: [getattr(row, key) for row in rows] for key in ROW}
    replies = [f"Answer: {row.reference_solution}" for row in rows]
    assert np_reward(["?"] * len(rows), replies, **batch) == pytest.approx([1.1] * len(rows))


def test_importing_the_rewards_imports_no_heavy_library():
    check = (
        "import sys, npbench.rewards; "
        "print([m for m in ('torch', 'ortools', 'PIL', 'pyarrow', 'trl') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_verl_may_load_the_file_by_its_path_as_well():
    code = (
        "import importlib.util, sys; "
        f"spec = importlib.util.spec_from_file_location('custom_module', {rewards.__file__!r}); "
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module); "
        f"print(module.compute_score('x', 'Answer: [0, 1]', {TRUTH!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) == pytest.approx(1.1)


@pytest.mark.filterwarnings("ignore")
def test_trl_calls_the_rewards_in_its_own_way(tmp_path, monkeypatch):
    """Runs where TRL is installed: requirements/oracles-trl.txt."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    trl = pytest.importorskip(
        "trl", reason="trl is not installed; see requirements/oracles-trl.txt"
    )
    datasets = pytest.importorskip("datasets")
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")

    words = ["<pad>", "<eos>", "Answer:", "[0]", "?"]
    model = tokenizers.models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    processor = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>", unk_token="?"
    )
    processor.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    config = transformers.LlamaConfig(
        vocab_size=len(words),
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=1,
    )
    prompt = [{"role": "user", "content": "?"}]
    dataset = datasets.Dataset.from_list([{"prompt": prompt, **ROW}] * 4)
    trainer = trl.GRPOTrainer(
        model=transformers.LlamaForCausalLM(config),
        processing_class=processor,
        train_dataset=dataset,
        reward_funcs=[np_reward, functools.partial(np_reward, format_weight=0.2), quality_reward],
        args=trl.GRPOConfig(
            output_dir=str(tmp_path),
            per_device_train_batch_size=4,
            num_generations=4,
            max_completion_length=4,
            max_steps=1,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
        ),
    )
    assert trainer.reward_func_names == ["np_reward", "np_reward", "quality_reward"]
    trainer.train()
    replies = ["Answer: [0, 1]", "Answer: [0, 1, 2]", "Answer: [0]", None]
    chats = [[{"role": "assistant", "content": reply}] for reply in replies]
    found = trainer._calculate_rewards([dataset[0]] * 4, [prompt] * 4, chats, [[1]] * 4)
    expected = [[1.1, 1.2, 1.0], [0.1 + 2 / 3, 0.2 + 2 / 3, 2 / 3], [0.1, 0.2, 0.0], [0.0] * 3]
    assert np.allclose(found.numpy(), expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", ["pkg://npbench.rewards", rewards.__file__])
def test_verl_calls_the_rewards_in_its_own_way(path):
    """Runs where verl is installed: requirements/oracles-verl.txt."""
    reason = "verl is not installed; see requirements/oracles-verl.txt"
    verl = pytest.importorskip("verl", reason=reason)
    torch = pytest.importorskip("torch")
    omegaconf = pytest.importorskip("omegaconf")
    loop = pytest.importorskip("verl.experimental.reward_loop.reward_manager.naive")
    reward = pytest.importorskip("verl.trainer.ppo.reward")

    class Characters:
        def decode(self, ids, skip_special_tokens=True):
            return "".join(map(chr, ids.tolist()))

    function = {"path": path, "name": "compute_score_terms"}
    function["reward_kwargs"] = {"format_weight": 0.2}
    config = omegaconf.OmegaConf.create({"reward": {"custom_reward_function": function}})
    ids = torch.tensor([[ord(letter) for letter in "so Answer: [0, 1, 2]"]])
    row = {"data_source": "npbench/vertex_cover", "reward_model": {"ground_truth": TRUTH}}
    data = verl.DataProto.from_dict(
        tensors={"responses": ids, "attention_mask": torch.ones_like(ids)},
        non_tensors={
            **{name: np.array([value], dtype=object) for name, value in row.items()},
            "extra_info": np.array([{"id": "x"}], dtype=object),
        },
    )

    async def once():
        score = reward.get_custom_reward_fn(config)
        manager = loop.NaiveRewardManager(config, Characters(), score)
        return await manager.run_single(data)

    result = asyncio.run(once())
    assert result["reward_score"] == pytest.approx(0.2 + 2 / 3)
    assert result["reward_extra_info"]["quality"] == pytest.approx(2 / 3)
