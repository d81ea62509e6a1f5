"""DIMACS graphs: single and doubled edge lists, and one line for each way to break a file."""

import re
from pathlib import Path

import pytest

from npbench.errors import InputError
from npbench.interop.dimacs import read_dimacs

FILES = Path(__file__).parent / "files"
HOUSE = ((0, 1), (0, 3), (0, 4), (1, 2), (1, 4), (2, 3))
GOOD = "c triangle\np edge 3 3\ne 1 2\ne 2 3\ne 1 3\n"


@pytest.mark.parametrize(
    "name", ["house.col", "house_doubled.col", "house_doubled_once_counted.col"]
)
def test_a_graph_is_read_however_its_edges_are_counted(name):
    graph = read_dimacs(FILES / name)
    assert (graph.num_vertices, graph.edges) == (5, HOUSE)


def test_isolated_vertices_are_kept_and_blank_lines_skipped():
    graph = read_dimacs(FILES / "house.clq")
    assert (graph.num_vertices, len(graph.edges)) == (6, 7)
    assert graph.neighbours[5] == ()


def test_a_graph_without_edges_is_a_graph(tmp_path):
    path = tmp_path / "empty.col"
    path.write_text("p edge 2 0\n")
    assert read_dimacs(path).edges == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        ("p edge 3 3\n", "", 2, "an edge must follow the 'p' line"),
        ("p edge 3 3\ne 1 2\ne 2 3\ne 1 3\n", "c end\n", 2, "the file has no 'p edge N M' line"),
        ("p edge 3 3", "p edge 3 3\np edge 3 3", 3, "the 'p' line of line 2 is repeated"),
        ("p edge 3 3", "p edge 3 4", 2, "4 edges are stated, but 3 are listed"),
        ("p edge 3 3", "p edge 3 6", 2, "6 edges are stated, but 3 are listed"),
        ("p edge 3 3", "p edge 3", 2, "expected 'p edge N M' or 'p col N M', got 'p edge 3'"),
        ("p edge 3 3", "p cnf 3 3", 2, "got 'p cnf 3 3'"),
        ("p edge 3 3", "p edge nan 3", 2, "number of vertices must be an integer, got 'nan'"),
        ("p edge 3 3", "p edge 0 3", 2, "number of vertices must lie in [1, 100000], got 0"),
        ("e 2 3", "e 2 nan", 4, "a vertex must be an integer, got 'nan'"),
        ("e 2 3", "e 2 4", 4, "a vertex must lie in [1, 3], got 4"),
        ("e 2 3", "e 0 2", 4, "a vertex must lie in [1, 3], got 0"),
        ("e 2 3", "e 2 2", 4, "vertex 2 is joined to itself"),
        ("e 2 3", "e 2 3 5", 4, "expected 'e U V', got 'e 2 3 5'"),
        ("e 2 3", "n 2 3", 4, "a line must start with c, p or e, got 'n'"),
        ("e 2 3", "e 2 1", 5, "edge 1-2 stands 2 times, and not every edge stands twice"),
        ("e 2 3\ne 1 3", "e 2 1", 2, "3 edges are stated, but 2 are listed (each twice)"),
    ],
)
def test_a_malformed_file_is_refused_in_one_line(tmp_path, old, new, line, rule):
    path = tmp_path / "broken.col"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(InputError, match=re.escape(rule)) as caught:
        read_dimacs(path)
    assert str(caught.value).startswith(f"{path} line {line}: ")
