"""An oracle of VLMEvalKit's npmm evaluator, and splits to export.

The oracle is written from ``facts/tasks.md``, sections 5.1, 6.1 and 10.1, faults included, and
shares nothing with npbench: VLMEvalKit is in no package registry.
"""

import ast
import csv
import hashlib
import itertools
import json
import re
from collections import defaultdict

import pyarrow.parquet as pq
import pytest

from npbench.building import build_split
from npbench.splits import Request
from npbench.storage import open_split

GROUPS = {
    "constraint": ("NpGcpD", "NpFeedbackVertexSet"),
    "covering": ("NpVertexCover", "NpDominatingSet"),
    "partitioning": ("NpMinimumCut", "NpMaximumCut"),
    "subgraph": ("NpMaximumCliqueProblem", "NpMaximumSet"),
    "path": ("NpTsp", "NpHamiltonianCycle"),
}
SMALL_IS_GOOD = {
    "NpGcpD",
    "NpMinimumCut",
    "NpTsp",
    "NpVertexCover",
    "NpDominatingSet",
    "NpFeedbackVertexSet",
}


class WrongError(Exception):
    """The evaluator calls the reply invalid."""


def require(condition):
    if not condition:
        raise WrongError


def last(reply):
    require("Answer:" in reply)
    return reply.rsplit("Answer:", 1)[1].strip()


def walk(reply):
    """Entries of a bracket, of arrows, or of the first bracket inside other text."""
    text = last(reply)
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    elif "->" in text:
        text = text.replace("->", ",")
    else:
        inside = re.search(r"[{\[(]([^)}\]]*)[}\])]", text.replace("'", "").replace('"', ""))
        text = inside[1] if inside else text
    return [int(word) for word in text.split(",")]


def vertex_set(graph, reply):
    """A set of vertices: repeats vanish without a word."""
    inside = re.search(r"\[([^\]]*)\]", last(reply).replace("'", "").replace('"', ""))
    require(inside)
    chosen = {int(word) for word in inside[1].split(",") if word.strip()}
    require(all(0 <= vertex < len(graph) for vertex in chosen))
    return chosen


def pairs(graph):
    return {(int(u), int(v)) for u, row in graph.items() for v in row}


def tour(graph, reply):
    path = walk(reply)
    require(path[0] == path[-1] and len(path) == len(graph) + 1)
    require(sorted(path[:-1]) == list(range(len(graph))))
    return sum(graph[str(a)][str(b)] for a, b in itertools.pairwise(path))


def cycle(graph, reply):
    """Closed and simple; its length is not looked at, nor a vertex that stands alone."""
    path = walk(reply)
    require(path[0] == path[-1] and len(set(path[:-1])) == len(path) - 1)
    for a, b in itertools.pairwise(path):
        require(str(a) in graph and b in graph[str(a)])
    return len(path)


def colouring(graph, reply):
    colours = walk(reply)
    require(-1 not in colours and len(colours) == len(graph))
    require(all(colours[u] != colours[v] for u, v in pairs(graph)))
    return len(set(colours))


def clique(graph, reply):
    """Read behind the first ``Answer:``, and nothing may follow."""
    require("Answer:" in reply)
    chosen = ast.literal_eval(reply.split("Answer:", 1)[1].strip())
    require(isinstance(chosen, list) and chosen and len(set(chosen)) == len(chosen))
    chosen = [int(vertex) for vertex in chosen]
    require(all(str(vertex) in graph for vertex in chosen))
    edges = pairs(graph)
    require(all((u, v) in edges or (v, u) in edges for u in chosen for v in chosen if u != v))
    return len(chosen)


def independent_set(graph, reply):
    """Membership is compared as text, so neighbours written as numbers are none."""
    chosen = ast.literal_eval(last(reply).split("\n")[0])
    require(all(str(vertex) in graph for vertex in chosen))
    require(len(chosen) == len(set(chosen)))
    require(not any(str(v) in graph[str(u)] for u in chosen for v in chosen if u != v))
    return len(chosen)


def bisection(graph, reply):
    text = last(reply)
    require(text.startswith("[") and text.endswith("]"))
    first, second = (set(side) for side in ast.literal_eval(text))
    require(not first & second and first | second == {int(vertex) for vertex in graph})
    require(abs(len(first) - len(second)) <= len(graph) % 2)
    return sum(graph[str(u)].get(str(v), 0) for u in first for v in second)


def cut(graph, reply):
    inside = re.search(r"\[\s*\[([^\]]*)\]\s*,\s*\[([^\]]*)\]\s*\]", last(reply))
    require(inside)
    sides = [{int(w) for w in side.split(",") if w.strip()} for side in inside.groups()]
    require(not sides[0] & sides[1])
    require(sides[0] | sides[1] == set(range(graph["num_vertices"])))
    ends = {tuple(map(int, key.split("-"))): weight for key, weight in graph["edges"].items()}
    return sum(weight for (u, v), weight in ends.items() if (u in sides[0]) != (v in sides[0]))


def cover(graph, reply):
    chosen = vertex_set(graph, reply)
    require(all(u in chosen or v in chosen for u, v in pairs(graph)))
    return len(chosen)


def dominating(graph, reply):
    chosen = vertex_set(graph, reply)
    reached = chosen | {v for u, v in pairs(graph) if u in chosen}
    require(len(reached) == len(graph))
    return len(chosen)


def forest(graph, reply):
    chosen = vertex_set(graph, reply)
    left = {(u, v) for u, v in pairs(graph) if u < v and u not in chosen and v not in chosen}
    parent = list(range(len(graph)))
    for u, v in sorted(left):
        while parent[u] != u:
            u = parent[u]
        while parent[v] != v:
            v = parent[v]
        require(u != v)
        parent[u] = v
    return len(chosen)


VALIDATORS = {
    "NpTsp": tour,
    "NpHamiltonianCycle": cycle,
    "NpGcpD": colouring,
    "NpMaximumCliqueProblem": clique,
    "NpMaximumSet": independent_set,
    "NpMinimumCut": bisection,
    "NpMaximumCut": cut,
    "NpVertexCover": cover,
    "NpDominatingSet": dominating,
    "NpFeedbackVertexSet": forest,
}


def value_of(alias, graph, reply):
    """The value of a reply, None where it is invalid; whatever a validator raises is invalid."""
    try:
        return VALIDATORS[alias](graph, reply)
    except (WrongError, ValueError, SyntaxError, KeyError, IndexError, TypeError, AttributeError):
        return None


def evaluate(table, predictions):
    """SR and AR of a table in percent, by group and overall, as the evaluator prints them."""
    ratios = defaultdict(list)
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            alias = row["data_source"].split("/")[1]
            if alias not in VALIDATORS:
                continue
            value = value_of(alias, ast.literal_eval(row["graph"]), predictions[row["index"]])
            truth = float(row["ground_truth"])
            if value is None:
                ratios[alias].append((0, 0.0))
            else:
                ratio = truth / value if alias in SMALL_IS_GOOD else value / truth
                ratios[alias].append((1, ratio))
    groups = {}
    for name, aliases in GROUPS.items():
        means = [
            [sum(column) / len(column) for column in zip(*ratios[alias], strict=True)]
            for alias in aliases
            if ratios[alias]
        ]
        if means:
            groups[name] = [sum(column) / len(column) for column in zip(*means, strict=True)]
    overall = [sum(column) / len(groups) for column in zip(*groups.values(), strict=True)]
    result = {name: [round(100 * share, 1) for share in pair] for name, pair in groups.items()}
    return {**result, "overall": [round(100 * share, 1) for share in overall]}


@pytest.fixture(scope="session")
def npmm_value():
    return value_of


@pytest.fixture(scope="session")
def npmm_evaluate():
    return evaluate


@pytest.fixture(scope="session")
def picture_split(tmp_path_factory):
    """All fourteen tasks as pictures and as text."""
    folder = tmp_path_factory.mktemp("pictures") / "split"
    request = Request.make(suite="nano", split="test", seed=11, per_task=2, modality="both")
    build_split(request, folder)
    return open_split(folder)


@pytest.fixture(scope="session")
def text_split(tmp_path_factory):
    """The ten text tasks at two levels."""
    folder = tmp_path_factory.mktemp("text") / "split"
    request = Request.make(
        suite="np-bench", split="train", seed=11, per_task=2, levels=["easy", "medium"]
    )
    build_split(request, folder)
    return open_split(folder)


@pytest.fixture
def edited(tmp_path):
    """A copy of a split whose rows went through a function, shards and hashes made anew."""

    def edit(split, change):
        folder = tmp_path / "edited"
        (folder / "data").mkdir(parents=True)
        shards, count = {}, 0
        for name in split.manifest["shards"]:
            table = pq.read_table(split.folder / name)
            rows = change(table.to_pylist())
            pq.write_table(table.from_pylist(rows, schema=table.schema), folder / name)
            count += len(rows)
            shards[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        manifest = {**split.manifest, "shards": shards, "rows": count}
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return open_split(folder)

    return edit
