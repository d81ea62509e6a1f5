"""Questions: where they come from, in which order, and what rows are refused."""

from pathlib import Path

import datasets
import pytest
from PIL import Image

from npbench.building import build_split
from npbench.errors import InputError
from npbench.splits import Request
from trainers.config import read_config
from trainers.data import PromptStream, held_out, questions
from trainers.overlap import find_overlap
from trainers.sections import DataSettings

NANO = DataSettings(suite="nano", tasks=("knapsack", "tsp"), per_task=4, modality="both")


def write(folder: Path, rows: list[dict]) -> DataSettings:
    datasets.Dataset.from_list(rows).save_to_disk(str(folder))
    return DataSettings(folder=str(folder))


def test_a_split_on_disk_gives_the_questions_of_the_one_made_on_the_fly(tmp_path: Path) -> None:
    request = Request.make(
        suite="nano",
        split="train",
        seed=0,
        per_task=4,
        tasks=("knapsack", "tsp"),
        modality="both",
    )
    build_split(request, tmp_path / "split")
    stored = questions(DataSettings(folder=str(tmp_path / "split")))
    lazy = questions(NANO)
    assert len(stored) == len(lazy) == 16
    assert list(stored) == list(lazy)
    assert [bool(question.images) for question in lazy[:2]] == [True, False]


def test_a_datasets_folder_with_pictures_and_answers_is_read(tmp_path: Path) -> None:
    picture = Image.new("RGB", (8, 8), "red")
    rows = [
        {"prompt": "<image> What colour?", "images": [picture], "answer": "red"},
        {"prompt": "1 + 1?", "images": [], "answer": "2"},
    ]
    first, second = questions(write(tmp_path / "set", rows))
    assert (first.id, first.row["gold"], len(first.images)) == ("set-0", "red", 1)
    assert first.images[0].startswith(b"\x89PNG")
    assert (second.images, second.is_np) == ((), False)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"prompt": "<image> What?", "answer": "red"}, "row 0 of .* has no picture"),
        ({"prompt": "What?", "answer": ""}, "row 0 of .* has no answer"),
        ({"prompt": "", "answer": "1"}, "row 0 of .* has no prompt"),
    ],
)
def test_a_row_without_what_it_needs_is_refused(row: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        questions(write(tmp_path / "set", [row]))[0]


def test_a_folder_without_the_columns_or_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no column 'answer'; its columns: prompt"):
        questions(write(tmp_path / "set", [{"prompt": "x"}]))
    with pytest.raises(InputError, match="is no folder"):
        questions(DataSettings(folder=str(tmp_path / "none")))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="cannot be read as a data set"):
        questions(DataSettings(folder=str(tmp_path / "empty")))


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    rows = [{"problem": "1 + 1?", "solution": "2", "answer": "long text"}]
    columns = {"prompt": "problem", "answer": "solution"}
    settings = write(tmp_path / "set", rows).model_copy(update={"columns": columns})
    (question,) = questions(settings)
    assert (question.prompt, question.row["gold"]) == ("1 + 1?", "2")
    wrong = settings.model_copy(update={"columns": {"prompt": "problme"}})
    with pytest.raises(InputError, match=r"unknown column of .* 'problme'; did you mean 'problem'"):
        questions(wrong)


def test_shared_questions_are_found_by_text_and_pixels(tmp_path: Path) -> None:
    red, blue = (Image.new("RGB", (8, 8), colour) for colour in ("red", "blue"))
    first = [
        {"id": "a", "prompt": "<image> What colour?", "images": [red], "answer": "red"},
        {"id": "b", "prompt": "<image> What shape?", "images": [blue], "answer": "square"},
        {"id": "c", "prompt": "1 + 1 ?", "images": [], "answer": "2"},
        {"id": "d", "prompt": "1 + 2 ?", "images": [], "answer": "3"},
    ]
    second = [
        {"id": "x", "prompt": "what colour", "images": [blue], "answer": "blue"},
        {"id": "y", "prompt": "1 + 1?", "images": [], "answer": "2"},
    ]
    found = find_overlap(
        questions(write(tmp_path / "one", first)), questions(write(tmp_path / "two", second))
    )
    assert (found.same_text, found.same_picture, found.same_both) == (("a", "c"), ("b",), ("c",))
    assert found.sentence().startswith("of 4 training questions 2 share their text, 1 a picture")


def test_a_question_comes_again_only_after_all_the_others() -> None:
    source = questions(NANO)
    stream = PromptStream(source, seed=3)
    names = [question.id for question in stream.take(40)]
    for epoch in (names[:16], names[16:32]):
        assert len(set(epoch)) == 16
    assert names[:16] != names[16:32]
    assert names[:16] != [question.id for question in PromptStream(source, seed=4).take(16)]


def test_a_stream_goes_on_at_any_position() -> None:
    source = questions(NANO)
    whole = [question.id for question in PromptStream(source, seed=3).take(30)]
    stream = PromptStream(source, seed=3, position=13)
    assert [question.id for question in stream.take(17)] == whole[13:]
    assert stream.position == 30


def test_held_out_questions_are_of_the_validation_split() -> None:
    config = read_config(
        {
            "method": "grpo",
            "steps": 1,
            "prompts_per_step": 1,
            "group_size": 2,
            "data": {"suite": "nano", "tasks": ["knapsack"]},
            "evaluation": {"questions": 3},
        }
    )
    found = held_out(config)
    assert len(found) == 3
    assert {question.row["split"] for question in found} == {"validation"}
