"""TSPLIB files: every distance and layout by hand, and one line for each way to break a file."""

import re
from pathlib import Path

import pytest

from npbench.errors import InputError
from npbench.interop.tsplib import read_tour, read_tsp

FILES = Path(__file__).parent / "files"
MATRIX = ((0, 3, 4, 2, 7), (3, 0, 5, 6, 1), (4, 5, 0, 8, 9), (2, 6, 8, 0, 4), (7, 1, 9, 4, 0))
EXPLICIT = """\
NAME : broken
TYPE : TSP
DIMENSION : 3
EDGE_WEIGHT_TYPE : EXPLICIT
EDGE_WEIGHT_FORMAT : FULL_MATRIX
EDGE_WEIGHT_SECTION
0 1 2
1 0 3
2 3 0
EOF
"""
PLANE = """\
NAME : broken
TYPE : TSP
DIMENSION : 3
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 3 4
3 0 8
EOF
"""
TOUR = "TYPE : TOUR\nDIMENSION : 3\nTOUR_SECTION\n1\n3\n2\n-1\nEOF\n"


@pytest.mark.parametrize(
    "layout", ["full_matrix", "upper_row", "lower_row", "upper_diag_row", "lower_diag_row"]
)
def test_every_layout_gives_the_same_matrix(layout):
    cities = read_tsp(FILES / f"{layout}.tsp")
    assert cities.distances == MATRIX
    assert cities.coordinates is None


@pytest.mark.parametrize(
    ("kind", "first_row"),
    [("euc_2d", (0, 3, 10, 10)), ("ceil_2d", (0, 3, 10, 11)), ("att", (0, 1, 4, 4))],
)
def test_distances_in_the_plane_round_as_tsplib_does(kind, first_row):
    cities = read_tsp(FILES / f"{kind}.tsp")
    assert cities.distances[0] == first_row
    assert cities.coordinates is None, "2.5 is no whole number"


def test_whole_coordinates_are_kept(tmp_path):
    path = tmp_path / "plane.tsp"
    path.write_text(PLANE)
    cities = read_tsp(path)
    assert cities.coordinates == ((0, 0), (3, 4), (0, 8))
    assert cities.distances == ((0, 5, 8), (5, 0, 5), (8, 5, 0))


def test_places_on_earth_have_distances_and_no_plane():
    cities = read_tsp(FILES / "geo.tsp")
    assert cities.distances[0][1] == 153
    assert cities.distances[2][3] == 10020, "a quarter of 2 * 3.141592 * 6378.388, rounded up"
    assert cities.coordinates is None


def test_a_tour_is_closed_and_counts_from_zero():
    assert read_tour(FILES / "five.opt.tour") == [0, 3, 4, 1, 2, 0]


def test_a_name_is_not_needed(tmp_path):
    path = tmp_path / "plane.tsp"
    path.write_text(PLANE.removeprefix("NAME : broken\n"))
    assert len(read_tsp(path).distances) == 3


def test_what_follows_the_end_is_no_part_of_the_file(tmp_path):
    path = tmp_path / "plane.tsp"
    path.write_text(PLANE + "\nnotes of an archive\n")
    assert len(read_tsp(path).distances) == 3


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "rule"),
    [
        (EXPLICIT, "TYPE : TSP\n", "", 9, "ends without the keyword TYPE"),
        (EXPLICIT, "TYPE : TSP", "TYPE : ATSP", 2, "TYPE must be TSP, got 'ATSP'"),
        (EXPLICIT, "DIMENSION : 3\n", "", 9, "ends without the keyword DIMENSION"),
        (EXPLICIT, "DIMENSION : 3", "DIMENSION : 2", 3, "must lie in [3, 5000], got 2"),
        (EXPLICIT, "DIMENSION : 3", "DIMENSION : three", 3, "must be an integer, got 'three'"),
        (EXPLICIT, "DIMENSION : 3", "DIMENSION : 4", 9, "must hold 16 numbers (FULL_MATRIX of 4"),
        (EXPLICIT, "2 3 0", "2 3 0 0", 9, "must hold 9 numbers (FULL_MATRIX of 3 cities), got 10"),
        (EXPLICIT, "0 1 2\n1 0 3\n2 3 0\n", "", 6, "must hold 9 numbers"),
        (EXPLICIT, "1 0 3", "1 0 nan", 8, "cities 2 and 3 must be an integer, got 'nan'"),
        (EXPLICIT, "1 0 3", "1 0 NAN", 8, "cities 2 and 3 must be an integer, got 'NAN'"),
        (EXPLICIT, "1 0 3", "1 0 2.5", 8, "must be an integer, got '2.5'"),
        (EXPLICIT, "1 0 3", "1 0 -3", 8, "must lie in [0, 1000000000000], got -3"),
        (EXPLICIT, "1 0 3", "1 7 3", 8, "city 2 to itself must be 0, got 7"),
        (EXPLICIT, "2 3 0", "2 4 0", 9, "symmetric, got 4 from city 3 to 2 and 3 back"),
        (EXPLICIT, "EDGE_WEIGHT_FORMAT : FULL_MATRIX\n", "", 9, "the keyword EDGE_WEIGHT_FORMAT"),
        (EXPLICIT, "FULL_MATRIX", "FULL_MATRX", 5, "unknown EDGE_WEIGHT_FORMAT 'FULL_MATRX'"),
        (EXPLICIT, "EXPLICIT", "EXPLICT", 4, "unknown EDGE_WEIGHT_TYPE 'EXPLICT'"),
        (EXPLICIT, "EDGE_WEIGHT_SECTION\n0 1 2\n1 0 3\n2 3 0\n", "", 6, "the section EDGE_WEIGHT"),
        (EXPLICIT, "EDGE_WEIGHT_SECTION\n", "EDGE_WEIGHT_SECTION : 0\n", 6, "a line of its own"),
        (EXPLICIT, "EOF", "EDGE_WEIGHT_SECTION\nEOF", 10, "EDGE_WEIGHT_SECTION is repeated"),
        (EXPLICIT, "EOF", "DIMENSION : 3\nEOF", 10, "DIMENSION is repeated"),
        (EXPLICIT, "EOF", "FIXED_EDGES_SECTION\n1 2\nEOF", 10, "unknown TSPLIB keyword"),
        (EXPLICIT, "EOF", "TOUR_SECTION\n1\nEOF", 10, "belongs in a file of TYPE TOUR"),
        (EXPLICIT, "NAME : broken", "hello", 1, "unknown TSPLIB keyword 'hello'"),
        (PLANE, "NODE_COORD_SECTION\n1 0 0\n2 3 4\n3 0 8\n", "", 5, "the section NODE_COORD_SECT"),
        (PLANE, "3 0 8\n", "", 7, "must hold DIMENSION = 3 cities, got 2"),
        (PLANE, "3 0 8", "2 0 8", 8, "city 2 has two places"),
        (PLANE, "3 0 8", "4 0 8", 8, "a city must lie in [1, 3], got 4"),
        (PLANE, "3 0 8", "3 0", 8, "must be 'city x y', got '3 0'"),
        (PLANE, "3 0 8", "3 0 nan", 8, "a coordinate must be a number, got 'nan'"),
        (PLANE, "3 0 8", "3 0 1e10", 8, "a coordinate must lie in [-1e9, 1e9]"),
        (
            PLANE,
            "_2D",
            "_2D\nEDGE_WEIGHT_FORMAT : UPPER_ROW",
            5,
            "must be FUNCTION, got 'UPPER_ROW'",
        ),
        (PLANE, "EOF", "EDGE_WEIGHT_SECTION\n1\nEOF", 9, "contradicts EDGE_WEIGHT_TYPE EUC_2D"),
        (PLANE, "EOF", "DISPLAY_DATA_SECTION\n1 0 0\nEOF", 10, "DISPLAY_DATA_SECTION must hold"),
        (TOUR, "-1\n", "", 7, "the tour must end with -1"),
        (TOUR, "3\n2\n", "3\n", 6, "must hold DIMENSION = 3 cities, got 2"),
        (TOUR, "\n3\n2\n", "\n3\n3\n", 6, "city 3 is visited twice"),
        (TOUR, "\n3\n2\n", "\n3\nnan\n", 6, "a city must be an integer, got 'nan'"),
        (TOUR, "-1\n", "-1\n2\n", 7, "nothing may follow the -1"),
        (TOUR, "TYPE : TOUR", "TYPE : TSP", 1, "TYPE must be TOUR, got 'TSP'"),
        (TOUR, "TOUR_SECTION\n1\n3\n2\n-1\n", "", 3, "the section TOUR_SECTION"),
    ],
)
def test_a_malformed_file_is_refused_in_one_line(tmp_path, text, old, new, line, rule):
    path = tmp_path / "broken.tsp"
    assert old in text
    path.write_text(text.replace(old, new, 1))
    read = read_tour if text is TOUR else read_tsp
    with pytest.raises(InputError, match=re.escape(rule)) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path} line {line}: ")
    assert "\n" not in str(caught.value)
