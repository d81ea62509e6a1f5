"""Curves: smoothing, bands over runs, and the command."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from npbench.errors import InputError
from trainers.cli import plot_command
from trainers.plots import Curve, band, read_curves, smoothed


def write_run(folder: Path, method: str, rewards: list[float | None]) -> Path:
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"config": {"method": method}}))
    lines = [json.dumps({"step": step, "reward": r}) + "\n" for step, r in enumerate(rewards)]
    (folder / "scalars.jsonl").write_text("".join(lines) + '{"step": 9, "rew')
    return folder


def test_smoothing_is_an_average_of_what_came_before() -> None:
    values = np.array([1.0, 2.0, 6.0])
    assert smoothed(values, weight=0.0).tolist() == [1.0, 2.0, 6.0]
    expected = (0.25 * 1 + 0.5 * 2 + 6) / 1.75
    assert smoothed(values, weight=0.5)[2] == pytest.approx(expected)
    with pytest.raises(InputError, match=r"must lie in \[0, 1\), got 1.0"):
        smoothed(values, weight=1.0)


def test_a_band_covers_the_steps_that_all_runs_have() -> None:
    one = Curve(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 2.0]))
    two = Curve(np.array([1.0, 2.0]), np.array([3.0, 2.0]))
    steps, mean, low, high = band([one, two], weight=0.0)
    assert steps.tolist() == [1.0, 2.0]
    assert (mean.tolist(), low.tolist(), high.tolist()) == ([2.0, 2.0], [1.0, 2.0], [3.0, 2.0])


def test_a_missing_value_and_a_torn_line_are_left_out(tmp_path: Path) -> None:
    curves = read_curves(write_run(tmp_path / "a", "grpo", [0.1, None, 0.3]), ["reward", "sr"])
    assert set(curves) == {"reward"}
    assert curves["reward"].steps.tolist() == [0.0, 2.0]


def test_the_command_draws_runs_of_several_methods(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", "grpo", [0.1, 0.2]),
        write_run(tmp_path / "b", "grpo", [0.2, 0.4]),
        write_run(tmp_path / "c", "mupo", [0.0, 0.5]),
    ]
    out = tmp_path / "curves.png"
    outcome = CliRunner().invoke(plot_command, [*map(str, runs), "--out", str(out)])
    assert outcome.exit_code == 0, outcome.output
    assert outcome.stdout.strip() == str(out)
    with Image.open(out) as picture:
        assert picture.width > 300


def test_what_cannot_be_drawn_is_one_line(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", "grpo", [0.1])
    for arguments, message in (
        ([str(tmp_path)], "is no run"),
        ([str(run), "--curve", "sr"], "no run has logged any of: sr"),
    ):
        with pytest.raises(InputError, match=message):
            CliRunner().invoke(plot_command, arguments, catch_exceptions=False)
