"""Entries: what is written, that it is written once, and who stands where."""

import json

import pytest

from leaderboards.entry import EntryFile, is_shown, make_entry, read_entries, write_entry
from leaderboards.submissions import check_submission
from leaderboards.tables import protocol_of, rank, score_of, splits_of
from npbench.errors import InputError


@pytest.fixture(scope="module")
def passed(model_run, split, officials):
    return check_submission(model_run, split=split, officials=officials, show=is_shown)


@pytest.fixture(scope="module")
def entry(passed):
    return make_entry(passed, name="A model", link="https://example.org/a")


def like(entry, **changes):
    """An entry with other values; ``qr`` sets the overall score."""
    data = json.loads(entry.model_dump_json(by_alias=True))
    if "qr" in changes:
        data["scores"]["overall"]["metrics"]["qr"] = changes.pop("qr")
    return EntryFile.model_validate({**data, **changes})


def test_an_entry_says_who_on_what_how_and_how_well(entry, passed, official):
    assert entry.name == "A model"
    assert entry.benchmark.name == official.name
    assert entry.benchmark.content_hash == official.content_hash
    assert entry.scores.overall.n == 28
    assert entry.scores.overall.metrics["qr"] == round(passed.summary["overall"]["qr"], 6)
    low, high = entry.scores.overall.ci["qr"]
    assert low < entry.scores.overall.metrics["qr"] < high
    assert set(entry.scores.tasks) == set(passed.summary["tasks"])
    assert entry.kind == "model"
    assert protocol_of(entry) == "k = 2, T = 1, greedy too, 2048 tokens, answer-line"


def test_an_entry_shows_a_bounded_number_of_samples_cut_to_a_length(entry):
    assert len(entry.shown) == 28
    for question in entry.shown:
        assert len(question.samples) == 3
        assert all(len(sample.reply) <= 2000 for sample in question.samples)
    assert any(sample.cut == 2500 for question in entry.shown for sample in question.samples)


def test_adding_twice_changes_nothing(entry, tmp_path):
    assert write_entry(entry, tmp_path / "to") == "added"
    first = (tmp_path / "to" / f"{entry.id}.json").read_bytes()
    assert write_entry(entry, tmp_path / "to") == "unchanged"
    assert (tmp_path / "to" / f"{entry.id}.json").read_bytes() == first
    assert read_entries(tmp_path / "to") == [entry]


def test_the_same_submission_has_the_same_id_and_another_name_another(passed, entry):
    assert make_entry(passed, name="A model", link="https://example.org/a") == entry
    assert make_entry(passed, name="B model").id != entry.id
    assert make_entry(passed).name == "replies.jsonl"


def test_contacts_are_not_published(model_run, split, officials, tmp_path):
    from leaderboards.packing import pack

    pack(model_run, tmp_path / "packed", contact="me@example.org")
    passed = check_submission(tmp_path / "packed", split=split, officials=officials)
    assert "me@example.org" not in make_entry(passed).model_dump_json()


def test_a_hostile_name_becomes_one_plain_line(passed):
    made = make_entry(passed, name="\x1b[31mEvil\u202e\n<b>" + "x" * 900)
    assert made.name.startswith("[31mEvil <b>xxx")
    assert len(made.name) == 200
    assert made.id.startswith("31mevil-b-xxx")


def test_ranks_follow_the_score_and_equal_scores_share_one(entry):
    entries = [
        like(entry, id="a", qr=0.5),
        like(entry, id="b", qr=0.9),
        like(entry, id="c", qr=0.5),
        like(entry, id="d", qr=0.7, kind="solver"),
        like(entry, id="e", qr=None),
        like(entry, id="f", qr=0.1),
    ]
    table = rank(entries, "nano-test")
    found = [(row.entry.id, row.rank) for row in table]
    assert found == [("b", 1), ("d", None), ("a", 2), ("c", 2), ("f", 4), ("e", None)]


def test_splits_are_ranked_apart(entry):
    other = like(entry, id="b", benchmark={**entry.benchmark.model_dump(), "name": "other"})
    assert splits_of([entry, other]) == ["nano-test", "other"]
    assert [row.entry.id for row in rank([entry, other], "other")] == ["b"]


def test_parts_have_scores_of_their_own(entry):
    assert score_of(entry, "tasks.tsp").n == 2
    assert score_of(entry, "groups.path").n == 4
    assert score_of(entry, "tasks.nothing") is None
    assert not rank([entry], "nano-test", scope="tasks.nothing")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data.update(schema="npbench-entry-0"), "has the schema npbench-entry-0"),
        (lambda data: data.update(id="other"), "holds the entry other"),
        (lambda data: data.update(id="../x"), "id"),
        (lambda data: data.update(surprise=1), "surprise"),
        (lambda data: data.update(link="javascript:alert(1)"), "link"),
        (lambda data: data["scores"]["overall"]["metrics"].update(qr="nan"), "scores.overall"),
        (lambda data: data["shown"][0]["samples"][0].update(reply="x" * 2001), "reply"),
        (lambda data: data["shown"][0]["samples"][0].update(state="great"), "state"),
        (lambda data: data.update(shown=data["shown"] * 2), "shown"),
    ],
)
def test_a_file_that_is_no_entry_is_refused_in_one_line(entry, tmp_path, change, reason):
    write_entry(entry, tmp_path)
    path = tmp_path / f"{entry.id}.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_entries(tmp_path)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
