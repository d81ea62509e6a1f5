"""The reproduction that ships: it follows from its replies, and the README says what it says."""

from pathlib import Path

import pytest

from evaluators.checkpoints import find_checkpoint
from leaderboards.reproduction_brief import BEGIN, END, brief
from leaderboards.reproduction_cells import read_results
from leaderboards.reproduction_check import check
from leaderboards.reproduction_collect import MAX_BYTES
from leaderboards.reproduction_report import build_report
from leaderboards.reproduction_runs import weights_hash
from leaderboards.reproduction_settings import BASE, load_preset
from leaderboards.site import shipped_results

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder() -> Path:
    found = shipped_results()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def results(folder: Path):
    return read_results(folder)


def test_every_method_was_trained_from_both_bases_on_eight_fresh_seeds(results) -> None:
    preset = load_preset("cpu")
    seeds = set(range(preset.first_seed, preset.first_seed + 8))
    splits = {split.name for split in preset.evaluation.splits}
    for base in ("late", "early"):
        for arm in (BASE, "grpo", "dmpo", "dmpo-replication", "mupo"):
            keys = {k for k in results.cells if (k.base, k.arm) == (base, arm)}
            steps = {0} if arm == BASE else set(preset.steps())
            assert {k.seed for k in keys} >= seeds
            assert {k.step for k in keys} == steps
            assert {k.split for k in keys} == splits
            assert len(keys) == len({k.seed for k in keys}) * len(steps) * len(splits)
            if arm != BASE:
                curves = {c.seed for c in results.curves if (c.base, c.arm) == (base, arm)}
                assert curves == {k.seed for k in keys}


def test_it_was_made_by_the_committed_preset_from_the_shipped_model(results) -> None:
    assert results.manifest.protocol_hash == load_preset("cpu").fingerprint()
    shipped = weights_hash(find_checkpoint("npbench-tiny").folder)
    assert results.manifest.bases["late"].fingerprint == shipped
    assert results.manifest.marker == ""
    commits = {call.commit for call in results.manifest.calls}
    assert all(commit and len(commit) == 40 for commit in commits)
    assert {cell.commit for cell in results.cells.values()} <= commits


def test_it_is_small_and_names_no_folder_of_the_machine(folder: Path) -> None:
    names = ["cells.jsonl.gz", "curves.parquet", "replies.parquet", "study.json", "vectors.parquet"]
    kept = [path for path in folder.iterdir() if path.is_file()]
    assert sorted(path.name for path in kept) == names
    assert sum(path.stat().st_size for path in kept) <= MAX_BYTES
    assert "/tmp" not in (folder / "study.json").read_text(encoding="utf-8")


def test_the_cells_of_the_first_seed_follow_from_their_replies(folder: Path, results) -> None:
    first = min(key.seed for key in results.cells)
    found = check(folder, seeds={first})
    assert found.cells == sum(key.seed == first for key in results.cells)
    assert found.without_replies == 0


@pytest.mark.slow
def test_all_cells_follow_from_their_replies(folder: Path, results) -> None:
    found = check(folder)
    assert found.cells == len(results.cells)


def test_the_readme_says_what_the_results_say(folder: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.partition(f"{BEGIN}\n")[2].partition(END)[0]
    assert shown == brief(build_report(folder, pictures=False))
