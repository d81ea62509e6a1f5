"""The vllm backend against the transformers backend; ``make test-vllm`` runs it for real."""

import os
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

pytest.importorskip("vllm", reason="vllm lives in an environment of its own: make test-vllm")
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")

from evaluators.backends.base import Sampling
from evaluators.backends.local_models import LocalBackend
from evaluators.backends.offline_vllm import OfflineBackend
from evaluators.backends.servers import ServerBackend
from evaluators.models import DEFAULT_MODEL
from npbench.splits import load
from npbench.suites import SUITES

SAMPLING = Sampling(k=3, max_tokens=24)


@pytest.fixture(scope="module", params=["lm", "vlm"])
def pair(request, tiny_lm, tiny_vlm):
    """Both backends on one tiny model."""
    folder = str({"lm": tiny_lm, "vlm": tiny_vlm}[request.param])
    return OfflineBackend(folder, SAMPLING, dtype="float32"), LocalBackend(
        folder, SAMPLING, dtype="float32", device="cpu"
    )


@pytest.fixture
def questions(pair, png, ask):
    def make(count=4, **fields):
        sees = pair[1]._checkpoint.sees
        return [
            ask(
                f"q{i}",
                ((png((40 + 30 * i, 50), "red"),) if sees else ()) + ("Which? " * (i + 1),),
                **fields,
            )
            for i in range(count)
        ]

    return make


def texts(backend, requests):
    found = {}
    for completion in backend.generate(requests):
        assert completion.reply.error is None, completion.reply.error
        found[completion.request.id, completion.sample] = completion.reply
    return found


def whole(replies):
    """Texts without a last character of which bytes are missing: engines differ in showing it."""
    return {key: reply.text.rstrip("\ufffd") for key, reply in replies.items()}


def test_greedy_replies_equal_those_of_transformers(pair, questions):
    ours, theirs = (texts(backend, questions()) for backend in pair)
    assert whole(ours) == whole(theirs)
    assert {key: reply.picture_sizes for key, reply in ours.items()} == {
        key: reply.picture_sizes for key, reply in theirs.items()
    }
    assert {reply.finish_reason for reply in ours.values()} <= {"stop", "length"}


def test_samples_differ_repeat_and_do_not_depend_on_company(pair, questions):
    vllm, _ = pair
    asked = questions(decode="sampled", samples=(0, 1, 2))
    first = {key: reply.text for key, reply in texts(vllm, asked).items()}
    assert len(first) == 12
    assert len({first["q0", sample] for sample in range(3)}) > 1
    alone = texts(vllm, questions(1, decode="sampled", samples=(2,), seeds=(1002,)))
    assert alone["q0", 2].text == first["q0", 2]


def test_a_question_that_cannot_be_asked_fails_alone_and_in_its_place(pair, questions, ask, png):
    vllm, _ = pair
    long, broken = ask("long", ("word " * 4000,)), ask("broken", (png()[:50], "?"))
    asked = [long, *questions(1), broken, *questions(2)[1:]]
    found = {c.request.id: c.reply for c in vllm.generate(asked)}
    assert list(found) == ["long", "q0", "broken", "q1"]
    assert {name for name, reply in found.items() if reply.error} == {"long", "broken"}


def test_the_manifest_names_the_engine_and_the_number_type(pair):
    info = pair[0].describe()
    assert info.details["dtype"] == "float32"
    assert info.versions.keys() == {"vllm", "torch", "transformers"}
    assert info.fingerprint == pair[1].describe().fingerprint


@pytest.fixture(scope="module")
def address(tiny_vlm):
    """A vLLM server of the model that sees, on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = {"--model": tiny_vlm, "--served-model-name": "tiny", "--port": port,
             "--host": "127.0.0.1", "--dtype": "float32"}  # fmt: skip
    words = [str(word) for pair in flags.items() for word in pair]
    module = "vllm.entrypoints.openai.api_server"
    process = subprocess.Popen([sys.executable, "-m", module, *words, "--enforce-eager"])
    deadline = time.monotonic() + 300
    while True:
        assert process.poll() is None, "the server ended"
        assert time.monotonic() < deadline, "the server did not come up"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            break
        except OSError:
            time.sleep(1)
    yield f"http://127.0.0.1:{port}/v1"
    process.terminate()
    process.wait(timeout=60)


def test_a_real_server_gives_the_same_greedy_replies_and_keeps_to_the_seeds(
    address, tiny_vlm, ask, png
):
    server = ServerBackend("tiny", SAMPLING, (address,), concurrency=4)
    local = LocalBackend(str(tiny_vlm), SAMPLING, dtype="float32", device="cpu")
    asked = [ask(f"q{i}", (png((40 + 30 * i, 50), "red"), "Which? " * (i + 1))) for i in range(4)]
    assert whole(texts(server, asked)) == whole(texts(local, asked))
    sampled = [ask("q0", asked[0].prompt.parts, decode="sampled", samples=(0, 1, 2, 3))]
    first = whole(texts(server, sampled))
    assert whole(texts(server, sampled)) == first
    assert len(set(first.values())) > 1
    (long,) = server.generate([ask("long", ("word " * 4000,))])
    assert long.reply.error.startswith("status 400: ")


def test_the_shipped_model_gives_the_greedy_replies_of_transformers(ask):
    sampling = Sampling(k=0, max_tokens=64)
    tasks = SUITES["mm-np-bench"].tasks
    rows = load("nano", "nano", "test", 79, per_task=3, tasks=tasks, modality="image")
    asked = [ask(row.id, (row.image, row.prompt)) for row in rows]
    engines = (
        OfflineBackend(DEFAULT_MODEL, sampling, dtype="float32"),
        LocalBackend(DEFAULT_MODEL, sampling, dtype="float32", device="cpu"),
    )
    ours, theirs = (whole(texts(engine, asked)) for engine in engines)
    assert ours == theirs
    assert sum("Answer: " in text for text in ours.values()) == len(asked)


def test_more_samples_than_fit_into_one_step_all_come_back(ask):
    sampling = Sampling(greedy=False, k=4, max_tokens=16)
    tasks = SUITES["mm-np-bench"].tasks
    rows = load("nano", "nano", "test", 79, per_task=4, tasks=tasks, modality="image")
    engine = OfflineBackend(DEFAULT_MODEL, sampling, dtype="float32")
    asked = [
        ask(row.id, (row.image, row.prompt), decode="sampled", samples=range(4)) for row in rows
    ]
    assert len(texts(engine, asked)) == 4 * len(rows)
