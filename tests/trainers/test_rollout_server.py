"""A rollout server over real HTTP on loopback, its vLLM a script: whose weights are drawn from.

``test_real_rollout_server.py`` has the real engine and the command in a process of its own.
"""

import http.client
import json
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import save

from npbench.errors import InputError
from trainers import rollout_client
from trainers.checkpoints import last_checkpoint
from trainers.config import Config, differing_setting, read_config
from trainers.encoding import Prompt
from trainers.learner import Learner, load_learner
from trainers.loading import load_policy
from trainers.logs import read_log
from trainers.loop import train
from trainers.remote_engine import RemoteEngine, draw_body
from trainers.rollout_bodies import AT_ONCE, from_file
from trainers.rollout_claims import Claim, Claims
from trainers.rollout_http import RolloutHttp, open_http
from trainers.rollout_server import RolloutServer
from trainers.rollout_wire import (
    CLAIM_BYTES,
    CLAIM_HEADER,
    DRAW_JOBS,
    DRAW_PROMPTS,
    JSON_BYTES,
    JSON_TYPE,
    KEY_VARIABLE,
    PROTOCOL,
    TENSORS_TYPE,
    About,
    Done,
    DrawCall,
    DrawnReply,
    PartCall,
    packed,
    parts_of,
)
from trainers.rollouts import Request, sample_seed
from trainers.serve_command import serve_rollouts_command
from trainers.vllm_engine import Engine, Launch, launch
from trainers.vllm_jobs import Distribution, Job
from trainers.vllm_rollouts import EngineError, VllmBackend, rollout_backend
from trainers.vllm_weights import model_outline, plain_weights

RESET = ["reset prefix", "reset pixels", "reset features"]


@dataclass
class Service:
    """A server in threads of this process."""

    http: RolloutHttp
    server: RolloutServer
    llm: Any
    thread: threading.Thread

    @property
    def address(self) -> str:
        return self.http.address

    def stop(self) -> None:
        self.http.close()
        self.server.stop()
        self.thread.join()
        self.server.claims.close()


@pytest.fixture
def serve(fake_vllm, text_model: Path) -> Iterator[Callable[..., Service]]:
    """A function that starts a server of the tiny text model."""
    started: list[Service] = []

    def start(
        *, port: int = 0, key: str | None = None, gpus: int = 1, hold: float = 0.01, **rules: Any
    ) -> Service:
        options = Launch(dtype="float32", rows=8, memory_fraction=0.5, tensor_parallel=gpus)
        engine = launch(str(text_model), options, image_token_id=None)
        claims = Claims(model_outline(str(text_model)).shapes, **rules)
        server = RolloutServer(engine, claims, hold=hold)
        listening = open_http("127.0.0.1", port, key=key)
        listening.begin(server, About(protocol=PROTOCOL, vllm="0.33.1", model="text"))
        thread = threading.Thread(target=server.work)
        thread.start()
        started.append(Service(listening, server, fake_vllm.latest, thread))
        return started[-1]

    yield start
    for service in started:
        service.stop()


@pytest.fixture
def config_at(text_model: Path, make_config) -> Callable[..., Config]:
    """A function from an address, or none, to the settings of a run."""

    def make(address: str | None, **changes) -> Config:
        rollouts = {"backend": "vllm", "address": address}
        sampling = {"temperature": 0.7, "max_tokens": 6}
        return make_config(text_model, rollouts=rollouts, sampling=sampling, **changes)

    return make


@pytest.fixture
def learner(text_model: Path, config_at) -> Learner:
    config = config_at(None)
    return load_learner(config, config.model)


NO_SIGNS = 1e5
"""A patience, in a clock's seconds, that makes a run's signs of life too rare to be seen."""


def until(happened: Callable[[], bool]) -> None:
    """Waits for what other threads do."""
    deadline = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def asked(learner: Learner, *texts: str, samples: int = 3) -> list[Request]:
    encoder = learner.policy.encoder
    return [
        Request(encoder.encode(text), tuple(sample_seed(0, 0, text, i) for i in range(samples)))
        for text in texts
    ]


def moved(learner: Learner) -> None:
    with torch.no_grad():
        for parameter in learner.policy.trained():
            parameter.mul_(1.2)


@dataclass
class Caller:
    """What a client of another make could send."""

    address: str
    claim: str = ""

    def post(self, name: str, body: object = None) -> tuple[int, dict[str, Any]]:
        tensors = isinstance(body, bytes) and name in ("part", "draw")
        content = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        given = {"Content-Type": TENSORS_TYPE if tensors else JSON_TYPE, CLAIM_HEADER: self.claim}
        with httpx2.Client(
            base_url=self.address, verify=False, headers=given, timeout=60
        ) as client:
            answer = client.post(f"/{name}", content=content)
            while answer.status_code == 202:
                plain = {"Content-Type": JSON_TYPE}
                answer = client.post("/wait", content=b"{}", headers=plain)
        return answer.status_code, answer.json()

    def take(self, shapes: dict[str, tuple[int, ...]]) -> None:
        status, answer = self.ask_for(shapes)
        assert status == 200, answer

    def ask_for(self, shapes: dict[str, tuple[int, ...]]) -> tuple[int, dict[str, Any]]:
        call = {"protocol": PROTOCOL, "holder": "a test", "weights": shapes}
        status, answer = self.post("claim", call)
        self.claim = answer.get("claim", "")
        return status, answer

    def push(self, *parts: dict[str, torch.Tensor], announced: int | None = None) -> None:
        assert self.post("push", {"parts": announced or len(parts)})[0] == 200
        for number, part in enumerate(parts):
            status, answer = self.post("part", packed(PartCall(number=number), part))
            assert status == 200, answer


def claim_of(service: Service) -> Claim:
    claim = service.server.claims._claim
    assert claim is not None
    return claim


DISTRIBUTION = Distribution(temperature=0.7, end_ids=(1,), banned_ids=(7, 9))
PROMPT = Prompt(torch.tensor([[5, 6, 7]]), {})
DRAW = draw_body([Job(PROMPT, 3, 4), Job(PROMPT, 4, 4)], DISTRIBUTION)


@pytest.fixture
def caller(serve, learner: Learner) -> tuple[Caller, Service, dict[str, torch.Tensor]]:
    """A holder of a server, the server, and the weights that it expects."""
    service = serve()
    weights = plain_weights(learner.policy.model)
    found = Caller(service.address)
    found.take({name: tuple(one.shape) for name, one in weights.items()})
    return found, service, weights


def test_a_served_run_is_the_run_of_an_engine_in_its_process(
    serve, config_at, tmp_path: Path
) -> None:
    service = serve()
    train(config_at(None), tmp_path / "colocated")
    train(config_at(service.address), tmp_path / "served")
    logs = [read_log(tmp_path / name / "rollouts.jsonl") for name in ("colocated", "served")]
    assert logs[0] == logs[1]
    assert len(logs[0]) == 3 * 2 * 4


def test_weights_caches_and_draws_come_in_their_order(serve, learner, config_at) -> None:
    service = serve()
    ask = asked(learner, "What?", samples=1)
    with rollout_backend(config_at(service.address), learner) as backend:
        assert isinstance(backend, VllmBackend)
        for _ in range(2):
            backend.generate(ask, max_tokens=4)
        moved(learner)
        backend.generate(ask, max_tokens=4)
        with pytest.raises(EngineError, match=r"raise rollouts\.context, or a server's --context"):
            backend.generate(ask, max_tokens=1024)
    pushed = ["push", *RESET, "draw", *RESET, "draw"]
    assert service.llm.events == [*pushed, *RESET, "draw", *pushed, *RESET]


def test_seeds_ends_and_placeholders_are_the_policys(serve, learner, config_at) -> None:
    service = serve()
    requests = asked(learner, "What?", "Why?")
    with rollout_backend(config_at(service.address), learner) as backend:
        assert isinstance(backend, VllmBackend)
        backend.policy = replace(backend.policy, banned_ids=(7, 9))
        found = backend.generate(requests, max_tokens=4)
        greedy = backend.generate(requests, max_tokens=4, greedy=True)
    assert [[reply.seed for reply in group] for group in found] == [list(r.seeds) for r in requests]
    probe, *rest = service.llm.asked
    assert (probe.seed, probe.max_tokens) == (0, 16)
    assert [one.seed for one in rest] == 2 * [seed for r in requests for seed in r.seeds]
    assert [one.temperature for one in rest] == 6 * [0.7] + 6 * [0.0]
    for one in rest:
        assert one.logit_bias == {7: -torch.inf, 9: -torch.inf}
        assert tuple(one.stop_token_ids) == learner.policy.end_ids
    for group, request in zip(greedy, requests, strict=True):
        ours = backend._scored(request.prompt, group[0].ids)
        assert torch.allclose(group[0].logprobs, ours, atol=1e-5)


def test_pixels_go_over_once_for_a_prompt_and_bit_for_bit(tmp_path: Path) -> None:
    pictures = {
        "pixel_values": torch.rand(2, 3, 4).transpose(0, 1),
        "pixel_attention_mask": torch.rand(2, 3) > 0.5,
        "image_grid_thw": torch.tensor([[1, 2, 2]]),
    }
    one = Prompt(torch.tensor([[5, 2, 2]]), pictures)
    jobs = [Job(one, seed, 4) for seed in range(8)] + [Job(PROMPT, 0, 4, greedy=True)]
    (tmp_path / "body").write_bytes(draw_body(jobs, DISTRIBUTION))
    call, tensors = from_file(tmp_path / "body", DrawCall)
    assert set(tensors) == {f"0.{name}" for name in pictures}
    for name, tensor in pictures.items():
        assert torch.equal(tensors[f"0.{name}"], tensor)
        assert tensors[f"0.{name}"].dtype == tensor.dtype
    assert [job.prompt for job in call.jobs] == 8 * [0] + [1]
    assert [job.greedy for job in call.jobs] == 8 * [False] + [True]
    assert [prompt.ids for prompt in call.prompts] == [(5, 2, 2), (5, 6, 7)]


def test_weights_go_over_in_parts_of_bounded_size(serve, learner, config_at, monkeypatch) -> None:
    service = serve()
    took: list[int] = []
    part = service.server.part

    def measured(claim: Claim, body: Path) -> Done:
        took.append(body.stat().st_size)
        return part(claim, body)

    monkeypatch.setattr(service.server, "part", measured)
    monkeypatch.setattr(parts_of, "__kwdefaults__", {"limit": 2**14})
    with rollout_backend(config_at(service.address), learner) as backend:
        backend.generate(asked(learner, "What?"), max_tokens=4)
    largest = max(one.nbytes for one in plain_weights(learner.policy.model).values())
    assert len(took) > 3
    assert max(took) < max(2**14, largest) + 2**12


def test_log_probabilities_come_back_to_the_last_bit() -> None:
    numbers = (-1 / 3, -1e-17, float("nan"), -0.1)
    reply = DrawnReply(ids=(1, 2, 3, 4), logprobs=numbers, finish_reason="stop")
    back = DrawnReply.model_validate_json(reply.model_dump_json()).logprobs
    assert [number.hex() for number in back] == [number.hex() for number in numbers]


def test_an_adapter_goes_over_merged(serve, config_at) -> None:
    pytest.importorskip("peft")
    service = serve()
    config = config_at(service.address, lora={"rank": 2})
    learner = load_learner(config, config.model)
    moved(learner)
    with rollout_backend(config, learner) as backend:
        assert len(backend.generate(asked(learner, "What?"), max_tokens=4)[0]) == 3


def test_workers_of_several_gpus_read_a_folder(serve, learner, config_at) -> None:
    service = serve(gpus=2)
    assert service.llm.options["load_format"] == "auto"
    for _ in range(2):
        with rollout_backend(config_at(service.address), learner) as backend:
            backend.generate(asked(learner, "What?"), max_tokens=4)
        moved(learner)
    assert service.llm.events.count("push") == 2


@pytest.mark.parametrize("kind", ["text_model", "idefics_model", "qwen_vl_model"])
def test_the_server_expects_what_a_run_pushes(
    kind: str, make_config, request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue(kind)
    policy = load_policy(str(model), make_config(model))
    outline = model_outline(str(model))
    pushed = {name: tuple(one.shape) for name, one in plain_weights(policy.model).items()}
    assert outline.shapes == pushed
    assert outline.image_token_id == policy.encoder.image_token_id


def test_a_tied_head_is_expected_and_pushed_once(text_model: Path, tmp_path: Path) -> None:
    import transformers

    config = transformers.AutoConfig.from_pretrained(text_model)
    config.tie_word_embeddings = True
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(tmp_path)
    shapes = model_outline(str(tmp_path)).shapes
    assert shapes == {name: tuple(one.shape) for name, one in plain_weights(model).items()}
    assert "lm_head.weight" not in shapes


def test_a_second_run_is_told_who_holds_the_server(serve, learner, config_at) -> None:
    now = [100.0]
    service = serve(clock=lambda: now[0], patience=NO_SIGNS)
    config = config_at(service.address)
    with rollout_backend(config, learner) as first:
        now[0] = 107.0
        first.generate(asked(learner, "What?"), max_tokens=4)
        now[0] = 110.0
        with (
            pytest.raises(
                EngineError,
                match=r"must be free, process \d+ on .* \(grpo\) has held it for 10 s and was "
                r"heard of 3 s ago; it is free when that run ends, or is silent for 100000 s",
            ) as error,
            rollout_backend(config, learner),
        ):
            pass
        assert "\n" not in str(error.value)
        first.generate(asked(learner, "What?"), max_tokens=4)
    # the end of a run is the end of its claim
    with rollout_backend(config, learner) as second:
        second.generate(asked(learner, "What?"), max_tokens=4)


def test_a_run_that_is_alive_keeps_the_server_between_draws(serve, learner, config_at) -> None:
    now = [0.0]
    service = serve(clock=lambda: now[0], patience=1.2)
    with rollout_backend(config_at(service.address), learner) as backend:
        claim = service.server.claims._claim
        for _ in range(3):
            now[0] += 1.0
            until(lambda: claim.seen == now[0])
        now[0] += 1.0
        with (
            pytest.raises(EngineError, match="must be free"),
            rollout_backend(config_at(service.address), learner),
        ):
            pass
        backend.generate(asked(learner, "What?"), max_tokens=4)


def test_a_silent_run_may_be_replaced_and_is_never_served_again(serve, learner, config_at) -> None:
    now = [0.0]
    service = serve(clock=lambda: now[0], patience=NO_SIGNS)
    config = config_at(service.address)
    with rollout_backend(config, learner) as first:
        first.generate(asked(learner, "What?"), max_tokens=4)
        now[0] = NO_SIGNS - 1
        with pytest.raises(EngineError, match="must be free"), rollout_backend(config, learner):
            pass
        now[0] = NO_SIGNS + 1
        before = len(service.llm.asked)
        with rollout_backend(config, learner) as second:
            # the same weights, and yet not the first run's any more
            second.generate(asked(learner, "What?"), max_tokens=4)
            drawn = len(service.llm.asked)
            assert drawn > before
            with pytest.raises(EngineError, match=r"no longer holds the server, .* with --resume"):
                first.generate(asked(learner, "What?"), max_tokens=4)
            assert len(service.llm.asked) == drawn
            second.generate(asked(learner, "What?"), max_tokens=4)


def test_a_server_that_was_restarted_is_noticed_and_the_run_goes_on_from_there(
    serve, config_at, tmp_path: Path, monkeypatch
) -> None:
    # who is bound and does not listen keeps the port from everybody else
    monkeypatch.setattr(RolloutHttp, "allow_reuse_port", True)
    service = serve()
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    kept.bind(service.http.server_address[:2])
    config = config_at(service.address)
    train(config, tmp_path / "whole")
    second: list[Service] = []

    def restart(step: int, numbers: object) -> None:
        if step == 1:
            service.stop()
            second.append(serve(port=service.http.server_port))

    with (
        kept,
        pytest.raises(EngineError, match=r"no longer holds the server, which was restarted"),
    ):
        train(config, tmp_path / "run", progress=restart)
    assert second[0].llm.asked == []
    found = last_checkpoint(tmp_path / "run")
    assert found is not None
    assert found.name == "step-000002"
    # it may have moved, too
    train(config_at(serve().address), tmp_path / "run", resume=True)
    logs = [read_log(tmp_path / name / "rollouts.jsonl") for name in ("whole", "run")]
    assert logs[0] == logs[1]


def test_nothing_is_drawn_from_a_push_that_was_cut_off(caller) -> None:
    client, service, weights = caller
    assert client.post("draw", DRAW) == (
        409,
        {"error": "weights must be pushed whole before anything is drawn"},
    )
    client.push(weights)
    assert client.post("load")[0] == 200
    status, drawn = client.post("draw", DRAW)
    assert (status, len(drawn["replies"])) == (200, 2)
    half = dict(list(weights.items())[:3])
    client.push(half, announced=2)
    assert client.post("draw", DRAW)[0] == 409
    assert client.post("load") == (409, {"error": "a push must have its 2 parts, got 1"})
    assert client.post("draw", DRAW)[0] == 409
    assert service.llm.events.count("push") == 1
    client.push(half, dict(list(weights.items())[3:]))
    assert client.post("load")[0] == 200
    assert client.post("draw", DRAW) == (200, drawn)


def test_a_body_that_breaks_off_is_no_part(caller) -> None:
    client, service, weights = caller
    client.post("push", {"parts": 1})
    body = packed(PartCall(number=0), weights)
    line = socket.create_connection(service.http.server_address[:2], timeout=60)
    head = (
        f"POST /part HTTP/1.1\r\nContent-Type: {TENSORS_TYPE}\r\n{CLAIM_HEADER}: {client.claim}\r\n"
    )
    line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[: len(body) // 2])
    line.shutdown(socket.SHUT_WR)
    assert line.recv(100) == b""
    line.close()
    assert client.post("load")[1] == {"error": "a push must have its 1 parts, got 0"}
    assert client.post("part", body)[0] == 200
    assert client.post("load")[0] == 200


def test_a_push_holds_each_tensor_of_the_model_once_in_its_shape(caller) -> None:
    client, service, weights = caller
    name = "lm_head.weight"
    others = {key: one for key, one in weights.items() if key != name}
    client.push(others)
    assert client.post("load") == (
        400,
        {"error": f"a push must hold the 27 tensors of the model, {name} is missing"},
    )
    assert client.post("push", {"parts": 28})[0] == 400
    client.push(others, announced=2)
    (kept,) = claim_of(service).pushed.iterdir()
    long = PartCall(number=1).model_dump_json() + " " * 1_000_000
    for body, status, message in (
        (packed(PartCall(number=1), {"head": torch.zeros(2)}), 400, "the model's tensors, got hea"),
        (packed(PartCall(number=1), {name: torch.zeros(2)}), 400, rf"{name} .* 32\], got \[2\]"),
        (packed(PartCall(number=1), others), 400, "must hold each tensor once, got .* twice"),
        (packed(PartCall(number=1), {}), 400, "a part must hold tensors, got none"),
        (save({name: weights[name]}, metadata={"call": long}), 413, "these tensors must have at m"),
    ):
        found, answer = client.post("part", body)
        assert found == status
        assert re.search(message, answer["error"]), answer
        assert client.post("draw", DRAW)[0] == 409
        # a push is no larger than the model, whatever is sent
        assert [*claim_of(service).pushed.iterdir()] == [kept]
    assert service.llm.events == []
    assert client.post("part", packed(PartCall(number=1), {name: weights[name]}))[0] == 200
    assert client.post("load")[0] == 200


@pytest.mark.parametrize("ending", ["release", "takeover"])
def test_the_engine_reads_weights_to_their_end_though_their_run_is_over(
    ending: str, serve, learner: Learner
) -> None:
    now = [0.0]
    service = serve(clock=lambda: now[0], patience=NO_SIGNS)
    weights = plain_weights(learner.policy.model)
    shapes = {name: tuple(one.shape) for name, one in weights.items()}
    client, other = Caller(service.address), Caller(service.address)
    client.take(shapes)
    folder = claim_of(service).folder
    rpc, read = service.llm.collective_rpc, []

    def taken() -> bool:
        # a run that waits for its call is heard from now and then, perhaps just now
        now[0] += 2 * NO_SIGNS
        return other.ask_for(shapes)[0] == 200

    def end_and_read(method: str, kwargs: dict[str, Any]) -> None:
        left = iter(kwargs["weights_iterator"])
        first = next(left)
        if ending == "release":
            assert Caller(client.address, client.claim).post("release")[0] == 200
        until(taken)
        read.extend([first, *left])
        rpc(method, {"weights_iterator": iter(read)})

    parts = [{name: one} for name, one in weights.items()]
    client.push(*parts)
    service.llm.collective_rpc = end_and_read
    client.post("load")
    assert "no longer holds the server" in client.post("alive")[1]["error"]
    until(lambda: not folder.exists())
    assert {name for name, _ in read} == set(weights)
    service.llm.collective_rpc = rpc
    assert other.post("draw", DRAW)[0] == 409
    other.push(*parts)
    assert other.post("load")[0] == 200
    assert other.post("draw", DRAW)[0] == 200


def test_a_load_that_broke_off_does_not_spoil_the_next_one(caller) -> None:
    client, service, weights = caller
    rpc, fails, tries = service.llm.collective_rpc, [], []

    def failing(method: str, kwargs: dict[str, Any]) -> None:
        tries.append(method)
        if fails:
            raise fails.pop(0)
        rpc(method, kwargs)

    service.llm.collective_rpc = failing
    half, spoilt = RuntimeError("half"), AttributeError("no attribute 'weight_loader'")
    for raised, status, count in (
        ([half], 500, 1),
        ([spoilt], 200, 2),
        ([half], 500, 1),
        ([spoilt, spoilt], 500, 2),
        ([], 200, 1),
        ([], 200, 1),
    ):
        fails[:], tries[:] = raised, []
        client.push(weights)
        assert client.post("load")[0] == status
        assert (len(tries), fails) == (count, [])
        assert client.post("draw", DRAW)[0] == (200 if status == 200 else 409)


def test_parts_come_in_order_and_no_more_than_were_announced(caller) -> None:
    client, _, weights = caller
    names = list(weights)
    parts = [
        packed(PartCall(number=number), {name: weights[name] for name in some})
        for number, some in enumerate((names[:3], names[3:], names[:3]))
    ]
    assert "0 were announced" in client.post("part", parts[1])[1]["error"]
    assert client.post("push", {"parts": 2})[0] == 200
    for number, status in ((1, 409), (0, 200), (0, 409), (1, 200), (2, 409)):
        assert client.post("part", parts[number])[0] == status
    assert client.post("load")[0] == 200


def test_a_run_that_lets_go_stops_its_draw(caller) -> None:
    client, service, weights = caller
    client.push(weights)
    client.post("load")
    step, left = service.llm.step, []

    def step_and_leave() -> list[Any]:
        left.append(Caller(client.address, client.claim).post("release"))
        return step()

    service.llm.step = step_and_leave
    assert client.post("draw", DRAW)[1]["error"].startswith("the run no longer holds the server")
    service.stop()
    assert left[0][0] == 200
    assert service.llm.events.count("draw") == 1
    assert service.llm.waiting == []


def test_an_engine_that_fails_is_one_line_and_the_server_serves_on(
    serve, learner, config_at
) -> None:
    service = serve()
    config = config_at(service.address)
    service.llm.dies_after = 2
    with (
        pytest.raises(EngineError, match=r"the engine failed .RuntimeError: EngineCore") as error,
        rollout_backend(config, learner) as backend,
    ):
        backend.generate(asked(learner, "What?"), max_tokens=4)
    assert "\n" not in str(error.value)
    assert "can go on from its last checkpoint with --resume" in str(error.value)
    assert service.llm.waiting == []
    service.llm.dies_after = None
    with rollout_backend(config, learner) as backend:
        assert len(backend.generate(asked(learner, "What?"), max_tokens=4)[0]) == 3


def test_a_draw_that_cannot_be_prepared_is_the_callers_to_mend(caller, monkeypatch) -> None:
    client, _, weights = caller
    client.push(weights)
    client.post("load")

    def refuse(engine: Engine, prompt: Prompt) -> None:
        raise InputError("a prompt must have one run of picture tokens for each picture")

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "prompt", refuse)
        assert client.post("draw", DRAW) == (
            400,
            {"error": "a prompt must have one run of picture tokens for each picture"},
        )
    assert client.post("draw", DRAW)[0] == 200


def test_weights_that_the_engine_did_not_take_are_found_by_the_probe(
    serve, learner, config_at
) -> None:
    service = serve()
    service.llm.takes_weights = False
    with (
        pytest.raises(EngineError, match=r"must agree to rollouts\.tolerance=0\.05"),
        rollout_backend(config_at(service.address), learner) as backend,
    ):
        backend.generate(asked(learner, "What?"), max_tokens=4)


def test_another_model_or_protocol_is_refused(serve, make_config, idefics_model, learner) -> None:
    service = serve()
    rollouts = {"backend": "vllm", "address": service.address}
    config = make_config(idefics_model, rollouts=rollouts)
    with (
        pytest.raises(EngineError, match=r"the same model: .* in the server's 27 tens"),
        rollout_backend(config, load_learner(config, config.model)),
    ):
        pass
    call = {"protocol": PROTOCOL + 1, "holder": "x", "weights": {"a": [1]}}
    status, answer = Caller(service.address).post("claim", call)
    assert status == 409
    assert answer["error"].startswith(f"both sides must speak protocol {PROTOCOL}, the run speaks")


HOSTILE = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"parts": "__import__"}',
    b'{"parts": 1e999}',
    b'{"parts": 0}',
    b'{"parts": 1' + b"0" * 5000 + b"}",
    b'{"parts": 1, "more": 2}',
]


@pytest.mark.parametrize("body", HOSTILE)
def test_malformed_json_is_a_400_and_no_traceback(body: bytes, caller, capfd) -> None:
    client, _, _ = caller
    for name in ("push", "claim", "load"):
        status, answer = client.post(name, body)
        assert status == 400
        assert "malformed" in answer["error"]
        assert "\n" not in answer["error"]
    assert client.post("alive")[0] == 200
    assert capfd.readouterr().err == ""


def test_malformed_draws_are_a_400_and_no_traceback(caller, capfd) -> None:
    client, service, weights = caller
    client.push(weights)
    client.post("load")
    call = json.loads(
        DrawCall(
            temperature=1.0,
            end_ids=(1,),
            banned_ids=(),
            prompts=({"ids": (1, 2), "pictures": ()},),
            jobs=({"prompt": 0, "seed": 1, "max_tokens": 2, "greedy": False},),
        ).model_dump_json()
    )
    for changes, message in (
        ({"temperature": 0.0}, "temperature is malformed"),
        ({"temperature": "1"}, "temperature is malformed"),
        ({"prompts": []}, "prompts is malformed"),
        ({"prompts": [{"ids": [-1], "pictures": []}]}, r"prompts\.0\.ids\.0 is malformed"),
        ({"prompts": [{"ids": [1], "pictures": ["pixel_values"]}]}, r"tensor 0\.pixel_values"),
        ({"jobs": []}, "jobs is malformed"),
        ({"jobs": [call["jobs"][0] | {"prompt": 1}]}, "prompt must be below 1, got 1"),
        ({"jobs": [call["jobs"][0] | {"seed": 2**63}]}, r"jobs\.0\.seed is malformed"),
        ({"jobs": [call["jobs"][0] | {"max_tokens": 0}]}, "max_tokens is malformed"),
        ({"jobs": call["jobs"] * (DRAW_JOBS + 1)}, "jobs is malformed: Tuple should have at most"),
        ({"prompts": call["prompts"] * (DRAW_PROMPTS + 1)}, "prompts is malformed: Tuple should"),
    ):
        status, answer = client.post(
            "draw", save({}, metadata={"call": json.dumps(call | changes)})
        )
        assert status == 400
        assert re.search(message, answer["error"]), answer
    assert client.post("push", {"parts": 1})[0] == 200
    # a shape that torch has no number for, and one that a file cannot have
    beyond = [
        b'{"__metadata__":{"call":%b},"a":{"dtype":"F32","shape":%b,"data_offsets":[0,0]}}'
        % (json.dumps(words).encode(), shape)
        for words in (json.dumps(call), '{"number":0}')
        for shape in (b"[0,9223372036854775808]", b"[-1]")
    ]
    whole = [struct.pack("<Q", len(header)) + header for header in beyond]
    for body in (b"", b"x" * 50, b"\xff" * 8, save({}), b"cbuiltins\neval\n.", *whole):
        assert client.post("draw", body)[0] == 400
        assert client.post("part", body)[0] == 400
    assert service.llm.asked == []
    client.push(weights)
    client.post("load")
    assert client.post("draw", save({}, metadata={"call": json.dumps(call)}))[0] == 200
    assert list(service.server.claims.held(client.claim).folder.iterdir()) == []
    assert capfd.readouterr().err == ""


def test_bodies_have_a_stated_bounded_length_and_a_type(caller, capfd) -> None:
    client, service, _ = caller
    host, port = service.http.server_address[:2]
    kind = {"Content-Type": JSON_TYPE, CLAIM_HEADER: client.claim}
    tensors = {**kind, "Content-Type": TENSORS_TYPE}
    for name, headers, status in (
        ("push", {**kind, "Content-Length": str(JSON_BYTES + 1)}, 413),
        ("wait", {**kind, "Content-Length": str(JSON_BYTES + 1)}, 413),
        ("claim", {**kind, "Content-Length": str(CLAIM_BYTES + 1)}, 413),
        ("part", {**tensors, "Content-Length": str(2**30)}, 413),
        ("draw", {**tensors, "Content-Length": str(2**33)}, 413),
        ("draw", {**tensors, "Content-Length": "9" * 5000}, 413),
        ("push", {**kind, "Content-Length": "-1"}, 411),
        ("push", {**kind, "Content-Length": "²"}, 411),
        ("push", {**kind, "Transfer-Encoding": "chunked"}, 411),
        ("push", {**kind, "Content-Type": "text/plain", "Content-Length": "2"}, 415),
        ("draw", {**kind, "Content-Length": "2"}, 415),
        ("draw", {"Content-Type": TENSORS_TYPE, "Content-Length": "2"}, 409),
        ("nothing", {**kind, "Content-Length": "2"}, 404),
    ):
        line = http.client.HTTPConnection(host, port, timeout=60)
        line.putrequest("POST", f"/{name}")
        for key, value in headers.items():
            line.putheader(key, value.encode())
        line.endheaders()
        answer = line.getresponse()
        assert answer.status == status
        assert "error" in json.loads(answer.read())
        assert answer.headers["Connection"] == "close"
        line.close()
    with httpx2.Client(base_url=service.address, timeout=60) as other:
        assert other.get("/nothing").status_code == 404
        assert other.get("/").json()["protocol"] == PROTOCOL
        assert other.put("/").status_code == 501
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("name", "kind"), [("claim", JSON_TYPE), ("part", TENSORS_TYPE)])
def test_a_few_bodies_are_received_at_a_time(name: str, kind: str, caller, capfd) -> None:
    client, service, weights = caller
    call = {"protocol": PROTOCOL, "holder": "x", "weights": {"a": [1]}}
    # the server is held, and no push is under way
    ask = {"claim": lambda: client.post("claim", call), "part": lambda: client.post("part", b"")}
    head = f"POST /{name} HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: 9\r\n"
    lines = []
    for _ in range(AT_ONCE):
        lines.append(socket.create_connection(service.http.server_address[:2], timeout=60))
        lines[-1].sendall(f"{head}{CLAIM_HEADER}: {client.claim}\r\n\r\n12345".encode())
    rooms = (service.http.strangers, service.http.holders)
    # a call of ours that comes before the last line would leave room for ever
    until(lambda: any(not room._value for room in rooms))
    until(lambda: ask[name]()[0] == 503)
    assert ask[name]()[1] == {"error": "at most 4 calls may be on their way at a time"}
    (other,) = ask.keys() - {name}
    assert ask[other]()[0] in (400, 409)
    for line in lines:
        line.close()
    until(lambda: ask[name]()[0] in (400, 409))
    client.push(weights)
    assert client.post("load")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_key_is_asked_for_where_there_is_one(serve, learner, config_at, monkeypatch) -> None:
    service = serve(key="sesame")
    config = config_at(service.address)
    for wrong in ("", "open"):
        monkeypatch.setenv(KEY_VARIABLE, wrong)
        with pytest.raises(EngineError, match="NPBENCH_ROLLOUT_KEY must be the server's own"):
            train(config, Path("unwritten"))
        with (
            pytest.raises(EngineError, match="must be the server's"),
            rollout_backend(config, learner),
        ):
            pass
    assert not Path("unwritten").exists()
    monkeypatch.setenv(KEY_VARIABLE, "two words")
    with pytest.raises(InputError, match="must be of ASCII letters, digits and signs, no spaces"):
        train(config, Path("unwritten"))
    monkeypatch.setenv(KEY_VARIABLE, "sesame")
    with rollout_backend(config, learner) as backend:
        assert len(backend.generate(asked(learner, "What?"), max_tokens=4)[0]) == 3


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "somewhere"])
def test_without_a_key_only_this_machine_is_served(host: str) -> None:
    with pytest.raises(InputError, match="must be a loopback address without a key, got"):
        open_http(host, 0, key=None)


def test_an_address_that_cannot_be_had_is_one_line(serve) -> None:
    service = serve()
    with pytest.raises(InputError, match=rf"127\.0\.0\.1:{service.http.server_port} cannot be"):
        open_http("127.0.0.1", service.http.server_port, key=None)


class NoServer(BaseHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/" else 404)
        self.end_headers()
        self.wfile.write(b"<html>")


def test_addresses_where_no_rollout_server_is(config_at, tmp_path: Path, monkeypatch) -> None:
    def said(address: str) -> str:
        with pytest.raises(EngineError) as error:
            train(config_at(address), tmp_path / "run")
        assert not (tmp_path / "run").exists()
        assert "\n" not in str(error.value)
        return str(error.value)

    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert said(address).startswith(f"the rollout server {address} cannot be reached (Connect")
        silent.listen()
        with monkeypatch.context() as patch:
            patch.setattr(rollout_client, "SILENCE", 0.2)
            assert "cannot be reached (ReadTimeout" in said(address)
    assert "cannot be reached" in said("http://127.0.0.1:99999")
    assert "cannot be reached" in said("http://")
    other = HTTPServer(("127.0.0.1", 0), NoServer)
    thread = threading.Thread(target=other.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{other.server_port}"
    assert said(address) == f"rollout server {address}: answered HTTP 200 as no rollout server does"
    assert "answered HTTP 404" in said(f"{address}/v1")
    other.shutdown()
    thread.join()
    other.server_close()


def test_a_machine_that_vanishes_in_a_long_draw_is_noticed(
    serve, learner, config_at, monkeypatch
) -> None:
    service = serve()
    step, wait = service.llm.step, service.server.wait
    asked_again, gone = threading.Semaphore(0), threading.Event()

    def counted(claim: Claim) -> Any:
        asked_again.release()
        return wait(claim)

    def slow() -> list[Any]:
        for _ in range(3):
            assert asked_again.acquire(timeout=60)
        return step()

    def silent() -> list[Any]:
        gone.wait(60)
        return step()

    monkeypatch.setattr(service.server, "wait", counted)

    with rollout_backend(config_at(service.address), learner) as backend:
        assert isinstance(backend, VllmBackend)
        assert isinstance(backend.engine, RemoteEngine)
        service.llm.step = slow
        backend.generate(asked(learner, "What?", samples=1), max_tokens=4)
        service.llm.step = silent
        service.server._hold = 60.0
        client = backend.engine.line.client
        patient, client.timeout = client.timeout, httpx2.Timeout(60, read=0.3)
        with pytest.raises(EngineError, match=r"cannot be reached .ReadTimeout"):
            backend.generate(asked(learner, "What?", samples=1), max_tokens=4)
        client.timeout = patient
        gone.set()


def test_settings_that_are_the_servers_are_refused_with_an_address(config_at) -> None:
    base: dict[str, Any] = {"method": "grpo", "steps": 1, "prompts_per_step": 1, "group_size": 2}
    base["data"] = {"suite": "nano"}
    served = {"backend": "vllm", "address": "http://127.0.0.1:8765/"}
    for changes, message in (
        ({"backend": "transformers"}, "address: must be left away unless the backend is 'vllm'"),
        ({"address": "127.0.0.1:8765"}, "address: must start with http:// or https://, got '127"),
        ({"memory_fraction": 0.5}, r"left away with rollouts\.memory_fraction, which is the ser"),
        ({"dtype": "bfloat16"}, r"rollouts\.dtype, which is the server's own, got 'http"),
        ({"tensor_parallel": 2}, r"rollouts\.tensor_parallel, which"),
        ({"context": 512}, r"rollouts\.context, which"),
        ({"sleep": False}, r"rollouts\.sleep, which"),
    ):
        with pytest.raises(InputError, match=message):
            read_config({**base, "rollouts": {**served, **changes}})
    one = read_config({**base, "rollouts": {**served, "tolerance": 0.2}})
    assert one.rollouts.address == "http://127.0.0.1:8765"
    moved_on = read_config(
        {**base, "rollouts": {**served, "address": "http://b", "tolerance": 0.2}}
    )
    settings = [config.model_dump(mode="json") for config in (one, moved_on)]
    assert differing_setting(*settings) is None
    assert differing_setting(settings[0], config_at(None).model_dump(mode="json")) is not None


def test_the_command_says_where_it_answers_and_ends_cleanly(
    fake_vllm, text_model: Path, monkeypatch
) -> None:
    seen: list[Any] = []
    before = threading.enumerate()

    def interrupted(server: RolloutServer) -> None:
        new = [one for one in threading.enumerate() if one not in before]
        (thread,) = [one for one in new if one.name == "npbench-http"]
        seen.append(thread)
        raise KeyboardInterrupt

    monkeypatch.setattr(RolloutServer, "work", interrupted)
    monkeypatch.setenv("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    arguments = ["--model", str(text_model), "--port", "0", "--context", "512", "--rows", "4"]
    arguments += ["--dtype", "float32", "--tensor-parallel", "2", "--memory-fraction", "0.8"]
    outcome = CliRunner().invoke(serve_rollouts_command, arguments, catch_exceptions=False)
    assert outcome.exit_code == 0
    assert re.fullmatch(
        rf"rollouts of {re.escape(str(text_model))} at http://127\.0\.0\.1:\d+\n", outcome.stdout
    )
    assert not seen[0].is_alive()
    options = fake_vllm.latest.options
    assert fake_vllm.latest.events == ["shutdown"]
    assert (options["max_model_len"], options["max_num_seqs"]) == (512, 4)
    assert (options["dtype"], options["tensor_parallel_size"]) == ("float32", 2)
    assert options["enable_sleep_mode"] is False


def test_what_the_command_cannot_serve_is_one_line(
    fake_vllm, text_model: Path, tmp_path: Path, monkeypatch
) -> None:
    def said(*arguments: str) -> str:
        with pytest.raises(InputError) as error:
            CliRunner().invoke(
                serve_rollouts_command, [*arguments, "--port", "0"], catch_exceptions=False
            )
        assert "\n" not in str(error.value)
        return str(error.value)

    monkeypatch.setenv("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    assert f"model '{tmp_path}' cannot be loaded" in said("--model", str(tmp_path))
    assert "--host must be a loopback" in said("--model", str(text_model), "--host", "0.0.0.0")
    monkeypatch.setattr(sys.modules["vllm"], "__version__", "0.34.0")
    found = said("--model", str(text_model))
    assert "needs: pip install 'vllm>=0.32,<0.34', got vllm 0.34.0" in found
