"""Splits on disk: whole, reproducible, resumable, and never overwritten."""

import hashlib
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from npbench import building, storage
from npbench.building import build_split
from npbench.errors import InputError
from npbench.manifest import pixel_hash
from npbench.splits import COLUMNS, LazySplit, Request
from npbench.storage import open_split
from npbench.suites import OFFICIAL


@pytest.fixture(scope="module")
def request_of_a_small_split():
    return Request.make(
        suite="nano", split="test", seed=3, per_task=3, modality="both", styles=["light", "print"]
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory, request_of_a_small_split):
    folder = tmp_path_factory.mktemp("split") / "data"
    build_split(request_of_a_small_split, folder)
    return folder


def digest_of(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_stored_split_holds_the_rows_that_are_made_lazily(built, request_of_a_small_split):
    stored = list(open_split(built).rows())
    lazy = LazySplit(request_of_a_small_split)
    assert len(stored) == len(lazy) == 3 * 14 * 3
    for row, made in zip(stored, lazy, strict=True):
        assert row == {name: getattr(made, name) for name in COLUMNS}


def test_the_number_of_processes_does_not_change_a_byte(built, request_of_a_small_split, tmp_path):
    build_split(request_of_a_small_split, tmp_path / "b", workers=2)
    assert digest_of(tmp_path / "b") == digest_of(built)


def test_an_interrupted_build_goes_on_and_gives_the_same_bytes(
    built, request_of_a_small_split, tmp_path
):
    folder = tmp_path / "b"

    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_split(request_of_a_small_split, folder, progress=interrupt)
    kept = sorted((folder / ".building").glob("chunk-*.parquet"))
    assert len(kept) == 1
    stamp = kept[0].stat().st_mtime_ns
    with pytest.raises(InputError, match="unfinished build; run its generate command again"):
        open_split(folder)
    seen = []

    def watch(done: int, total: int) -> None:
        seen.append(done)
        if len(seen) == 1:
            assert kept[0].stat().st_mtime_ns == stamp

    build_split(request_of_a_small_split, folder, progress=watch)
    assert seen[0] == building.CHUNK_UNITS * request_of_a_small_split.rows_per_unit
    assert digest_of(folder) == digest_of(built)


def test_a_half_written_chunk_is_made_again(built, request_of_a_small_split, tmp_path):
    folder = tmp_path / "b"

    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_split(request_of_a_small_split, folder, progress=interrupt)
    (folder / ".building" / "chunk-000001.parquet.part").write_bytes(b"PAR1 torn")
    build_split(request_of_a_small_split, folder)
    assert digest_of(folder) == digest_of(built)


def test_another_request_does_not_go_on_with_an_unfinished_build(
    request_of_a_small_split, tmp_path
):
    folder = tmp_path / "b"

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_split(request_of_a_small_split, folder, progress=interrupt)
    other = Request.make(suite="nano", split="test", seed=4, per_task=3)
    with pytest.raises(InputError, match="unfinished build with seed = 3, not 4"):
        build_split(other, folder)


def test_nothing_is_ever_overwritten(built, request_of_a_small_split, tmp_path):
    before = digest_of(built)
    with pytest.raises(InputError, match="already holds a split"):
        build_split(request_of_a_small_split, built)
    assert digest_of(built) == before
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty"):
        build_split(request_of_a_small_split, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_the_manifest_counts_what_is_in_the_shards(built):
    split = open_split(built)
    manifest = split.manifest
    rows = list(split.rows(("task", "level", "class_key", "instance_id", "reference_status")))
    assert manifest["rows"] == len(rows) == 126
    instances = {row["instance_id"]: row for row in rows}
    assert manifest["instances"] == len(instances) == 42
    classes = {(row["task"], row["class_key"]) for row in rows}
    assert manifest["repeats"] == 42 - len(classes)
    proven = [row["reference_status"] == "optimal" for row in instances.values()]
    assert manifest["proven_optimal"] == sum(proven) / 42
    assert set(manifest["shards"]) == {"data/test-00000-of-00001.parquet"}
    assert manifest["command"].startswith("npbench generate --suite nano --level nano --split test")


def test_large_splits_have_several_shards_in_order(request_of_a_small_split, tmp_path, monkeypatch):
    monkeypatch.setattr(building, "SHARD_ROWS", 50)
    build_split(request_of_a_small_split, tmp_path / "b")
    names = sorted(path.name for path in (tmp_path / "b" / "data").iterdir())
    assert names == [f"test-0000{i}-of-00003.parquet" for i in range(3)]
    sizes = [pq.read_metadata(tmp_path / "b" / "data" / name).num_rows for name in names]
    assert sizes == [50, 50, 26]
    ids = [row["id"] for row in open_split(tmp_path / "b").rows(("id",))]
    assert ids == [row.id for row in LazySplit(request_of_a_small_split)]


def test_datasets_opens_the_folder_with_pictures_as_images(built, tmp_path):
    datasets = pytest.importorskip("datasets")
    data = datasets.load_dataset(str(built), cache_dir=str(tmp_path))["test"]
    assert isinstance(data.features["image"], datasets.Image)
    assert data[0]["image"].size == (256, 256)
    assert data[2]["image"] is None
    features = datasets.Features(
        {
            name: datasets.Image()
            if name == "image"
            else datasets.Value(str(storage.split_schema().field(name).type))
            for name in COLUMNS
        }
    )
    assert features.arrow_schema.equals(storage.split_schema(), check_metadata=True)


@pytest.fixture
def copy(built, tmp_path):
    target = tmp_path / "copy"
    for path in built.rglob("*"):
        if path.is_file():
            goal = target / path.relative_to(built)
            goal.parent.mkdir(parents=True, exist_ok=True)
            goal.write_bytes(path.read_bytes())
    return target


SHARD = "data/test-00000-of-00001.parquet"


def test_a_folder_that_is_no_split_is_refused(tmp_path):
    with pytest.raises(InputError, match="is no folder"):
        open_split(tmp_path / "missing")
    with pytest.raises(InputError, match=r"has no manifest\.json"):
        open_split(tmp_path)


def test_a_changed_shard_is_refused(copy):
    data = bytearray((copy / SHARD).read_bytes())
    data[100] ^= 1
    (copy / SHARD).write_bytes(data)
    with pytest.raises(InputError, match="does not match the sha256"):
        open_split(copy)


def test_a_half_written_shard_is_refused(copy):
    data = (copy / SHARD).read_bytes()
    (copy / SHARD).write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="does not match the sha256"):
        open_split(copy)


def test_a_missing_shard_is_refused(copy):
    (copy / SHARD).unlink()
    with pytest.raises(InputError, match="is missing, though the manifest lists it"):
        open_split(copy)


@pytest.mark.parametrize(
    ("text", "message"), [("{", "is no JSON file"), ("[]", "is no split manifest")]
)
def test_a_broken_manifest_is_refused(copy, text, message):
    (copy / "manifest.json").write_text(text)
    with pytest.raises(InputError, match=message):
        open_split(copy)


def test_a_wrong_official_hash_is_refused(request_of_a_small_split, tmp_path):
    with pytest.raises(InputError, match="is not the official abc"):
        build_split(request_of_a_small_split, tmp_path / "b", expected_hash="abc")
    assert not (tmp_path / "b" / "manifest.json").exists()


def test_the_content_hash_looks_at_pixels_and_not_at_png_bytes(built):
    from io import BytesIO

    from PIL import Image

    png = next(open_split(built).rows(("image",)))["image"]
    with Image.open(BytesIO(png)) as picture:
        again = BytesIO()
        picture.convert("RGB").save(again, "PNG", compress_level=1)
        assert again.getvalue() != png
        assert pixel_hash(again.getvalue()) == pixel_hash(png)
        picture.convert("RGB").transpose(Image.Transpose.ROTATE_90).save(again, "PNG")
    assert json.loads((built / "manifest.json").read_text())["content_hash"]


def test_a_row_is_found_by_its_position(built):
    split = open_split(built)
    assert split.row(5)["id"] == list(split.rows(("id",)))[5]["id"]
    with pytest.raises(InputError, match=r"row must lie in \[0, 125\], got 126"):
        split.row(126)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(OFFICIAL))
def test_an_official_split_has_its_known_content(name, tmp_path):
    official = OFFICIAL[name]
    request = Request.make(
        suite=official.suite,
        split=official.split,
        seed=official.seed,
        per_task=official.per_task,
        levels=official.levels,
    )
    manifest = build_split(request, tmp_path / "b", workers=2, expected_hash=official.content_hash)
    assert manifest["proven_optimal"] >= 0.99


@pytest.fixture
def unfinished(request_of_a_small_split, tmp_path):
    """A folder whose build was interrupted after its first chunk."""

    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_split(request_of_a_small_split, tmp_path / "b", progress=interrupt)
    return tmp_path / "b"


def test_a_second_process_is_kept_out_of_a_build(unfinished, request_of_a_small_split):
    seen = []

    def intrude(done: int, total: int) -> None:
        if not seen:
            seen.append(done)
            with pytest.raises(InputError, match="another process is building"):
                build_split(request_of_a_small_split, unfinished)

    build_split(request_of_a_small_split, unfinished, progress=intrude)
    assert seen
    assert len(open_split(unfinished)) == 126


def test_a_damaged_chunk_is_made_again(unfinished, request_of_a_small_split, built):
    chunk = unfinished / ".building" / "chunk-0000000.parquet"
    chunk.write_bytes(chunk.read_bytes()[:500])
    build_split(request_of_a_small_split, unfinished)
    assert digest_of(unfinished) == digest_of(built)


def test_a_damaged_request_is_said_to_be_one(unfinished, request_of_a_small_split):
    for text, message in (("", "is no JSON file"), ("[]", "is damaged")):
        (unfinished / ".building" / "request.json").write_text(text)
        with pytest.raises(InputError, match=message):
            build_split(request_of_a_small_split, unfinished)


def test_a_users_file_beside_an_unfinished_build_is_never_touched(
    unfinished, request_of_a_small_split
):
    (unfinished / "data").mkdir()
    (unfinished / "data" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="holds mine"):
        build_split(request_of_a_small_split, unfinished)
    assert (unfinished / "data" / "mine.txt").read_text() == "mine"


def test_a_request_that_cannot_be_drawn_leaves_the_folder_free(tmp_path):
    impossible = Request.make(
        suite="mm-np-bench",
        split="test",
        seed=1,
        per_task=1,
        levels=["l1"],
        tasks=["vertex_cover"],
        params={"num_vertices": 60},
    )
    with pytest.raises(InputError, match="cannot be drawn legibly"):
        build_split(impossible, tmp_path / "b")
    assert not (tmp_path / "b" / ".building").exists()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rows", 125, "holds 126 rows, its manifest states 125"),
        ("rows", "many", "rows: Input should be a valid integer"),
        ("version", None, "version: Input should be a valid string"),
        ("shards", {}, "shards: Dictionary should have at least 1 item"),
        ("shards", {"../secret": "0"}, "String should match pattern"),
        ("parameters", {}, "parameters.params: Field required"),
    ],
)
def test_a_manifest_that_does_not_fit_its_folder_is_refused(copy, key, value, message):
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, key: value}))
    with pytest.raises(InputError, match=re.escape(message)):
        open_split(copy)
