"""Golden transcripts: a change of instances, prompts, pictures or verdicts cannot go unnoticed."""

import importlib.util
import json
from pathlib import Path

import pytest

from npbench.tasks import TASKS

FOLDER = Path(__file__).parent / "golden"
SPEC = importlib.util.spec_from_file_location("regenerate", FOLDER / "regenerate.py")
CELLS = [(task, level) for task, record in TASKS.items() for level in record.levels]


@pytest.fixture(scope="module")
def regenerate():
    module = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("task", "level"), CELLS)
def test_the_first_item_is_the_one_on_record(regenerate, task, level):
    recorded = json.loads((FOLDER / f"{task}.json").read_text(encoding="utf-8"))
    assert json.loads(json.dumps(regenerate.transcript(task, level))) == recorded[level]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "level"), CELLS)
def test_the_first_twenty_items_are_those_on_record(regenerate, task, level):
    recorded = json.loads((FOLDER / f"{task}.hashes.json").read_text(encoding="utf-8"))
    assert regenerate.item_hashes(task, level) == recorded[level]
