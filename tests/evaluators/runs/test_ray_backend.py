"""Evaluation on Ray: the samples of one process, whatever dies on the way."""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evaluators.backends import BackendOptions, make_backend
from evaluators.backends.base import Completion, Prompt, Reply, Request, Sampling
from evaluators.embedders import Unavailable
from evaluators.ray_backend import Replica, _batches, _completions, ray_backend
from evaluators.runner import RunSettings
from evaluators.sessions import choose, evaluate
from npbench.errors import InputError
from npbench.ray_pool import WorkerError, ray_session

SAMPLING = Sampling(k=2, max_tokens=16)


@pytest.fixture(scope="session")
def ray():
    """A Ray of this machine's own with room for two workers."""
    pytest.importorskip("ray")
    with ray_session(None, workers=2) as ray:
        yield ray


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send({"data": [{"id": "tiny", "root": self.server.root}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = "".join(part.get("text", "") for part in body["messages"][-1]["content"])
        self.server.asked.append(text)
        self.server.before(self.server)
        choice = {
            "message": {"content": f"Answer: {len(text)}, seed {body['seed']}"},
            "finish_reason": "stop",
        }
        try:
            self.send({"choices": [choice], "usage": {"completion_tokens": 3}})
        except ConnectionError:
            self.close_connection = True

    def send(self, data):
        raw = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client that was killed is no news."""


@pytest.fixture
def server():
    """Starts servers whose replies depend on question and seed alone."""
    running = []

    def start(before=lambda made: None, *, root="tiny"):
        made = _Server(("127.0.0.1", 0), _Handler)
        made.daemon_threads = True
        made.before, made.root, made.asked = before, root, []
        made.url = f"http://127.0.0.1:{made.server_port}/v1"
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((made, thread))
        return made

    yield start
    for made, thread in running:
        made.shutdown()
        thread.join()
        made.server_close()


def options(*servers):
    """One request at a time, so that one process writes in the order of the questions."""
    return BackendOptions(
        model="tiny", sampling=SAMPLING, base_urls=tuple(one.url for one in servers), concurrency=1
    )


@pytest.fixture
def finish(split):
    """Runs an evaluation of the split in a folder."""

    def run(backend, out, **more):
        return evaluate(
            choose(None, source=split),
            backend,
            RunSettings(sampling=SAMPLING),
            out,
            command="npbench eval",
            embedder=Unavailable("none", "not asked for"),
            **more,
        )

    return run


@pytest.fixture
def whole(server, finish, tmp_path):
    """The bytes of the samples that one process writes, and their summary."""
    finish(make_backend("openai", options(server())), tmp_path / "one")
    return (tmp_path / "one" / "samples.jsonl").read_bytes(), _summary(tmp_path / "one")


def _summary(run):
    summary = json.loads((run / "summary.json").read_text())
    return {**summary, "manifest": _stated(run)}


def _stated(run):
    """A run's manifest but for what says when and by which command it was made."""
    manifest = json.loads((run / "run.json").read_text())
    mine = ("command", "commit", "started")
    return {name: manifest[name] for name in manifest if name not in mine}


def test_a_worker_killed_in_the_middle_of_a_batch_changes_no_byte(
    ray, server, finish, whole, tmp_path
):
    pids, killed, told = [], [], []

    def kill(made):
        if len(made.asked) == 6 and not killed:
            killed.append(pids[1]())
            os.kill(killed[0], signal.SIGKILL)

    first, second = server(), server(kill)
    with ray_backend("openai", options(first, second), notify=told.append) as backend:
        pids += [lambda: backend.pool.pids[0], lambda: backend.pool.pids[1]]
        outcome, summary = finish(backend, tmp_path / "run")
        assert backend.pool.pids[1] != killed[0]
    assert len(killed) == len(told) == 1
    assert "worker 1" in told[0]
    assert (outcome.total, outcome.made) == (36, 36)
    assert (tmp_path / "run" / "samples.jsonl").read_bytes() == whole[0]
    assert summary is not None
    assert _summary(tmp_path / "run") == whole[1]
    assert len(first.asked) + len(second.asked) > 36
    assert first.asked


def test_a_batch_that_kills_three_workers_ends_the_run_which_one_process_can_finish(
    ray, server, finish, whole, tmp_path
):
    class Dying(Replica):
        def __call__(self, batch):
            if any("knapsack" in request.id for request in batch):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(batch)

    out, told = tmp_path / "run", []
    with (
        ray_backend("openai", options(server()), replica=Dying, notify=told.append) as backend,
        pytest.raises(WorkerError, match=r"^3 workers died .* run the command again to go on$"),
    ):
        finish(backend, out)
    assert len(told) == 2
    begun = (out / "samples.jsonl").read_bytes()
    assert 0 < len(begun) < len(whole[0])
    assert whole[0].startswith(begun)
    finish(make_backend("openai", options(server())), out)
    assert (out / "samples.jsonl").read_bytes() == whole[0]
    assert _summary(out) == whole[1]


def test_an_interrupted_run_goes_on_where_it_stopped(ray, server, finish, whole, tmp_path):
    out, said = tmp_path / "run", []

    def interrupt(done, total):
        if done == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with ray_backend("openai", options(server())) as backend:
        outcome, summary = finish(
            backend, out, progress=interrupt, stopping=lambda: said.append("stopping")
        )
        assert outcome.interrupted
        assert said == ["stopping"]
        assert summary is None
        assert 3 <= outcome.done < 36
        assert whole[0].startswith((out / "samples.jsonl").read_bytes())
        outcome, _ = finish(backend, out)
    assert not outcome.interrupted
    assert (out / "samples.jsonl").read_bytes() == whole[0]


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda answers: None, "a worker gave back None and no replies to 3 samples"),
        (lambda answers: answers[:-1], "a worker gave back 2 replies to 3 samples"),
        (lambda answers: [*answers[:-1], answers[0]], "3 replies to 3 samples of .*, 2 of them"),
    ],
)
def test_a_worker_that_gives_back_something_else_is_an_error(spoil, reason):
    asked = Request("a", Prompt(("?",)), "sampled", (0, 1, 2), (7, 8, 9))
    answers = [("a", "sampled", sample, Reply(text=str(sample))) for sample in (2, 0, 1)]
    assert list(_completions([asked], answers)) == [
        Completion(asked, sample, Reply(text=str(sample))) for sample in range(3)
    ]
    with pytest.raises(WorkerError, match=reason):
        list(_completions([asked], spoil(answers)))


def test_a_worker_that_returns_nothing_ends_the_run_in_one_line(ray, server, finish, tmp_path):
    class Silent(Replica):
        def __call__(self, batch):
            return None

    with (
        ray_backend("openai", options(server()), replica=Silent) as backend,
        pytest.raises(WorkerError, match="a worker gave back None and no replies to 3 samples"),
    ):
        finish(backend, tmp_path / "run")


def test_servers_with_different_models_are_refused(ray, server, finish, tmp_path):
    servers = options(server(), server(root="another"))
    with (
        ray_backend("openai", servers) as backend,
        pytest.raises(WorkerError, match="differs from the rest of the run: its fingerprint is"),
    ):
        finish(backend, tmp_path / "run")


def test_the_command_makes_the_same_run_and_resumes_it(ray, npbench, script, rows, split, tmp_path):
    lines = [{"id": row["id"], "sample": s, "reply": f"Answer: [{s}]"} for row in rows
             for s in range(2)]  # fmt: skip
    path = script(lines)
    words = ["eval", "--data", split, "--backend", "scripted", "--model", path, "-k", 2, "--out"]
    npbench(*words, tmp_path / "one")
    npbench(*words, tmp_path / "run", "--engine", "ray", "--workers", 2)
    samples = (tmp_path / "one" / "samples.jsonl").read_bytes()
    assert (tmp_path / "run" / "samples.jsonl").read_bytes() == samples
    assert _summary(tmp_path / "run") == _summary(tmp_path / "one")
    torn = samples[: len(samples) // 2]
    (tmp_path / "run" / "samples.jsonl").write_bytes(torn)
    assert npbench("eval", "--resume", tmp_path / "run").return_value == 0
    assert (tmp_path / "run" / "samples.jsonl").read_bytes() == samples


def test_a_backend_that_cannot_be_made_says_what_it_says_on_one_process(ray, tmp_path):
    missing = BackendOptions(model=str(tmp_path / "none.jsonl"), sampling=SAMPLING)
    with pytest.raises(InputError) as here:
        make_backend("scripted", missing)
    with (
        ray_backend("scripted", missing) as backend,
        pytest.raises(InputError) as there,
    ):
        backend.describe()
    assert str(there.value) == str(here.value)


def test_the_shipped_model_gives_the_same_bytes_on_two_workers(ray, npbench, split, tmp_path):
    pytest.importorskip("transformers")
    words = ["eval", "--data", split, "-k", 2, "--max-tokens", 16, "--limit", 4, "--out"]
    npbench(*words, tmp_path / "one")
    npbench(*words, tmp_path / "run", "--engine", "ray", "--workers", 2)
    one, run = ((tmp_path / name / "samples.jsonl").read_bytes() for name in ("one", "run"))
    assert one == run
    assert one.count(b"\n") == 12


def test_a_batch_holds_whole_questions_up_to_its_samples_and_bytes():
    def asked(name, size=10):
        prompt = Prompt((b"x" * size,))
        return [Request(name, prompt, "greedy", (0,), (1,)),
                Request(name, prompt, "sampled", (0, 1), (1, 2))]  # fmt: skip

    requests = [one for name in "abcde" for one in asked(name)]
    assert [[one.id for one in batch] for batch in _batches(requests, samples=7)] == [
        ["a", "a", "b", "b"], ["c", "c", "d", "d"], ["e", "e"],
    ]  # fmt: skip
    assert len(list(_batches(requests, samples=2))) == 5
    large = [*asked("a", 3 << 20), *asked("b")]
    assert [batch[0].id for batch in _batches(large, samples=64)] == ["a", "b"]
    assert list(_batches([], samples=2)) == []


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--engine", "rya"], "unknown engine 'rya'; did you mean 'ray'"),
        (["--workers", "2"], "--workers goes with --engine ray"),
        (["--address", "auto"], "--address goes with --engine ray"),
        (["--engine", "ray", "--workers", "0"], r"workers must lie in \[1, 1024\], got 0"),
        (["--engine", "ray"], r"--engine ray needs: pip install 'npbench\[ray\]'"),
        (
            [
                "--engine",
                "ray",
                "--workers",
                "1",
                "--base-url",
                "http://a",
                "--base-url",
                "http://b",
            ],
            "2 base urls need as many workers at least, got 1",
        ),
    ],
)
def test_wrong_usage_is_one_line(monkeypatch, npbench, split, tmp_path, more, reason):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=reason):
        npbench("eval", "--data", split, "--backend", "openai", "--model", "tiny",
                "--out", tmp_path / "run", *more)  # fmt: skip
    assert not (tmp_path / "run").exists()
