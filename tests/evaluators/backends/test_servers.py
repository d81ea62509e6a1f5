"""The openai backend against servers that misbehave."""

import base64
import time
from io import BytesIO

import pytest
from PIL import Image

from evaluators.backends.base import Sampling
from evaluators.backends.servers import ATTEMPTS, ServerBackend
from npbench.errors import InputError

SAMPLING = Sampling(k=4, temperature=0.7, max_tokens=50, seed=0)


@pytest.fixture
def connect():
    def make(*servers, sampling=SAMPLING, **options):
        options = {"first_wait": 0.01, "timeout": 5.0, **options}
        return ServerBackend("tiny", sampling, tuple(s.url for s in servers), **options)

    return make


def replies(backend, requests):
    return {(c.request.id, c.request.decode, c.sample): c.reply for c in backend.generate(requests)}


def test_every_sampling_field_is_sent(server, connect, ask):
    one = server()
    replies(connect(one), [ask("q"), ask("q", decode="sampled", samples=(2,), seeds=(77,))])
    greedy, sampled = sorted(one.bodies, key=lambda body: body["temperature"])
    fixed = {"model": "tiny", "n": 1, "stream": False, "max_tokens": 50, "stop": None,
             "presence_penalty": 0.0, "frequency_penalty": 0.0}  # fmt: skip
    neutral = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    messages = [{"role": "user", "content": [{"type": "text", "text": "2 + 2 = ?"}]}]
    assert sampled == {
        **fixed, **neutral, "messages": messages, "seed": 77, "temperature": 0.7,
    }  # fmt: skip
    assert greedy == {
        **fixed, **neutral, "messages": messages, "seed": None, "temperature": 0.0,
    }  # fmt: skip


def test_each_sample_is_a_request_with_its_own_seed(server, connect, ask):
    one = server()
    asked = [ask(f"q{i}", decode="sampled", samples=(0, 1, 2, 3)) for i in range(5)]
    found = replies(connect(one), asked)
    assert len(found) == 20
    assert {body["n"] for body in one.bodies} == {1}
    assert found["q3", "sampled", 2].text == "2 + 2 = ? seed 1002"


def test_pictures_and_text_keep_their_order(server, connect, ask, png):
    one = server()
    parts = ("First", png(colour="red"), "then", png(colour="lime"), "end")
    reply = replies(connect(one), [ask("q", parts, system="Be brief.")])["q", "greedy", 0]
    system, user = one.bodies[0]["messages"]
    assert system == {"role": "system", "content": "Be brief."}
    kinds = [part["type"] for part in user["content"]]
    assert kinds == ["text", "image_url", "text", "image_url", "text"]
    colours = [
        Image.open(BytesIO(base64.b64decode(part["image_url"]["url"].partition(",")[2]))).getpixel(
            (3, 3)
        )
        for part in user["content"]
        if part["type"] == "image_url"
    ]
    assert colours == [(255, 0, 0), (0, 255, 0)]
    assert reply.picture_sizes == ((40, 40), (40, 40))


@pytest.mark.parametrize(
    "fault",
    ["429", "500", "503", "drop", "torn", "half", "no choices", "slow", "html"],
)
def test_a_fault_is_retried_and_every_sample_comes_once(fault, server, connect, ask):
    def answer(handler, body, number):
        if number % 3:
            handler.reply("fine")
        elif fault in ("429", "500", "503"):
            handler.send(int(fault), {"error": "busy"}, Retry_After="0.01")
        elif fault == "drop":
            handler.close_connection = True
            handler.connection.close()
        elif fault == "torn":
            handler.send(200, b'{"choices": [{"mess')
        elif fault == "half":
            handler.send(200, b'{"choices"', length=1000)
            handler.close_connection = True
        elif fault == "no choices":
            handler.send(200, {"choices": []})
        elif fault == "html":
            handler.send(200, b"<html>502</html>")
        else:
            time.sleep(0.6)
            handler.reply("too late")

    one = server(answer)
    asked = [ask(f"q{i}", decode="sampled", samples=(0, 1)) for i in range(6)]
    backend = connect(one, timeout=0.3 if fault == "slow" else 5.0, concurrency=4)
    completions = list(backend.generate(asked))
    keys = [(c.request.id, c.sample) for c in completions]
    assert sorted(keys) == [(f"q{i}", s) for i in range(6) for s in (0, 1)]
    assert {c.reply.text for c in completions} == {"fine"}


def test_a_server_that_never_recovers_fails_its_samples_after_bounded_tries(server, connect, ask):
    one = server(lambda handler, body, number: handler.send(500, {"error": "broken"}))
    reply = replies(connect(one, first_wait=0.001), [ask("q")])["q", "greedy", 0]
    assert reply.text is None
    assert reply.error.endswith(f"after {ATTEMPTS} tries: status 500")
    assert len(one.bodies) == ATTEMPTS


def test_a_bad_request_is_that_samples_error_at_once(server, connect, ask):
    def answer(handler, body, number):
        if "long" in body["messages"][0]["content"][0]["text"]:
            handler.send(400, {"error": {"message": "the prompt is\ntoo long"}})
        else:
            handler.reply("fine")

    one = server(answer)
    found = replies(connect(one), [ask("a"), ask("b", ("long",)), ask("c")])
    assert found["a", "greedy", 0].text == found["c", "greedy", 0].text == "fine"
    assert found["b", "greedy", 0].error == "status 400: the prompt is too long"
    assert len(one.bodies) == 3


def test_a_broken_picture_fails_its_question_alone(server, connect, ask, png):
    found = replies(connect(server()), [ask("a"), ask("b", (png()[:60], "?")), ask("c")])
    assert found["b", "greedy", 0].text is None
    assert "damaged picture" in found["b", "greedy", 0].error
    assert found["c", "greedy", 0].text == "2 + 2 = ? seed None"


def test_reasoning_is_kept_apart_and_null_content_is_empty(server, connect, ask):
    def answer(handler, body, number):
        text = body["messages"][0]["content"][0]["text"]
        if text == "null":
            handler.reply(None, reasoning="so \\boxed{7}", finish_reason="length")
        else:
            handler.reply("7", reasoning_content="so", stop_reason="\n\n")

    found = replies(connect(server(answer)), [ask("a", ("null",)), ask("b", ("text",))])
    empty, full = found["a", "greedy", 0], found["b", "greedy", 0]
    assert (empty.text, empty.reasoning, empty.finish_reason) == ("", "so \\boxed{7}", "length")
    assert (full.text, full.reasoning, full.stop_reason) == ("7", "so", "\n\n")
    assert full.num_tokens == 3


def test_the_number_of_requests_under_way_is_bounded_and_used(server, connect, ask):
    def answer(handler, body, number):
        time.sleep(0.05)
        handler.reply("fine")

    one = server(answer)
    drawn = []

    def asked():
        for i in range(30):
            drawn.append(i)
            yield ask(f"q{i}")

    stream = connect(one, concurrency=5).generate(asked())
    next(stream)
    assert len(drawn) <= 6
    assert sum(1 for _ in stream) == 29
    assert one.most == 5


def test_several_servers_share_the_questions_and_one_stands_in_for_another(server, connect, ask):
    def broken(handler, body, number):
        handler.close_connection = True
        handler.connection.close()

    first, second, third = server(), server(), server(broken)
    asked = [ask(f"q{i}", (f"q{i}",), decode="sampled", samples=(0, 1)) for i in range(12)]
    found = replies(connect(first, second, third, concurrency=2), asked)
    assert len(found) == 24
    assert all(reply.error is None for reply in found.values())
    assert first.bodies
    assert second.bodies
    assert third.bodies


def test_fields_that_a_server_does_not_know_can_be_left_out(server, connect, ask):
    one = server(lambda handler, body, number: handler.reply("fine"))
    backend = connect(one, omit=("top_k", "min_p"))
    replies(backend, [ask("q")])
    assert not {"top_k", "min_p"} & set(one.bodies[0])
    assert backend.describe().details == {"omitted_fields": "min_p top_k"}
    with pytest.raises(InputError, match="top_k=5 cannot be omitted"):
        connect(one, sampling=Sampling(top_k=5), omit=("top_k",))
    with pytest.raises(InputError, match="did you mean 'top_k'"):
        connect(one, omit=("topk",))


def test_the_fingerprint_is_that_of_the_model_and_not_of_the_moment(server, connect):
    one = server()
    assert connect(one).describe().fingerprint == connect(one).describe().fingerprint


def test_an_unreachable_an_unauthorised_and_a_wrong_server_are_one_line(server, connect):
    closed = server()
    closed.url = "http://127.0.0.1:9/v1"
    with pytest.raises(InputError, match=r"server http://127\.0\.0\.1:9/v1 cannot be reached"):
        connect(closed)
    odd = server()
    odd.url = "127.0.0.1/v1"
    with pytest.raises(InputError, match="cannot be reached"):
        connect(odd)
    locked = server(key="secret")
    with pytest.raises(InputError, match=r"refuses access \(401\): set OPENAI_API_KEY"):
        connect(locked)
    assert connect(locked, api_key="secret").describe().name == "tiny"
    with pytest.raises(InputError, match=r"unknown model at .* 'tiny'; did you mean 'tiny-2'"):
        connect(server(models=("tiny-2",)))
    with pytest.raises(InputError, match="must be positive, got 0"):
        connect(server(), concurrency=0)
