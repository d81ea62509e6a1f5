"""The kept cases: what public systems get wrong, with the right value beside them."""

import json
from pathlib import Path

import pytest

from npbench.errors import ParseError
from npbench.task import Verdict
from npbench.tasks import TASKS, get_task

CASES = Path(__file__).parents[1] / "cases"


def rows(name):
    lines = (CASES / name).read_text(encoding="utf-8").splitlines()
    return [pytest.param(row, id=row["id"]) for row in map(json.loads, lines)]


def verdict_on(row):
    """Parse and verify, the way from a reply to a verdict."""
    task = get_task(row["task"])
    instance = task.decode(row["instance"])
    try:
        answer = task.parse(row["reply"])
    except ParseError as error:
        return Verdict(False, reason=str(error), rule="parse")
    return task.verify(instance, answer)


@pytest.mark.parametrize("row", rows("verifiers.jsonl"))
def test_each_reply_of_the_verifier_cases_gets_its_verdict(row):
    verdict = verdict_on(row)
    assert (verdict.feasible, verdict.objective) == (row["feasible"], row["objective"]), (
        f"{row['note']}: {verdict}"
    )


@pytest.mark.parametrize("row", rows("verifiers.jsonl"))
def test_each_verdict_has_a_reason_exactly_where_it_is_infeasible(row):
    verdict = verdict_on(row)
    assert bool(verdict.reason.strip()) != verdict.feasible
    assert bool(verdict.rule.strip()) != verdict.feasible
    assert len(verdict.reason.splitlines()) <= 1


@pytest.mark.parametrize("row", rows("answers.jsonl"))
def test_each_reply_of_the_answer_cases_is_read_as_expected(row):
    task = get_task(row["task"])
    if row["expect"] is None:
        with pytest.raises(ParseError, match=r"\S"):
            task.parse(row["reply"])
    else:
        assert task.parse(row["reply"]) == row["expect"], row["note"]


def test_the_verifier_cases_reach_every_task():
    names = {param.values[0]["task"] for param in rows("verifiers.jsonl")}
    assert {get_task(name).name for name in names} == set(TASKS)


@pytest.mark.parametrize("name", ["verifiers.jsonl", "answers.jsonl"])
def test_case_ids_are_unique(name):
    ids = [param.id for param in rows(name)]
    assert len(set(ids)) == len(ids)
