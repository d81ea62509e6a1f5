"""An independent decoder reads the graph back from the pixels."""

import io

import numpy as np
import pytest
from PIL import Image

from npbench.rendering.panels import GraphPanel
from npbench.rendering.picture import Picture, draw_picture
from npbench.rendering.styles import STYLES


def random_graph(seed, num_vertices, density):
    rng = np.random.default_rng(seed)
    return tuple(
        (u, v)
        for u in range(num_vertices)
        for v in range(u + 1, num_vertices)
        if rng.random() < density
    )


def colour(text):
    return np.array([int(text[i : i + 2], 16) for i in (1, 3, 5)], dtype=float)


def decoded_edges(picture: Picture, edge_colour: str) -> set[tuple[int, int]]:
    """Pairs of vertices between which no gap is seen, from nothing but pixels and centres."""
    image = np.asarray(Image.open(io.BytesIO(picture.png)).convert("RGB"), dtype=float)
    paper = image[0, 0]
    contrast = colour(edge_colour) - paper
    strength = (image - paper) @ contrast / (contrast @ contrast)
    vertices = picture.layout["vertices"]
    found = set()
    for i, first in enumerate(vertices):
        for second in vertices[i + 1 :]:
            start = np.array([first["x"], first["y"]])
            step = np.array([second["x"], second["y"]]) - start
            length = float(np.hypot(*step))
            away = np.arange(first["r"] + 2, length - second["r"] - 2, 0.5)
            seen = (start + away[:, None] * step / length).astype(int)
            if np.all(strength[seen[:, 1], seen[:, 0]] > 0.4):
                found.add((first["id"], second["id"]))
    return found


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
@pytest.mark.parametrize(
    ("num_vertices", "size"),
    [(5, 256), (6, 256), (7, 256), (8, 256), (8, 512), (10, 512), (12, 512), (12, 768)],
)
@pytest.mark.parametrize("density", [0.3, 0.6])
def test_the_edges_of_a_small_graph_are_recovered_from_the_pixels(
    style, num_vertices, size, density
):
    edges = random_graph(num_vertices * size, num_vertices, density)
    picture = draw_picture(
        [GraphPanel(num_vertices=num_vertices, edges=edges, size=size)], style=style
    )
    assert decoded_edges(picture, style.edge) == set(edges)


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
@pytest.mark.parametrize("num_vertices", [14, 16, 18, 20, 21, 24])
def test_the_edges_of_a_large_graph_are_recovered_from_the_pixels(style, num_vertices):
    edges = random_graph(num_vertices, num_vertices, 0.35)
    picture = draw_picture(
        [GraphPanel(num_vertices=num_vertices, edges=edges, size=768)], style=style
    )
    assert decoded_edges(picture, style.edge) == set(edges)


@pytest.mark.parametrize("num_vertices", [30, 35, 40])
def test_the_edges_of_a_grown_picture_are_recovered_from_the_pixels(num_vertices):
    style = STYLES["light"]
    edges = random_graph(num_vertices, num_vertices, 0.25)
    picture = draw_picture(
        [GraphPanel(num_vertices=num_vertices, edges=edges, size=768)], style=style
    )
    assert picture.width > 768
    assert decoded_edges(picture, style.edge) == set(edges)


@pytest.mark.parametrize("num_vertices", [3, 5, 9, 16])
def test_all_edges_of_a_complete_graph_are_recovered(num_vertices):
    style = STYLES["paper"]
    edges = random_graph(0, num_vertices, 1.1)
    picture = draw_picture(
        [GraphPanel(num_vertices=num_vertices, edges=edges, size=768)], style=style
    )
    assert decoded_edges(picture, style.edge) == set(edges)


@pytest.mark.parametrize("seed", range(6))
def test_edges_between_given_positions_are_recovered(seed):
    rng = np.random.default_rng(seed)
    coordinates = tuple(map(tuple, rng.integers(0, 101, (9, 2)).tolist()))
    edges = random_graph(seed, 9, 0.4)
    style = STYLES["light"]
    panel = GraphPanel(num_vertices=9, edges=edges, size=768, coordinates=coordinates)
    assert decoded_edges(draw_picture([panel], style=style), style.edge) == set(edges)
