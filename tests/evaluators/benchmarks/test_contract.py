from importlib import import_module

import pytest

from evaluators.benchmark import Question
from evaluators.benchmarks._names import QUESTION_BENCHMARKS
from evaluators.golds import score_reply
from evaluators.selfcheck import selfcheck
from npbench.errors import InputError

pytestmark = pytest.mark.parametrize("name", QUESTION_BENCHMARKS)


@pytest.fixture
def adapter(name):
    return import_module(f"evaluators.benchmarks.{QUESTION_BENCHMARKS[name]}").ADAPTERS[name]


def test_every_row_of_the_fixture_is_a_question_or_is_left_out_with_a_reason(
    name, fixture_of, rows_of
):
    questions = fixture_of(name).questions
    assert len(questions) + len(questions.left_out) == len(rows_of(name))
    assert len({question.id for question in questions}) == len(questions)
    for question in questions:
        assert isinstance(question, Question)
        assert question.gold
        assert {"task", "group"} <= set(question.category)
        assert any(isinstance(part, str) and part.strip() for part in question.parts)


def test_every_gold_scores_1_against_itself(name, fixture_of):
    assert [failure for failure in selfcheck(fixture_of(name)) if failure] == []


def test_an_empty_reply_and_one_that_gives_nothing_score_0(name, fixture_of):
    for question in fixture_of(name).questions:
        for reply in ("", "I cannot make out anything here.", r"\boxed{}"):
            assert score_reply(reply, question.grading).score == 0


def test_another_number_of_rows_than_the_official_one_is_refused(
    name, adapter, data, load, rows_of
):
    with pytest.raises(InputError, match=f"{len(rows_of(name))} rows; .* {adapter.rows}"):
        load(name, data(name))


def test_all_missing_columns_are_listed_in_one_line(name, adapter, rows_of, written, load):
    rows = [{"unrelated": 1} for _ in rows_of(name)]
    with pytest.raises(InputError) as error:
        load(name, written(rows), rows=len(rows))
    message = str(error.value)
    assert "\n" not in message
    assert "unrelated" in message
    for names in adapter.columns.values():
        assert names[0] in message or name.startswith("hallusion")


def test_the_names_of_columns_are_found_whatever_their_case(
    name, rows_of, written, load, fixture_of
):
    rows = [{key.upper(): value for key, value in row.items()} for row in rows_of(name)]
    benchmark = load(name, written(rows), rows=len(rows))
    assert benchmark.dataset_hash == fixture_of(name).dataset_hash


def test_the_hash_follows_the_questions_and_not_the_file(name, rows_of, written, load, fixture_of):
    rows = rows_of(name)
    folder = written(rows)
    assert load(name, folder, rows=len(rows)).dataset_hash == fixture_of(name).dataset_hash
    del rows[0]
    assert load(name, written(rows), rows=len(rows)).dataset_hash != fixture_of(name).dataset_hash


def test_questions_are_read_again_in_any_order(name, fixture_of):
    questions = fixture_of(name).questions
    assert questions[-1] == list(questions)[-1]
    assert questions[1:] == list(questions)[1:]
