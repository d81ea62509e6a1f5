"""``npbench reproduce`` from end to end on the untrained tiny model: cells, going on, reports."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from leaderboards.reproduction import Reproduction
from leaderboards.reproduction_cells import read_results
from leaderboards.reproduction_collect import collect
from leaderboards.reproduction_command import reproduce_command
from leaderboards.reproduction_pool import run_units, writing
from leaderboards.reproduction_report import read_reproduction
from npbench.errors import InputError


def call(*arguments: object):
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(reproduce_command, words, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


@pytest.fixture
def reproduce(small_preset, blank_model: Path, tmp_path: Path):
    """Runs the small preset into a folder, with further options."""

    def run(*options: object, out: Path | None = None, base: Path = blank_model, **changes):
        folder = out or tmp_path / "out"
        start = ("--preset", small_preset(**changes), "--base", f"blank={base}")
        return call(*start, "--out", folder, *options), folder

    return run


def files_of(folder: Path, *kinds: str) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for kind in kinds
        for path in sorted((folder / kind).rglob("*"))
        if path.is_file()
    }


def measured(folder: Path) -> dict:
    """All that does not depend on the clock."""
    return {
        key: cell.model_dump(exclude={"cost", "commit"})
        for key, cell in read_results(folder).cells.items()
    }


class StopError(Exception):
    """Ends a run from outside."""


def test_all_cells_curves_replies_and_reports_are_there_and_marked(reproduce) -> None:
    result, out = reproduce("--methods", "grpo")
    results = read_results(out)
    keys = {(k.arm, k.seed, k.step, k.split) for k in results.cells}
    splits = ("in-domain", "text")
    assert keys == {
        *(("base", 3, 0, split) for split in splits),
        *(("grpo", 3, step, split) for step in (1, 2) for split in splits),
    }
    assert [(c.arm, list(c.columns["step"])) for c in results.curves] == [("grpo", [0, 1])]
    for key, cell in results.cells.items():
        rows = pq.read_table(key.replies(out)).to_pylist()
        assert len(rows) == cell.questions * (cell.samples + 1)
        assert sum(row["decode"] == "greedy" for row in rows) == cell.questions
        assert sum(cell.states.values()) == len(rows)
        assert set(cell.metrics) >= {"sr", "qr", "acc@1", "acc@2", "pass@2", "entropy", "length"}
        assert cell.metrics["reasoning_distance"] is not None
        assert cell.metrics["solution_distance"] is None
        assert cell.reasons["solution_distance"] == "no question has two feasible replies"
        assert 0 < cell.floors["random"] <= cell.floors["reference"] == 1.0
    assert not (out / "runs" / "blank" / "grpo" / "seed-3").exists()
    assert result.stdout.count("test: not evidence") >= 5
    report = files_of(out, "report")
    texts = [text for name, text in report.items() if name.endswith((".md", ".csv", ".tex", "n"))]
    assert len(texts) == 5
    assert all(b"test: not evidence" in text for text in texts)
    assert "report/plots/curves-blank.svg" in report
    call_ = json.loads((out / "study.json").read_text())["calls"][0]
    assert call_["command"] == (
        "npbench reproduce --preset small.toml --study table --methods grpo --base blank"
    )
    assert {"torch", "npbench", "python"} <= call_["versions"].keys()


def test_the_same_call_again_changes_no_cell_and_more_methods_are_added(reproduce) -> None:
    _, out = reproduce("--methods", "grpo")
    before = files_of(out, "cells", "curves", "replies")
    reproduce("--methods", "grpo")
    assert files_of(out, "cells", "curves", "replies") == before
    reproduce("--methods", "grpo", "--methods", "dr_grpo")
    after = files_of(out, "cells", "curves", "replies")
    assert {name: after[name] for name in before} == before
    assert {k.arm for k in read_results(out).cells} == {"base", "grpo", "dr_grpo"}
    assert len(json.loads((out / "study.json").read_text())["calls"]) == 3


def test_an_interrupted_training_ends_with_the_cells_of_an_uninterrupted_one(
    reproduce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, whole = reproduce("--methods", "grpo", out=tmp_path / "whole")

    def stopped(units, *, jobs, advance):
        seen = []

        def stop(name: str, replies: int) -> None:
            seen.append(replies)
            # the third report of GRPO is its second step, after the checkpoint of the first
            if name.startswith("blank grpo") and len(seen) == 4:
                raise StopError

        run_units(units, jobs=jobs, advance=stop)

    with monkeypatch.context() as patch:
        patch.setattr("leaderboards.reproduction_pool.run_units", stopped)
        with pytest.raises(StopError):
            reproduce("--methods", "grpo", out=tmp_path / "torn")
    run = tmp_path / "torn" / "runs" / "blank" / "grpo" / "seed-3"
    assert [path.name for path in sorted(run.glob("checkpoints/step-*"))] == ["step-000001"]
    reproduce("--methods", "grpo", out=tmp_path / "torn")
    assert measured(tmp_path / "torn") == measured(whole)
    assert files_of(tmp_path / "torn", "replies") == files_of(whole, "replies")


def test_a_call_on_several_processes_that_is_interrupted_ends(
    small_preset, blank_model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ["reproduce", "--preset", small_preset(), "--base", f"blank={blank_model}"]
    more = ["--methods", "grpo", "--seeds", "200", "--jobs", "2", "--out", out]
    with subprocess.Popen(
        [sys.executable, "-m", "npbench", *map(str, words), *map(str, more)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        while not list(out.glob("cells/**/*.json")) and process.poll() is None:
            time.sleep(0.1)
        # an interruption like any other; in the background a shell may have it ignore SIGINT
        process.terminate()
        try:
            _, errors = process.communicate(timeout=400)
        finally:
            process.kill()
    assert process.returncode == 130, errors
    assert 0 < len(read_results(out).cells) < 200 * 6


def test_a_cell_that_was_lost_is_made_again(reproduce) -> None:
    _, out = reproduce("--methods", "grpo", "--keep-checkpoints")
    before = measured(out)
    (out / "cells" / "blank" / "grpo" / "seed-3" / "step-2" / "text.json").unlink()
    assert len(measured(out)) == len(before) - 1
    reproduce("--methods", "grpo", "--keep-checkpoints")
    assert measured(out) == before


def test_a_collected_folder_is_small_and_gives_the_same_report(reproduce, tmp_path: Path) -> None:
    _, out = reproduce("--methods", "grpo")
    kept = tmp_path / "kept"
    found = json.loads(call("--collect", out, kept).stdout)
    names = ["cells.jsonl.gz", "curves.parquet", "replies.parquet", "study.json", "vectors.parquet"]
    assert sorted(path.name for path in kept.iterdir()) == names
    again = tmp_path / "once_more"
    collect(out, again)
    assert all((kept / name).read_bytes() == (again / name).read_bytes() for name in names)
    assert found["replies_of_seeds"] == [3]
    assert found["bytes"] == sum(path.stat().st_size for path in kept.iterdir())
    call("--report", out)
    call("--report", kept)
    first, second = files_of(out, "report"), files_of(kept, "report")
    assert first.keys() == second.keys()
    for name in first:
        if not name.startswith("report/plots/curves"):
            assert first[name] == second[name], name
    assert str(tmp_path) not in (kept / "study.json").read_text()
    with pytest.raises(InputError, match="collected already"):
        collect(kept, tmp_path / "again")
    with pytest.raises(InputError, match="is not empty"):
        collect(out, kept)
    with pytest.raises(InputError, match="collected folder"):
        reproduce("--methods", "grpo", out=kept)
    with pytest.raises(InputError, match=r"all but the replies takes \d+ bytes, 2000 may be kept"):
        collect(out, tmp_path / "tight", max_bytes=2000)
    beside = found["bytes"] - (kept / "replies.parquet").stat().st_size
    with pytest.raises(InputError, match="do not fit into"):
        collect(out, tmp_path / "tighter", max_bytes=beside + 4100)


def test_the_site_gets_table_verdicts_and_pictures(reproduce) -> None:
    _, out = reproduce("--methods", "grpo")
    page = read_reproduction(out)
    assert isinstance(page, Reproduction)
    assert page.marker == "test: not evidence"
    assert {said.verdict for one in page.findings for said in one.said} == {"not tested"}
    (section,) = page.sections
    assert section.title == "From blank"
    assert len(section.sheets) == 6
    assert section.pictures
    assert "1 seed from blank" in page.summary


def test_several_processes_of_a_launcher_are_refused(reproduce, monkeypatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="npbench reproduce must run in 1 process, got 2: --jobs"):
        reproduce("--methods", "grpo")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--preset", "smok", "--out", "OUT"), "unknown preset 'smok'; did you mean 'smoke'"),
        (("--preset", "smoke", "--study", "tabel", "--out", "OUT"), "unknown study 'tabel'"),
        (("--preset", "smoke", "--methods", "gpro", "--out", "OUT"), "unknown method 'gpro'"),
        (("--preset", "smoke", "--base", "./none", "--out", "OUT"), "no such folder"),
        (("--preset", "smoke", "--base", "a b=x", "--out", "OUT"), "label"),
        (("--preset", "none.toml", "--out", "OUT"), "none.toml cannot be read"),
        (("--out", "OUT"), "needs --preset"),
        (("--preset", "smoke"), "give one of"),
        (("--report", "OUT"), "has no study.json"),
        (("--report", "OUT", "--preset", "smoke"), "belongs to --out"),
    ],
)
def test_a_wrong_call_is_refused_in_one_line(options, message, tmp_path: Path) -> None:
    words = [str(tmp_path / "out") if word == "OUT" else word for word in options]
    with pytest.raises(InputError) as caught:
        call(*words)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_schema_protocol_or_base_is_refused(
    made_up, written, reproduce, blank_model: Path, tmp_path: Path
) -> None:
    folder = written(made_up(seeds=(1, 2)))
    cell = next((folder / "cells").rglob("*.json"))
    text = cell.read_text()
    for change, message in (
        (text.replace('"schema": 1', '"schema": 2'), "has schema 2, this version reads 1"),
        (text.replace('"protocol": "', '"protocol": "x'), "of another protocol"),
        (text.replace('"fingerprint": "f', '"fingerprint": "e'), "of another base late"),
        (text.replace('"questions": 10', '"questions": "many"'), "questions"),
        (text[:50], "is no JSON"),
    ):
        cell.write_text(change)
        with pytest.raises(InputError, match=message):
            call("--report", folder)
    cell.write_text(text)
    call("--report", folder)
    with pytest.raises(InputError, match="another protocol"):
        reproduce("--methods", "grpo", out=folder)
    with pytest.raises(InputError, match="not empty and no reproduction"):
        reproduce("--methods", "grpo", out=blank_model)
    manifest = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**manifest, "schema": 7}))
    with pytest.raises(InputError, match="has schema 7"):
        call("--report", folder)


def test_a_base_with_other_weights_under_the_same_name_is_refused(
    reproduce, blank_model: Path, tmp_path: Path
) -> None:
    reproduce("--methods", "grpo")
    other = tmp_path / "other"
    shutil.copytree(blank_model, other)
    with (other / "config.json").open("a") as file:
        file.write(" ")
    with pytest.raises(InputError, match="base blank has other weights"):
        reproduce("--methods", "grpo", base=other)
    with pytest.raises(InputError, match="two bases are called blank"):
        reproduce("--base", f"blank={other}")


def test_a_dry_run_says_what_is_left_and_writes_nothing(reproduce) -> None:
    result, out = reproduce("--methods", "grpo", "--dry-run")
    assert "blank grpo seed 3" in result.stdout
    assert "0 of 4" in result.stdout
    assert not out.exists()


def test_two_calls_do_not_write_one_folder_at_a_time(tmp_path: Path) -> None:
    with (
        writing(tmp_path),
        pytest.raises(InputError, match="another npbench reproduce"),
        writing(tmp_path),
    ):
        pass


@pytest.mark.slow
def test_two_processes_make_the_cells_that_one_makes(reproduce, tmp_path: Path) -> None:
    _, alone = reproduce("--methods", "grpo", out=tmp_path / "alone")
    _, apart = reproduce("--methods", "grpo", "--jobs", 2, out=tmp_path / "apart")
    assert measured(apart) == measured(alone)


@pytest.mark.slow
def test_a_refusal_in_a_process_ends_the_call(reproduce, tmp_path: Path) -> None:
    text_only = [{"name": "x", "benchmark": "mathvista", "folder": str(tmp_path)}]
    with pytest.raises(InputError):
        reproduce("--jobs", 2, evaluation={"samples": 2, "splits": text_only})
