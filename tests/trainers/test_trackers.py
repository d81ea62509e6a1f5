"""Trackers: what a run sends them, and the hint where one is not installed."""

import sys
import types
from pathlib import Path

import pytest

from npbench.errors import InputError
from trainers.loop import train


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_service_gets_settings_steps_and_the_end(
    name: str, text_model: Path, make_config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, object]] = []
    service = types.ModuleType(name)
    service.init = lambda **given: calls.append(("init", given["config"]["method"]))
    service.log = lambda numbers, step: calls.append(("log", (step, numbers["train/reward"])))
    service.finish = lambda: calls.append(("finish", None))
    monkeypatch.setitem(sys.modules, name, service)
    train(make_config(text_model, steps=2, log_to=[name]), tmp_path / "run")
    assert [kind for kind, _ in calls] == ["init", "log", "log", "finish"]
    assert calls[0][1] == "grpo"
    assert calls[2][1][0] == 1


def test_tensorboard_gets_event_files(text_model: Path, make_config, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    train(make_config(text_model, steps=1, log_to=["tensorboard"]), tmp_path / "run")
    assert list((tmp_path / "run" / "tensorboard").glob("events.*"))


def test_a_missing_package_is_one_line(
    text_model: Path, make_config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trackio", None)
    with pytest.raises(InputError, match="log_to 'trackio' needs: pip install trackio"):
        train(make_config(text_model, log_to=["trackio"]), tmp_path / "run")
