import json
import sys

import datasets
import pytest

from evaluators.benchmarks._row import Row, interleaved
from evaluators.loading import Origin, open_table, resolve
from npbench.errors import InputError


@pytest.fixture
def files(tmp_path):
    """Writes jsonl files into one folder, each with one row that holds its name."""

    def write(*names):
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"from": name}) + "\n", encoding="utf-8")
        return tmp_path

    return write


def sources(folder, origin):
    return [row["from"] for row in open_table(origin, source=folder)]


def test_only_the_files_of_the_wanted_split_are_read_from_a_copy_of_a_repository(files):
    folder = files("data/test-00000-of-00001.jsonl", "data/testmini-00000-of-00001.jsonl")
    assert sources(folder, Origin("hub", ("testmini",))) == ["data/testmini-00000-of-00001.jsonl"]
    assert sources(folder, Origin("hub", ("test",))) == ["data/test-00000-of-00001.jsonl"]


def test_a_configuration_whose_name_begins_with_anothers_is_told_apart(files):
    folder = files("testmini.jsonl", "testmini_text_only.jsonl")
    assert sources(folder, Origin("hub", ("testmini",), "testmini")) == ["testmini.jsonl"]
    text_only = Origin("hub", ("testmini_text_only",), "testmini_text_only")
    assert sources(folder, text_only) == ["testmini_text_only.jsonl"]


def test_the_folder_of_a_configuration_is_chosen_whatever_its_files_are_called(files):
    folder = files("one/rows.jsonl", "two/rows.jsonl")
    assert sources(folder, Origin("hub", ("train",), "two")) == ["two/rows.jsonl"]


def test_several_splits_are_read_in_their_order_even_where_their_columns_differ(tmp_path):
    (tmp_path / "image-0.jsonl").write_text('{"a": 1, "b": "x"}\n')
    (tmp_path / "non_image-0.jsonl").write_text('{"a": 2, "b": null}\n')
    table = open_table(Origin("hub", ("image", "non_image")), source=tmp_path)
    assert list(table) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert table[1] == {"a": 2, "b": None}


def test_a_copy_that_lacks_one_of_several_splits_is_refused(files):
    folder = files("image-0.jsonl")
    with pytest.raises(InputError, match="no file of the split non_image"):
        open_table(Origin("hub", ("image", "non_image")), source=folder)


def test_files_without_telling_names_are_all_read(files):
    folder = files("a.jsonl", "b.jsonl")
    assert sources(folder, Origin("hub", ("test",), "default")) == ["a.jsonl", "b.jsonl"]


def test_a_list_in_a_json_file_is_read_like_lines(tmp_path):
    (tmp_path / "rows.json").write_text('[{"a": 1}, {"a": 2}]')
    assert list(open_table(Origin("hub", ("test",)), source=tmp_path)) == [{"a": 1}, {"a": 2}]


def test_a_changed_file_is_read_anew(tmp_path):
    for value in (1, 2):
        (tmp_path / "rows.jsonl").write_text(f'{{"a": {value}}}\n')
        assert list(open_table(Origin("hub", ("test",)), source=tmp_path)) == [{"a": value}]


def test_pictures_of_a_parquet_file_stay_the_bytes_they_are(tmp_path, png):
    features = datasets.Features({"id": datasets.Value("string"), "image": datasets.Image()})
    rows = {"id": ["1", "2"], "image": [{"bytes": png("red"), "path": None}, None]}
    table = datasets.Dataset.from_dict(rows, features=features)
    table.to_parquet(tmp_path / "test-00000-of-00001.parquet")
    read = list(open_table(Origin("hub", ("test",)), source=tmp_path))
    assert Row(0, read[0], tmp_path).picture("image") == png("red")
    assert Row(1, read[1], tmp_path).picture("image") is None


def test_the_hub_path_reads_a_repository_with_configurations(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "testmini-0.jsonl").write_text(f'{{"from": "{name}"}}\n')
    configs = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: testmini\n    path: {name}/testmini-*\n"
        for name in ("one", "two")
    )
    (tmp_path / "README.md").write_text(f"---\nconfigs:\n{configs}---\n")
    table = open_table(Origin(str(tmp_path), ("testmini",), "two"), source=None)
    assert list(table) == [{"from": "two"}]
    with pytest.raises(InputError, match="cannot be loaded from the Hub"):
        open_table(Origin(str(tmp_path), ("testmini",), "three"), source=None)


def test_a_hub_that_is_not_reached_is_one_line_that_names_the_way_round(monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError) as error:
        open_table(Origin("nobody/nothing", ("test",)), source=None)
    assert "nobody/nothing" in str(error.value)
    assert "--from FOLDER" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_library_is_named_with_its_pip_line(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'npbench\[eval\]'"):
        open_table(Origin("hub", ("test",)), source=tmp_path)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: None, "holds no parquet, jsonl or json file"),
        (lambda folder: (folder / "a.jsonl").write_text(""), "has a file without rows"),
        (lambda folder: (folder / "a.jsonl").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "a.parquet").write_bytes(b"PAR1"), "cannot be read"),
    ],
)
def test_a_folder_that_cannot_be_read_is_one_line(tmp_path, make, says):
    make(tmp_path)
    with pytest.raises(InputError, match=says) as error:
        open_table(Origin("hub", ("test",)), source=tmp_path)
    assert "\n" not in str(error.value)


def test_a_folder_that_is_none_is_one_line(tmp_path):
    with pytest.raises(InputError, match="is no folder"):
        open_table(Origin("hub", ("test",)), source=tmp_path / "none")


def test_the_first_alias_that_exists_is_taken_and_every_missing_column_listed():
    wanted = {"answer": ("answer", "final_answer"), "id": ("id", "ID"), "image": ("image",)}
    assert resolve("x", ["FINAL_ANSWER", "Answer", "id", "image"], wanted)["answer"] == "Answer"
    with pytest.raises(InputError, match="lacks the columns id or ID, image; it has answer"):
        resolve("x", ["answer"], wanted)


def test_pictures_come_in_the_order_of_their_numbers_in_the_text():
    pictures = {1: b"1", 2: b"2", 3: b"3"}
    assert interleaved("<image 2>a<image 1>b<image 2>", pictures) == (b"2", "a", b"1", "b", b"2")
    assert interleaved("no token", pictures) == (b"1", b"2", b"3", "no token")
    with pytest.raises(InputError, match="picture 4"):
        interleaved("<image 4>", pictures)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, None),
        ("", None),
        ({"bytes": None, "path": None}, None),
        ({"bytes": b"x", "path": "elsewhere.png"}, b"x"),
        ({"bytes": None, "path": "p.png"}, b"file"),
        ("p.png", b"file"),
        (b"raw", b"raw"),
        ("data:image/png;base64,eA==", b"x"),
    ],
)
def test_every_form_of_a_picture_cell_is_bytes_or_no_picture(tmp_path, cell, expected):
    (tmp_path / "p.png").write_bytes(b"file")
    assert Row(0, {"image": cell}, tmp_path).picture("image") == expected


@pytest.mark.parametrize(
    ("cell", "says"), [("../p.png", "outside"), ("none.png", "No such file"), (3, "a picture")]
)
def test_a_picture_that_cannot_be_had_is_named(tmp_path, cell, says):
    with pytest.raises(InputError, match=says):
        Row(0, {"image": cell}, tmp_path).needed_picture("image")


@pytest.mark.parametrize("text", ["[" * 5000, "['a'" + " " * 30_000 + "]", "['a', 'b'", "exec"])
def test_text_that_is_no_list_is_refused_and_never_run(text):
    with pytest.raises(InputError, match="must be a list"):
        Row(0, {"options": text}, None).texts("options")
