"""The commands as a user runs them: output, exit codes, one line for bad input."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "cases"


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def npbench():
    def run(*arguments, code=0):
        command = [sys.executable, "-m", "npbench", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        if code == 2:
            assert done.stdout == ""
            assert re.fullmatch(r"npbench: [^\n]+\n", done.stderr), done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def split(npbench, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "split"
    options = ["--suite", "nano", "--split", "test", "--seed", 7, "--per-task", 3]
    done = npbench("generate", *options, "--workers", 1, "--out", folder)
    assert "42 rows, nano-v1" in done.stdout
    return folder


@pytest.fixture(scope="module")
def responses(npbench, split, tmp_path_factory):
    folder = tmp_path_factory.mktemp("responses")
    for solver in ("trivial", "random", "greedy", "heuristic", "reference"):
        npbench("solve", "--data", split, "--solver", solver, "--out", folder / f"{solver}.jsonl")
    return folder


def test_scores_of_the_solvers_equal_the_floors_of_the_split(npbench, split, responses):
    for solver in ("trivial", "random", "greedy", "heuristic", "reference"):
        path = responses / f"{solver}.jsonl"
        done = npbench("score", "--data", split, "--responses", path, "--json")
        result = json.loads(done.stdout)
        assert result["overall"]["sr"] == 1
        assert len(result["tasks"]) == 14
        for task in result["tasks"].values():
            assert task["qr"] == pytest.approx(task["floors"][solver]["qr"])
        assert result["manifest"]["content_hash"]
    assert result["overall"]["qr"] == result["overall"]["acc"] == 1


def test_the_score_table_names_tasks_groups_and_reasons(npbench, split, responses, tmp_path):
    lines = (responses / "greedy.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    rows[0]["reply"] = "I do not know."
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    done = npbench("score", "--data", split, "--responses", path)
    for word in ("graph_coloring", "[constraint]", "overall", "because of unparsed 1"):
        assert word in done.stdout


def test_scores_relative_to_the_heuristic_are_on_request(npbench, split, responses):
    path = responses / "reference.jsonl"
    options = ["--reference", "heuristic", "--json"]
    done = npbench("score", "--data", split, "--responses", path, *options)
    assert json.loads(done.stdout)["overall"]["qr"] >= 1
    npbench("score", "--data", split, "--responses", path, "--reference", "best", code=2)


def test_verify_agrees_with_every_case(npbench):
    done = npbench("verify", "--cases", CASES / "verifiers.jsonl")
    cases = read_lines(CASES / "verifiers.jsonl")
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    assert [v["id"] for v in verdicts] == [c["id"] for c in cases]
    for verdict, case in zip(verdicts, cases, strict=True):
        assert (verdict["feasible"], verdict["objective"]) == (case["feasible"], case["objective"])
        assert bool(verdict["reason"]) is not verdict["feasible"]


def test_parse_agrees_with_every_case(npbench):
    done = npbench("parse", "--cases", CASES / "answers.jsonl")
    cases = read_lines(CASES / "answers.jsonl")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for answer, case in zip(answers, cases, strict=True):
        assert answer == {
            "id": case["id"],
            "parsed": case["expect"] is not None,
            "answer": case["expect"],
        }


def test_bad_cases_never_stop_the_good_ones(npbench, tmp_path):
    good = {"id": "g", "task": "knapsack", "reply": "Answer: [0]"}
    good["instance"] = {"capacity": 3, "weights": [2, 3], "values": [1, 1]}
    lines = [
        "{torn",
        "[1]",
        json.dumps({**good, "id": "t", "task": "knapsac"}),
        json.dumps({**good, "id": "i", "instance": {"capacity": 3}}),
        json.dumps({**good, "id": "r", "reply": 7}),
        json.dumps(good),
    ]
    path = tmp_path / "cases.jsonl"
    path.write_bytes("\n".join(lines).encode() + b'\n{"id": "\xff"}\n')
    for command, bad in (("verify", 6), ("parse", 5), ("solve", 5)):
        done = npbench(command, "--cases", path, code=1)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(rows) == 7
        assert sum("error" in row for row in rows) == bad, rows
        assert "error" not in rows[5]
        assert all(row["error"].startswith("line ") for row in rows if "error" in row)


def test_one_answer_is_judged_from_the_command_line(npbench, tmp_path):
    path = tmp_path / "i.json"
    path.write_text('{"capacity": 3, "weights": [2, 3], "values": [1, 1]}')
    done = npbench("verify", "--task", "knapsack", "--instance", path, "--answer", "[0, 1]")
    verdict = json.loads(done.stdout)
    assert verdict["reason"] == "the items weigh 5, the capacity is 3"
    assert verdict["answer"] == [0, 1]


def test_an_instance_file_is_solved(npbench, tmp_path):
    path = tmp_path / "square.json"
    path.write_text('{"num_vertices": 4, "edges": [[0, 1], [1, 2], [2, 3], [0, 3]]}')
    done = npbench("solve", path, "--task", "longest_cycle", "--json")
    result = json.loads(done.stdout)
    assert (result["objective"], result["status"], result["bound"]) == (4, "optimal", 4)
    assert "objective:  4" in npbench("solve", path, "--task", "NpHamiltonianCycle").stdout
    npbench("solve", path, "--json", code=2)


def test_an_instance_without_a_solution_is_said_to_have_none(npbench, tmp_path):
    path = tmp_path / "i.json"
    path.write_text('{"numbers": [2, 4], "target": 5}')
    done = npbench("solve", path, "--task", "subset_sum", code=2)
    assert "no subset adds up to the target" in done.stderr


def test_overlap_is_found_and_absence_is_proven(npbench, split, tmp_path):
    other = tmp_path / "train"
    options = ["--suite", "nano", "--split", "train", "--seed", 7, "--per-task", 3]
    npbench("generate", *options, "--workers", 1, "--out", other)
    assert (
        "no instance of one is a relabelled copy" in npbench("check-overlap", split, other).stdout
    )
    assert "shared classes" in npbench("check-overlap", split, split, code=1).stdout


def test_inspect_shows_question_reference_and_picture(npbench, split, tmp_path):
    picture = tmp_path / "p.png"
    done = npbench("inspect", split, "--row", 8, "--image", picture)
    assert "tsp" in done.stdout
    assert "feasible=True" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    row = json.loads(npbench("inspect", split, "--row", 8, "--json").stdout)
    assert row["task"] == "tsp"


def test_the_list_of_tasks_names_all_of_them(npbench):
    from npbench.tasks import TASKS

    listed = npbench("tasks").stdout
    for name in (*TASKS, "mm-np-bench-v1", "np-bench-v1"):
        assert name in listed


def test_the_demo_writes_a_page_with_every_task(npbench, tmp_path):
    from npbench.tasks import TASKS

    done = npbench("demo", "--out", tmp_path / "demo")
    assert "index.html" in done.stdout
    page = (tmp_path / "demo" / "index.html").read_text()
    for task in TASKS.values():
        assert task.title in page
    assert page.count("data:image/png;base64,") == 56
    assert "appears twice" in page
    npbench("demo", "--out", tmp_path / "demo")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generat"], "unknown command 'generat'; did you mean 'generate'"),
        (["generate", "--out", "x", "--split", "test"], "needs --split and --seed"),
        (["generate", "--out", "x", "--split", "tst", "--seed", "1"], "did you mean 'test'"),
        (["generate", "--out", "x", "--splt", "tst"], "No such option"),
        (
            ["generate", "--out", "x", "--split", "test", "--seed", "1", "--task", "tps"],
            "did you mean 'tsp'",
        ),
        (
            ["generate", "--out", "x", "--split", "test", "--seed", "1", "--style", "darc"],
            "did you mean 'dark'",
        ),
        (
            ["generate", "--out", "x", "--split", "test", "--seed", "1", "--level", "12"],
            "unknown level '12'",
        ),
        (
            ["generate", "--out", "x", "--split", "test", "--seed", "1", "--param", "n"],
            "takes NAME=SIZE",
        ),
        (["generate", "--out", "x", "--official", "mm-np-bench-v9"], "unknown official split"),
        (["generate", "--out", "x", "--official", "np-bench-v1", "--seed", "1"], "fixes all other"),
        (["generate", "--split", "test", "--seed", "x", "--out", "x"], "not a valid integer"),
        (["score", "--data", "nowhere", "--responses", "r"], "nowhere is no folder"),
        (["solve"], "needs one of FILE, --data and --cases"),
        (["solve", "--data", "d"], "--data needs --out"),
        (["solve", "missing.json", "--task", "tsp"], "cannot be read"),
        (["verify"], "verify needs --cases"),
        (["verify", "--cases", "missing.jsonl"], "cannot be read"),
        (["inspect", "nowhere"], "nowhere is no folder"),
        (["check-overlap", "a"], "Missing argument"),
    ],
)
def test_wrong_usage_gets_one_line_and_exit_code_two(npbench, arguments, message):
    assert message in npbench(*arguments, code=2).stderr
    assert not Path("x").exists()


def test_a_solver_is_suggested_and_no_file_is_overwritten(npbench, split, responses, tmp_path):
    out = tmp_path / "r.jsonl"
    done = npbench("solve", "--data", split, "--solver", "gready", "--out", out, code=2)
    assert "did you mean 'greedy'" in done.stderr
    assert not out.exists()
    kept = responses / "greedy.jsonl"
    before = kept.read_bytes()
    npbench("solve", "--data", split, "--solver", "greedy", "--out", kept, code=2)
    assert kept.read_bytes() == before


def test_an_instance_is_drawn_as_png_svg_and_pdf_and_as_nothing_else(npbench, tmp_path):
    path = tmp_path / "square.json"
    path.write_text('{"num_vertices": 4, "edges": [[0, 1], [1, 2], [2, 3], [0, 3]]}')
    for name, start in (("p.png", b"\x89PNG"), ("p.svg", b"<svg"), ("p.pdf", b"%PDF")):
        npbench("draw", path, "--task", "longest_cycle", "--out", tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    for name in ("p.gif", "p"):
        result = npbench("draw", path, "--task", "longest_cycle", "--out", tmp_path / name, code=2)
        assert "unknown picture format" in result.stderr
        assert not (tmp_path / name).exists()


def test_workers_end_with_the_process_that_started_them(tmp_path):
    """SIGTERM, as from a scheduler, ends the whole build; what was made is kept."""
    command = [sys.executable, "-m", "npbench", "generate", "--suite", "nano", "--split", "train"]
    command += ["--seed", "1", "--per-task", "400", "--workers", "2", "--out", str(tmp_path / "b")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 300
    while not list((tmp_path / "b").glob(".building/chunk-*.parquet")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.terminate()
    assert process.wait(timeout=300) == 130
    assert "interrupted" in process.stderr.read()
    process.stderr.close()
    while _group_members(process.pid):
        assert time.monotonic() < deadline + 300
        time.sleep(0.2)


def _group_members(group: int) -> list[str]:
    """Processes that still belong to a process group."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            members.append(stat.parent.name)
    return members


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "--suite", "nano", "--split", "test", "--seed", "1", "--out", "{file}"],
        ["generate", "--suite", "nano", "--split", "test", "--seed", "1", "--out", "{file}/x"],
        ["solve", "--data", "{split}", "--out", "{file}/r.jsonl"],
        ["inspect", "{split}", "--image", "{file}/p.png"],
        ["export", "{split}", "--format", "npmm", "--out", "{file}/x"],
        ["demo", "--out", "{file}"],
    ],
)
def test_a_place_that_cannot_be_written_gets_one_line(npbench, split, tmp_path, arguments):
    file = tmp_path / "file"
    file.write_text("mine")
    filled = [part.format(file=file, split=split) for part in arguments]
    assert str(file) in npbench(*filled, code=2).stderr
    assert file.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_table_is_never_cut_in_a_narrow_terminal(split, responses):
    import os
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "npbench", "score", "--data", str(split)]
    command += ["--responses", str(responses / "greedy.jsonl")]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    with subprocess.Popen(
        command, stdout=follower, stderr=subprocess.DEVNULL, env=environment
    ) as p:
        os.close(follower)
        shown = b""
        while True:
            try:
                piece = os.read(leader, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        assert p.wait() == 0
    os.close(leader)
    text = shown.decode()
    assert "…" not in text
    for column in ("SR", "QR", "acc", "heuristic"):
        assert column in text
