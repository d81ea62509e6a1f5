"""Published numbers beside our own: apart, with both protocols."""

import csv
import io
import json
import shutil

import pytest

from leaderboards.compare import comparison_sheets, read_ours
from npbench.errors import InputError


def test_published_and_reproduced_stand_in_sheets_of_their_own(model_run):
    published, ours = comparison_sheets([read_ours(model_run)], ["dmpo-1", "np-engine-1"])
    assert [sheet.title.split(":")[0] for sheet in published] == ["dmpo-1", "np-engine-1"]
    assert all("replies.jsonl" not in row for sheet in published for row in sheet.rows)
    assert [row[0].endswith("replies.jsonl") for row in ours.rows] == [True]
    assert all(sheet.notes[0].startswith("Protocol: ") for sheet in published)
    assert "stand apart" in ours.notes[0]
    assert "k = 2, T = 1, greedy too, 2048 tokens, answer-line" in ours.rows[0]


def test_a_run_a_summary_and_an_entry_are_read(model_run, leaderboard, split, tmp_path):
    leaderboard("add", model_run, "--to", tmp_path, "--split", split, "--name", "Mine")
    (entry,) = tmp_path.glob("*.json")
    run, summary, added = map(read_ours, (model_run, model_run / "summary.json", entry))
    assert run.values == summary.values
    assert added.model == "Mine"
    assert added.values["qr"] == pytest.approx(run.values["qr"], abs=1e-6)


def test_the_tables_about_the_benchmark_are_chosen(model_run, tmp_path):
    run = shutil.copytree(model_run, tmp_path / "run")
    for name in ("run.json", "summary.json"):
        text = (run / name).read_text(encoding="utf-8")
        (run / name).write_text(text.replace('"name": "nano"', '"name": "mathvista"'), "utf-8")
    published, _ = comparison_sheets([read_ours(run)], [])
    names = {sheet.title.split(":")[0] for sheet in published}
    assert {"mupo-1", "mupo-4", "share-grpo-5", "diva-grpo-1"} <= names
    assert "flowrl-1" not in names


def test_every_format_keeps_the_sections_apart(leaderboard, model_run):
    def shown(form):
        return leaderboard("compare", model_run, "--table", "dmpo-1", "--format", form).output

    lines = list(csv.DictReader(io.StringIO(shown("csv"))))
    assert {line["section"] for line in lines} == {"published", "reproduced"}
    assert {line["source"] for line in lines if line["section"] == "published"} == {
        "arXiv:2605.19461"
    }
    data = json.loads(shown("json"))
    assert len(data["published"]) == 12
    assert data["reproduced"][0]["n"] == 28
    assert shown("markdown").count("### ") == 2
    assert shown("latex").count(r"\begin{table}") == 2
    assert "reproduced: our own results" in shown("table")


def no_summary(run):
    (run / "summary.json").unlink()


def no_manifest(run):
    (run / "run.json").unlink()


def another_schema(run):
    (run / "run.json").write_text('{"schema": 9}', encoding="utf-8")


def another_summary(run):
    (run / "summary.json").write_text('{"schema": 9}', encoding="utf-8")


def a_hollow_summary(run):
    (run / "summary.json").write_text('{"schema": 1, "overall": {}}', encoding="utf-8")


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (no_summary, "has no summary.json"),
        (no_manifest, "it has no run.json"),
        (another_schema, "has the schema 9; this version reads 1"),
        (another_summary, "has the schema 9; this version reads summaries of schema 1"),
        (a_hollow_summary, "is no summary"),
    ],
)
def test_a_result_that_cannot_be_read_is_refused_in_one_line(model_run, tmp_path, tamper, reason):
    run = shutil.copytree(model_run, tmp_path / "run")
    tamper(run)
    with pytest.raises(InputError) as caught:
        read_ours(run)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_published_table_is_refused(leaderboard, model_run):
    with pytest.raises(InputError, match="did you mean 'dmpo-1'"):
        leaderboard("compare", model_run, "--table", "dmpo1")
