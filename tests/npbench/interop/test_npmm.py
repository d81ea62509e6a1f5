"""VLMEvalKit's npmm table: read, written, and scored by an oracle of its evaluator."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

from npbench.errors import InputError
from npbench.interop.exports import export_split
from npbench.interop.instances import read_instance, read_instances
from npbench.interop.npmm import ALIASES, COLUMNS, npmm_reply, npmm_row, read_npmm
from npbench.policies import as_reply
from npbench.scoring import Question, score
from npbench.splits import load
from npbench.task import Budget
from npbench.tasks import TASKS, get_task

FILES = Path(__file__).parent / "files"


@pytest.fixture(scope="module")
def table(picture_split, tmp_path_factory):
    out = tmp_path_factory.mktemp("npmm") / "out"
    export_split(picture_split, "npmm", out)
    return out / "npmm.tsv"


def test_a_table_holds_all_ten_tasks():
    found = read_instances(FILES / "npmm.tsv")
    assert {ALIASES[one.task.name] for one in found} == set(ALIASES.values())
    assert [one.reference for one in found] == [12, 2, 3, 2, 2, 1, 7, 1, 1, 1]
    assert found[0].prompt == 'Visit "all" cities.\nAnswer?'
    assert found[1].instance.num_vertices == 3, "an isolated vertex has a key"
    for one in found:
        assert one.task.reference(one.instance, Budget()).objective == one.reference


def test_a_short_image_is_the_picture_of_another_row():
    found = read_instances(FILES / "npmm.tsv")
    assert found[0].image is not None
    assert found[0].image.startswith(b"\x89PNG")
    assert all(one.image == found[0].image for one in found)


def test_one_row_is_chosen_by_its_index():
    assert read_instance(FILES / "npmm.tsv", key="7").task.name == "vertex_cover"
    with pytest.raises(InputError, match="line 2: row 0: the task is tsp, not knapsack"):
        read_npmm(FILES / "npmm.tsv", task="knapsack")


def test_an_exported_table_reads_back_as_the_same_instances(picture_split, table):
    rows = [row for row in picture_split.rows() if row["task"] in ALIASES and row["image"]]
    found = read_npmm(table)
    assert len(found) == len(rows) == 20
    for one, row in zip(found, rows, strict=True):
        encoded = {**json.loads(row["instance"]), "coordinates": None}
        assert one.instance == one.task.decode(encoded)
        assert one.reference == row["reference_objective"]
        assert one.image == row["image"]
        assert one.prompt.startswith(row["prompt"])
        assert one.prompt.count("nothing after it") >= 1


def test_pandas_reads_the_table_as_vlmevalkit_does(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(table, sep="\t")
    assert list(frame.columns) == [*COLUMNS, "id", "level"]
    assert list(frame["index"]) == list(range(20))
    assert frame["ground_truth"].dtype.kind == "i"
    assert all(isinstance(ast.literal_eval(graph), dict) for graph in frame["graph"])
    assert frame["question"].str.contains("\n").all()


def test_reference_answers_score_100_and_100(picture_split, table, npmm_evaluate):
    rows = [row for row in picture_split.rows() if row["task"] in ALIASES and row["image"]]
    replies = {
        str(index): npmm_reply(json.loads(row["reference_solution"]))
        for index, row in enumerate(rows)
    }
    result = npmm_evaluate(table, replies)
    assert result.pop("overall") == [100.0, 100.0]
    assert list(result.values()) == [[100.0, 100.0]] * 5


@pytest.mark.parametrize("solver", ["trivial", "random", "greedy"])
def test_scores_of_valid_answers_agree_with_ours(picture_split, table, npmm_evaluate, solver):
    rows = [row for row in picture_split.rows() if row["task"] in ALIASES and row["image"]]
    rng = np.random.default_rng(3)
    replies = []
    for row in rows:
        task = TASKS[row["task"]]
        solution = task.solvers[solver](task.decode(json.loads(row["instance"])), rng)
        replies.append(as_reply(solution))
    ours = score(
        [Question.from_row(row) for row in rows],
        {row["id"]: [reply] for row, reply in zip(rows, replies, strict=True)},
    )
    theirs = npmm_evaluate(table, {str(i): reply for i, reply in enumerate(replies)})
    assert theirs["overall"][0] == 100.0
    for group in ("constraint", "covering", "partitioning", "subgraph"):
        assert theirs[group][1] == pytest.approx(100 * ours["groups"][group]["qr"], abs=0.06)


def test_a_cycle_is_counted_with_its_start_twice_there():
    rows = load("nano", "nano", "test", 5, tasks=["longest_cycle"], per_task=1)
    task = TASKS["longest_cycle"]
    instance = task.decode(json.loads(rows[0].instance))
    row = npmm_row(task, instance, reference=rows[0].reference_objective)
    assert row["ground_truth"] == rows[0].reference_objective + 1


@pytest.mark.parametrize("alias", list(ALIASES.values()))
def test_verdicts_agree_on_mutated_replies(alias, npmm_value):
    task = get_task(alias)
    rng = np.random.default_rng(8)
    compared = 0
    for row in load("nano", "nano", "train", 21, tasks=[task.name], per_task=6, modality="text"):
        instance = task.decode(json.loads(row.instance))
        graph = ast.literal_eval(npmm_row(task, instance, reference=1)["graph"])
        for solver in ("trivial", "random", "greedy"):
            solution = task.solvers[solver](instance, rng)
            for answer in mutations(solution, rng):
                if known_fault(alias, answer):
                    continue
                reply = f"I think.\nAnswer: {json.dumps(answer)}"
                verdict = task.verify(instance, task.parse(reply))
                expected = verdict.objective
                if alias == "NpHamiltonianCycle" and verdict.feasible:
                    expected += 1
                assert npmm_value(alias, graph, reply) == expected, (answer, verdict)
                compared += 1
    assert compared > 50


def mutations(solution, rng):
    """The solution, and some that drop, add, move or change an entry."""
    yield solution
    if solution and isinstance(solution[0], list):
        first, second = solution
        yield [second, first]
        if first:
            yield [first[1:], second]
            yield [first[1:], [*second, first[0]]]
            yield [[*first[1:], 99], second]
        return
    place = int(rng.integers(len(solution))) if solution else 0
    yield solution[:place] + solution[place + 1 :]
    yield [*solution, 99]
    yield [*solution[:place], int(rng.integers(5)), *solution[place + 1 :]]
    yield solution[::-1]


def known_fault(alias, answer):
    """Replies on which the public evaluator is known to differ; the table below has each."""
    flat = answer if not answer or not isinstance(answer[0], list) else answer[0] + answer[1]
    repeats = len(set(flat)) < len(flat)
    if alias == "NpHamiltonianCycle":
        return len(answer) < 4
    if alias in ("NpGcpD", "NpTsp", "NpMinimumCut"):
        return False
    return repeats or not flat


FAULTS = [
    ("NpVertexCover", {"0": [1], "1": [0]}, "Answer: [0, 0]", 1, None),
    ("NpDominatingSet", {"0": [1], "1": [0]}, "Answer: [0, 0]", 1, None),
    ("NpFeedbackVertexSet", {"0": [1, 2], "1": [0, 2], "2": [0, 1]}, "Answer: [2, 2]", 1, None),
    ("NpMaximumCut", {"num_vertices": 2, "edges": {"0-1": 3}}, "Answer: [[0, 0], [1]]", 3, None),
    ("NpMaximumSet", {"0": ["1"], "1": ["0"]}, "Answer: []", 0, None),
    ("NpMaximumSet", {"0": [1], "1": [0]}, "Answer: [0, 1]", 2, None),
    ("NpMaximumSet", {"0": ["1"], "1": ["0"]}, 'Answer: [0, "0"]', 2, None),
    ("NpHamiltonianCycle", {"0": [1], "1": [0]}, "Answer: [0]", 1, None),
    ("NpHamiltonianCycle", {"0": [1], "1": [0]}, "Answer: [0, 1, 0]", 3, None),
    ("NpHamiltonianCycle", {"0": [1], "1": [0]}, "Answer: [999]", 1, None),
    ("NpMaximumCliqueProblem", {"0": [1], "1": [0]}, "Answer: [0, 1]\nThe end", None, 2),
    ("NpMaximumCliqueProblem", {"0": [1], "1": [0]}, "Answer: no. Answer: [0, 1]", None, 2),
    ("NpMinimumCut", {"0": {"1": 3}, "1": {"0": 3}}, "Answer: [[0], [1]].", None, 3),
    ("NpGcpD", {"0": [1], "1": [0]}, "**Answer**: [0, 1]", None, 2),
]
"""Alias, graph, reply, the public evaluator's value and ours: None where invalid."""


@pytest.mark.parametrize(("alias", "graph", "reply", "theirs", "ours"), FAULTS)
def test_the_known_faults_of_the_public_evaluator_are_not_ours(
    alias, graph, reply, theirs, ours, npmm_value, tmp_path
):
    assert npmm_value(alias, graph, reply) == theirs
    header = "index\timage\tquestion\tdata_source\tgraph\tground_truth\n"
    path = tmp_path / "npmm.tsv"
    image = "QUFB" * 20
    path.write_text(f"{header}0\t{image}\t?\tbootcamp/{alias}\t{graph}\t1\n", encoding="utf-8")
    found = read_instance(path)
    verdict = found.task.verify(found.instance, found.task.parse(reply))
    assert verdict.objective == ours


def test_an_objective_of_zero_ends_the_public_evaluation_and_is_refused():
    task = get_task("NpVertexCover")
    with pytest.raises(InputError, match="must be positive: 0"):
        npmm_row(task, task.decode({"num_vertices": 2, "edges": []}), reference=0)
    with pytest.raises(InputError, match="VLMEvalKit's npmm has no task knapsack"):
        npmm_row(TASKS["knapsack"], None, reference=1)


HEADER = "index\timage\tquestion\tdata_source\tgraph\tground_truth"
IMAGE = "QUFB" * 20
ROW = f"5\t{IMAGE}\tq\tbootcamp/NpGcpD\t{{'0': [1], '1': [0]}}\t2"


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        (HEADER.replace("graph\t", "") + "\n", 1, "the header has no column 'graph'"),
        (HEADER + "\tgraph\n", 1, "the header has the column 'graph' twice"),
        (HEADER + "\n", 1, "the table holds no row"),
        (f"{HEADER}\n{ROW}\textra\n", 2, "a row must have 6 fields as the header, got 7"),
        (f"{HEADER}\n{ROW}\n{ROW}\n", 3, "the index '5' is repeated"),
        (f"{HEADER}\n{ROW.replace('q', chr(34) + 'q', 1)}\n", 2, "no tab-separated row: "),
        (f"{HEADER}\n{ROW.replace('bootcamp/', '')}\n", 2, "must be of the form 'bootcamp/NpTsp'"),
        (f"{HEADER}\n{ROW.replace('NpGcpD', 'NpGcp')}\n", 2, "row 5: unknown task 'NpGcp'"),
        (f"{HEADER}\n{ROW.replace('NpGcpD', 'knapsack')}\n", 2, "npmm has no task knapsack"),
        (f"{HEADER}\n{ROW[:-1]}nan\n", 2, "ground_truth must be a whole number, got 'nan'"),
        (f"{HEADER}\n{ROW[:-1]}2.5\n", 2, "ground_truth must be a whole number, got '2.5'"),
        (f"{HEADER}\n{ROW[:-1]}\n", 2, "ground_truth must be a whole number, got ''"),
        (f"{HEADER}\n{ROW.replace('[1]', 'nan')}\n", 2, "graph must be a Python literal, got"),
        (f"{HEADER}\n{ROW.replace('[1]', '[1')}\n", 2, "graph must be a Python literal, got"),
        (f"{HEADER}\n{ROW.replace('[1]', 'f(1)')}\n", 2, 'lists and objects, got "(1)'),
        (f"{HEADER}\n{ROW.replace('[1]', '[' * 3000)}\n", 2, "graph must be a Python literal"),
        (f"{HEADER}\n{ROW.replace('[1]', '[]')}\n", 2, "edge 1-0 has weight 1, edge 0-1 is mis"),
        (f"{HEADER}\n{ROW.replace(IMAGE, '9')}\n", 2, "or the index of a row with one, got '9'"),
        (f"{HEADER}\n{ROW.replace(IMAGE, IMAGE + '!')}\n", 2, "image must be base64: "),
        (
            f"{HEADER}\n5\t{IMAGE}\tq\tb/NpMaximumCut\t{{'num_vertices': 2}}\t2\n",
            2,
            "the graph has no 'edges'",
        ),
        (
            f"{HEADER}\n5\t{IMAGE}\tq\tb/NpMaximumCut\t{{'num_vertices': 2, 'edges': [1]}}\t2\n",
            2,
            "edges must be an object",
        ),
        (
            f"{HEADER}\n5\t{IMAGE}\tq\tb/NpMaximumCut\t"
            "{'num_vertices': 2, 'edges': {'0:1': 1}}\t2\n",
            2,
            "an edge must be of the form '0-1', got '0:1'",
        ),
    ],
)
def test_a_malformed_table_is_refused_in_one_line(tmp_path, text, line, rule):
    path = tmp_path / "broken.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(rule)) as caught:
        read_npmm(path)
    assert str(caught.value).startswith(f"{path} line {line}: ")
    assert "\n" not in str(caught.value)


def test_a_fault_in_a_row_of_several_lines_is_named_by_its_first_line(tmp_path):
    path = tmp_path / "broken.tsv"
    good = ROW.replace("\tq\t", '\t"first\nsecond"\t')
    bad = ROW.replace("5\t", "6\t", 1).replace("NpGcpD", "NpGcp")
    path.write_text(f"{HEADER}\n{good}\n{bad}\n")
    with pytest.raises(InputError, match="line 4: row 6: unknown task 'NpGcp'"):
        read_npmm(path)
