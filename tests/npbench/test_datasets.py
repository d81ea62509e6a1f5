"""A built split as a Hugging Face dataset: loaded whole, streamed and mapped."""

import json
from io import BytesIO

import pytest
from PIL import Image

from npbench.building import build_split
from npbench.splits import COLUMNS, Request
from npbench.storage import open_split
from npbench.tasks import TASKS

datasets = pytest.importorskip("datasets")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hf") / "split"
    request = Request.make(suite="nano", split="validation", seed=4, per_task=1, modality="both")
    build_split(request, folder)
    return folder


@pytest.fixture(scope="module")
def load(folder, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")

    def load_split(**options):
        return datasets.load_dataset(str(folder), cache_dir=str(cache), **options)

    return load_split


def test_the_folder_loads_with_its_split_its_columns_and_pictures(folder, load):
    found = load()
    assert list(found) == ["validation"]
    table = found["validation"]
    assert tuple(table.column_names) == COLUMNS
    assert isinstance(table.features["image"], datasets.Image)
    assert table.features["reference_objective"].dtype == "int64"
    for row, own in zip(table, open_split(folder).rows(), strict=True):
        assert {key: row[key] for key in COLUMNS if key != "image"} == {
            key: own[key] for key in COLUMNS if key != "image"
        }
        if own["image"] is None:
            assert row["image"] is None
        else:
            assert row["image"].tobytes() == Image.open(BytesIO(own["image"])).tobytes()


def test_streaming_gives_the_same_rows(load):
    streamed = load(split="validation", streaming=True)
    whole = load(split="validation")
    assert [row["id"] for row in streamed] == whole["id"][:]
    first = next(iter(streamed))
    assert isinstance(first["image"], Image.Image)


def test_map_and_filter_work_on_rows_with_and_without_pictures(load):
    def judge(row):
        task = TASKS[row["task"]]
        instance = task.decode(json.loads(row["instance"]))
        verdict = task.verify(instance, json.loads(row["reference_solution"]))
        return {"objective": verdict.objective, "width": row["image"].width if row["image"] else 0}

    table = load(split="validation").map(judge)
    assert table["objective"][:] == table["reference_objective"][:]
    assert {width > 0 for width in table["width"]} == {True, False}
    pictures = table.filter(lambda modality: modality == "image", input_columns="modality")
    assert len(pictures) == len(TASKS)
    streamed = load(split="validation", streaming=True).map(judge)
    assert [row["objective"] for row in streamed] == table["objective"][:]


def test_the_card_is_read_as_the_metadata_of_a_dataset(folder):
    yaml = pytest.importorskip("yaml")
    text = (folder / "README.md").read_text(encoding="utf-8")
    head, _, body = text.removeprefix("---\n").partition("\n---\n")
    card = yaml.safe_load(head)
    assert card["license"] == "apache-2.0"
    assert card["configs"] == [
        {
            "config_name": "default",
            "data_files": [{"split": "validation", "path": "data/validation-*.parquet"}],
        }
    ]
    assert "| tsp | nano | 1 |" in body
