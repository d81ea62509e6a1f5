"""The published numbers: their averages recompute, and what is wrong with them is said."""

from decimal import Decimal
from importlib.resources import files

import pytest

from leaderboards.paper_figures import entries
from leaderboards.papers import find_table, load_papers, read_paper
from npbench.errors import InputError

TABLES = [table for paper in load_papers() for table in paper.tables]
AVERAGES = [
    (table, row, average, metric)
    for table in TABLES
    for average in table.averages
    for row in table.rows
    for metric in table.metrics[table.columns.index(average.column)]
]


def figure(table, row, column, metric):
    _, found = find_table(table)
    (line,) = (one for one in found.rows if one.name == row)
    return found.figure(line, column, metric).value


@pytest.mark.parametrize(
    ("table", "row", "average", "metric"),
    AVERAGES,
    ids=[f"{t.id}/{r.name}/{m}" for t, r, _, m in AVERAGES],
)
def test_every_printed_average_follows_from_its_columns_or_is_listed(table, row, average, metric):
    printed = table.figure(row, average.column, metric).value
    recomputed = table.recomputed(row, average, metric)
    if recomputed is None:
        missing = [table.figure(row, column, metric) for column in average.of]
        assert all(one.reason for one in missing if one.value is None)
        return
    half = Decimal(1).scaleb(printed.as_tuple().exponent) / 2
    listed = [
        one
        for one in table.inconsistencies
        if (one.row, one.column, one.metric) == (row.name, average.column, metric)
    ]
    if abs(recomputed - printed) <= half:
        assert not listed
        return
    (found,) = listed
    assert found.printed == printed
    assert found.recomputed == round(recomputed, -found.recomputed.as_tuple().exponent)


def test_the_averages_that_are_checked_are_many():
    assert len(AVERAGES) > 100
    assert sum(len(table.inconsistencies) for table in TABLES) == 9


@pytest.mark.parametrize(
    ("table", "row", "column", "metric", "value"),
    [
        ("mupo-1", "MUPO-Thinker-7B", "average", "acc@4", "58.8"),
        ("mupo-2", "VLAA-Thinker-7B", "average", "acc@1", "63.6"),
        ("mupo-3", "MUPO-3B", "mathematics", "acc@1", "43.5"),
        ("mupo-4", "3", "MathVista", "accuracy", "74.1"),
        ("dmpo-1", "MM-NP-Bench (vision), QR", "DMPO", "value", "43.1"),
        ("np-engine-1", "Qwen2.5-7B-NP (trained)", "overall", "AR", "46.6"),
        ("np-engine-1", "gpt-o3", "partition", "SR", "100"),
        ("share-grpo-5", "Share-GRPO, 6 per question", "MathVista", "accuracy", "75.4"),
        ("flowrl-1", "7B, FlowRL", "AMC23", "avg@16", "54.53"),
        ("flowrl-2", "FlowRL", "Codeforces", "rating", "1549.47"),
        ("dapo-1", "+ dynamic sampling (DAPO)", "AIME24", "avg@32", "50"),
        ("gpg-multimodal", "LISA, gIoU test", "GPG", "value", "50.4"),
        ("dr-grpo-1", "Oat-Zero-7B", "average", "accuracy", "51.4"),
        ("easyr1-1", "Qwen2.5-VL-7B, SAPO, AMP, 0", "Geometry3K", "after", "0.54"),
    ],
)
def test_figures_keep_the_digits_that_were_printed(table, row, column, metric, value):
    assert str(figure(table, row, column, metric)) == value


def test_the_two_tables_of_mupo_disagree_as_the_note_says():
    first = figure("mupo-1", "MUPO-Thinker-3B", "average", "acc@1")
    second = figure("mupo-3", "MUPO-3B", "mathematics", "acc@1")
    assert (first, second) == (Decimal("43.0"), Decimal("43.5"))
    paper, _ = find_table("mupo-3")
    assert any("43.0" in text and "43.5" in text for text in paper.notes_on("mupo-3"))


def test_the_stated_gains_of_dmpo_are_differences_and_ratios():
    def gain(row):
        return [figure("dmpo-1", row, method, "value") for method in ("GRPO", "DMPO")]

    grpo, dmpo = gain("MM-NP-Bench (vision), QR")
    assert (dmpo - grpo, round(dmpo / grpo, 3)) == (Decimal("4.7"), Decimal("1.122"))
    grpo, dmpo = gain("NP-Bench (text), QR")
    assert (dmpo - grpo, round(dmpo / grpo, 3)) == (Decimal("3.8"), Decimal("1.095"))
    grpo, dmpo = gain("mathematics, 6 sets, average")
    assert dmpo - grpo == Decimal("2.0")


def test_the_items_of_the_recipe_add_up():
    _, table = find_table("mupo-recipe")
    *parts, total = table.rows
    for place in (0, 1):
        assert sum(row.cells[0][place].value for row in parts) == total.cells[0][place].value


def test_the_gains_of_np_engine_are_those_of_its_rows():
    _, table = find_table("np-engine-ood-gain")
    mean = sum(cell[0].value for cell in table.rows[0].cells) / 5
    assert abs(mean - (Decimal("53.6") - Decimal("50.4"))) < Decimal("0.1")


def test_every_figure_has_a_source_a_protocol_and_a_value_or_a_reason():
    count = 0
    for paper in load_papers():
        for entry in entries(paper):
            count += 1
            assert entry.paper
            assert entry.where
            assert entry.protocol
            assert (entry.value is None) <= bool(entry.note)
    assert count > 800


def test_a_table_belongs_to_one_paper_and_one_alone():
    ids = [table.id for table in TABLES]
    assert len(set(ids)) == len(ids)
    for paper in load_papers():
        assert all(table.paper is paper.paper for table in paper.tables)
        assert all(table.id.startswith(f"{paper.paper.id}-") for table in paper.tables)


def test_a_figure_by_itself_names_method_model_benchmark_and_metric():
    paper, table = find_table("flowrl-1")
    one = next(entry for entry in entries(paper, table) if entry.method == "FlowRL")
    assert (one.benchmark, one.metric, str(one.value)) == ("AIME24", "avg@16", "23.95")
    assert (one.paper, one.where, one.note) == ("arXiv:2509.15207", "Table 1", "size 32B")
    paper, table = find_table("dmpo-1")
    one = list(entries(paper, table))[3]
    assert (one.method, one.benchmark, one.metric) == ("DMPO", "MM-NP-Bench (vision)", "QR")


GOOD = files("leaderboards").joinpath("published", "dr_grpo.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[paper]", "[paper", "is no TOML file"),
        ('short = "Dr. GRPO"', 'short = "Dr. GRPO"\ncolour = "red"', "paper.colour"),
        ('arxiv = "2503.20783"', 'arxiv = "2503"', "paper.arxiv"),
        ('arxiv = "2503.20783"\n', "", "an arXiv number, or a reason"),
        ("43.3, 80.0", "43.3", "has 6 cells"),
        ("43.3, 80.0", '43.3, ""', "a figure is a number, or the reason"),
        ("43.3, 80.0", "[43.3, 1.0], 80.0", "2 figures for the metrics accuracy"),
        ("43.3, 80.0", "true, 80.0", "a figure is a number, or the reason"),
        ('of = ["AIME24"', 'of = ["AIME25"', "names 'AIME25', no column"),
        ('tables = ["dr-grpo-1"]', 'tables = ["dr-grpo-2"]', "a note names 'dr-grpo-2'"),
        ('protocol = "', 'protocol = ""\nvenue = "', "paper.protocol"),
        ("[[note]]", "[[entry]]\nmethod = 'x'\n[[note]]", "model"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused_in_one_line(old, new, reason):
    assert old in GOOD
    with pytest.raises(InputError) as caught:
        read_paper(GOOD.replace(old, new, 1), name="x.toml")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_table_gets_the_nearest_name():
    with pytest.raises(InputError, match="did you mean 'mupo-1'"):
        find_table("mupo1")
