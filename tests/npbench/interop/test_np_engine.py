"""NP-Engine's JSON: all ten tasks read and written, and one line for each way to break a file."""

import json
import re
from pathlib import Path

import pytest

from npbench.errors import InputError
from npbench.interop.instances import read_instance, read_instances
from npbench.interop.np_engine import LEVELS, TASK_TYPES, np_engine_entry, np_engine_reply
from npbench.interop.records import ForeignInstance
from npbench.splits import load
from npbench.task import Budget
from npbench.tasks import TASKS, get_task

FILES = Path(__file__).parent / "files"


def test_a_bench_file_holds_all_ten_tasks():
    found = read_instances(FILES / "NP_Bench.json")
    assert [one.task.name for one in found] == [
        "tsp",
        "longest_cycle",
        "graph_coloring",
        "maximum_clique",
        "maximum_independent_set",
        "minimum_bisection",
        "set_cover",
        "subset_sum",
        "knapsack",
        "meeting_scheduling",
    ]
    assert set(TASK_TYPES) == {one.task.name for one in found}
    assert [one.reference for one in found] == [12, 3, 2, 2, 2, 0, 2, 2, 4, None]
    for one in found:
        assert one.task.reference(one.instance, Budget()).objective in (one.reference, 3)


def test_what_the_payloads_leave_open_is_read_as_they_mean_it():
    found = {one.name: one for one in read_instances(FILES / "NP_Bench.json")}
    assert found["medium_question1"].instance.num_vertices == 4, "an isolated vertex has a key"
    assert found["bench_question1"].instance.edges == ((0, 1, 3), (2, 3, 2)), "0 is no edge"
    assert found["bench_question5"].instance.day == ((540, 720), (780, 1020))
    assert found["easy_question1"].prompt == "Visit all cities."


def test_a_generators_file_needs_its_task_and_may_hide_the_reference():
    path = FILES / "tsp_questions.json"
    with pytest.raises(InputError, match="does not say its task; give --task"):
        read_instances(path)
    first, second = read_instances(path, task="TSP")
    assert first.instance.distances == ((0, 3, 4), (3, 0, 5), (4, 5, 0))
    assert (first.reference, second.reference) == (None, 3)


def test_one_of_several_questions_is_chosen_by_its_key():
    path = FILES / "NP_Bench.json"
    assert read_instance(path, key="easy_cycle").task.name == "longest_cycle"
    with pytest.raises(InputError, match=r"holds 10 instances .* give --key"):
        read_instance(path)
    with pytest.raises(
        InputError, match="unknown instance 'easy_cicle'; did you mean 'easy_cycle'"
    ):
        read_instance(path, key="easy_cicle")
    with pytest.raises(InputError, match="line 8: easy_cycle: the task is longest_cycle, not tsp"):
        read_instance(path, key="easy_cycle", task="tsp")


@pytest.mark.parametrize("name", list(TASK_TYPES))
def test_every_task_round_trips(name, tmp_path):
    task = TASKS[name]
    rows = load("np-bench", LEVELS[:2], "test", 5, tasks=[name], per_task=3, modality="text")
    entries, instances = {}, []
    for position, row in enumerate(rows):
        instance = task.decode({**json.loads(row.instance), "coordinates": None})
        instances.append(instance)
        entry = np_engine_entry(task, instance, reference=row.reference_objective)
        entries[f"{row.level}_question{position}"] = entry
    path = tmp_path / "NP_Bench.json"
    path.write_text(json.dumps(entries, indent=1))
    found = read_instances(path)
    assert [one.instance for one in found] == instances
    assert [one.reference for one in found] == [row.reference_objective for row in rows]
    assert all(isinstance(one, ForeignInstance) and one.task is task for one in found)


def test_replies_count_colours_from_one_and_write_meetings_as_spaced_tuples():
    assert np_engine_reply(get_task("GCP-D"), [0, 2, 0]) == "Answer: [1, 3, 1]"
    schedule = [[0, 1, 540], [2, 0, 600]]
    assert np_engine_reply(TASKS["meeting_scheduling"], schedule) == (
        "Answer: [(0, 1, 540), (2, 0, 600)]"
    )
    assert np_engine_reply(TASKS["tsp"], [0, 2, 1, 0]) == "Answer: [0, 2, 1, 0]"


def test_prompts_ask_for_the_form_that_its_validators_read():
    rows = load("np-bench", "easy", "test", 5, tasks=["graph_coloring"], per_task=1)
    task = TASKS["graph_coloring"]
    entry = np_engine_entry(task, task.decode(json.loads(rows[0].instance)), reference=3)
    assert entry["prompt"].endswith("Number the colours from 1.")


def test_tasks_and_meetings_that_it_does_not_have_are_refused():
    with pytest.raises(InputError, match="NP-Engine has no task vertex_cover"):
        np_engine_entry(TASKS["vertex_cover"], None, reference=1)
    lonely = {"day": [[540, 720]], "rooms": [{"capacity": 1}]}
    lonely["meetings"] = [{"duration": 30, "attendees": []}]
    task = TASKS["meeting_scheduling"]
    with pytest.raises(InputError, match="meeting 0 has no attendees"):
        np_engine_entry(task, task.decode(lonely), reference=1)


def entry(task_type, question, **others):
    return json.dumps({"q": {"task_type": task_type, "question": question, **others}}, indent=1)


GRAPH = {"0": [1], "1": [0]}
MEETINGS = {
    "meetings": {"0": {"attendees": [0, 1], "duration": 60}},
    "attendee_availability": {"0": [[540, 720]], "1": [[540, 720]]},
    "rooms": {"0": 5},
}


@pytest.mark.parametrize(
    ("text", "line", "rule"),
    [
        ("[]", 1, "expected a JSON object"),
        ('{\n"a": {"question": 1},\n"a": {}}', 3, "the key 'a' stands twice"),
        ('{\n"a": {"question": {"0": [1], "0": []}}}', 2, "the key '0' stands twice in one"),
        ('{\n"a": {"question": NaN}}', 2, "NaN and infinity are no JSON numbers, got NaN"),
        ('{\n"a": {"question": 1}', 2, "expected a comma or a closing brace, got 'the end'"),
        ('{\n"a": {"question":\n 1,}}', 3, "no JSON: "),
        ('{\n"a": {"question": 1}}\n}', 3, "nothing may follow the object"),
        ('{"a" 3}', 1, "expected a colon behind the key, got '3}'"),
        ('{"a": {"question": 1}, 3: 1}', 1, "expected a key in quotes"),
        ('{"questions": {}}', 1, "the file holds no question"),
        ('{\n"a": {"question": {}},\n"b": 3}', 2, "a: the entry has no 'task_type'"),
        (entry("TPS", {}), 2, "unknown task 'TPS'"),
        (entry(["TSP"], {}), 2, "task_type must be text"),
        (entry("NpVertexCover", GRAPH), 2, "NP-Engine has no task vertex_cover"),
        (entry("GCP-D", GRAPH, ground_truth="many"), 2, "ground_truth must be a whole number"),
        (entry("GCP-D", GRAPH, ground_truth=1.5), 2, "whole number from 0, got '1.5'"),
        (entry("hamiltonian-cycle", GRAPH, ground_truth=0), 2, "whole number from 1, got '0'"),
        (entry("GCP-D", [[1], [0]]), 2, "the graph must be an object, got '[[1], [0]]'"),
        (entry("GCP-D", {"0": [1], "2": [0]}), 2, "a key of the graph must lie in [0, 1], got 2"),
        (entry("GCP-D", {"0": [1], "x": [0]}), 2, "a key of the graph must be a number from 0"),
        (entry("GCP-D", {"00": [1], "1": [0]}), 2, "a key of the graph must lie in [0, 1], got 00"),
        (entry("GCP-D", {"0": [1], "1": []}), 2, "edge 0-1 has weight 1, edge 1-0 is missing"),
        (entry("GCP-D", {"0": [0]}), 2, "vertex 0 is joined to itself"),
        (entry("GCP-D", {"0": [1, 1], "1": [0]}), 2, "vertex 0 names its neighbour 1 twice"),
        (entry("GCP-D", {"0": [5], "1": [0]}), 2, "a neighbour of vertex 0 must lie in [0, 1]"),
        (entry("GCP-D", {"0": 1, "1": [0]}), 2, "the neighbours of vertex 0 must be a list, got"),
        (entry("maximum-set", {"0": {"1": 2}, "1": {"0": 2}}), 2, "edge 0-1 must be 1, got 2"),
        (entry("minimum-cut", {"0": {"1": 2}, "1": {"0": 3}}), 2, "weight 2, edge 1-0 is 3"),
        (entry("minimum-cut", {"0": {"1": 0.5}, "1": {"0": 0.5}}), 2, "be an integer, got 0.5"),
        (entry("TSP", {"0": {"1": 1}, "1": {"0": 1}, "2": {}}), 2, "from city 0 to city 2 is mis"),
        (entry("TSP", {"0": [1]}), 2, "the distances of city 0 must be an object"),
        (entry("set-cover", {"U": [0]}), 2, "the question has no 'S'"),
        (entry("set-cover", {"U": [1, 2], "S": {"0": [1]}}), 2, "U must list the elements 0, 1"),
        (entry("set-cover", {"U": [0, 1], "S": {"0": [0]}}), 2, "element 1 is in no subset"),
        (entry("subset-sum", {"target": "3", "numbers": {"0": 1}}), 2, "target must be an integer"),
        (
            entry("knapsack", {"capacity": 1, "items": {"0": {"weight": 1}}}),
            2,
            "item 0 has no 'val",
        ),
        (
            entry(
                "meeting-schedule",
                {**MEETINGS, "attendee_availability": {"0": [[540, 720]], "1": [[540, 700]]}},
            ),
            2,
            "attendees must all have the same availability, got [[540, 720]] for attendee 0 and "
            "[[540, 700]] for attendee 1",
        ),
        (
            entry("meeting-schedule", {**MEETINGS, "attendee_availability": {"0": [[540, 720]]}}),
            2,
            "attendee 1 of meeting 0 has no availability",
        ),
        (entry("meeting-schedule", {**MEETINGS, "attendee_availability": {}}), 2, "an entry for"),
        (entry("meeting-schedule", {**MEETINGS, "rooms": {"0": "big"}}), 2, "must be an integer"),
    ],
)
def test_a_malformed_file_is_refused_in_one_line(tmp_path, text, line, rule):
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(rule)) as caught:
        read_instances(path, task="TSP" if '"questions"' in text else None)
    assert str(caught.value).startswith(f"{path} line {line}: ")
    assert "\n" not in str(caught.value)
