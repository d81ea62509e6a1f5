"""Sheets in every format, and words that would break one."""

import csv
import io
import json

import pytest

from leaderboards.formats import Sheet, as_csv, as_latex, as_markdown, plain

NASTY = Sheet(
    "a | title",
    ("name", "value"),
    (("<b>x</b> | y\n# z", "1"), ("50 % & \\input{evil} $x_1$", "-")),
    ("note_1",),
)


def test_markdown_keeps_its_columns_whatever_stands_in_a_cell():
    lines = as_markdown([NASTY]).splitlines()
    assert lines[0] == r"### a \| title"
    assert lines[3] == "|---|---:|"
    assert lines[4] == r"| \<b\>x\</b\> \| y # z | 1 |"
    assert lines[-1] == r"- note\_1"


def test_latex_escapes_every_sign_that_it_reads():
    text = as_latex([NASTY])
    assert r"50 \% \& \textbackslash{}input\{evil\} \$x\_1\$ & - \\" in text
    assert text.count(r"\begin{tabular}{lr}") == 1


def test_csv_reads_back():
    text = as_csv(NASTY.columns, NASTY.rows)
    assert list(csv.reader(io.StringIO(text))) == [list(NASTY.columns), *map(list, NASTY.rows)]


def test_a_foreign_text_becomes_one_plain_line():
    assert plain("a\x1b[2J\u202eb\r\nc\ud800") == "a [2J b c?"
    assert len(plain("x" * 10_000)) == 200


def test_a_sheet_needs_all_cells():
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Sheet("t", ("a", "b"), (("x",),))


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "latex", "json"])
def test_show_prints_the_list_and_a_table_in_every_format(leaderboard, form):
    assert "mupo-1" in leaderboard("show", "--format", form).output
    shown = leaderboard("show", "np-engine-1", "--format", form).output
    assert "46.6" in shown
    assert "2510.16476" in shown


def test_show_as_json_gives_the_figures_one_by_one(leaderboard):
    figures = json.loads(leaderboard("show", "mupo-1", "--format", "json").output)["entries"]
    assert len(figures) == 9 * 7 * 2
    assert figures[0] == {
        "method": "not stated",
        "model": "GPT-5-Thinking*",
        "benchmark": "MathVerse",
        "metric": "acc@1",
        "value": 81.2,
        "paper": "arXiv:2604.00479",
        "where": "Table 1",
        "protocol": figures[0]["protocol"],
        "note": "",
    }


def test_show_says_what_does_not_add_up_and_why_a_figure_is_missing(leaderboard):
    shown = leaderboard("show", "mupo-3").output
    assert "printed 40.0, recomputed 39.37" in shown
    assert "digits lost" in leaderboard("show", "share-grpo-2").output


def test_show_takes_a_paper_and_its_single_figures(leaderboard):
    assert leaderboard("show", "dmpo").output.count("arXiv:2605.19461") >= 2
    assert "98.5" in leaderboard("show", "dmpo-text").output


def test_an_unknown_format_gets_the_nearest_name(leaderboard):
    from npbench.errors import InputError

    with pytest.raises(InputError, match="did you mean 'markdown'"):
        leaderboard("show", "--format", "markdwon")
