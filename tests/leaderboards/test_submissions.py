"""Submissions: what follows from the raw replies passes, everything else is refused in one line."""

import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leaderboards.official import official_request, row_ids
from leaderboards.packing import pack
from leaderboards.submission_files import claims_of_summary
from leaderboards.submissions import check_submission
from npbench.errors import InputError
from npbench.suites import OFFICIAL


@pytest.fixture
def run(model_run, tmp_path):
    """A copy of a run, to tamper with."""
    return shutil.copytree(model_run, tmp_path / "run")


@pytest.fixture
def packed(model_run, tmp_path):
    """The same run in its compact form."""
    pack(model_run, tmp_path / "packed", name="Some model", contact="me@example.org")
    return tmp_path / "packed"


@pytest.fixture
def check(officials, split):
    def call(folder, **options):
        return check_submission(folder, **{"split": split, "officials": officials, **options})

    return call


def edit(path, change):
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")


def samples(run):
    return (run / "samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)


def rewrite(run, lines):
    (run / "samples.jsonl").write_text("".join(lines), encoding="utf-8")


def test_a_run_passes_and_gives_the_scores_of_its_own_summary(check, model_run):
    passed = check(model_run)
    summary = json.loads((model_run / "summary.json").read_text(encoding="utf-8"))
    assert claims_of_summary(passed.summary) == claims_of_summary(summary)
    assert passed.claims > 1000
    assert passed.prompts == "texts and pictures are official"


def test_the_compact_form_gives_the_same(check, model_run, packed):
    whole, small = check(model_run), check(packed)
    assert small.summary["overall"] == whole.summary["overall"]
    assert small.replies_hash == whole.replies_hash
    assert small.submission.name == "Some model"


def test_without_a_folder_the_split_is_made_anew(check, model_run):
    assert check(model_run, split=None).summary["overall"]["n"] == 28


def test_verdicts_beside_the_replies_are_not_believed(check, run):
    lines = [json.loads(line) for line in samples(run)]
    for line in lines:
        line |= {"state": "right", "score": 1.0, "acc": 1, "objective": 1}
    rewrite(run, [json.dumps(line) + "\n" for line in lines])
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert check(run).summary["overall"]["qr"] == summary["overall"]["qr"]


def test_a_failed_attempt_that_a_later_line_replaces_is_no_double(check, run):
    first = json.loads(samples(run)[0])
    failed = {**first, "reply": None, "finish_reason": None, "state": "failed"}
    rewrite(run, [json.dumps(failed) + "\n", *samples(run)])
    assert check(run).summary["overall"]["states"]["failed"] == 0


def test_a_sample_without_a_reply_counts_as_failed(check, run):
    (run / "summary.json").unlink()
    lines = samples(run)
    lines[0] = json.dumps({**json.loads(lines[0]), "reply": None, "finish_reason": None}) + "\n"
    rewrite(run, lines)
    assert check(run).summary["overall"]["states"]["failed"] == 1


def without_manifest(run):
    (run / "run.json").unlink()


def another_schema(run):
    edit(run / "run.json", lambda data: data.update(schema=2))


def another_summary_schema(run):
    edit(run / "summary.json", lambda data: data.update(schema=7))


def another_split(run):
    edit(
        run / "run.json",
        lambda data: data["benchmark"].update(version="mine", dataset_hash="ab" * 32),
    )


def altered_split(run):
    stated = {"version": "nano-test", "dataset_hash": "ab" * 32}
    edit(run / "run.json", lambda data: data["benchmark"].update(stated))


def a_sample_less(run):
    rewrite(run, samples(run)[1:])


def a_question_less(run):
    name = json.loads(samples(run)[0])["id"]
    rewrite(run, [line for line in samples(run) if json.loads(line)["id"] != name])


def a_sample_more(run):
    extra = {**json.loads(samples(run)[0]), "decode": "sampled", "sample": 2}
    rewrite(run, [*samples(run), json.dumps(extra) + "\n"])


def a_sample_twice(run):
    rewrite(run, [*samples(run), samples(run)[0]])


def another_reply_to_a_sample(run):
    first = {**json.loads(samples(run)[0]), "reply": "Answer: [1]"}
    rewrite(run, [*samples(run), json.dumps(first) + "\n"])


def a_foreign_question(run):
    rewrite(run, [*samples(run), samples(run)[0].replace("-00000-", "-00009-")])


def another_prompt(run):
    first = {**json.loads(samples(run)[0]), "prompt_hash": "0" * 16}
    rewrite(run, [json.dumps(first) + "\n", *samples(run)[1:]])


def another_picture(run):
    first = {**json.loads(samples(run)[0]), "image_hash": "0" * 16}
    rewrite(run, [json.dumps(first) + "\n", *samples(run)[1:]])


def no_picture(run):
    first = {**json.loads(samples(run)[0]), "image_hash": None}
    rewrite(run, [json.dumps(first) + "\n", *samples(run)[1:]])


def other_words_in_the_format(run):
    edit(run / "run.json", lambda data: data.update(prompt_hash="0" * 16))


def a_higher_claim(run):
    edit(run / "summary.json", lambda data: data["overall"].update(qr=0.99))


def a_higher_claim_for_a_task(run):
    edit(run / "summary.json", lambda data: data["tasks"]["tsp"].update(sr=0.123))


def a_claim_that_is_no_number(run):
    edit(run / "summary.json", lambda data: data["overall"].update(qr=float("nan")))


def a_made_up_claim(run):
    edit(run / "summary.json", lambda data: data["overall"].update(brilliance=1.0))


def a_torn_line(run):
    rewrite(run, [*samples(run)[:-1], samples(run)[-1][:40]])


def no_json(run):
    rewrite(run, ["{\n", *samples(run)])


def a_huge_reply(run):
    first = {**json.loads(samples(run)[0]), "reply": "x" * ((1 << 20) + 1)}
    rewrite(run, [json.dumps(first) + "\n", *samples(run)[1:]])


def a_reply_that_is_no_text(run):
    first = {**json.loads(samples(run)[0]), "reply": ["Answer: [1]"]}
    rewrite(run, [json.dumps(first) + "\n", *samples(run)[1:]])


def a_huge_count_of_tokens(run):
    first = {**json.loads(samples(run)[0]), "num_tokens": 10**400}
    rewrite(run, [json.dumps(first) + "\n", *samples(run)[1:]])


def a_sample_that_is_no_number(run):
    first = {**json.loads(samples(run)[0]), "sample": True}
    rewrite(run, [json.dumps(first) + "\n", *samples(run)[1:]])


def a_pipe_for_samples(run):
    (run / "samples.jsonl").unlink()
    os.mkfifo(run / "samples.jsonl")


def a_huge_k(run):
    edit(run / "run.json", lambda data: data["sampling"].update(k=10**9))


def a_deep_summary(run):
    deep = current = {}
    for _ in range(30):
        current["x"] = {}
        current = current["x"]
    edit(run / "summary.json", lambda data: data.update(overall=deep))


def no_samples(run):
    (run / "samples.jsonl").unlink()


@pytest.mark.parametrize(
    ("tamper", "reason"),
    [
        (without_manifest, "has no manifest"),
        (another_schema, "has the schema 2; this version reads 1"),
        (another_summary_schema, "has the schema 7; this version reads 1"),
        (another_split, "is no official split; official: nano-test"),
        (altered_split, "the official one has"),
        (a_sample_less, "lacks 1 of 84 samples, such as "),
        (a_question_less, "lacks 3 of 84 samples, such as greedy sample 0 of "),
        (a_sample_more, "has an extra sample: sampled sample 2 of "),
        (a_sample_twice, "has a sample twice: "),
        (another_reply_to_a_sample, "has a sample twice: "),
        (a_foreign_question, "no id of the official split"),
        (another_prompt, "was asked another prompt than the official one"),
        (another_picture, "was shown another picture than the official one"),
        (no_picture, "was shown another picture than the official one"),
        (other_words_in_the_format, "has other words than the official one"),
        (a_higher_claim, "claims overall.qr = 0.99, the replies give 0."),
        (a_higher_claim_for_a_task, "claims tasks.tsp.sr = 0.123"),
        (a_claim_that_is_no_number, "claims overall.qr = nan"),
        (a_made_up_claim, "claims overall.brilliance = 1, which the replies do not give"),
        (a_torn_line, "is torn"),
        (no_json, "line 1 is no JSON"),
        (a_huge_reply, "a reply of 1048577 bytes"),
        (a_reply_that_is_no_text, "reply must be text or null, got list"),
        (a_huge_count_of_tokens, "num_tokens must lie in [0, 100000000]"),
        (a_sample_that_is_no_number, "sample must be an integer from 0, got True"),
        (a_pipe_for_samples, "has no samples"),
        (a_huge_k, "sampling.k"),
        (a_deep_summary, "nested too deeply"),
        (no_samples, "has no samples"),
    ],
)
def test_a_tampered_run_is_refused_in_one_line(check, run, tamper, reason):
    tamper(run)
    with pytest.raises(InputError) as caught:
        check(run)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def columns(packed, change):
    table = pq.read_table(packed / "samples.parquet")
    rows = table.to_pylist()
    pq.write_table(
        pa.Table.from_pylist(change(rows), schema=table.schema), packed / "samples.parquet"
    )


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("schema", "npbench-submission-0", "has the schema npbench-submission-0"),
        ("schema", None, "has the schema None"),
        ("surprise", 1, "surprise"),
        ("name", "", "name"),
        ("name", "x" * 301, "name"),
        ("link", "javascript:alert(1)", "link"),
        ("commit", "not a commit", "commit"),
        ("claims", {"qr": 0.987}, "claims qr = 0.987, the replies give"),
        ("claims", {"qrr": 0.5}, "claims qrr = 0.5, which the replies do not give"),
        ("claims", {"qr": "high"}, "claims.qr"),
        ("benchmark", {"name": "nano-test", "hash": "ff" * 32}, "a part of it, or altered data"),
        ("prompt_format", "my-own", "unknown prompt format 'my-own'"),
    ],
)
def test_a_tampered_manifest_is_refused_in_one_line(check, packed, name, value, reason):
    edit(packed / "submission.json", lambda data: data.update({name: value}))
    with pytest.raises(InputError) as caught:
        check(packed)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_claims_that_were_rounded_to_three_digits_pass(check, packed):
    value = json.loads((packed / "submission.json").read_text(encoding="utf-8"))["claims"]["qr"]
    edit(packed / "submission.json", lambda data: data.update(claims={"qr": round(value, 3)}))
    assert check(packed).claims == 1


def test_the_rows_of_a_compact_submission_are_checked_as_those_of_a_run(check, packed):
    whole = (packed / "samples.parquet").read_bytes()
    for change, reason in (
        (lambda rows: rows[1:], "lacks 1 of 84 samples"),
        (lambda rows: [*rows, rows[0]], "has a sample twice"),
        (lambda rows: [*rows, {**rows[0], "sample": 9}], "has an extra sample"),
        (lambda rows: [*rows, {**rows[0], "id": "x"}], "no id of the official split"),
    ):
        (packed / "samples.parquet").write_bytes(whole)
        columns(packed, change)
        with pytest.raises(InputError, match=reason):
            check(packed)


def test_a_file_that_is_no_parquet_or_lacks_a_column_is_refused(check, packed):
    pq.write_table(pa.table({"id": ["x"]}), packed / "samples.parquet")
    with pytest.raises(InputError, match="has no column 'decode'"):
        check(packed)
    dates = pa.array([2**62], pa.timestamp("us"))
    wrong = {name: pa.array(["x"]) for name in ("id", "decode", "reply")} | {"sample": dates}
    pq.write_table(pa.table(wrong), packed / "samples.parquet")
    with pytest.raises(InputError, match="is no Parquet file of samples"):
        check(packed)
    (packed / "samples.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match="is no Parquet file"):
        check(packed)


def test_a_submission_by_hand_needs_no_more_than_the_documented_fields(check, packed, rows):
    manifest = json.loads((packed / "submission.json").read_text(encoding="utf-8"))
    kept = ("schema", "name", "model", "benchmark", "sampling")
    small = {name: manifest[name] for name in kept}
    (packed / "submission.json").write_text(json.dumps(small), encoding="utf-8")
    table = pq.read_table(packed / "samples.parquet", columns=["id", "decode", "sample", "reply"])
    lines = [json.dumps(row) + "\n" for row in table.to_pylist()]
    (packed / "samples.parquet").unlink()
    (packed / "samples.jsonl").write_text("".join(lines), encoding="utf-8")
    passed = check(packed)
    assert passed.prompts == "not stated"
    assert passed.summary["overall"]["n"] == len(rows)


def test_two_kinds_of_samples_in_one_folder_are_refused(check, packed):
    (packed / "samples.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"has both samples\.parquet and samples\.jsonl"):
        check(packed)


def test_another_split_on_disk_is_refused(check, model_run, tmp_path):
    from npbench.building import build_split
    from npbench.splits import Request

    build_split(Request.make(suite="nano", split="test", seed=4, per_task=2), tmp_path / "other")
    with pytest.raises(InputError, match="row 0: id is"):
        check(model_run, split=tmp_path / "other")


def test_a_split_with_another_reference_is_refused(check, model_run, split, tmp_path):
    from npbench.storage import file_sha256

    other = shutil.copytree(split, tmp_path / "other")
    (shard,) = (other / "data").iterdir()
    table = pq.read_table(shard)
    rows = table.to_pylist()
    rows[0]["reference_objective"] += 1
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), shard)
    name = f"data/{shard.name}"
    edit(other / "manifest.json", lambda data: data["shards"].update({name: file_sha256(shard)}))
    with pytest.raises(InputError, match="the content hash"):
        check(model_run, split=other)


def test_the_ids_of_an_official_split_are_known_without_its_rows(official, rows):
    assert list(row_ids(official_request(official))) == [row["id"] for row in rows]


def test_a_user_cannot_submit_to_anything_but_the_official_splits(model_run):
    with pytest.raises(InputError, match="is no official split; official: mm-np-bench-v1"):
        check_submission(model_run)
    assert set(OFFICIAL) == {"mm-np-bench-v1", "np-bench-v1"}
