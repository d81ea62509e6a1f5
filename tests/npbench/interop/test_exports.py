"""Exports: each format read back by what reads it, whole or not there, nothing overwritten."""

import importlib.util
import json
from io import BytesIO

import pytest
from PIL import Image

from npbench.building import build_split
from npbench.errors import InputError
from npbench.interop.exports import FORMATS, export_split
from npbench.interop.instances import read_instances
from npbench.interop.lmms_eval import doc_to_visual
from npbench.interop.np_engine import LEVELS, TASK_TYPES
from npbench.interop.parquet import LAYOUTS, write_parquet
from npbench.rewards import compute_score, easyr1_score, np_reward
from npbench.splits import Request
from npbench.storage import open_split

datasets = pytest.importorskip("datasets")


def loaded(path, tmp_path):
    files = {"train": str(path)}
    cache = str(tmp_path / "cache")
    return datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=cache)


def replies(split):
    return {row["id"]: f"Answer: {row['reference_solution']}" for row in split.rows()}


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_is_overwritten_and_nothing_half_written_is_left(form, text_split, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    kept = out / "mine.txt"
    kept.write_text("mine")
    with pytest.raises(InputError, match="exists and is not an empty folder"):
        export_split(text_split, form, out)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert kept.read_text() == "mine"


def test_a_format_that_can_hold_no_row_leaves_no_folder(text_split, picture_split, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(InputError, match=r"no row for npmm \(40 rows: npmm questions are pictures"):
        export_split(text_split, "npmm", out)
    with pytest.raises(InputError, match=r"has no row for np-engine .* no level nano"):
        export_split(picture_split, "np-engine", out)
    with pytest.raises(InputError, match="unknown format 'vrel'; did you mean 'verl'"):
        export_split(text_split, "vrel", out)
    with pytest.raises(InputError, match="EasyR1 takes pictures or text, not both"):
        export_split(picture_split, "easyr1", out)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_the_middle_leaves_nothing(picture_split, edited, tmp_path):
    def without_an_optimum(rows):
        return [*rows[:-1], {**rows[16], "reference_objective": 0}]

    split = edited(picture_split, without_an_optimum)
    out = tmp_path / "exports" / "out"
    with pytest.raises(InputError, match=r"row nano-v1-\S+: VLMEvalKit divides by the objective"):
        export_split(split, "npmm", out)
    assert list(out.parent.iterdir()) == []


def test_rows_that_npmm_cannot_hold_are_counted(picture_split, tmp_path):
    summary = export_split(picture_split, "npmm", tmp_path / "out")
    assert summary.rows == 20
    assert summary.files == ("npmm.tsv",)
    assert sum(summary.left_out.values()) == len(picture_split) - 20
    assert summary.left_out["npmm has no task set_cover"] == 2


def test_np_engine_keys_name_one_level_each_and_lead_back_to_our_rows(text_split, tmp_path):
    out = tmp_path / "deep" / "out"
    summary = export_split(text_split, "np-engine", out)
    assert summary.rows == 40
    ids = json.loads((out / "ids.json").read_text(encoding="utf-8"))
    rows = {row["id"]: row for row in text_split.rows()}
    found = read_instances(out / "NP_Bench.json")
    assert [one.name for one in found] == list(ids)
    for one in found:
        row = rows[ids[one.name]]
        assert [level for level in LEVELS if level in one.name] == [row["level"]]
        assert one.task.name == row["task"]
        assert one.reference == row["reference_objective"]
        encoded = {**json.loads(row["instance"]), "coordinates": None}
        assert one.instance == one.task.decode(encoded)
        assert one.prompt.startswith(row["prompt"])
    assert {one.task.name for one in found} == set(TASK_TYPES)


def test_questions_that_np_engine_would_merge_are_counted(text_split, edited, tmp_path):
    split = edited(text_split, lambda rows: [*rows, {**rows[0], "id": "again"}])
    summary = export_split(split, "np-engine", tmp_path / "out")
    assert summary.rows == 40
    assert summary.left_out == {"repeats an earlier question, which NP-Engine merges": 1}


@pytest.mark.parametrize("name", ["text_split", "picture_split"])
def test_verl_rows_reward_their_reference_answers(name, request, tmp_path):
    split = request.getfixturevalue(name)
    export_split(split, "verl", tmp_path / "out")
    table = loaded(tmp_path / "out" / f"{split.manifest['parameters']['split']}.parquet", tmp_path)
    answers = replies(split)
    assert len(table) == len(split)
    assert ("images" in table.column_names) == (name == "picture_split")
    for position, (row, own) in enumerate(zip(table, split.rows(), strict=True)):
        assert row["extra_info"]["index"] == position
        assert row["extra_info"]["id"] == own["id"]
        assert row["prompt"][0]["content"].removeprefix("<image>") == own["prompt"]
        if own["image"] is not None:
            assert row["prompt"][0]["content"].count("<image>") == len(row["images"]) == 1
            assert row["images"][0]["bytes"] == own["image"]
        truth = row["reward_model"]["ground_truth"]
        score = compute_score(row["data_source"], answers[own["id"]], truth, row["extra_info"])
        assert score == pytest.approx(1.1)


def test_easyr1_rows_reward_their_reference_answers(text_split, tmp_path):
    export_split(text_split, "easyr1", tmp_path / "out")
    table = loaded(tmp_path / "out" / "train.parquet", tmp_path)
    answers = replies(text_split)
    inputs = [{"response": answers[row["id"]], "ground_truth": row["answer"]} for row in table]
    assert [score["overall"] for score in easyr1_score(inputs)] == pytest.approx([1.1] * 40)


@pytest.mark.parametrize("name", ["text_split", "picture_split"])
def test_trl_rows_are_conversations_with_the_columns_of_the_reward(name, request, tmp_path):
    split = request.getfixturevalue(name)
    export_split(split, "trl", tmp_path / "out")
    table = loaded(tmp_path / "out" / f"{split.manifest['parameters']['split']}.parquet", tmp_path)
    answers = replies(split)
    columns = {key: table[key] for key in table.column_names if key not in ("prompt", "image")}
    completions = [[{"role": "assistant", "content": answers[key]}] for key in table["id"]]
    rewards = np_reward(table["prompt"], completions, **columns)
    assert rewards == pytest.approx([1.1] * len(split))
    if name == "picture_split":
        shown = [row["image"] for row in table if row["image"] is not None]
        assert len(shown) == len(split) // 2
        assert all(isinstance(image, Image.Image) for image in shown)
    assert table[0]["prompt"][0]["role"] == "user"


@pytest.mark.parametrize("name", ["text_split", "picture_split"])
def test_the_lmms_eval_folder_scores_reference_answers_with_1(name, request, tmp_path):
    yaml = pytest.importorskip("yaml")
    split = request.getfixturevalue(name)
    summary = export_split(split, "lmms-eval", tmp_path / "out")
    task_name = "npbench_nano_test" if name == "picture_split" else "npbench_np_bench_train"
    assert f"{task_name}.yaml" in summary.files
    functions = yaml_functions(tmp_path / "out" / "utils.py")
    text = (tmp_path / "out" / f"{task_name}.yaml").read_text(encoding="utf-8")
    task = yaml.safe_load(text.replace("!function ", ""))
    assert task["task"] == task_name
    data_file = tmp_path / "out" / task["dataset_kwargs"]["data_files"][task["test_split"]]
    answers = replies(split)
    results = {"sr": [], "qr": []}
    for row, own in zip(loaded(data_file, tmp_path), split.rows(), strict=True):
        assert functions(task["doc_to_text"])(row) == own["prompt"]
        assert len(functions(task["doc_to_visual"])(row)) == (own["image"] is not None)
        result = functions(task["process_results"])(row, [answers[own["id"]], "I give up."])
        for metric, items in results.items():
            items.append(result[metric])
    for metric in task["metric_list"]:
        assert functions(metric["aggregation"])(results[metric["metric"]]) == 0.5


def yaml_functions(path):
    spec = importlib.util.spec_from_file_location("utils", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda name: getattr(module, name.removeprefix("utils."))


def test_lmms_eval_may_hand_over_pictures_as_bytes(picture_split):
    row = next(row for row in picture_split.rows() if row["image"])
    assert doc_to_visual({"image": {"bytes": row["image"]}})[0].mode == "RGB"
    assert doc_to_visual({"image": Image.open(BytesIO(row["image"]))})[0].mode == "RGB"
    assert doc_to_visual({}) == []


def test_a_prompt_with_the_mark_of_a_picture_is_refused(text_split, tmp_path):
    row = {**next(text_split.rows()), "prompt": "Look at <image>."}
    with pytest.raises(InputError, match="holds the text '<image>'"):
        write_parquet([row], tmp_path / "x", LAYOUTS["verl"], modalities={"text"})


def test_pictures_alone_suit_easyr1(tmp_path):
    request = Request.make(
        suite="nano", split="validation", seed=2, per_task=1, tasks=["tsp"], modality="image"
    )
    build_split(request, tmp_path / "split")
    split = open_split(tmp_path / "split")
    export_split(split, "easyr1", tmp_path / "out")
    row = loaded(tmp_path / "out" / "validation.parquet", tmp_path)[0]
    assert row["problem"].startswith("<image>")
    assert row["images"][0]["bytes"] == split.row(0)["image"]


def test_an_export_is_the_same_bytes_each_time(text_split, tmp_path):
    for form in ("np-engine", "verl", "lmms-eval"):
        first = export_split(text_split, form, tmp_path / "first" / form)
        second = export_split(text_split, form, tmp_path / "second" / form)
        assert first == second
        for name in first.files:
            paths = [tmp_path / part / form / name for part in ("first", "second")]
            assert paths[0].read_bytes() == paths[1].read_bytes()
