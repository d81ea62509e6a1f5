"""Packing a run: raw replies and what made them, no verdict and no failed attempt."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from leaderboards.packing import pack
from leaderboards.submissions import check_submission
from npbench.errors import InputError


def test_a_pack_holds_raw_replies_and_no_verdict(model_run, tmp_path):
    out = tmp_path / "packed"
    assert pack(model_run, out, name="Some model") == 84
    table = pq.read_table(out / "samples.parquet")
    assert table.num_rows == 84
    assert not {"state", "score", "acc"} & set(table.column_names)
    assert sorted(path.name for path in out.iterdir()) == ["samples.parquet", "submission.json"]


def test_nothing_is_overwritten_or_packed_twice(model_run, tmp_path):
    pack(model_run, tmp_path / "packed")
    with pytest.raises(InputError, match="is not empty"):
        pack(model_run, tmp_path / "packed")
    with pytest.raises(InputError, match="is packed already"):
        pack(tmp_path / "packed", tmp_path / "again")


@pytest.mark.parametrize("field", ["name", "link"])
def test_an_empty_name_or_link_is_refused_and_not_replaced(field, model_run, tmp_path):
    with pytest.raises(InputError, match=f"the submission: {field}: .*, got ''"):
        pack(model_run, tmp_path / "out", **{field: ""})
    assert not (tmp_path / "out").exists()


def test_failed_attempts_that_were_replaced_are_left_out(model_run, split, officials, tmp_path):
    run = shutil.copytree(model_run, tmp_path / "run")
    samples = run / "samples.jsonl"
    lines = samples.read_text(encoding="utf-8").splitlines(keepends=True)
    failed = {**json.loads(lines[0]), "reply": None, "finish_reason": None}
    samples.write_text("".join([json.dumps(failed) + "\n", *lines]), encoding="utf-8")
    assert pack(run, tmp_path / "out") == 84
    passed = check_submission(tmp_path / "out", split=split, officials=officials)
    assert passed.summary["overall"]["states"]["failed"] == 0
