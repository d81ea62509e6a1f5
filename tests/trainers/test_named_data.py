"""Published training sets: their columns, odd rows, pictures from files, and what they share."""

import io
import json
import zipfile
from pathlib import Path

import datasets
import pytest
from click.testing import CliRunner
from PIL import Image

from npbench.errors import InputError
from trainers.cli import train_command
from trainers.config import Config, read_config
from trainers.data import held_out, opened_sets, questions
from trainers.groups import reward_terms
from trainers.named_data import open_named
from trainers.named_sets import NAMED_SETS, UnusableRowError, answer_of, prompt_of
from trainers.overlap import overlap_report
from trainers.rewards import score_replies
from trainers.sections import DataSettings


def png(colour: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(buffer, "PNG")
    return buffer.getvalue()


def write(path: Path, rows: list[dict], *, pictures: str | None = None, many: bool = False) -> Path:
    """A Parquet file as the Hub has it, pictures as records of bytes and path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = datasets.Dataset.from_list(rows)
    if pictures is not None:
        kind = datasets.Image()
        found = found.cast_column(pictures, datasets.List(kind) if many else kind)
    found.to_parquet(str(path))
    return path.parent


@pytest.fixture
def virl(tmp_path: Path) -> Path:
    """Rows of ViRL39K's form: boxed answers, pictures by path, and the odd ones."""
    rows = [
        ("q1", "<image>How long is AB?", r"\boxed{17^\circ}", ["images/a.png"]),
        ("q2", "What is 1 + 1?", r"\boxed{\frac{4}{2}}", []),
        ("q3", "<image><image>Which one is red? A. left B. right", r"\boxed{A}", ["images/a.png"]),
        ("q4", "<image>Unbalanced?", r"\boxed{\left\{\eqalign{x", ["images/a.png"]),
        ("q5", "<image>Where is it?", r"\boxed{3}", ["images/none.png"]),
        ("q6", "<image>", r"\boxed{3}", ["images/a.png"]),
        ("q7", "<image>Blank?", " ", ["images/a.png"]),
        ("q8", "Lost its place", r"\boxed{5}", ["images/b.png"]),
        ("q1", "<image>The same id?", r"\boxed{6}", ["images/b.png"]),
        ("q9", "<image>No picture?", r"\boxed{3}", []),
        ("q10", "<image>Outside?", r"\boxed{3}", ["../secret.png"]),
    ]
    (tmp_path / "secret.png").write_bytes(png("black"))
    return write(
        tmp_path / "virl" / "39Krelease.parquet",
        [
            {"qid": q, "question": text, "answer": a, "image": images, "category": "geometry"}
            for q, text, a, images in rows
        ],
    )


def unpacked(folder: Path) -> None:
    (folder / "images").mkdir()
    for name, colour in (("a", "red"), ("b", "blue")):
        (folder / "images" / f"{name}.png").write_bytes(png(colour))


def packed(folder: Path) -> None:
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for name, colour in (("a", "red"), ("b", "blue")):
            archive.writestr(f"images/{name}.png", png(colour))


@pytest.mark.parametrize("lay", [unpacked, packed])
def test_virl39k_reads_boxes_and_pictures_and_counts_what_is_left_out(lay, virl: Path) -> None:
    lay(virl)
    found = open_named("virl39k", folder=str(virl))
    names = [question.id for question in found]
    assert names == ["virl39k-q1", "virl39k-q2", "virl39k-q8", "virl39k-8"]
    assert [question.row["gold"] for question in found] == [r"17^\circ", r"\frac{4}{2}", "5", "6"]
    assert [len(question.images) for question in found] == [1, 0, 1, 1]
    assert found[0].images == (png("red"),)
    assert found[0].row["category"] == "geometry"
    assert found.left_out == {
        "with fewer pictures than places": 1,
        "with an answer whose box never closes": 1,
        "with a picture that is not there": 2,
        "without a prompt": 1,
        "without an answer": 1,
        "without its picture": 1,
    }
    assert "4 questions, 7 rows left out (2 with a picture that is not there, 1 with an " in (
        found.sentence()
    )


def test_a_missing_or_broken_archive_is_said(virl: Path) -> None:
    assert open_named("virl39k", folder=str(virl)).left_out["with a picture that is not there"] > 3
    (virl / "images.zip").write_bytes(b"no zip")
    again = virl.rename(virl.with_name("again"))
    with pytest.raises(InputError, match=r"images\.zip is no zip file"):
        open_named("virl39k", folder=str(again))


def test_a_damaged_picture_of_an_archive_is_one_line(virl: Path) -> None:
    packed(virl)
    data = bytearray((virl / "images.zip").read_bytes())
    data[60] ^= 0xFF
    (virl / "images.zip").write_bytes(data)
    found = open_named("virl39k", folder=str(virl))
    with pytest.raises(InputError, match=r"images/a\.png in .*images\.zip cannot be read: Bad CRC"):
        found[0]


@pytest.mark.parametrize("path", ["a\0b.png", "x" * 5000])
def test_a_path_that_no_file_can_have_is_a_picture_that_is_not_there(
    path: str, tmp_path: Path
) -> None:
    rows = [
        {"question": "<image>?", "answer": "1", "image": path},
        {"question": "1 + 1?", "answer": "2", "image": ""},
    ]
    found = open_named("mmk12", folder=str(write(tmp_path / "m" / "train.parquet", rows)))
    assert found.left_out == {"with a picture that is not there": 1}


def test_mmk12_has_one_picture_a_row_and_a_test_split(tmp_path: Path) -> None:
    rows = [
        {
            "id": "a",
            "question": "<image>\nHow many?",
            "answer": "78.5",
            "image": {"bytes": png("red")},
        },
        {"id": "b", "question": "How many?", "answer": "2.0", "image": {"bytes": png("blue")}},
        {"id": "c", "question": "<image>\nHow many?", "answer": "3", "image": None},
    ]
    folder = write(tmp_path / "data" / "train-00000-of-00001.parquet", rows, pictures="image")
    write(tmp_path / "data" / "test-00000-of-00001.parquet", rows[:1], pictures="image")
    found = questions(DataSettings(name="mmk12", folder=str(folder)))
    assert [question.id for question in found] == ["mmk12-a", "mmk12-b"]
    assert [question.row["gold"] for question in found] == ["78.5", "2.0"]
    assert len(questions(DataSettings(name="mmk12", folder=str(folder), split="test"))) == 1


def test_geometry3k_passes_its_other_columns_and_formats_its_prompts(tmp_path: Path) -> None:
    rows = [
        {
            "images": [{"bytes": png("red")}],
            "problem": "<image>Find x.",
            "answer": r"2 \sqrt { 221 }",
            "choices": ["1", r"2 \sqrt { 221 }"],
            "ground_truth": "B",
            "id": 7,
        }
    ]
    folder = write(tmp_path / "g" / "train.parquet", rows, pictures="images", many=True)
    settings = DataSettings(name="geometry3k", folder=str(folder), prompt_format="think-boxed")
    (question,) = questions(settings)
    assert question.id == "geometry3k-7"
    assert question.prompt.startswith("<image>Find x.\n\nFirst reason inside <think>")
    assert question.row["choices"] == ["1", r"2 \sqrt { 221 }"]
    config = config_of(settings, reward={"name": "correct"})
    replies = [r"<think>a</think> \boxed{2\sqrt{221}}", r"<think>a</think> \boxed{7}"]
    batch = score_replies(replies, [question.row] * 2, reward_terms(config))
    assert batch.scored[0].total > batch.scored[1].total


def test_openr1_math_reads_conversations_and_records(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Think hard."}, {"role": "user", "content": "1 + 1?"}]
    rows = [
        {
            "data_source": "x",
            "prompt": chat,
            "target": [{"role": "assistant", "content": "<think>a</think> \\boxed{2}"}],
            "reward_model": {"ground_truth": "2", "style": "rule"},
            "extra_info": {"index": 5, "split": "train"},
        },
        {
            "data_source": "x",
            "prompt": chat[:1],
            "target": [],
            "reward_model": {"ground_truth": "2", "style": "rule"},
            "extra_info": {"index": 6, "split": "train"},
        },
        {
            "data_source": "x",
            "prompt": chat,
            "target": [],
            "reward_model": {"ground_truth": None, "style": "rule"},
            "extra_info": {"index": 7, "split": "train"},
        },
    ]
    datasets.Dataset.from_list(rows).save_to_disk(str(tmp_path / "math"))
    found = open_named("openr1-math-46k", folder=str(tmp_path / "math"))
    (question,) = found
    assert (question.id, question.prompt) == ("openr1-math-46k-5", "1 + 1?")
    assert (question.row["gold"], question.images) == ("2", ())
    # what the supervised target ``column`` learns
    assert question.row["target"] == "<think>a</think> \\boxed{2}"
    assert found.left_out == {"without a prompt": 1, "without an answer": 1}


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (r"\boxed{\text{A}}", r"\text{A}"),
        (r"First \boxed{14}, then \boxed{24}.", "24"),
        (3, "3"),
        (3.0, "3"),
        (0.5, "0.5"),
        (["x"], "x"),
        ({"ground_truth": " 7 "}, "7"),
    ],
)
def test_an_answer_is_bare(cell: object, expected: str) -> None:
    assert answer_of(cell) == expected


@pytest.mark.parametrize("cell", [None, "", "  ", float("nan"), True, [], ["a", "b"], {"a": 1}])
def test_what_is_no_answer_is_refused(cell: object) -> None:
    with pytest.raises(UnusableRowError, match="without an answer"):
        answer_of(cell)


@pytest.mark.parametrize("cell", [None, "", "<image>\n", [], [{"role": "system", "content": "x"}]])
def test_what_is_no_prompt_is_refused(cell: object) -> None:
    with pytest.raises(UnusableRowError, match="without a prompt"):
        prompt_of(cell)


def test_other_column_names_and_lacking_ones(tmp_path: Path) -> None:
    rows = [{"frage": "1 + 1?", "answer": "2", "id": "a"}]
    folder = write(tmp_path / "m" / "train.parquet", rows)
    with pytest.raises(InputError, match="lacks the columns question or problem; it has frage"):
        open_named("mmk12", folder=str(folder))
    (question,) = open_named("mmk12", folder=str(folder), columns={"prompt": "frage"})
    assert (question.prompt, question.row["gold"]) == ("1 + 1?", "2")


def test_a_set_without_a_usable_row_or_with_a_broken_picture_is_one_line(tmp_path: Path) -> None:
    folder = write(tmp_path / "m" / "train.parquet", [{"question": "1?", "answer": "", "id": "a"}])
    with pytest.raises(InputError, match=r"0 questions, 1 rows left out .*nothing to train on"):
        open_named("mmk12", folder=str(folder))
    rows = [{"question": "<image>?", "answer": "1", "images": [{"bytes": b"no picture"}]}]
    folder = write(tmp_path / "n" / "train.parquet", rows)
    found = open_named("mmk12", folder=str(folder))
    with pytest.raises(InputError, match=r"row 0 of .* has a picture that cannot be read"):
        found[0]


def config_of(data: DataSettings, **changes: object) -> Config:
    return read_config(
        {
            "method": "grpo",
            "steps": 1,
            "prompts_per_step": 1,
            "group_size": 2,
            "data": data.model_dump(exclude_none=True),
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"data": {"name": "viRL39K"}}, "unknown data set 'viRL39K'; did you mean 'virl39k'"),
        ({"data": {"name": "geometry3"}}, "did you mean 'geometry3k'"),
        (
            {"data": {"name": "virl39k", "split": "test"}},
            "data set 'virl39k' has no split 'test'; its splits: train",
        ),
        ({"data": {"name": "mmk12", "suite": "nano"}}, "either a suite or a folder or published"),
        ({"data": {"suite": "nano", "revision": "main"}}, "data.revision belongs to data.name"),
        ({"data": {"suite": "nano", "prompt_format": "think-boxed"}}, "belongs to a folder or"),
        ({"data": {"name": "mmk12"}, "evaluate_every": 1}, "evaluation.folder or evaluation.name"),
        (
            {"data": {"name": "mmk12"}, "evaluation": {"name": "virl39k"}},
            "must be a set with a held-out split, got 'virl39k'; known: mmk12, geometry3k",
        ),
        (
            {"data": {"name": "mmk12"}, "evaluation": {"benchmarks": {"mathvsta": ""}}},
            "unknown benchmark in evaluation.benchmarks 'mathvsta'; did you mean 'mathvista'",
        ),
    ],
)
def test_wrong_settings_are_one_line(values: dict, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_config(
            {"method": "grpo", "steps": 1, "prompts_per_step": 1, "group_size": 2, **values}
        )
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", NAMED_SETS)
def test_without_the_hub_one_line_names_the_set_its_id_and_the_way_out(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError) as error:
        open_named(name, revision="a-branch-that-is-not-cached")
    said = str(error.value)
    assert said.startswith(f"data set {name!r} cannot be loaded from the Hub ")
    assert NAMED_SETS[name].hub in said
    assert "data.folder" in said
    assert "\n" not in said


def geometry(folder: Path, split: str, rows: list[tuple[str, str]]) -> Path:
    """Rows of Geometry3K's form, each a problem and the colour of its picture."""
    return write(
        folder / f"{split}.parquet",
        [
            {
                "images": [{"bytes": png(colour)}],
                "problem": f"<image>{text}",
                "answer": "4",
                "choices": ["4", "5", "6", "7"],
                "ground_truth": "A",
                "id": number,
            }
            for number, (text, colour) in enumerate(rows)
        ],
        pictures="images",
        many=True,
    )


def test_what_training_shares_with_held_out_rows_and_benchmarks_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = geometry(tmp_path / "g", "train", [("Find x.", "red"), ("Find y.", "blue")])
    geometry(folder, "validation", [("Find y.", "blue"), ("Find x.", "green")])
    test = geometry(tmp_path / "t", "test", [("find  X", "red")] * 1)
    # the official set has 601 rows, this one has not
    import evaluators.benchmark as module

    get = module.get_benchmark
    monkeypatch.setattr(
        module, "get_benchmark", lambda name, *, source: get(name, source=source, rows=1)
    )
    config = config_of(
        DataSettings(name="geometry3k", folder=str(folder), prompt_format="think-boxed"),
        evaluation={
            "name": "geometry3k",
            "folder": str(folder),
            "questions": 2,
            "benchmarks": {"geometry3k": str(test)},
        },
    )
    assert [question.row["gold"] for question in held_out(config)] == ["4", "4"]
    assert overlap_report(config) == [
        "geometry3k: of 2 training questions 2 share their text, 1 a picture and 1 both with "
        "the held-out questions",
        "geometry3k: of 2 training questions 1 share their text, 1 a picture and 1 both with "
        "geometry3k",
    ]
    assert opened_sets(config) == [f"data set geometry3k from {folder}: 2 questions"]


def test_suites_are_not_compared(tmp_path: Path) -> None:
    assert overlap_report(config_of(DataSettings(suite="nano"))) == []


def test_a_run_on_a_named_set_says_what_it_found_and_trains(
    text_model: Path, tmp_path: Path
) -> None:
    rows = [{"question": f"{n} + 1?", "answer": str(n + 1), "id": str(n)} for n in range(4)]
    folder = write(tmp_path / "m" / "train.parquet", [*rows, {**rows[0], "answer": ""}])
    write(folder / "test.parquet", rows[:2])
    recipe = tmp_path / "own.toml"
    recipe.write_text(
        f'method = "grpo"\nmodel = {json.dumps(str(text_model))}\nsteps = 1\n'
        "prompts_per_step = 2\ngroup_size = 2\nevaluate_every = 1\n"
        f'[data]\nname = "mmk12"\nfolder = {json.dumps(str(folder))}\n'
        'prompt_format = "think-boxed"\n'
        f'[evaluation]\nname = "mmk12"\nfolder = {json.dumps(str(folder))}\n'
        "questions = 2\nsamples = 2\n[sampling]\nmax_tokens = 4\n"
        '[reward]\nname = "correct"\n'
    )
    arguments = ["--recipe", str(recipe), "--out", str(tmp_path / "run")]
    outcome = CliRunner().invoke(train_command, arguments, catch_exceptions=False)
    assert outcome.exit_code == 0
    assert "4 questions, 1 rows left out (1 without an answer)" in outcome.stderr
    assert "2 share their text, 0 a picture and 2 both with the held-out" in outcome.stderr
    assert (tmp_path / "run" / "checkpoints" / "last" / "trainer.json").exists()
