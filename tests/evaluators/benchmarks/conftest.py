import io
import json
import shutil
from pathlib import Path

import datasets
import pytest
from PIL import Image

from evaluators.benchmark import get_benchmark

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
        datasets.disable_progress_bars()
        yield


@pytest.fixture(scope="session")
def png():
    """The encoded picture of a colour."""

    def encoded(colour):
        buffer = io.BytesIO()
        Image.new("RGB", (8, 6), colour).save(buffer, "PNG")
        return buffer.getvalue()

    return encoded


@pytest.fixture(scope="session")
def data(tmp_path_factory, png):
    """The folder of a benchmark's fixture, its pictures beside it."""
    root = tmp_path_factory.mktemp("data")
    for source in FIXTURES.iterdir():
        shutil.copytree(source, root / source.name)
        for colour in ("red", "blue"):
            (root / source.name / f"{colour}.png").write_bytes(png(colour))
    return lambda name: root / name


@pytest.fixture(scope="session")
def rows_of(data):
    """The rows of a benchmark's fixture."""

    def read(name):
        files = sorted(data(name).glob("*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]

    return read


@pytest.fixture(scope="session")
def load():
    """A benchmark from a folder."""

    def from_folder(name, folder, **kwargs):
        return get_benchmark(name, source=folder, **kwargs)

    return from_folder


@pytest.fixture(scope="session")
def fixture_of(data, rows_of, load):
    """The benchmark of its fixture, read once."""
    loaded = {}

    def get(name):
        if name not in loaded:
            loaded[name] = load(name, data(name), rows=len(rows_of(name)))
        return loaded[name]

    return get


@pytest.fixture
def written(tmp_path, png):
    """A new folder with rows as jsonl and the two pictures."""

    def write(rows):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "data.jsonl").write_text(text, encoding="utf-8")
        for colour in ("red", "blue"):
            (tmp_path / f"{colour}.png").write_bytes(png(colour))
        return tmp_path

    return write
