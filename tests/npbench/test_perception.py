"""np-perception: facts, prompts, the parser, scores by hand, and the command from end to end."""

import json

import pytest
from click.testing import CliRunner

from npbench.building import build_split
from npbench.commands.perception import command
from npbench.errors import ParseError
from npbench.perception import (
    KINDS,
    agreement,
    facts,
    parse_facts,
    perception_prompt,
    perception_reply,
)
from npbench.perception_scoring import score_perception
from npbench.splits import Request, load
from npbench.tasks import TASKS


def test_every_task_has_its_kinds_and_its_facts_come_back_from_a_reply():
    assert set(KINDS) == set(TASKS)
    for task, kind in TASKS.items():
        drawn = facts(task, kind.wording.example)
        assert set(drawn) == set(KINDS[task])
        assert all(drawn.values())
        assert parse_facts(task, perception_reply(drawn)) == drawn


def test_the_prompt_names_every_kind_and_its_form_and_shows_no_data():
    prompt = perception_prompt("maximum_cut", "The picture shows a graph.")
    assert "nothing is to be solved" in prompt
    for kind, form in KINDS["maximum_cut"].items():
        assert f'- "{kind}": {form}' in prompt
    assert prompt.endswith(
        'Answer: {"vertices": [[...], ...], "edges": [[...], ...], "weights": [[...], ...]}'
    )


@pytest.mark.parametrize(
    ("reply", "edges"),
    [
        ('Answer: {"edges": [[0, 1], [2, 1]]}', {(0, 1), (1, 2)}),
        ('answer: {"edges": [[9, 9]]}\n**Answer:** {"edges": [[0, 1]], "more": 7} Done.', {(0, 1)}),
        ('Answer: {"vertices": [[0]]}', set()),
        ('Answer: {"edges": [[0, 1], [1, 0], [0, 1]]}', {(0, 1)}),
    ],
)
def test_the_last_object_behind_a_marker_is_read(reply, edges):
    assert parse_facts("vertex_cover", reply)["edges"] == edges


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "no answer marker"),
        ('{"edges": [[0, 1]]}', "no answer marker"),
        ("Answer: [[0, 1]]", "no answer marker with an object"),
        ('Answer: {"edges": [[0, 1]', "no JSON object"),
        ('Answer: {"edges": "all"}', "edges is no list"),
        ('Answer: {"edges": [[0, true]]}', "no integers"),
        ('Answer: {"edges": [[0, 1.5]]}', "no integers"),
        ('Answer: {"edges": ' + "[" * 100_000, "no JSON object"),
        ("x" * (1 << 20) + "y", "too long"),
    ],
)
def test_what_cannot_be_read_says_why(reply, message):
    with pytest.raises(ParseError, match=message):
        parse_facts("vertex_cover", reply)


def test_precision_recall_and_f1_by_hand():
    drawn = frozenset({(0, 1), (1, 2), (2, 3), (3, 4)})
    half = agreement(drawn, frozenset({(0, 1), (1, 2), (0, 4)}))
    assert (half.precision, half.recall) == (pytest.approx(2 / 3), 0.5)
    assert half.f1 == pytest.approx(4 / 7)
    assert agreement(drawn, frozenset()).f1 == 0.0
    assert agreement(frozenset(), drawn).precision == 0.0
    assert agreement(frozenset(), frozenset()).f1 == 1.0


def test_a_score_counts_every_row_and_tells_kinds_tasks_and_styles_apart():
    split = load(
        "nano", "nano", "test", 1, per_task=2, tasks=["maximum_cut"], styles=["light", "dark"]
    )
    rows = [
        {name: getattr(row, name) for name in ("id", "instance_id", "task", "style", "instance")}
        for row in split
    ]
    replies = {}
    for row in rows:
        drawn = facts("maximum_cut", json.loads(row["instance"]))
        if row["style"] == "dark":
            drawn = {**drawn, "weights": frozenset()}
        replies[row["id"]] = [perception_reply(drawn)]
    result = score_perception(rows, replies)
    assert result["styles"]["light"]["f1"] == result["styles"]["light"]["exact"] == 1.0
    assert result["styles"]["dark"]["f1"] == pytest.approx(2 / 3)
    assert result["styles"]["dark"]["exact"] == 0.0
    assert result["tasks"]["maximum_cut"]["kinds"]["weights"]["recall"] == 0.5
    unread = score_perception(rows, {row["id"]: ["nothing"] for row in rows})
    assert unread["overall"]["f1"] == 0.0
    assert unread["overall"]["unparsed"] == 4


def test_the_decoder_sees_everything_and_seeing_is_told_from_solving(tmp_path):
    request = Request.make(
        suite="nano", split="test", seed=4, per_task=1, tasks=("tsp", "set_cover", "longest_cycle")
    )
    build_split(request, tmp_path / "split")

    def invoke(*options):
        arguments = ["--data", str(tmp_path / "split"), *map(str, options)]
        return CliRunner().invoke(command, arguments, standalone_mode=False)

    seen, prompts, solved = (tmp_path / name for name in ("seen", "prompts", "solved"))
    assert invoke("--decode", seen).exception is None
    assert invoke("--prompts", prompts).exception is None
    asked = [json.loads(line) for line in prompts.read_text("utf-8").splitlines()]
    assert len(asked) == 3
    replies = [json.dumps({"id": entry["id"], "reply": "Answer: []"}) for entry in asked]
    solved.write_text("\n".join(replies), encoding="utf-8")
    result = invoke("--responses", seen, "--solved", solved, "--json")
    scores = json.loads(result.output)
    assert scores["overall"]["exact"] == 1.0
    assert scores["solving"] == {"seen": {"n": 3, "sr": 0.0}, "not seen": {"n": 0, "sr": None}}
    assert "1.000" in invoke("--responses", seen).output
    assert "needs one of" in str(invoke().exception)
