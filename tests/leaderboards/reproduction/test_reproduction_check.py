"""``npbench reproduce --check``: cells follow from the replies, or are refused in one line."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from leaderboards.reproduction_cells import read_results
from leaderboards.reproduction_check import check
from leaderboards.reproduction_collect import collect
from leaderboards.reproduction_command import reproduce_command
from leaderboards.reproduction_replies import read_replies
from npbench.errors import InputError
from trainers.rollouts import sample_seed


@pytest.fixture(scope="module")
def made(tiny_reproduction: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A whole small reproduction and its collected form."""
    kept = tmp_path_factory.mktemp("collected") / "kept"
    collect(tiny_reproduction, kept)
    return tiny_reproduction, kept


@pytest.fixture
def kept(made, tmp_path: Path) -> Path:
    """A copy of the collected form to spoil."""
    shutil.copytree(made[1], tmp_path / "kept")
    return tmp_path / "kept"


def test_an_untouched_reproduction_passes_in_both_forms(made) -> None:
    out, kept = made
    results = read_results(out)
    replies = sum(cell.questions * (cell.samples + 1) for cell in results.cells.values())
    for folder in (out, kept):
        found = check(folder)
        assert (found.cells, found.without_replies) == (len(results.cells), 0)
        assert found.replies == replies
    printed = CliRunner().invoke(reproduce_command, ["--check", str(kept)])
    assert printed.exit_code == 0
    assert f"{len(results.cells)} cells follow from {replies} replies" in printed.output


def test_both_forms_hold_the_same_replies_and_seeds_follow_from_the_key(made) -> None:
    out, kept = made
    keys = list(read_results(out).cells)
    rows = dict(read_replies(out, collected=False))
    assert rows == dict(read_replies(kept, collected=True))
    assert rows.keys() == set(keys)
    for key in keys:
        for row in pq.read_table(key.replies(out)).to_pylist():
            if row["decode"] == "sampled":
                seed = sample_seed(key.seed, f"held-out {key.split}", row["id"], row["sample"])
                assert row["seed_of_sample"] == seed


def _changed_rows(kept: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    path = kept / "replies.parquet"
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def _changed_cells(kept: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = kept / "cells.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    change(lines[0])
    text = "\n".join(json.dumps(line) for line in lines)
    path.write_bytes(gzip.compress(text.encode()))


def _another_reply(rows: list[dict[str, Any]]) -> None:
    """No answer in place of a right one, its verdict left as it was."""
    row = next(row for row in rows if row["state"] in ("right", "feasible"))
    row["reply"] = "I do not know."


ROWS = {
    "a reply was changed": (_another_reply, "its reply gives"),
    "a verdict was changed": (lambda rows: rows[0].update(state="failed"), "stored as failed"),
    "a score was changed": (lambda rows: rows[0].update(score=0.5), "its reply gives"),
    "a task was changed": (lambda rows: rows[0].update(task="tsp"), "task tsp; its reply gives"),
    "a reply is missing": (lambda rows: rows.pop(), "lacks sampled sample"),
    "the greedy reply is missing": (
        lambda rows: rows.remove(next(r for r in rows if r["decode"] == "greedy")),
        "lacks greedy sample 0",
    ),
    "a reply is there twice": (lambda rows: rows.append(dict(rows[0])), "twice"),
    "a reply too many": (lambda rows: rows.append({**rows[-1], "sample": 9}), "belong to it"),
    "a foreign question": (lambda rows: rows[0].update(id="nano-x"), "is no question of"),
    "replies of no cell": (
        lambda rows: rows.append({**rows[0], "arm": "dmpo"}),
        "replies without a cell",
    ),
    "entropies were changed": (
        lambda rows: [row.update(entropy=row["entropy"] + 1) for row in rows],
        "the cell says entropy",
    ),
    "lengths were changed": (
        lambda rows: [row.update(num_tokens=row["num_tokens"] + 1) for row in rows],
        "the cell says length",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_replies_that_were_touched_are_refused(name: str, kept: Path) -> None:
    change, message = ROWS[name]
    _changed_rows(kept, change)
    with pytest.raises(InputError) as caught:
        check(kept)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


CELLS = {
    "a metric was raised": (
        lambda cell: cell["metrics"].update(sr=cell["metrics"]["sr"] + 0.001),
        "the cell says sr",
    ),
    "a metric of a task was raised": (
        lambda cell: next(iter(cell["tasks"].values())).update(qr=0.9),
        "qr = 0.9",
    ),
    "a metric was added": (lambda cell: cell["metrics"].update(praise=1.0), "praise is missing"),
    "a metric was dropped": (lambda cell: cell["metrics"].pop("qr"), "qr is missing"),
    "a floor was lowered": (lambda cell: cell["floors"].update(greedy=0.1), "floors.greedy = 0.1"),
    "a count was changed": (lambda cell: cell["states"].update(right=99), "states.right"),
    "questions were counted anew": (lambda cell: cell.update(questions=1), "questions = 1"),
    "tokens were left out": (
        lambda cell: cell["cost"].update(evaluation_tokens=1.0),
        "evaluation_tokens = 1.0",
    ),
    "fewer samples are claimed": (lambda cell: cell.update(samples=1), "samples must be one of 2"),
    "a step that was not asked for": (lambda cell: cell.update(step=7), "step must be one of 0"),
    "an unknown method": (lambda cell: cell.update(arm="magic"), "arm must be one of"),
    "an unknown split": (lambda cell: cell.update(split="easy"), "split must be one of"),
    "the cell moved to another seed": (lambda cell: cell.update(seed=99), "of other seeds"),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_that_do_not_follow_are_refused(name: str, kept: Path) -> None:
    change, message = CELLS[name]
    _changed_cells(kept, change)
    with pytest.raises(InputError) as caught:
        check(kept)
    assert message in str(caught.value)


def test_another_protocol_under_the_same_hash_is_refused(kept: Path) -> None:
    path = kept / "study.json"
    study = json.loads(path.read_text())
    study["protocol"]["training"]["steps"] = 50
    path.write_text(json.dumps(study))
    with pytest.raises(InputError, match="hash is not that of its settings"):
        check(kept)


@pytest.mark.parametrize("name", ["cells.jsonl.gz", "curves.parquet", "replies.parquet"])
def test_a_torn_file_is_named(name: str, kept: Path) -> None:
    (kept / name).write_bytes((kept / name).read_bytes()[:60])
    with pytest.raises(InputError, match=f"{name} cannot be read"):
        check(kept)


def test_a_collected_folder_without_replies_says_so(kept: Path) -> None:
    (kept / "replies.parquet").unlink()
    with pytest.raises(InputError, match=r"has no replies\.parquet: there is nothing to grade"):
        check(kept)


def test_cells_that_went_with_their_replies_are_missed(kept: Path) -> None:
    path = kept / "cells.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    gone = json.loads(lines[0])
    path.write_bytes(gzip.compress(b"".join(lines[1:])))
    names = ("base", "arm", "seed", "step", "split")
    _changed_rows(
        kept,
        lambda rows: rows.__setitem__(
            slice(None), [r for r in rows if any(r[n] != gone[n] for n in names)]
        ),
    )
    with pytest.raises(InputError, match="says that it holds 6 cells, there are 5"):
        check(kept)


def test_replies_whose_cell_was_deleted_are_noticed(made, tmp_path: Path) -> None:
    shutil.copytree(made[0], tmp_path / "out")
    key = next(iter(read_results(made[0]).cells))
    key.cell(tmp_path / "out").unlink()
    with pytest.raises(InputError, match="replies without a cell"):
        check(tmp_path / "out")


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("entropy", pa.nulls(1, pa.float32()), "column entropy must hold no null"),
        ("sample", pa.array(["1"]), "column sample must hold int16, got string"),
        ("reply", pa.array([["x"]]), "column reply must hold string, got list"),
        ("reply", None, "has no column reply"),
    ],
)
def test_columns_of_another_kind_are_named(column: str, values, message: str, kept: Path) -> None:
    path = kept / "replies.parquet"
    table = pq.read_table(path)
    place = table.schema.names.index(column)
    if values is None:
        table = table.drop_columns([column])
    else:
        table = table.slice(0, 1).set_column(place, column, values)
    pq.write_table(table, path)
    with pytest.raises(InputError, match=message):
        check(kept)


def test_a_folder_that_kept_no_reply_does_not_pass(made, tmp_path: Path) -> None:
    study = json.loads((made[1] / "study.json").read_text())
    study["collected"] |= {"replies_left_out_of_seeds": [3], "replies_of_seeds": []}
    shutil.copytree(made[1], tmp_path / "kept")
    (tmp_path / "kept" / "study.json").write_text(json.dumps(study))
    empty = pq.read_table(made[1] / "replies.parquet").slice(0, 0)
    pq.write_table(empty, tmp_path / "kept" / "replies.parquet")
    with pytest.raises(InputError, match="has no cell whose replies were kept"):
        check(tmp_path / "kept")
