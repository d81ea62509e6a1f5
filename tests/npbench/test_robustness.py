"""Paired comparison of styles and of pictures with text, with values computed by hand."""

import json

import pytest
from click.testing import CliRunner

from npbench.building import build_split
from npbench.commands.robustness import command
from npbench.errors import InputError
from npbench.robustness import TEXT, Variant, robustness
from npbench.scoring import Question
from npbench.splits import Request
from npbench.storage import open_split


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    folder = tmp_path_factory.mktemp("styles") / "split"
    request = Request.make(
        suite="nano",
        split="test",
        seed=4,
        per_task=3,
        tasks=("vertex_cover", "knapsack"),
        modality="both",
        styles=("light", "dark-rotate10"),
    )
    build_split(request, folder)
    return open_split(folder)


@pytest.fixture(scope="module")
def rows(split):
    return list(split.rows())


def variants(rows):
    names = [TEXT if row["modality"] == TEXT else row["style"] for row in rows]
    return [Variant(Question.from_row(row), name) for row, name in zip(rows, names, strict=True)]


def best(row):
    return f"Answer: {row['reference_solution']}"


def test_equal_replies_give_no_difference_with_an_interval_of_no_width(rows):
    result = robustness(variants(rows), {row["id"]: [best(row)] for row in rows}, base="light")
    assert set(result["variants"]) == {"light", "dark-rotate10", "text"}
    for name, row in result["variants"].items():
        assert (row["n"], row["paired"], row["sr"], row["qr"]) == (6, 6, 1.0, 1.0)
        if name == "light":
            assert row["difference"] is None
        else:
            assert row["difference"]["sr"] == 0.0
            assert row["difference"]["ci"]["qr"] == [0.0, 0.0]


def test_a_difference_is_the_mean_over_tasks_of_the_change_of_each_instance(rows):
    replies = {row["id"]: [best(row)] for row in rows}
    broken = [row for row in rows if row["style"] == "dark-rotate10" and row["index"] == 0]
    for row in broken:
        replies[row["id"]] = ["no answer"]
    (lost,) = [row for row in rows if row["style"] == "light" and row["task"] == "knapsack"][:1]
    replies[lost["id"]] = ["no answer"]
    result = robustness(variants(rows), replies, base="light")["variants"]
    assert result["light"]["sr"] == pytest.approx((1 + 2 / 3) / 2)
    assert result["dark-rotate10"]["sr"] == pytest.approx(2 / 3)
    # knapsack 0 is lost in both, so only vertex cover changes: (-1/3 + 0) / 2
    assert result["dark-rotate10"]["difference"]["sr"] == pytest.approx(-1 / 6)
    assert result["text"]["difference"]["sr"] == pytest.approx(1 / 6)


def test_several_samples_are_averaged_within_an_instance(rows):
    replies = {row["id"]: [best(row), "no answer"] for row in rows}
    result = robustness(variants(rows), replies, base=TEXT)["variants"]
    assert {row["sr"] for row in result.values()} == {0.5}


def test_an_unknown_base_is_refused_with_the_known_ones(rows):
    replies = {row["id"]: [best(row)] for row in rows}
    with pytest.raises(InputError, match="unknown variant 'lihgt'; did you mean 'light'"):
        robustness(variants(rows), replies, base="lihgt")


def test_the_command_prints_a_table_and_json(split, rows, tmp_path):
    path = tmp_path / "replies.jsonl"
    path.write_text(
        "".join(json.dumps({"id": row["id"], "reply": best(row)}) + "\n" for row in rows)
    )
    options = ["--data", str(split.folder), "--responses", str(path)]
    table = CliRunner().invoke(command, options, standalone_mode=False)
    assert table.exception is None
    assert "dark-rotate10" in table.output
    plain = CliRunner().invoke(command, [*options, "--json"], standalone_mode=False)
    assert json.loads(plain.output)["variants"]["text"]["qr"] == 1.0
