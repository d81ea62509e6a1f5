"""The proof of legibility: what it accepts, and the sentence for each rule that is broken."""

import json

import numpy as np
import pytest

from npbench.rendering.legibility import flaws
from npbench.rendering.panels import GraphPanel, TablePanel
from npbench.rendering.picture import draw_picture
from npbench.rendering.styles import STYLES


def vertex(index, x, y, r=15.0):
    return {"id": index, "x": x, "y": y, "r": r}


def edge(u, v, *points):
    return {"u": u, "v": v, "points": [list(point) for point in points]}


def label(text, box, of):
    return {"text": text, "box": box, "of": of}


def cell(row, col, text, box, text_box):
    return {"row": row, "col": col, "text": text, "box": box, "text_box": text_box}


def good():
    """Three vertices in a row of which the first two are joined, and a table of two cells."""
    return {
        "width": 300,
        "height": 200,
        "vertices": [vertex(0, 50, 50), vertex(1, 150, 50), vertex(2, 250, 50)],
        "edges": [edge(0, 1, (50, 50), (150, 50))],
        "labels": [
            label("0", [46, 44, 54, 55], "vertex 0"),
            label("1", [146, 44, 154, 55], "vertex 1"),
            label("2", [246, 16, 254, 30], "vertex 2"),
            label("Costs", [20, 100, 60, 112], "table 0"),
        ],
        "tables": [
            {
                "box": [20, 120, 100, 140],
                "cells": [
                    cell(0, 0, "7", [20, 120, 60, 140], [30, 124, 40, 136]),
                    cell(0, 1, "", [60, 120, 100, 140], None),
                ],
            }
        ],
    }


def test_a_legible_layout_has_no_flaw():
    assert flaws(good()) == []


def vertex_off_canvas(layout):
    layout["vertices"][0]["x"] = 10.0


def label_off_canvas(layout):
    layout["labels"][3]["box"] = [-4, 100, 36, 112]


def table_off_canvas(layout):
    layout["height"] = 135


def edge_off_canvas(layout):
    layout["edges"] = [edge(0, 1, (50, 50), (100, -30), (150, 50))]


def vertices_too_close(layout):
    layout["vertices"][1].update(x=83.0)


def vertex_on_table(layout):
    layout["vertices"][0]["y"] = 110.0


def edge_near_vertex(layout):
    layout["edges"] = [edge(0, 2, (50, 50), (250, 50))]


def edge_misses(layout):
    layout["edges"] = [edge(0, 1, (50, 50), (150, 62))]


def edge_twice(layout):
    layout["edges"].append(edge(1, 0, (150, 50), (50, 50)))


def edge_to_nowhere(layout):
    layout["edges"] = [edge(0, 9, (50, 50), (150, 90))]


def edge_on_table(layout):
    layout["edges"] = [edge(0, 1, (50, 50), (80, 130), (150, 50))]


def edges_on_each_other(layout):
    layout["edges"].append(edge(0, 2, (50, 50), (110, 52), (200, 100), (250, 50)))


def edges_crossing_flat(layout):
    layout["width"] = 700
    layout["vertices"] += [vertex(3, 150, 170, r=3), vertex(4, 650, 170, r=3)]
    layout["vertices"] += [vertex(5, 150, 180, r=3), vertex(6, 650, 180, r=3)]
    layout["edges"] += [edge(3, 6, (150, 170), (650, 180)), edge(4, 5, (650, 170), (150, 180))]


def label_too_small(layout):
    layout["labels"][0]["box"] = [46, 45, 54, 55]


def labels_overlapping(layout):
    layout["labels"].append(label("0-1", [55, 104, 80, 116], "graph"))


def label_on_table(layout):
    layout["labels"][3]["box"] = [20, 110, 60, 122]


def label_at_foreign_vertex(layout):
    layout["labels"].append(label("x", [66, 20, 76, 50], "graph"))


def label_on_foreign_edge(layout):
    layout["labels"][3]["box"] = [90, 40, 110, 52]


def outside_label_on_own_edge(layout):
    layout["labels"][0]["box"] = [68, 44, 76, 55]


def label_on_rim(layout):
    layout["labels"][0]["box"] = [38, 44, 48, 55]


def label_too_far(layout):
    layout["labels"][2]["box"] = [246, 6, 254, 17]


def label_nearer_to_another(layout):
    layout["labels"][0]["box"] = [170, 60, 178, 71]


def vertex_without_label(layout):
    del layout["labels"][1]


def vertex_with_two_labels(layout):
    layout["labels"].append(label("1", [146, 70, 154, 81], "vertex 1"))


def vertices_of_one_name(layout):
    layout["labels"][1]["text"] = "0"


def cells_overlapping(layout):
    layout["tables"][0]["cells"][1]["box"] = [57, 120, 100, 140]


def cells_apart(layout):
    layout["tables"][0]["cells"][1]["box"] = [63, 120, 100, 140]


def cell_too_low(layout):
    layout["tables"][0]["cells"][1]["box"] = [60, 120, 100, 138]


def cell_missing(layout):
    layout["tables"][0]["cells"].append(cell(1, 0, "", [20, 140, 60, 160], None))


def text_leaves_cell(layout):
    layout["tables"][0]["cells"][0]["text_box"] = [30, 124, 63, 136]


def text_too_small(layout):
    layout["tables"][0]["cells"][0]["text_box"] = [30, 124, 40, 134]


def text_without_place(layout):
    layout["tables"][0]["cells"][1]["text"] = "9"


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (vertex_off_canvas, "vertex 0 lies 5.0 px outside the canvas"),
        (label_off_canvas, "label 'Costs' of table 0 lies 4.0 px outside the canvas"),
        (table_off_canvas, "table 0 lies 5.0 px outside the canvas"),
        (edge_off_canvas, "edge 0-1 lies 30.0 px outside the canvas"),
        (vertices_too_close, "vertex 0 and vertex 1 are 3.0 px apart, at least 4 needed"),
        (vertex_on_table, "vertex 0 lies on table 0"),
        (edge_near_vertex, "edge 0-2 passes -15.0 px from the disc of vertex 1, at least 3"),
        (edge_misses, "edge 0-1 misses the centre of vertex 1 by 12.0 px"),
        (edge_twice, "edge 1-0 is drawn twice"),
        (edge_to_nowhere, "edge 0-9 ends in vertex 9, which is not drawn"),
        (edge_on_table, "edge 0-1 touches table 0"),
        (edges_on_each_other, "edge 0-1 and edge 0-2 leave vertex 0 1.9 degrees apart"),
        (edges_crossing_flat, "edge 3-6 and edge 4-5 cross at 2.3 degrees, at least 3 needed"),
        (label_too_small, "label '0' of vertex 0 is 10 px high, at least 11 needed"),
        (labels_overlapping, "label 'Costs' of table 0 and label '0-1' of graph are 0.0 px apart"),
        (label_on_table, "label 'Costs' of table 0 touches table 0"),
        (label_at_foreign_vertex, "label 'x' of graph is 1.0 px from the disc of vertex 0"),
        (label_on_foreign_edge, "label 'Costs' of table 0 is 0.0 px from edge 0-1"),
        (outside_label_on_own_edge, "label '0' of vertex 0 is 0.0 px from edge 0-1"),
        (label_on_rim, "label '0' of vertex 0 ends 1.6 px inside its disc, at least 2.5 needed"),
        (label_too_far, "label '2' of vertex 2 is 18.0 px away, at most 8 allowed"),
        (label_nearer_to_another, "label '0' of vertex 0 is nearer to vertex 1"),
        (vertex_without_label, "vertex 1 has 0 labels, 1 needed"),
        (vertex_with_two_labels, "vertex 1 has 2 labels, 1 needed"),
        (vertices_of_one_name, "vertex 0 and vertex 1 have the same label"),
        (cells_overlapping, "cell (0, 1) of table 0 overlaps cell (0, 0) by 3 px"),
        (cells_apart, "cell (0, 1) of table 0 leaves 3 px to cell (0, 0)"),
        (cell_too_low, "cell (0, 1) of table 0 leaves 2 px to the bottom of the table"),
        (cell_missing, "table 0 has 3 cells for 2 rows and 2 columns"),
        (text_leaves_cell, "cell (0, 0) of table 0 is left by its text '7' by 3 px"),
        (text_too_small, "cell (0, 0) of table 0 has a text 10 px high, at least 11 needed"),
        (text_without_place, "cell (0, 1) of table 0 has no place for its text '9'"),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_each_broken_rule_is_named_with_its_things_and_distance(spoil, sentence):
    layout = good()
    spoil(layout)
    assert any(sentence in flaw for flaw in flaws(layout)), flaws(layout)


def random_edges(rng, num_vertices, density):
    pairs = [(u, v) for u in range(num_vertices) for v in range(u + 1, num_vertices)]
    return tuple(pair for pair in pairs if rng.random() < density)


@pytest.mark.parametrize("num_vertices", [1, 2, 3, 4, 7, 12, 20, 21, 33, 40])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.1])
def test_every_drawn_graph_passes_the_proof_from_its_stored_layout(num_vertices, density):
    rng = np.random.default_rng(num_vertices)
    edges = random_edges(rng, num_vertices, density)
    panel = GraphPanel(num_vertices=num_vertices, edges=edges, size=256, title="A graph")
    picture = draw_picture([panel], style=STYLES["light"])
    stored = json.loads(json.dumps(picture.layout))
    assert flaws(stored) == []
    assert {(e["u"], e["v"]) for e in stored["edges"]} == set(edges)
    assert len(stored["vertices"]) == num_vertices


@pytest.mark.parametrize("seed", range(10))
def test_every_drawn_map_with_its_matrix_passes_the_proof(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 22))
    coordinates = tuple(map(tuple, rng.integers(0, 101, (n, 2)).tolist()))
    matrix = rng.integers(0, 142, (n, n))
    panels = [
        GraphPanel(num_vertices=n, edges=(), size=512, coordinates=coordinates, title="Map"),
        TablePanel(
            columns=("", *map(str, range(n))),
            rows=tuple((str(i), *map(str, row)) for i, row in enumerate(matrix)),
            title="Distances",
        ),
    ]
    for arrangement in ("row", "column"):
        picture = draw_picture(panels, style=STYLES["dark"], arrangement=arrangement)
        assert flaws(json.loads(json.dumps(picture.layout))) == []
