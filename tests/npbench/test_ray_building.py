"""Splits built on Ray: the bytes of one process, whatever dies on the way."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from npbench import ray_pool
from npbench.building import build_split
from npbench.commands.generate import command
from npbench.errors import InputError
from npbench.ray_building import ChunkMaker, ray_chunks
from npbench.ray_pool import WorkerError, ray_session
from npbench.splits import Request


@pytest.fixture(scope="session")
def ray():
    """A Ray of this machine's own with room for two workers."""
    pytest.importorskip("ray")
    with ray_session(None, workers=2) as ray:
        yield ray


@pytest.fixture(scope="module")
def request_of_five_chunks():
    return Request.make(
        suite="nano", split="test", seed=3, per_task=14, tasks=["knapsack", "subset_sum",
        "set_cover", "tsp", "graph_coloring"], modality="both",
    )  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory, request_of_five_chunks):
    folder = tmp_path_factory.mktemp("split") / "data"
    build_split(request_of_five_chunks, folder)
    return folder


@pytest.fixture
def dying(tmp_path):
    """A maker whose process is killed over chunk 1, at most so many times.

    Its class stands in a function, so that it travels to the workers as it is.
    """

    def make(times):
        class Dying(ChunkMaker):
            def __call__(self, chunk):
                marks = len(list(tmp_path.glob("death-*")))
                if chunk == 1 and marks < times:
                    (tmp_path / f"death-{os.getpid()}").touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().__call__(chunk)

        return Dying

    return make


def digest_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_killed_worker_is_replaced_and_nothing_is_lost_or_doubled(
    ray, built, request_of_five_chunks, dying, tmp_path
):
    told, seen = [], []
    elsewhere = ray_chunks(workers=2, notify=told.append, maker=dying(1))
    build_split(
        request_of_five_chunks,
        tmp_path / "b",
        elsewhere=elsewhere,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert len(list(tmp_path.glob("death-*"))) == len(told) == 1
    assert "died and is replaced" in told[0]
    assert seen[0] == (0, 140)
    assert seen[-1] == (140, 140)
    assert len(seen) == 1 + 5
    assert digest_of(tmp_path / "b") == digest_of(built)


def test_a_worker_that_hangs_is_replaced_and_nothing_is_lost_or_doubled(
    ray, built, request_of_five_chunks, tmp_path
):
    class Hanging(ChunkMaker):
        def __call__(self, chunk):
            mark = tmp_path / "hung"
            if chunk == 1 and not mark.exists():
                mark.touch()
                time.sleep(3600)
            return super().__call__(chunk)

    told = []
    elsewhere = ray_chunks(workers=2, notify=told.append, maker=Hanging, patience=30)
    build_split(request_of_five_chunks, tmp_path / "b", elsewhere=elsewhere)
    assert len(told) == 1
    assert told[0].endswith("died and is replaced: no answer in 30 s")
    assert digest_of(tmp_path / "b") == digest_of(built)


def test_work_over_which_every_worker_hangs_ends_the_build_in_one_line(
    ray, request_of_five_chunks, tmp_path
):
    class Stuck(ChunkMaker):
        def __call__(self, chunk):
            time.sleep(3600)

    message = r"^3 workers died over the same piece of work, .* no answer in 2 s; what was"
    with pytest.raises(WorkerError, match=message):
        build_split(
            request_of_five_chunks,
            tmp_path / "b",
            elsewhere=ray_chunks(workers=1, maker=Stuck, patience=2),
        )
    for patience in (0, float("inf"), float("nan")):
        with pytest.raises(InputError, match=r"seconds must lie in \(0, 2592000\], got"):
            build_split(
                request_of_five_chunks,
                tmp_path / "c",
                elsewhere=ray_chunks(workers=1, patience=patience),
            )


def test_work_that_kills_three_workers_ends_the_build_and_one_process_can_finish_it(
    ray, built, request_of_five_chunks, dying, tmp_path
):
    folder = tmp_path / "b"
    told = []
    with pytest.raises(WorkerError, match=r"^3 workers died .* run the command again") as raised:
        build_split(
            request_of_five_chunks,
            folder,
            elsewhere=ray_chunks(workers=2, notify=told.append, maker=dying(99)),
        )
    assert "\n" not in str(raised.value)
    assert len(told) == 2
    kept = sorted((folder / ".building").glob("chunk-*.parquet"))
    assert [path.name for path in kept].count("chunk-0000001.parquet") == 0
    assert kept
    seen = []
    build_split(request_of_five_chunks, folder, progress=lambda done, _: seen.append(done))
    assert seen[0] > 0
    assert digest_of(folder) == digest_of(built)


def test_an_interrupted_build_goes_on_with_the_chunks_that_it_has(
    ray, built, request_of_five_chunks, tmp_path
):
    folder = tmp_path / "b"

    def interrupt(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_split(
            request_of_five_chunks, folder, elsewhere=ray_chunks(workers=1), progress=interrupt
        )
    assert len(list((folder / ".building").glob("chunk-*.parquet"))) == 1
    build_split(request_of_five_chunks, folder, elsewhere=ray_chunks(workers=1))
    assert digest_of(folder) == digest_of(built)


@pytest.mark.parametrize(
    ("given_back", "reason"),
    [
        (None, "gave back None and no chunk"),
        ((0, b""), "gave back no file for chunk 0"),
        ("another", "gave back 12 rows for chunk 0, which has 32"),
    ],
)
def test_a_worker_that_gives_back_something_else_is_an_error(
    ray, request_of_five_chunks, tmp_path, given_back, reason
):
    class Wrong(ChunkMaker):
        def __call__(self, chunk):
            return (chunk, super().__call__(4)[1]) if given_back == "another" else given_back

    elsewhere = ray_chunks(workers=1, maker=Wrong)
    with pytest.raises(WorkerError, match=reason):
        build_split(request_of_five_chunks, tmp_path / "b", elsewhere=elsewhere)


def test_a_machine_with_another_library_is_refused(ray, request_of_five_chunks, tmp_path):
    class Elsewhere(ChunkMaker):
        def statement(self):
            return {**super().statement(), "pillow": "1.0"}

    elsewhere = ray_chunks(workers=1, maker=Elsewhere)
    with pytest.raises(WorkerError, match=r"differs from the rest of the run: its pillow is '1.0'"):
        build_split(request_of_five_chunks, tmp_path / "b", elsewhere=elsewhere)


def test_the_command_builds_the_same_split_on_ray(ray, tmp_path):
    words = ["--suite", "nano", "--split", "test", "--seed", "1", "--per-task", "1", "--out"]
    for name, more in (("a", ["--workers", "1"]), ("b", ["--engine", "ray", "--workers", "1"])):
        CliRunner().invoke(command, [*words, str(tmp_path / name), *more], catch_exceptions=False)
    assert digest_of(tmp_path / "a") == digest_of(tmp_path / "b")
    assert (tmp_path / "a" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--engine", "rya"], "unknown engine 'rya'; did you mean 'ray'"),
        (["--address", "auto"], "--address goes with --engine ray"),
        (["--engine", "ray", "--workers", "1025"], r"workers must lie in \[0, 1024\], got 1025"),
        (["--engine", "ray"], r"--engine ray needs: pip install 'npbench\[ray\]'"),
    ],
)
def test_wrong_usage_is_one_line(monkeypatch, tmp_path, more, reason):
    monkeypatch.setitem(sys.modules, "ray", None)
    words = ["--suite", "nano", "--split", "test", "--seed", "1", "--out", str(tmp_path / "a")]
    result = CliRunner().invoke(command, [*words, *more])
    assert isinstance(result.exception, InputError)
    with pytest.raises(InputError, match=reason):
        raise result.exception


@pytest.fixture
def npbench():
    """Runs a command in a process of its own, which no Ray is connected to."""
    pytest.importorskip("ray")

    def call(*words):
        return subprocess.run(
            [sys.executable, "-m", "npbench", *map(str, words)],
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip

    return call


WORDS = ("generate", "--suite", "nano", "--split", "test", "--seed", 1, "--per-task", 1)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:1", "Ray at 127.0.0.1:1 cannot be reached: "),
        ("ray://head:10001", "Ray at ray://head:10001 cannot be reached: "),
        ("head", "--address takes auto or HOST:PORT, got 'head'"),
    ],
)
def test_a_cluster_that_is_not_there_is_one_line(npbench, tmp_path, address, reason):
    done = npbench(*WORDS, "--engine", "ray", "--address", address, "--out", tmp_path / "a")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"npbench: {reason}")
    assert not (tmp_path / "a" / ".building").exists()


def test_a_running_cluster_is_used_and_left_running(ray, npbench, tmp_path):
    address = ray.get_runtime_context().gcs_address
    done = npbench(*WORDS, "--engine", "ray", "--workers", 1, "--address", address,
                   "--out", tmp_path / "a")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ray" not in done.stdout
    build_split(Request.make(suite="nano", split="test", seed=1, per_task=1), tmp_path / "b")
    assert digest_of(tmp_path / "a") == digest_of(tmp_path / "b")
    assert ray.cluster_resources()["CPU"] == 2


def test_a_worker_that_no_machine_has_room_for_ends_the_run(ray, monkeypatch):
    monkeypatch.setattr(ray_pool, "START_SECONDS", 1.0)
    with (
        ray_pool.RayPool([object], num_gpus=99) as pool,
        pytest.raises(WorkerError, match=r"^no worker started in 1 s: each needs 1 CPU and 99 GPU"),
    ):
        pool.statement()
