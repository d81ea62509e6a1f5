import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evaluators.golds import JudgedGold, JudgeError, Protocol, score_reply
from evaluators.grading import State
from evaluators.judge import JudgeSettings, ServerJudge
from evaluators.verdicts import AnswerType
from npbench.errors import InputError


@pytest.fixture
def server():
    """A server that answers with what is queued; a number is a status, bytes are sent as such."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.server.asked.append((self.path, self.headers["Authorization"], body))
            answer = self.server.answers.pop(0)
            status = answer if isinstance(answer, int) else 200
            if isinstance(answer, bytes | int):
                content = answer if isinstance(answer, bytes) else b"{}"
            else:
                content = json.dumps({"choices": [{"message": {"content": answer}}]}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content) + (content == b"torn")))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answers, server.asked = [], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def waits():
    return []


@pytest.fixture
def judge(server, waits):
    url = f"http://127.0.0.1:{server.server_port}/v1"
    settings = JudgeSettings(url=url, model="m", api_key="k", attempts=3, timeout=5)
    return ServerJudge(settings, pause=waits.append)


@pytest.mark.parametrize(
    ("protocol", "said", "score"),
    [
        (Protocol.MATCH, "They agree.\nVerdict: correct", 1),
        (Protocol.MATCH, "**Verdict: incorrect**", 0),
        (Protocol.MATCH, "<think>Verdict: correct</think>Verdict: incorrect.", 0),
        (Protocol.MATCH, "Verdict: incorrect\nNo, wait.\nVerdict: correct", 1),
        (Protocol.CORRECTNESS, "Verdict: unclear", 0),
        (Protocol.LENIENT_CORRECTNESS, "Verdict: Unclear", 1),
        (Protocol.SCORE, "Verdict: 0.7", 0.7),
        (Protocol.SCORE, "Verdict: 1", 1),
    ],
)
def test_a_verdict_in_its_form_is_a_score(judge, server, protocol, said, score):
    server.answers = [said]
    assert judge(JudgedGold("4", protocol=protocol), "It is 4.") == score


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (Protocol.MATCH, "incorrect"),
        (Protocol.MATCH, "Verdict: perhaps correct"),
        (Protocol.MATCH, "Verdict: unclear"),
        (Protocol.MATCH, "Verdict: 1"),
        (Protocol.SCORE, "Verdict: 7"),
        (Protocol.SCORE, "Verdict: 1.5"),
        (Protocol.SCORE, "Verdict: correct"),
        (Protocol.MATCH, ""),
        (Protocol.MATCH, None),
        (Protocol.MATCH, b"no json"),
        (Protocol.MATCH, b'{"choices": []}'),
        (Protocol.MATCH, b"torn"),
        (Protocol.MATCH, 429),
        (Protocol.MATCH, 503),
    ],
)
def test_nonsense_is_asked_again_a_bounded_number_of_times(judge, server, waits, protocol, said):
    server.answers = [said, said, said]
    with pytest.raises(JudgeError, match="3 attempts"):
        judge(JudgedGold("4", protocol=protocol), "It is 4.")
    assert len(server.asked) == 3
    assert waits == [2.0, 4.0]


def test_a_failure_that_passes_leaves_no_trace(judge, server):
    server.answers = [500, "hm", "Verdict: correct"]
    assert judge(JudgedGold("4"), "It is 4.") == 1


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_not_asked_again(judge, server, status):
    server.answers = [status]
    with pytest.raises(JudgeError, match=f"HTTP {status}"):
        judge(JudgedGold("4"), "It is 4.")
    assert len(server.asked) == 1


def test_the_judge_sees_question_gold_and_the_answer_behind_the_reasoning(judge, server):
    server.answers = ["Verdict: correct"]
    gold = JudgedGold("B", AnswerType.OPTION, options={"A": "3", "B": "4"}, asked="2 + 2?")
    judge(gold, "<think>hidden</think>The second one.")
    path, key, body = server.asked[0]
    assert (path, key) == ("/v1/chat/completions", "Bearer k")
    assert (body["model"], body["temperature"], body["n"]) == ("m", 0, 1)
    prompt = body["messages"][0]["content"]
    assert "2 + 2?" in prompt
    assert "(B) 4" in prompt
    assert "The second one." in prompt
    assert "hidden" not in prompt


def test_a_judge_that_fails_is_a_state_of_its_own(judge, server):
    server.answers = ["?"] * 3
    assert score_reply("It is four.", JudgedGold("4"), judge=judge).state is State.JUDGE_FAILED


def test_a_judge_is_tried_before_a_run(judge, server):
    server.answers = ["Verdict: correct"]
    judge.check()
    server.answers = ["Verdict: incorrect"]
    with pytest.raises(InputError, match="a wrong answer to 2"):
        judge.check()
    server.answers = [401]
    with pytest.raises(InputError, match="does not work: HTTP 401"):
        judge.check()


def test_a_server_that_is_not_there_is_one_line():
    settings = JudgeSettings(url="http://127.0.0.1:9/v1", model="m", attempts=1)
    with pytest.raises(InputError, match="does not work: 1 attempts: URLError"):
        ServerJudge(settings).check()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"url": "file:///etc"}, "must begin with http"),
        ({"attempts": 0}, "attempts must be at least 1, got 0"),
        ({"timeout": 0}, "timeout must be above 0, got 0"),
    ],
)
def test_settings_out_of_range_are_refused(change, says):
    with pytest.raises(InputError, match=says):
        JudgeSettings(**{"url": "http://x/v1", "model": "m", **change})
