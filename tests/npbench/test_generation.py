"""What a user may rely on when instances are drawn."""

import json
import subprocess
import sys

import numpy as np
import pytest

from npbench.errors import GenerationError, InputError
from npbench.generation import SPLITS, customised, draw_instance, split_of
from npbench.rng import instance_rng
from npbench.splits import load
from npbench.tasks import TASKS

IDENTITY = {
    "version": "v",
    "task": "tsp",
    "level": "l1",
    "params": {"num_cities": 10},
    "split": "train",
    "seed": 1,
    "index": 0,
}


def test_every_part_of_an_identity_changes_the_stream():
    streams = [instance_rng(**IDENTITY).integers(2**62)]
    for name, other in {
        "version": "w",
        "task": "knapsack",
        "level": "l2",
        "params": {"num_cities": 11},
        "split": "test",
        "seed": 2,
        "index": 1,
    }.items():
        streams.append(instance_rng(**{**IDENTITY, name: other}).integers(2**62))
    streams.append(instance_rng(**IDENTITY, purpose="random").integers(2**62))
    assert len(set(streams)) == len(streams)


def test_item_one_of_a_seed_is_not_item_zero_of_the_next():
    rows = [load("np-bench", "easy", "train", seed, per_task=6) for seed in (1, 2)]
    first, second = ({row.instance for row in split} for split in rows)
    assert not first & second


def test_a_split_holds_only_classes_of_its_own():
    for split in SPLITS:
        for row in load("nano", "nano", split, 4, per_task=3):
            assert split_of(row.class_key) == split


def test_the_shares_of_the_splits_are_70_10_and_20_percent():
    counts = dict.fromkeys(SPLITS, 0)
    for bucket in range(100):
        counts[split_of(f"{bucket:x}")] += 1
    assert counts == {"train": 70, "validation": 10, "test": 20}


def test_hard_draws_have_greedy_strictly_worse_than_the_optimum():
    task = TASKS["maximum_clique"]
    hard = [
        draw_instance(task, task.levels["l2"], version="v", split="train", seed=0, index=index)
        for index in range(12)
    ]
    assert any(drawn.hard for drawn in hard)
    for drawn in hard:
        if drawn.hard:
            assert drawn.floors["greedy"] < drawn.reference.objective


def test_any_index_can_be_drawn_alone_and_out_of_order():
    split = load("mm-np-bench", "l1", "test", 9, per_task=3)
    later = split[17]
    assert load("mm-np-bench", "l1", "test", 9, per_task=3)[17] == later
    assert list(split)[17] == later


def test_a_larger_split_begins_with_the_smaller_one():
    small = load("nano", "nano", "train", 3, per_task=1)
    large = load("nano", "nano", "train", 3, per_task=2)
    assert list(small) == large[: len(small)]
    assert len(large) == 2 * len(small)


def test_global_generators_are_left_alone():
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    list(load("nano", "nano", "train", 3, per_task=1))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_another_process_with_another_hash_seed_draws_the_same_rows():
    code = (
        "import json, hashlib\n"
        "from npbench.splits import load\n"
        "rows = list(load('nano', ['nano', 'l1'], 'train', 11, per_task=1, modality='both'))\n"
        "text = repr([(r.id, r.instance, r.prompt, r.layout, r.image, r.reference_solution,"
        " r.random_objective) for r in rows])\n"
        "print(hashlib.sha256(text.encode()).hexdigest())\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": "", "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_picture_and_text_of_an_index_show_the_same_instance():
    rows = list(
        load("nano", "nano", "test", 2, per_task=1, modality="both", styles=["light", "dark"])
    )
    assert len(rows) == 14 * 3
    for start in range(0, len(rows), 3):
        image, other, text = rows[start : start + 3]
        assert image.instance_id == other.instance_id == text.instance_id
        assert image.instance == other.instance == text.instance
        assert len({image.id, other.id, text.id}) == 3
        assert image.image is not None
        assert text.image is None
        assert text.layout is None


def test_free_sizes_reach_200_vertices_in_text():
    row = load(
        "np-bench",
        "easy",
        "train",
        1,
        tasks=["knapsack"],
        params={"num_items": 200},
    )[0]
    assert len(json.loads(row.instance)["weights"]) == 200
    assert row.reference_status == "optimal"


def test_a_size_without_instances_is_refused_by_name_after_bounded_tries():
    """Of the connected graphs on four vertices two need three colours; both are not validation."""
    task = TASKS["graph_coloring"]
    level = customised(task, task.levels["nano"], {"num_vertices": 4})
    with pytest.raises(GenerationError, match=r"graph_coloring at level nano: none of .* index 3"):
        draw_instance(task, level, version="v", split="validation", seed=0, index=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"suite": "mm-np-banch"}, "unknown suite 'mm-np-banch'; did you mean 'mm-np-bench'"),
        ({"level": "l9"}, "unknown level 'l9'"),
        ({"split": "tests"}, "unknown split 'tests'; did you mean 'test'"),
        ({"tasks": ["tsq"]}, "unknown task 'tsq'; did you mean 'tsp'"),
        ({"tasks": ["tsp", "NpTsp"]}, "task tsp is asked for twice"),
        ({"styles": ["lite"]}, "unknown style 'lite'"),
        ({"modality": "picture"}, "unknown modality 'picture'"),
        ({"per_task": 0}, "per-task must lie in"),
        ({"seed": -1}, "seed must lie in"),
        ({"params": {"num_vertices": 30}}, "unknown parameter of tsp 'num_vertices'"),
        (
            {"params": {"num_cities": 3}, "tasks": ["tsp"]},
            r"num_cities of tsp must lie in \[4, 200\]",
        ),
        ({"params": {"num_cities": (9, 5)}, "tasks": ["tsp"]}, "LOW-HIGH"),
        ({"params": {"largest": (3, 5)}, "tasks": ["subset_sum"]}, "takes one number, got 3-5"),
        ({"level": "easy", "tasks": ["vertex_cover"]}, "vertex_cover has no level easy"),
    ],
)
def test_wrong_requests_get_one_line(options, message):
    call = {"suite": "mm-np-bench", "level": "l1", "split": "test", "seed": 1, "tasks": ["tsp"]}
    call |= options
    names = (call.pop("suite"), call.pop("level"), call.pop("split"), call.pop("seed"))
    with pytest.raises(InputError, match=message):
        load(*names, **call)
