"""The table against a slow loop and scipy's paired test, and its outputs."""

import csv
import io
import itertools
import math
import re
import statistics

import pytest
from scipy import stats

from leaderboards.formats import as_latex, as_markdown
from leaderboards.reproduction_table import (
    BASELINE,
    by_seed,
    rows_csv,
    rows_json,
    table_rows,
    table_sheets,
)
from leaderboards.seed_statistics import holm, over_seeds, paired

T_97_5_WITH_7_DEGREES = 2.364624


def test_every_mean_and_interval_is_that_of_a_slow_loop(made_up):
    results = made_up()
    rows = list(table_rows(results))
    assert {row.arm for row in rows} == {"base", "grpo", "dmpo", "dmpo-replication", "mupo"}
    assert {row.step for row in rows} == {25, 100}
    for row in rows:
        own = []
        for cell in results.cells.values():
            step = 0 if row.arm == "base" else row.step
            if (cell.arm, cell.split, cell.step) == (row.arm, row.split, step):
                own.append({**cell.metrics, **cell.cost}[row.measure])
        assert len(own) == row.value.n == 8
        assert row.value.mean == pytest.approx(statistics.fmean(own))
        half = T_97_5_WITH_7_DEGREES * statistics.stdev(own) / math.sqrt(8)
        assert row.value.high - row.value.mean == pytest.approx(half, abs=1e-6)
        assert row.value.mean - row.value.low == pytest.approx(half, abs=1e-6)


def test_a_difference_is_paired_by_seed_as_in_scipy(made_up):
    results = made_up()
    for row in table_rows(results):
        if row.arm == BASELINE:
            assert row.difference is None
            continue
        if row.measure.startswith("train"):
            continue
        own = by_seed(results, row.base, row.arm, row.split, row.measure, row.step)
        other = by_seed(results, row.base, BASELINE, row.split, row.measure, row.step)
        test = stats.ttest_rel([own[s] for s in own], [other[s] for s in own])
        low, high = test.confidence_interval(0.95)
        assert row.difference.p == pytest.approx(test.pvalue)
        assert (row.difference.low, row.difference.high) == pytest.approx((low, high))


def test_only_seeds_that_both_have_are_paired():
    found = paired({1: 0.5, 2: 0.7, 9: 100.0}, {1: 0.4, 2: 0.5, 8: -100.0})
    assert (found.n, found.mean) == (2, pytest.approx(0.15))
    assert paired({1: 0.5}, {2: 0.5}) is None


def test_one_seed_has_no_interval_and_seeds_that_agree_have_one_of_width_0():
    assert over_seeds([]) is None
    one = over_seeds([0.3])
    assert (one.mean, one.low, one.high, one.p) == (0.3, None, None, None)
    same = over_seeds([0.1 + 0.2, 0.3, 0.3])
    assert (same.low, same.high, same.p) == (same.mean, same.mean, 0.0)
    assert over_seeds([0.0, 0.0]).p == 1.0


def test_holm_rejects_what_the_step_down_rule_rejects():
    alpha = 0.05
    for p_values in itertools.product([0.001, 0.012, 0.02, 0.049, 0.3], repeat=4):
        named = {str(place): p for place, p in enumerate(p_values)}
        adjusted = holm(named)
        rejected = set()
        for place, name in enumerate(sorted(named, key=named.__getitem__)):
            if named[name] > alpha / (4 - place):
                break
            rejected.add(name)
        assert {name for name, p in adjusted.items() if p <= alpha} == rejected


def test_a_null_is_left_out_and_never_counts_as_0(made_up):
    results = made_up()
    key = next(k for k in results.cells if (k.arm, k.step) == ("mupo", 100))
    metrics = {**results.cells[key].metrics, "solution_distance": None}
    results.cells[key] = results.cells[key].model_copy(update={"metrics": metrics})
    (row,) = (
        row
        for row in table_rows(results)
        if (row.arm, row.step, row.split, row.measure)
        == ("mupo", 100, key.split, "solution_distance")
    )
    assert (row.value.n, row.difference.n) == (7, 7)


def test_sheets_show_values_differences_and_curves_for_each_base_and_split(made_up):
    sheets = table_sheets(made_up(bases=("early", "late")))
    assert len(sheets) == 2 * 3 * 3
    titles = [sheet.title for sheet in sheets]
    assert titles[:3] == [
        "early, in-domain",
        "early, in-domain: minus GRPO",
        "early, in-domain: pass@k",
    ]
    assert re.fullmatch(r"0\.\d{3} \[-?0\.\d{3}, 0\.\d{3}\]", sheets[0].rows[0][2])
    assert re.match(r"[+-]0\.\d{3} \[[+-]", sheets[1].rows[0][1])
    assert sheets[1].rows[0][0] == "base, not trained"
    assert "GRPO" not in [row[0] for row in sheets[1].rows]


def test_a_marker_stands_in_every_output(made_up):
    results = made_up(marker="smoke: not evidence")
    rows, sheets = list(table_rows(results)), table_sheets(results)
    for text in (as_markdown([sheets[0]]), as_latex([sheets[0]]), as_markdown([sheets[-1]])):
        assert "smoke: not evidence" in text
    lines = list(csv.DictReader(io.StringIO(rows_csv(rows, marker=results.manifest.marker))))
    assert {line["marker"] for line in lines} == {"smoke: not evidence"}
    assert rows_json(results, rows)["marker"] == "smoke: not evidence"


def test_the_csv_has_a_line_for_each_row_in_full_precision(made_up):
    rows = list(table_rows(made_up()))
    lines = list(csv.DictReader(io.StringIO(rows_csv(rows))))
    assert len(lines) == len(rows)
    assert float(lines[0]["mean"]) == pytest.approx(rows[0].value.mean, rel=1e-5)
    grpo = next(line for line in lines if line["arm"] == "grpo")
    assert grpo["difference"] == ""
