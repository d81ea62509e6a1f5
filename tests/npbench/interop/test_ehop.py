"""Knapsack files of EHOP, and one line for each way to break one."""

import re
from pathlib import Path

import pytest

from npbench.errors import InputError
from npbench.interop.ehop import read_knapsack
from npbench.tasks.knapsack import Items

FILES = Path(__file__).parent / "files"
GOOD = "2\n\n1 5 3\n2 4 2\n\n6\n"


def test_value_stands_before_weight_and_the_capacity_last():
    assert read_knapsack(FILES / "four.in") == Items(6, (3, 2, 5, 1), (5, 4, 7, 1))


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        ("2\n\n", "two\n\n", 1, "the number of items must be an integer, got 'two'"),
        ("2\n\n", "0\n\n", 1, "the number of items must lie in [1, 100000], got 0"),
        ("2\n\n", "3\n\n", 6, "3 items and a capacity must follow, got 3 lines"),
        ("2\n\n", "1\n\n", 4, "the capacity must follow the 1 stated items, got '2 4 2'"),
        ("6\n", "", 4, "2 items and a capacity must follow, got 2 lines"),
        ("6\n", "6\n7\n", 7, "nothing may follow the capacity, got '7'"),
        ("6\n", "nan\n", 6, "the capacity must be an integer, got 'nan'"),
        ("2 4 2", "2 4", 4, "an item must be 'id value weight', got '2 4'"),
        ("2 4 2", "3 4 2", 4, "the item's id must be 2, got 3"),
        ("2 4 2", "2 nan 2", 4, "an item's value must be an integer, got 'nan'"),
        ("2 4 2", "2 4 0", 4, "an item's weight must lie in [1, 1000000000000], got 0"),
        ("2 4 2", "2 4 1.5", 4, "an item's weight must be an integer, got '1.5'"),
    ],
)
def test_a_malformed_file_is_refused_in_one_line(tmp_path, old, new, line, rule):
    path = tmp_path / "broken.in"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(InputError, match=re.escape(rule)) as caught:
        read_knapsack(path)
    assert str(caught.value).startswith(f"{path} line {line}: ")
