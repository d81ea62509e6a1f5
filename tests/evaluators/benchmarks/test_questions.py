import pytest

from evaluators.benchmarks._options import written_options
from evaluators.golds import score_reply
from evaluators.verdicts import AnswerType
from npbench.errors import InputError


@pytest.fixture
def question(fixture_of):
    """A question of a fixture by its id."""

    def find(name, identity):
        return next(q for q in fixture_of(name).questions if q.id == identity)

    return find


RIGHT = [
    ("mathverse", "5", r"\boxed{B}"),
    ("mathverse", "5", "The angle is 35 degrees.\nAnswer: 35 degrees"),
    ("mathverse", "6", "Answer: B"),
    ("mathverse", "7", "Answer: False"),
    ("mathverse", "8", r"\boxed{C, A}"),
    ("mathverse", "9", "Answer: C"),
    ("mathverse", "10", "Answer: (B)"),
    ("mathverse", "11", r"\boxed{081^\circ T}"),
    ("mathverse", "12", r"\boxed{1834.6}"),
    ("mathverse", "14", r"\boxed{16\pi}"),
    ("mathverse", "16", r"\boxed{(3, -7)}"),
    ("mathverse", "17", r"\boxed{8}"),
    ("mathverse", "20", r"\boxed{62^\circ}"),
    ("mathverse", "21", r"\boxed{S 41.5^\circ W}"),
    ("mathvista", "1", "Answer: B"),
    ("mathvista", "1", "Answer: the red one"),
    ("mathvista", "2", "Answer: C"),
    ("mathvista", "2", "Answer: D"),
    ("mathvista", "2", "Answer: 21"),
    ("mathvista", "4", "Answer: C"),
    ("mathvista", "6", "Answer: 14.0 years"),
    ("mathvista", "7", r"\boxed{2.58}"),
    ("mathvista", "8", r"\boxed{0.354}"),
    ("mathvista", "9", r"\boxed{[4,4,1,0]}"),
    ("mathvision", "1", r"\boxed{C}"),
    ("mathvision", "1", r"\boxed{5}"),
    ("mathvision", "2", r"\boxed{B}"),
    ("mathvision", "6", r"\boxed{2.25}"),
    ("mathvision", "7", r"\boxed{\frac{25}{8}}"),
    ("mathvision", "9", r"\boxed{13}"),
    ("mathvision", "12", r"\boxed{48^\circ}"),
    ("mathvision", "15", r"\boxed{\frac{250}{9}}"),
    ("mathvision", "18", r"\boxed{C}"),
    ("logicvista", "x1_1", "Answer: C and A"),
    ("logicvista", "x1_1", r"\boxed{AC}"),
    ("logicvista", "x1_4", "Answer: (G) the fourth one"),
    ("logicvista", "x1_5", "Answer: 3"),
    ("we-math", "2steps_1/2steps_1", "<answer>B</answer>"),
    ("we-math", "2steps_2/2steps_multi", "**Answer:** C"),
    ("geometry3k", "0", r"\boxed{\sqrt{52}}"),
    ("geometry3k-choice", "0", r"\boxed{2\sqrt{13}}"),
    ("mmstar", "0", "Answer: two fish, one red"),
    ("hallusionbench", "VD/illusion/1/0/0/0", "Yes, it is longer."),
    ("mm-vet", "v1_0", "The roots are 7 and -2."),
    ("mm-vet", "v1_1", "There are 11 of them."),
    ("mm-vet", "v1_3", "Three of nine."),
    ("mm-vet", "v1_4", "About 1250 in all."),
    ("mmmu", "validation_Chemistry_5", "Answer: calcium oxide"),
    ("mmmu", "validation_Geography_8", r"\boxed{2.4}"),
    ("mmmu", "validation_Accounting_4", "**Answer: I**"),
    ("ai2d", "ai2d-0", "Answer: B"),
    ("aime24", "60", r"\boxed{25}"),
    ("aime24", "60", r"\boxed{025}"),
    ("aime25", "0", "Answer: 073"),
    ("amc23", "1", r"\boxed{-4}"),
    ("amc23", "0", r"\boxed{27.0}"),
    ("math-500", "test/ours/2.json", r"\boxed{9, 2, 5}"),
    ("math-500", "test/ours/6.json", r"\boxed{21450}"),
    ("minerva", "minerva-0", r"\boxed{0.04}"),
    ("minerva", "minerva-5", r"\boxed{[0, 2]}"),
    ("olympiadbench", "1", r"\boxed{91, 58}"),
    ("olympiadbench", "4", r"\boxed{5}, \boxed{317}"),
    ("olympiadbench", "5", r"\boxed{9, 4}"),
    ("olympiadbench", "6", r"\boxed{2.58}"),
    ("olympiadbench", "8", r"\boxed{x \le 3}"),
]
WRONG = [
    ("mathverse", "8", r"\boxed{A}"),
    ("mathverse", "11", r"\boxed{181^\circ T}"),
    ("mathvista", "2", "Answer: A"),
    ("mathvista", "6", "Answer: 14.9"),
    ("mathvista", "7", "Answer: 2.5"),
    ("mathvista", "9", r"\boxed{[4,1,4,0]}"),
    ("mathvista", "1", "Answer: the rad one"),
    ("mathvision", "18", r"\boxed{c}"),
    ("logicvista", "x1_1", "Answer: A"),
    ("logicvista", "x1_0", "Answer: (D) A, B and C are turning"),
    ("we-math", "2steps_2/2steps_2", "Because the total is 3"),
    ("hallusionbench", "VD/illusion/1/0/0/0", "I know nothing of it; that is incorrect."),
    ("hallusionbench", "VD/illusion/1/0/0/1", "Answer: yes"),
    ("mm-vet", "v1_2", "A blackcat"),
    ("mmmu", "validation_Math_1", "Answer: C"),
    ("mmmu", "validation_Chemistry_5", "Answer: decalcium oxide"),
    ("olympiadbench", "1", r"\boxed{91}"),
    ("olympiadbench", "6", r"\boxed{2.61}"),
]


@pytest.mark.parametrize(("name", "identity", "reply"), RIGHT)
def test_a_right_reply_scores_1(question, name, identity, reply):
    assert score_reply(reply, question(name, identity).grading).score == 1


@pytest.mark.parametrize(("name", "identity", "reply"), WRONG)
def test_a_wrong_reply_scores_0(question, name, identity, reply):
    assert score_reply(reply, question(name, identity).grading).score == 0


def test_half_of_the_parts_of_mm_vet_score_a_half(question):
    scored = score_reply("One root is 7.", question("mm-vet", "v1_0").grading)
    assert (scored.score, scored.state) == (0.5, "wrong")


def test_the_vision_only_version_shows_the_instruction_and_tells_the_judge_the_question(question):
    shown = question("mathverse", "5")
    assert isinstance(shown.parts[0], bytes)
    assert "Reason first." in shown.parts[1]
    assert "How wide" not in shown.parts[1]
    assert "How wide" in shown.grading.asked
    assert shown.instance_id == question("mathverse", "1").instance_id


def test_an_image_that_is_an_empty_text_is_no_picture(fixture_of):
    assert all(len(q.parts) == 1 for q in fixture_of("mathverse-text").questions)


def test_a_picture_version_without_its_picture_is_refused(rows_of, written, load):
    row = {**rows_of("mathverse")[0], "image": ""}
    with pytest.raises(InputError, match="row 0: image holds no picture, in the version Text"):
        load("mathverse", written([row]), rows=1)


def test_mathvista_is_asked_with_its_query_column_alone(question):
    assert question("mathvista", "1").parts[1].startswith("Hint: read the picture.")


def test_mathvision_shows_one_picture_and_no_token(question):
    parts = question("mathvision", "2").parts
    assert [type(part) for part in parts] == [bytes, str]
    assert "<image" not in parts[1]
    assert "(A)" not in parts[1]
    assert "(C) 5" in question("mathvision", "1").parts[1]


def test_the_empty_row_of_logicvista_is_left_out_and_said_so(fixture_of):
    benchmark = fixture_of("logicvista")
    assert len(benchmark.questions) == 7
    assert benchmark.aggregate([])["left_out"] == ["x1_7: the question and the answer are empty"]


def test_an_empty_gold_beside_a_question_is_refused(rows_of, written, load):
    row = {**rows_of("logicvista")[0], "answer": " "}
    with pytest.raises(InputError, match="row 0: answer is empty"):
        load("logicvista", written([row]), rows=1)


@pytest.mark.parametrize(
    ("identity", "labels", "text"),
    [
        ("2steps_2/2steps_1", "ABCF", {"F": "No correct answer"}),
        ("2steps_2/2steps_2", "ABCD", {"B": "point B."}),
        ("2steps_2/2steps_multi", "ABCD", {"A": "B;C.", "B": "A;C.", "C": "all"}),
        ("3steps_1/3steps_1", "ABCD", {"A": "10", "B": "12"}),
        ("3steps_1/3steps_2", "ABCD", {"A": "10", "D": "Cannot be determined"}),
        ("3steps_1/3steps_multi", "ABCDEFG", {"G": "No correct answer"}),
        ("2steps_1/2steps_1", "ABCDE", {"A": "3, 4"}),
    ],
)
def test_the_options_of_we_math_are_split_by_their_labels_in_order(
    question, identity, labels, text
):
    options = question("we-math", identity).grading.options
    assert "".join(options) == labels
    assert text.items() <= options.items()


def test_options_of_mmstar_hold_commas_and_stray_letters(question):
    assert question("mmstar", "0").grading.options["A"] == "a dog, a cat"
    assert question("mmstar", "3").grading.options == {
        "A": "1",
        "B": "2",
        "C": "3",
        "D": "sum, F: 4",
    }
    assert list(question("mmstar", "2").grading.options) == ["A", "B", "C", "D"]


def test_no_option_is_read_from_a_text_without_labels():
    assert written_options("none here", before="^", after=":") == {}


def test_the_pictures_of_geometry3k_stand_where_the_text_says(question, png):
    parts = question("geometry3k", "3").parts
    assert parts == (png("red"), "Compare with ", png("blue"), ". Find z.")


def test_the_two_protocols_of_geometry3k_ask_for_different_things(question):
    assert question("geometry3k", "1").gold == "18.2"
    assert question("geometry3k-choice", "1").gold == "B"
    assert score_reply("Answer: B", question("geometry3k", "1").grading).score == 0


def test_the_pictures_of_mmmu_follow_their_numbers_in_question_and_options(question, png):
    red, blue = png("red"), png("blue")
    swapped = question("mmmu", "validation_Math_1").parts
    assert swapped[:4] == ("See ", blue, ", then ", red)
    repeated = question("mmmu", "validation_Math_2").parts
    assert [part for part in repeated if isinstance(part, bytes)] == [red, blue, red]
    unreferenced = question("mmmu", "validation_Art_Theory_3").parts
    assert [type(part) for part in unreferenced] == [bytes, str]


def test_a_row_of_hallusionbench_without_a_picture_is_asked_without_one(question):
    plain = question("hallusionbench", "VS/illusion/0/0/0/0")
    assert plain.parts == ("Is the line longer?\nAnswer yes or no.",)
    assert plain.grading.protocol == "lenient correctness"


def test_the_three_copies_of_aime24_give_the_same_questions(written, load, fixture_of):
    capitals = [
        {"ID": "60", "Problem": "Find n.", "Answer": 25, "Solution": "Worked out."},
        {"ID": "61", "Problem": "Find m.", "Answer": 204, "Solution": "Worked out."},
    ]
    boxed = [
        {"id": 60, "problem": "Find n.", "solution": r"\boxed{25}"},
        {"id": 61, "problem": "Find m.", "solution": r"\boxed{204}"},
    ]
    expected = [(q.id, int(q.gold), q.parts) for q in fixture_of("aime24").questions]
    for rows in (capitals, boxed):
        loaded = load("aime24", written(rows), rows=2).questions
        assert [(q.id, int(q.gold), q.parts) for q in loaded] == expected


def test_a_worked_solution_is_no_gold(written, load):
    rows = [{"id": 1, "problem": "Find n.", "solution": r"So n = \boxed{25}."}]
    with pytest.raises(InputError, match="no boxed integer"):
        load("aime24", written(rows), rows=1)


def test_the_context_of_an_olympiad_problem_comes_first(question):
    assert question("olympiadbench", "3").parts[0].startswith("Let a context come first.\n\nFind")


def test_several_answers_are_all_required_where_they_are_a_set_and_one_is_enough_in_a_list(
    question,
):
    assert question("olympiadbench", "5").grading.kind is AnswerType.SET
    assert score_reply(r"\boxed{4}", question("olympiadbench", "5").grading).score == 0
    assert score_reply(r"\boxed{0.03}", question("minerva", "minerva-0").grading).score == 1


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("mathverse", {"question_type": "open"}, "multi-choice or free-form"),
        ("mathvista", {"answer": "the green one"}, "the text of no option"),
        ("mathvision", {"answer": "F"}, "names none of the options"),
        ("we-math", {"key": "4steps_1"}, "must begin with 2steps_ or 3steps_"),
        ("hallusionbench-image", {"gt_answer": "2"}, "must be 0 or 1"),
        ("hallusionbench-image", {"image": None}, "no picture, though visual_input is 1"),
        ("hallusionbench-image", {"set_id": "0/1"}, "a slash"),
        ("mm-vet", {"answer": "2<AND>"}, "an empty part"),
        ("mmmu", {"id": "validation_Astrology_1"}, "no subject of MMMU"),
        ("mmmu", {"question_type": "both"}, "multiple-choice or open"),
        ("mmmu", {"options": "['a'"}, "must be a list"),
        ("mmmu", {"question": "<image 7>"}, "picture 7, which is missing"),
        ("ai2d", {"answer": "4"}, r"must lie in \[0, 3\]"),
        ("amc23", {"answer": "many"}, "must be a number"),
        ("geometry3k", {"images": []}, "0 pictures for 1 places"),
        ("olympiadbench", {"is_multiple_answer": None}, "must be true or false"),
        ("olympiadbench", {"is_multiple_answer": False, "final_answer": ["1", "2"]}, "2 answers"),
    ],
)
def test_a_row_that_the_benchmark_does_not_have_is_refused_by_its_number(
    rows_of, written, load, name, change, says
):
    row = {**rows_of(name)[0], **change}
    with pytest.raises(InputError, match=f"row 0: .*{says}"):
        load(name, written([row]), rows=1)


def test_two_questions_of_one_id_are_refused(rows_of, written, load):
    with pytest.raises(InputError, match="the question 1 twice"):
        load("mathvision", written(rows_of("mathvision")[:1] * 2), rows=2)
