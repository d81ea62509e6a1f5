"""The commands eval, grade and compare, and what they say to wrong usage."""

import json
from pathlib import Path

import pytest

from evaluators.benchmark import get_benchmark
from evaluators.checkpoints import find_checkpoint
from evaluators.sessions import choose
from npbench.errors import InputError


@pytest.fixture
def solved(split, npbench, tmp_path):
    """Runs a solver on the split."""

    def run(solver, name=None, *flags):
        out = tmp_path / (name or solver)
        npbench("eval", "--data", split, "--backend", "policy", "--model", solver, "--out", out,
                *(flags or ("-k", 2)))  # fmt: skip
        return out

    return run


def test_grade_computes_everything_afresh_and_never_reads_old_verdicts(solved, npbench, samples):
    out = solved("random")
    before = samples(out)
    summary = (out / "summary.json").read_text()
    poisoned = [{**row, "state": "right", "acc": 1, "score": 9.0, "reason": "x"} for row in before]
    (out / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in poisoned))
    result = npbench("grade", out, "--json")
    assert samples(out) == before
    assert json.loads(result.stdout) == json.loads(summary)
    assert (out / "summary.json").read_text() == summary


def test_grade_writes_the_graders_version_and_the_run_still_resumes(solved, npbench, split):
    out = solved("greedy")
    manifest = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**manifest, "grader": "an old one"}))
    with pytest.raises(InputError, match='grader is "an old one" in the run'):
        npbench("eval", "--resume", out)
    npbench("grade", out)
    assert json.loads((out / "run.json").read_text()) == manifest
    assert npbench("eval", "--resume", out).return_value == 0


def test_grade_of_an_unfinished_run_keeps_its_samples_and_counts_what_is_missing(
    solved, npbench, samples
):
    out = solved("random")
    lines = (out / "samples.jsonl").read_text().splitlines(keepends=True)
    (out / "samples.jsonl").write_text("".join(lines[:-5]))
    with pytest.raises(InputError, match="lacks 5 of 36 samples"):
        npbench("grade", out)
    assert len(samples(out)) == 31
    npbench("eval", "--resume", out)
    assert len(samples(out)) == 36


def test_grade_refuses_data_that_was_not_asked(solved, npbench, tmp_path, split):
    out = solved("greedy")
    other = tmp_path / "other"
    from npbench.building import build_split
    from npbench.splits import Request

    build_split(Request.make(suite="nano", split="test", seed=4, per_task=2, tasks=("tsp",)), other)
    with pytest.raises(InputError, match=r"is not what .* was asked"):
        npbench("grade", out, "--data", other)
    assert npbench("grade", out, "--data", split).return_value == 0


def test_compare_pairs_by_question_and_warns_of_other_settings(solved, npbench):
    first = solved("reference", "best", "-k", 2)
    second = solved("trivial", "worst", "-k", 2, "--max-pixels", 9000)
    result = npbench("compare", first, second, "--json")
    metrics = json.loads(result.stdout)["metrics"]
    assert metrics["acc@1"]["first"] == 1.0
    assert metrics["qr"]["difference"] > 0
    assert metrics["qr"]["losses"] == 0
    assert metrics["qr"]["questions"] == 12
    assert metrics["qr"]["clusters"] == 6
    assert "warning: the runs differ in pixels" in result.stderr
    table = npbench("compare", second, first).stdout
    assert "trivial minus reference, paired by question" in table
    same = json.loads(npbench("compare", first, first, "--json").stdout)
    assert all(row["difference"] == 0 and row["p_value"] == 1 for row in same["metrics"].values())


def test_compare_refuses_runs_of_other_questions(solved, npbench):
    first = solved("greedy", "all")
    second = solved("greedy", "some", "-k", 0, "--limit", 5)
    with pytest.raises(InputError, match="questions are in one run only"):
        npbench("compare", first, second)
    manifest = json.loads((second / "run.json").read_text())
    manifest["benchmark"]["dataset_hash"] = "0"
    (second / "run.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"benchmark\.dataset_hash is"):
        npbench("compare", first, second)


def test_modality_and_limit_choose_questions_and_resume_needs_no_repeated_flags(
    solved, npbench, samples
):
    out = solved("random", "some", "-k", 1, "--modality", "text", "--limit", 4)
    records = samples(out)
    assert len(records) == 8
    assert all(row["id"].endswith("-text") for row in records)
    lines = (out / "samples.jsonl").read_text().splitlines(keepends=True)
    (out / "samples.jsonl").write_text("".join(lines[:3]))
    npbench("eval", "--resume", out)
    assert samples(out) == records
    assert npbench("grade", out).return_value == 0


def test_the_summary_breaks_down_by_modality_and_averages_tasks(solved):
    out = solved("random")
    summary = json.loads((out / "summary.json").read_text())
    assert set(summary["by"]) >= {"modality", "level"}
    assert summary["by"]["modality"]["image"]["n"] == 6
    tasks = [row["qr"] for row in summary["tasks"].values()]
    assert summary["overall"]["qr"] == pytest.approx(sum(tasks) / len(tasks))
    assert summary["overall"]["instances"] == 6
    low, high = summary["overall"]["ci"]["qr"]
    assert low <= summary["overall"]["qr"] <= high
    assert summary["overall"]["maj@k"] is None


def test_equal_samples_give_the_error_of_one(solved):
    once = json.loads((solved("greedy", "one", "-k", 1) / "summary.json").read_text())
    many = json.loads((solved("greedy", "many", "-k", 8) / "summary.json").read_text())
    assert many["tasks"]["tsp"]["ci"]["qr"] == once["tasks"]["tsp"]["ci"]["qr"]
    assert many["overall"]["diversity"]["distinct_replies"] == 1


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--model", "greedy"], "eval needs --out"),
        (["--out", "x", "--backend", "policy"], "--backend policy needs --model: a solver"),
        (["--out", "x", "--model", "m", "--from", "y"], "--from goes with --benchmark"),
        (["--out", "x", "--model", "m", "--benchmark", "nano"], "needs one of --data and"),
        (["--out", "x", "--model", "m", "--backend", "policy"], "unknown solver 'm'"),
        (["--out", "x", "--model", "m", "--backend", "vlm"], "did you mean 'vllm'"),
        (["--out", "x", "--model", "m", "--limit", "0"], "limit must be at least 1"),
        (["--out", "x", "--model", "m", "--modality", "video"], "it has: image, text"),
        (["--out", "x", "--model", "m", "--prompt-format", "boxed"], "unknown prompt format"),
        (["--out", "x", "--model", "m", "--max-failed", "2"], "max-failed must lie in [0, 1]"),
        (["--out", "x", "--model", "m", "--min-pixels", "9", "--max-pixels", "4"], "min <= max"),
        (["--out", "x", "--model", "m", "--embedder", "solutions"], "unknown embedder"),
        (["--out", "x", "--model", "./absent"], "there is no such folder"),
        (["--resume", "absent"], "is no run: it has no run.json"),
    ],
)
def test_wrong_usage_is_one_line_and_writes_nothing(
    flags, message, split, npbench, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        npbench("eval", "--data", split, *flags)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_model_that_the_hub_cannot_give_exits_with_2_and_one_line(start, split, tmp_path):
    process = start("--data", split, "--model", "nobody/absent", "--out", tmp_path / "run")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    (line,) = errors.splitlines()
    assert line.startswith("npbench: model 'nobody/absent' is no folder and cannot be had from")


def test_several_processes_of_a_launcher_are_refused(split, npbench, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    command = ["eval", "--data", split, "--backend", "policy", "--model", "greedy", "--out"]
    with pytest.raises(InputError, match="npbench eval must run in 1 process, got 4: --engine ray"):
        npbench(*command, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_hub_that_does_not_answer_is_asked_once_and_a_typo_of_ours_is_named(
    tmp_path, monkeypatch
):
    pytest.importorskip("huggingface_hub")
    from huggingface_hub import HfApi

    asked = []

    def unreachable(self, name, **options):
        asked.append((name, options["timeout"]))
        raise RuntimeError("no route")

    monkeypatch.setattr(HfApi, "model_info", unreachable)
    with pytest.raises(InputError) as caught:
        find_checkpoint("npbench-tinny")
    assert asked == [("npbench-tinny", 10)]
    assert str(caught.value) == (
        "model 'npbench-tinny' is no folder and cannot be had from the Hub: it cannot be "
        "reached, and its cache lacks the model; did you mean 'npbench-tiny'?"
    )


def test_folders_that_hold_something_else_are_left_alone(split, npbench, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    command = ["eval", "--data", split, "--backend", "policy", "--model", "greedy", "--out"]
    with pytest.raises(InputError, match="exists and holds no run"):
        npbench(*command, tmp_path)
    with pytest.raises(InputError, match="exists and holds no run"):
        npbench(*command, tmp_path / "notes.txt")
    orphan = tmp_path / "orphan"
    orphan.mkdir()
    (orphan / "samples.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"has samples and no run\.json"):
        npbench(*command, orphan)
    with pytest.raises(InputError, match="is no run"):
        npbench("grade", tmp_path)
    old = tmp_path / "old"
    old.mkdir()
    (old / "run.json").write_text('{"schema": 0}')
    with pytest.raises(InputError, match="has the schema 0; this version reads 1"):
        npbench("grade", old)


def test_a_line_that_is_no_sample_is_named(solved, npbench):
    out = solved("greedy")
    with (out / "samples.jsonl").open("a") as file:
        file.write('{"id": "x"}\n')
    with pytest.raises(InputError, match=r"line 37 is no sample: benchmark"):
        npbench("grade", out)


def test_benchmarks_are_found_by_name(split):
    assert len(get_benchmark("nano", source=split).questions) == 12
    with pytest.raises(InputError, match="did you mean 'mm-np-bench'"):
        get_benchmark("mm-np-bnch", source=None)
    with pytest.raises(InputError, match="npbench generate --suite np-bench"):
        get_benchmark("np-bench", source=None)
    with pytest.raises(InputError, match="is a split of nano, not of np-bench"):
        get_benchmark("np-bench", source=split)
    with pytest.raises(InputError, match="give --data DIR or --benchmark NAME"):
        choose(None, source=None)


def test_questions_are_read_by_position_and_in_order(split, rows):
    questions = choose(None, source=split).benchmark.questions
    assert [question.id for question in questions] == [row["id"] for row in rows]
    assert questions[-1].id == rows[-1]["id"]
    assert [question.id for question in questions[3:5]] == [row["id"] for row in rows[3:5]]
    assert questions[0].parts == (rows[0]["image"], rows[0]["prompt"])
    assert questions[-1].parts == (rows[-1]["prompt"],)
    with pytest.raises(IndexError):
        questions[12]


def test_a_benchmark_of_questions_runs_from_its_files_to_the_table(
    npbench, script, tmp_path, monkeypatch
):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    source = Path(__file__).parents[1] / "benchmarks" / "fixtures" / "math-500"
    count = len((source / "data.jsonl").read_text("utf-8").splitlines())
    flags = ("--benchmark", "math-500", "--from", source, "--rows", count)
    questions = get_benchmark("math-500", source=source, rows=count).questions
    lines = [
        {"id": question.id, "sample": sample, "reply": f"\\boxed{{{question.gold}}}"}
        for question in questions
        for sample in range(2)
    ]
    command = ("eval", *flags, "--backend", "scripted", "--model", script(lines), "-k", 2,
               "--prompt-format", "think-boxed", "--out", tmp_path / "run")  # fmt: skip
    result = npbench(*command)
    assert result.return_value == 0
    assert "acc@k" in result.stdout
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["overall"]["acc@1"] == 1.0
    assert summary["overall"]["maj@k"] == 1.0
    assert npbench("grade", tmp_path / "run").return_value == 0
    with pytest.raises(InputError, match="the policy backend answers NP-hard tasks only"):
        npbench("eval", *flags, "--backend", "policy", "--model", "greedy", "--out", "x")


def test_a_judge_needs_an_address_and_a_model_and_must_work(split, npbench, tmp_path):
    command = ("eval", "--data", split, "--backend", "policy", "--model", "greedy",
               "--out", tmp_path / "run")  # fmt: skip
    with pytest.raises(InputError, match="a judge needs --judge-url and --judge-model"):
        npbench(*command, "--judge-url", "http://127.0.0.1:9/v1")
    with pytest.raises(InputError, match="unknown state 'judge-failed'; did you mean"):
        npbench("grade", tmp_path, "--only", "judge-failed")


def test_a_run_that_was_moved_is_finished_where_it_lies(solved, npbench, tmp_path):
    out = solved("greedy", "first", "-k", 1)
    moved = tmp_path / "moved"
    out.rename(moved)
    summary = (moved / "summary.json").read_bytes()
    (moved / "summary.json").unlink()
    assert npbench("eval", "--resume", moved).return_value == 0
    assert (moved / "summary.json").read_bytes() == summary
    assert not out.exists()


@pytest.mark.parametrize("command", [None, "npbench eval 'open", "npbench grade x", ""])
def test_a_run_whose_command_is_damaged_is_named(solved, npbench, command):
    out = solved("greedy", "damaged", "-k", 1)
    manifest = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**manifest, "command": command}))
    with pytest.raises(InputError, match="was not made by npbench eval: its command is"):
        npbench("eval", "--resume", out)


def test_grading_again_loses_no_sample_of_a_question_that_is_not_asked(solved, npbench):
    out = solved("greedy", "foreign", "-k", 1)
    lines = (out / "samples.jsonl").read_text().splitlines()
    other = {**json.loads(lines[0]), "id": "somebody-else"}
    (out / "samples.jsonl").write_text("\n".join([*lines, json.dumps(other)]) + "\n")
    before = (out / "samples.jsonl").read_bytes()
    with pytest.raises(InputError, match=r"1 questions that .* does not have, such as 'somebody"):
        npbench("grade", out)
    assert (out / "samples.jsonl").read_bytes() == before
