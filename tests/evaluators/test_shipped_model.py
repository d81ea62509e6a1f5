"""npbench-tiny as it is shipped: offline, within its limits, and looking at the pictures."""

import json
from pathlib import Path

import pytest

from evaluators.backends.base import Prompt, Request, Sampling
from evaluators.backends.local_models import LocalBackend
from evaluators.checkpoints import find_checkpoint
from evaluators.models import DEFAULT_MODEL, shipped_model
from npbench.errors import ParseError
from npbench.perception import agreement, facts, parse_facts, perception_prompt
from npbench.splits import load
from npbench.suites import SUITES
from npbench.tasks import get_task
from trainers.encoding import load_encoder

TASKS = SUITES["mm-np-bench"].tasks
EDGE_TASKS = tuple(t for t in TASKS if t not in ("minimum_bisection", "maximum_cut", "tsp"))


@pytest.fixture(scope="module")
def rows():
    """Held-out nano questions with pictures: two of each task."""
    return list(load("nano", "nano", "test", 77, per_task=2, tasks=TASKS, modality="image"))


@pytest.fixture(scope="module")
def reply():
    """Greedy replies of the shipped model to (text, picture) pairs, in their order."""
    backends = {}

    def make(asked, *, max_tokens=64, k=0):
        sampling = Sampling(k=k, max_tokens=max_tokens)
        key = (max_tokens, k)
        if key not in backends:
            backends[key] = LocalBackend(DEFAULT_MODEL, sampling, device="cpu", batch_size=32)
        decode, samples = ("sampled", range(k)) if k else ("greedy", range(1))
        requests = [
            Request(str(i), Prompt((picture, text), None), decode, tuple(samples), tuple(samples))
            for i, (text, picture) in enumerate(asked)
        ]
        found = {}
        for done in backends[key].generate(requests):
            assert done.reply.error is None
            found.setdefault(int(done.request.id), []).append(done.reply.text)
        return [found[i] for i in range(len(asked))]

    return make


def feasible(row, text):
    task = get_task(row.task)
    try:
        return task.verify(task.decode(json.loads(row.instance)), task.parse(text)).feasible
    except ParseError:
        return False


def test_it_is_found_by_name_and_has_the_promised_size():
    folder = shipped_model(DEFAULT_MODEL)
    assert find_checkpoint(DEFAULT_MODEL).sees
    assert (folder / "model.safetensors").stat().st_size < 12e6
    assert (folder / "README.md").is_file()
    config = json.loads((folder / "config.json").read_text())
    assert config["model_type"] == "idefics3"
    for part in ("text_config", "vision_config"):
        assert config[part]["hidden_size"] // config[part]["num_attention_heads"] >= 32


def test_the_stock_classes_load_it(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers")
    folder = shipped_model(DEFAULT_MODEL)
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    assert type(model).__name__ == "Idefics3ForConditionalGeneration"
    assert type(processor).__name__ == "Idefics3Processor"
    assert 1e6 < sum(p.numel() for p in model.parameters()) < 3e6


def test_a_nano_prompt_takes_at_most_200_tokens(rows):
    import transformers

    folder = str(shipped_model(DEFAULT_MODEL))
    encoder = load_encoder(folder, transformers.AutoConfig.from_pretrained(folder))
    assert max(encoder.encode(row.prompt, [row.image]).length for row in rows) <= 200


def test_it_answers_questions_of_every_task(rows, reply):
    replies = [texts[0] for texts in reply([(row.prompt, row.image) for row in rows])]
    assert all("Answer: " in text for text in replies)
    assert sum(feasible(row, text) for row, text in zip(rows, replies, strict=True)) >= 14


def test_it_reads_the_edges_of_pictures_that_it_never_saw(rows, reply):
    graphs = [row for row in rows if row.task in EDGE_TASKS]
    asked = [
        (perception_prompt(row.task, get_task(row.task).wording.picture), row.image)
        for row in graphs
    ]
    scores = []
    for row, (text,) in zip(graphs, reply(asked, max_tokens=160), strict=True):
        drawn = facts(row.task, json.loads(row.instance))
        scores.append(agreement(drawn["edges"], parse_facts(row.task, text)["edges"]).f1)
    assert sum(scores) / len(scores) > 0.98


def test_it_looks_at_the_picture_it_is_given(reply):
    rows = [
        row
        for task in ("maximum_independent_set", "vertex_cover", "maximum_clique")
        for row in load("nano", "nano", "test", 78, per_task=8, tasks=[task], modality="image")
    ]
    own = reply([(row.prompt, row.image) for row in rows], k=4)
    other = reply([(row.prompt, rows[i - 1].image) for i, row in enumerate(rows)], k=4)

    def share(found):
        right = [feasible(r, text) for r, texts in zip(rows, found, strict=True) for text in texts]
        return sum(right) / len(right)

    assert share(own) > share(other) + 0.25


def test_the_recipe_begins_with_its_tokenizer(tmp_path: Path):
    from trainers.blank import make_blank

    make_blank(tmp_path / "blank")
    for name in ("tokenizer.json", "chat_template.jinja", "processor_config.json"):
        shipped = (shipped_model(DEFAULT_MODEL) / name).read_bytes()
        assert (tmp_path / "blank" / name).read_bytes() == shipped
