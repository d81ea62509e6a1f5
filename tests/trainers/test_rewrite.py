"""``npbench rewrite`` against a server on the loopback interface."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from npbench.errors import InputError
from trainers.cli import rewrite_command
from trainers.rewrite import ChatServer, fault_of, reword


@dataclass
class Server:
    """A scripted chat server: statuses are used up first, then every request is answered."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    broken: bool = False
    wrong: str = ""
    finish: str = "stop"

    def reply(self, prompt: str, number: int) -> str:
        question = prompt.split("[question]\n")[1].split("\n[/question]")[0]
        if self.wrong and self.wrong in question:
            return "Something with 99 other numbers"
        return f"<think>hm</think>In other words ({chr(97 + number % 26)}): {question}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    script = Server("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.requests.append({"path": self.path, **body})
            script.keys.append(self.headers.get("Authorization"))
            status = script.statuses.pop(0) if script.statuses else 200
            text = script.reply(body["messages"][0]["content"], len(script.requests))
            choice = {"message": {"content": text}, "finish_reason": script.finish}
            answer = {"odd": True} if script.broken else {"choices": [choice]}
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            del arguments

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    script.url = f"http://127.0.0.1:{running.server_address[1]}/v1"
    yield script
    running.shutdown()
    thread.join()
    running.server_close()


ROWS = [
    {"task": None, "prompt": "<image>\nHow many of the 7 dots are red?"},
    {"task": "tsp", "prompt": "Find a tour of 5 cities."},
    {"task": "geometry", "prompt": "What is the area of a square of side 3?"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "in" / "data"
    home.mkdir(parents=True)
    for number, rows in enumerate((ROWS[:2], ROWS[2:])):
        table = pa.Table.from_pylist([{**row, "answer": "x"} for row in rows])
        pq.write_table(table, home / f"train-{number:05d}-of-00002.parquet")
    return tmp_path / "in"


def run(folder: Path, server: Server | None, *extra: str) -> Result:
    arguments = [str(folder), "--out", str(folder.parent / "out"), *extra]
    if server is not None:
        arguments += ["--base-url", server.url, "--model", "tiny"]
    return CliRunner().invoke(rewrite_command, arguments)


def written(folder: Path) -> list[dict[str, Any]]:
    shards = sorted((folder.parent / "out" / "data").glob("*.parquet"))
    return [row for shard in shards for row in pq.read_table(shard).to_pylist()]


def test_templates_serve_np_tasks_and_a_model_the_other_rows(
    folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    result = run(folder, server, "--variants", "3", "--api-key-variable", "MY_KEY")
    assert result.exit_code == 0, result.output
    rows = written(folder)
    for before, after in zip(ROWS, rows, strict=True):
        assert after["variants"][0] == after["prompt"] == before["prompt"]
        assert len(set(after["variants"])) == 3
        assert after["answer"] == "x"
    assert rows[1]["variants"][1].endswith(ROWS[1]["prompt"])
    assert rows[0]["variants"][1].startswith("In other words")
    assert "think" not in rows[0]["variants"][1]
    assert len(server.requests) == 4
    assert {request["path"] for request in server.requests} == {"/v1/chat/completions"}
    assert {request["model"] for request in server.requests} == {"tiny"}
    assert len({request["seed"] for request in server.requests}) == 4
    assert set(server.keys) == {"Bearer secret"}
    report = json.loads((folder.parent / "out" / "rewrite.json").read_text())
    assert report["rows"] == 3
    assert (report["by_template"], report["by_model"], report["failed"]) == (1, 2, 0)


def test_np_tasks_alone_need_no_server(folder: Path) -> None:
    for shard in (folder / "data").glob("*.parquet"):
        shard.unlink()
    rows = [{"task": "NpTsp", "prompt": f"Tour {i}"} for i in range(4)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "data" / "rows.parquet")
    assert run(folder, None).exit_code == 0
    assert all(len(row["variants"]) == 2 for row in written(folder))


def test_a_second_run_asks_for_nothing_and_a_torn_line_is_passed_over(
    folder: Path, server: Server
) -> None:
    assert run(folder, server).exit_code == 0
    first = written(folder)
    journal = folder.parent / "out" / "rewrites.jsonl"
    whole = journal.read_text()
    asked = len(server.requests)
    assert run(folder, server).exit_code == 0
    assert len(server.requests) == asked == 2
    journal.write_text(whole[: -len(whole.splitlines()[-1]) // 2])
    assert run(folder, server).exit_code == 0
    assert len(server.requests) == asked + 1
    assert [len(row["variants"]) for row in written(folder)] == [len(r["variants"]) for r in first]
    assert run(folder, server, "--seed", "1").exit_code == 0
    assert len(server.requests) == asked + 3


def test_a_row_without_acceptable_rewordings_is_null_counted_and_the_exit_code_is_1(
    folder: Path, server: Server
) -> None:
    server.wrong = "square"
    result = run(folder, server, "--attempts", "2")
    assert result.exit_code == 1
    rows = written(folder)
    assert rows[2]["variants"] is None
    assert rows[0]["variants"] is not None
    records = (folder.parent / "out" / "rewrites.jsonl").read_text().splitlines()
    failed = next(record for record in map(json.loads, records) if record["variants"] is None)
    assert failed["faults"] == ["changes the numbers"] * 2
    assert json.loads((folder.parent / "out" / "rewrite.json").read_text())["failed"] == 1


def test_the_new_column_is_listed_among_the_features_that_datasets_reads(
    folder: Path, server: Server
) -> None:
    home = folder / "data"
    text = {"dtype": "string", "_type": "Value"}
    card = {"info": {"features": {"task": text, "prompt": text, "answer": text}}}
    for shard in home.glob("*.parquet"):
        table = pq.read_table(shard)
        table = table.cast(pa.schema([(name, pa.string()) for name in table.column_names]))
        metadata = {b"huggingface": json.dumps(card).encode()}
        pq.write_table(table.replace_schema_metadata(metadata), shard)
    assert run(folder, server).exit_code == 0
    shard = next((folder.parent / "out" / "data").glob("*.parquet"))
    features = json.loads(pq.read_schema(shard).metadata[b"huggingface"])["info"]["features"]
    assert features["variants"] == {"feature": text, "_type": "List"}


@pytest.mark.parametrize(
    ("statuses", "requests"), [([429, 503], 3), ([500] * 4, 4), ([401], 1), ([404], 1)]
)
def test_a_busy_server_is_asked_again_and_a_refusal_is_final(
    server: Server, statuses: list[int], requests: int
) -> None:
    server.statuses = list(statuses)
    chat = ChatServer(base_url=server.url, model="tiny", pause=0.001)
    prompt = "[question]\nQ\n[/question]"
    if statuses == [429, 503]:
        assert chat.ask(prompt, seed=0).endswith("Q")
    else:
        with pytest.raises(InputError, match=f"got: HTTP {statuses[-1]}"):
            chat.ask(prompt, seed=0)
    assert len(server.requests) == requests


def test_an_answer_of_another_form_and_a_server_that_is_away_are_named(server: Server) -> None:
    server.broken = True
    with pytest.raises(InputError, match="not a chat completion"):
        ChatServer(base_url=server.url, model="tiny").ask("[question]\n\n[/question]", seed=0)
    away = ChatServer(base_url="http://127.0.0.1:9/v1", model="tiny", pause=0.001, tries=2)
    with pytest.raises(InputError, match="refused"):
        away.ask("Q", seed=0)
    with pytest.raises(InputError, match="must start with http"):
        ChatServer(base_url="file:///etc", model="tiny")


def test_a_reply_that_was_cut_off_is_no_rewording(server: Server) -> None:
    server.finish = "length"
    chat = ChatServer(base_url=server.url, model="tiny")
    found = reword(
        lambda prompt, seed: chat.ask(prompt, seed=seed),
        "k",
        "Why?",
        variants=2,
        seed=0,
        attempts=2,
    )
    assert found.variants is None
    assert found.faults == ("empty", "empty")


@pytest.mark.parametrize(
    ("candidate", "fault"),
    [
        ("Of 3 apples, 1.5 are eaten. <image> How many are left?", None),
        ("  \n", "empty"),
        ("<image> 3 apples less 1.5?", "repeats a variant"),
        ("<IMAGE>  3 APPLES less 1.5?", "repeats a variant"),
        ("3 apples, 1.5 gone: the rest?", "changes the placeholders of pictures"),
        ("<image> 3 apples, 15 gone: the rest?", "changes the numbers"),
        ("<image> 3 apples, 3 and 1.5 gone: the rest?", "changes the numbers"),
        ("<image> 3 and 1.5 " + "words " * 90, "too long"),
    ],
)
def test_a_rewording_must_keep_numbers_and_pictures(candidate: str, fault: str | None) -> None:
    original = "<image> 3 apples less 1.5?"
    assert fault_of(original, candidate, [original]) == fault


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--variants", "0"], "--variants must be at least 1, got 0"),
        (["--workers", "0"], "--workers must be at least 1, got 0"),
        ([], "--base-url and --model are needed for 2 rows"),
    ],
)
def test_wrong_usage_is_named(folder: Path, change: list[str], message: str) -> None:
    result = run(folder, None, *change)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)


def test_folders_without_prompts_and_writing_onto_the_input_are_refused(folder: Path) -> None:
    same = CliRunner().invoke(rewrite_command, [str(folder), "--out", str(folder)])
    assert "--out must be another folder" in str(same.exception)
    empty = CliRunner().invoke(rewrite_command, [str(folder.parent / "none"), "--out", "o"])
    assert "must hold Parquet files" in str(empty.exception)
    shard = next((folder / "data").glob("*.parquet"))
    pq.write_table(pa.table({"question": ["a"]}), shard)
    assert "must have a column 'prompt'" in str(run(folder, None).exception)
    pq.write_table(pa.table({"prompt": [None]}, schema=pa.schema([("prompt", pa.string())])), shard)
    assert "must have a prompt, got None" in str(run(folder, None).exception)
