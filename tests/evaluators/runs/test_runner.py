"""Runs from end to end with the solvers and with scripted replies."""

import json
import signal
import time
from collections import Counter

import pytest

from evaluators.backends.base import Sampling
from evaluators.records import SampleRecord
from evaluators.run_folder import scan
from evaluators.runner import sample_seed
from npbench.errors import InputError


def answers(rows, *, samples=1, decode="greedy", **fields):
    return [
        {"id": row["id"], "sample": sample, "decode": decode,
         "reply": f"{sample} Answer: {row['reference_solution']}", **fields}
        for row in rows
        for sample in range(samples)
    ]  # fmt: skip


def test_greedy_and_sampled_replies_come_from_one_run_and_never_mix(
    split, rows, npbench, samples, tmp_path
):
    out = tmp_path / "run"
    result = npbench(
        "eval", "--data", split, "--backend", "policy", "--model", "random", "-k", 3, "--out", out,
        "--json",
    )  # fmt: skip
    summary = json.loads(result.stdout)
    assert result.return_value == 0
    assert summary == json.loads((out / "summary.json").read_text())
    records = samples(out)
    keys = Counter((row["id"], row["decode"], row["sample"]) for row in records)
    wanted = [("greedy", 0), ("sampled", 0), ("sampled", 1), ("sampled", 2)]
    assert keys == Counter((row["id"], *one) for row in rows for one in wanted)
    assert summary["overall"]["samples"] == 4 * len(rows)
    greedy = [row["acc"] for row in records if row["decode"] == "greedy"]
    assert summary["overall"]["acc@1"] == pytest.approx(sum(greedy) / len(greedy))
    assert summary["overall"]["pass@k"].keys() == {"1", "2", "3"}
    assert {row["seed"] is None for row in records if row["decode"] == "greedy"} == {True}


def test_a_greedy_solver_scores_its_stored_floor(split, npbench, tmp_path):
    for solver in ("trivial", "random", "greedy", "heuristic", "reference"):
        result = npbench(
            "eval", "--data", split, "--backend", "policy", "--model", solver, "-k", 0,
            "--out", tmp_path / solver, "--json",
        )  # fmt: skip
        overall = json.loads(result.stdout)["overall"]
        assert overall["qr"] == pytest.approx(overall["floors"][solver]["qr"])
        assert overall["acc@k"] is None
        assert overall["diversity"]["distinct_replies"] is None


def test_a_second_run_makes_nothing_and_keeps_every_reply(split, npbench, samples, tmp_path):
    command = ("eval", "--data", split, "--backend", "policy", "--model", "random", "-k", 4,
               "--out", tmp_path / "run")  # fmt: skip
    npbench(*command)
    first = samples(tmp_path / "run")
    npbench(*command)
    assert samples(tmp_path / "run") == first
    assert all(
        len({row["reply"] for row in first if row["id"] == one["id"]}) > 1
        for one in first
        if "tsp" in one["id"]
    )


def test_replies_are_joined_by_key_when_every_second_one_is_there(
    split, npbench, samples, tmp_path
):
    out = tmp_path / "run"
    command = ("eval", "--data", split, "--backend", "policy", "--model", "random", "-k", 4,
               "--out", out)  # fmt: skip
    npbench(*command)
    whole = {(row["id"], row["decode"], row["sample"]): row for row in samples(out)}
    lines = (out / "samples.jsonl").read_text().splitlines(keepends=True)
    (out / "samples.jsonl").write_text("".join(lines[::-2]))
    npbench(*command)
    again = {(row["id"], row["decode"], row["sample"]): row for row in samples(out)}
    assert again == whole


def test_sample_seeds_of_neighbouring_runs_are_all_distinct():
    for question in ("a", "b", "nano-v1-tsp"):
        seeds = {sample_seed(run, question, sample) for run in (0, 1) for sample in range(8)}
        assert len(seeds) == 16
    assert sample_seed(0, "a", 3) == sample_seed(0, "a", 3)
    assert sample_seed(0, "a", 3) != sample_seed(0, "b", 3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 4, "temperature": 0.0}, "k=4 samples need a temperature in [0.01, 100], got 0"),
        ({"k": 1, "temperature": 0.001}, "got 0.001"),
        ({"k": 1, "temperature": float("nan")}, "got nan"),
        ({"k": -1}, "k must be at least 0"),
        ({"k": 0, "greedy": False}, "asks for no reply"),
        ({"top_p": 0.0}, "top_p must lie in (0, 1]"),
        ({"top_k": -1}, "top_k must be"),
        ({"min_p": 2.0}, "min_p must lie"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must lie"),
        ({"max_tokens": 0}, "max_tokens must be at least 1"),
        ({"seed": -1}, "seed must lie"),
        ({"stop": ("",)}, "must not be empty"),
    ],
)
def test_sampling_is_checked_before_anything_is_loaded(given, message):
    with pytest.raises(InputError) as caught:
        Sampling(**given)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        (["--temperature", "0.5"], "sampling.temperature is 1.0 in the run and 0.5 now"),
        (["-k", "2"], "sampling.k is 1 in the run and 2 now"),
        (["--seed", "9"], "sampling.seed is 0"),
        (["--system-prompt", "Be brief."], "system_prompt is null"),
        (["--prompt-format", "think-boxed"], 'prompt_format is "answer-line"'),
        (["--max-pixels", "5000"], "pixels.max is null"),
        (["--limit", "3"], "benchmark.rows is 12 in the run and 3 now"),
        (["--model", "trivial"], 'model.name is "greedy" in the run and "trivial" now'),
    ],
)
def test_another_configuration_refuses_to_resume_and_names_the_field(
    flags, field, split, npbench, tmp_path
):
    command = ["eval", "--data", split, "--backend", "policy", "--model", "greedy", "-k", 1,
               "--out", tmp_path / "run"]  # fmt: skip
    npbench(*command)
    before = (tmp_path / "run" / "samples.jsonl").read_bytes()
    with pytest.raises(InputError) as caught:
        npbench(*command, *flags)
    assert field in str(caught.value)
    assert "\n" not in str(caught.value)
    assert (tmp_path / "run" / "samples.jsonl").read_bytes() == before


def test_other_library_versions_refuse_to_resume(split, npbench, tmp_path):
    command = ("eval", "--data", split, "--backend", "policy", "--model", "greedy", "-k", 0,
               "--out", tmp_path / "run")  # fmt: skip
    npbench(*command)
    path = tmp_path / "run" / "run.json"
    manifest = json.loads(path.read_text())
    manifest["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r'versions.numpy is "1.0" in the run and'):
        npbench(*command)


def test_a_torn_last_line_is_dropped_and_made_again(split, npbench, samples, tmp_path):
    out = tmp_path / "run"
    command = ("eval", "--data", split, "--backend", "policy", "--model", "random", "-k", 2,
               "--out", out, "--json")  # fmt: skip
    npbench(*command)
    whole = samples(out)
    path = out / "samples.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    summary = json.loads(npbench(*command).stdout)
    assert samples(out) == whole
    assert summary["torn_bytes"] > 0


def test_lines_written_twice_count_once_and_two_replies_to_one_key_are_an_error(
    split, npbench, tmp_path
):
    out = tmp_path / "run"
    command = ("eval", "--data", split, "--backend", "policy", "--model", "random", "-k", 2,
               "--out", out, "--json")  # fmt: skip
    once = json.loads(npbench(*command).stdout)
    path = out / "samples.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines + lines[:5]))
    again = json.loads(npbench(*command).stdout)
    assert again["overall"] == once["overall"]
    assert again["repeated_lines"] == 5
    other = json.loads(lines[4])
    path.write_text("".join([*lines, json.dumps({**other, "reply": "Answer: [0]"}) + "\n"]))
    with pytest.raises(InputError, match=f"sampled sample {other['sample']} of {other['id']}"):
        npbench(*command)


def test_a_failed_sample_is_one_record_and_is_tried_again_a_bounded_number_of_times(
    split, rows, npbench, script, samples, tmp_path
):
    lines = answers(rows)
    lines[3] = {"id": rows[3]["id"], "decode": "greedy", "error": "the server\nwent away"}
    path = script(lines)
    command = ("eval", "--data", split, "--backend", "scripted", "--model", path, "-k", 0,
               "--out", tmp_path / "run", "--json")  # fmt: skip
    for attempts in (1, 2, 3, 3, 3):
        result = npbench(*command)
        assert result.return_value == 1
        assert "8.3% of the samples failed, more than the allowed 5.0%" in result.stderr
        summary = json.loads(result.stdout)
        assert summary["overall"]["states"]["failed"] == 1
        assert summary["overall"]["n"] == len(rows)
        assert summary["overall"]["errors"] == {"the server went away": 1}
        assert len(samples(tmp_path / "run")) == len(rows) - 1 + attempts
    assert npbench(*command, "--max-failed", "0.1").return_value == 0


def test_an_empty_reply_is_a_result_and_a_cut_one_a_state_of_its_own(
    split, rows, npbench, script, samples, tmp_path
):
    lines = answers(rows)
    lines[0] |= {"reply": ""}
    lines[1] |= {"reply": "", "finish_reason": "length"}
    lines[2] |= {"reply": "<think> perhaps Answer: [0]", "finish_reason": "length"}
    lines[3] |= {"reply": "", "reasoning": lines[3]["reply"]}
    lines[4] |= {"reply": "I cannot say."}
    lines[5] |= {"reply": "Answer: [0, 0]"}
    command = ("eval", "--data", split, "--backend", "scripted", "--model", script(lines),
               "-k", 0, "--out", tmp_path / "run", "--json")  # fmt: skip
    result = npbench(*command)
    states = [row["state"] for row in samples(tmp_path / "run")]
    assert states[:6] == ["empty", "truncated", "truncated", "empty", "unparsed", "infeasible"]
    assert samples(tmp_path / "run")[3]["reasoning"]
    overall = json.loads(result.stdout)["overall"]
    assert overall["acc@1"] == pytest.approx(0.5)
    assert overall["acc_answered"] == pytest.approx(6 / 7)
    assert overall["rates"]["truncated"] == pytest.approx(2 / 12)
    assert "16.7% of the replies were cut at max_tokens=2048" in result.stderr
    assert overall["reasons"]
    assert sum(overall["reasons"].values()) == 1


def test_replies_that_a_stop_string_ended_are_counted(split, rows, npbench, script, tmp_path):
    lines = answers(rows)
    lines[0] |= {"stop_reason": "\n\n"}
    command = ("eval", "--data", split, "--backend", "scripted", "--model", script(lines),
               "-k", 0, "--out", tmp_path / "run", "--json")  # fmt: skip
    assert json.loads(npbench(*command).stdout)["overall"]["stopped_by_string"] == 1


def test_a_missing_sample_fails_and_is_never_left_out(split, rows, npbench, script, tmp_path):
    lines = [line for line in answers(rows, samples=4, decode="sampled") if line["sample"] < 3]
    command = ("eval", "--data", split, "--backend", "scripted", "--model", script(lines),
               "-k", 4, "--no-greedy", "--out", tmp_path / "run", "--json")  # fmt: skip
    result = npbench(*command)
    overall = json.loads(result.stdout)["overall"]
    assert result.return_value == 1
    assert overall["states"]["failed"] == len(rows)
    assert overall["samples"] == 4 * len(rows)
    assert overall["mean@k"] == pytest.approx(0.75)
    assert overall["acc@1"] is None


def test_kill_minus_nine_loses_no_finished_sample_and_doubles_none(
    split, rows, start, npbench, samples, tmp_path
):
    out = tmp_path / "run"
    flags = ["--data", split, "--backend", "policy", "--model", "random", "-k", 200, "--out", out]
    process = start(*flags)
    _wait_for_lines(out / "samples.jsonl", 150, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = (out / "samples.jsonl").read_bytes().rpartition(b"\n")[0].splitlines()
    assert 150 <= len(kept) < 201 * len(rows)
    assert npbench("eval", "--resume", out).return_value == 0
    records = samples(out)
    assert [json.dumps(row, ensure_ascii=False).encode() for row in records[: len(kept)]] == kept
    assert len(records) == 201 * len(rows)
    assert len({(row["id"], row["decode"], row["sample"]) for row in records}) == len(records)


def test_an_interruption_keeps_what_is_finished_says_how_to_go_on_and_exits_with_130(
    split, rows, start, npbench, samples, tmp_path
):
    out = tmp_path / "run"
    process = start(
        "--data", split, "--backend", "policy", "--model", "random", "-k", 200, "--out", out
    )
    _wait_for_lines(out / "samples.jsonl", 50, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert f"go on with: npbench eval --resume {out}" in errors
    assert "interrupt again to stop at once" in errors
    assert "Traceback" not in errors
    kept = samples(out)
    assert npbench("eval", "--resume", out).return_value == 0
    assert samples(out)[: len(kept)] == kept
    assert len(samples(out)) == 201 * len(rows)


def _wait_for_lines(path, count, process):
    deadline = time.monotonic() + 300
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_second_process_is_refused_while_one_writes(split, start, npbench, tmp_path):
    out = tmp_path / "run"
    flags = ["--data", split, "--backend", "policy", "--model", "random", "-k", 400, "--out", out]
    process = start(*flags)
    _wait_for_lines(out / "samples.jsonl", 1, process)
    with pytest.raises(InputError, match="another process writes to"):
        npbench("eval", *flags)
    with pytest.raises(InputError, match="another process writes to"):
        npbench("grade", out)


def test_a_record_survives_the_file(tmp_path):
    record = SampleRecord(
        benchmark="b", id="q\u2028é", instance_id="i", decode="sampled", sample=2, seed=7,
        reply="two\nlines \ud83d and\x00more", picture_sizes=((3, 4),),
    )  # fmt: skip
    path = tmp_path / "samples.jsonl"
    path.write_bytes(record.line())
    assert list(scan(path).entries) == [("q\u2028é", "sampled", 2)]
