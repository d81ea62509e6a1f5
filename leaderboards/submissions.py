"""Checks submissions: every reply is graded again, and what does not follow is refused.

Nothing but the raw replies and the official split decides a score. Cheap checks come first: ids and
samples are compared before any row is read or made.
"""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluators.benchmark import Benchmark, Question
from evaluators.embedders import Unavailable
from evaluators.prompts import (
    PROMPT_FORMATS,
    build_prompt,
    format_hash,
    image_hash,
    prompt_hash,
)
from evaluators.records import SampleRecord
from evaluators.rescoring import GRADERS, graded
from evaluators.run_folder import RunFolder, scan
from evaluators.runner import MAX_ATTEMPTS
from evaluators.summary import summarize
from leaderboards.formats import plain
from leaderboards.official import find_official, official_request, official_rows, row_ids
from leaderboards.submission_files import claims_of_summary, raw_samples, read_submission
from leaderboards.submission_records import Origin, RawSample, Submission
from npbench import scoring
from npbench.errors import InputError, unknown_name
from npbench.rng import digest
from npbench.suites import OFFICIAL, OfficialSplit, get_suite

__all__ = ["CLAIM_TOLERANCE", "Checked", "check_submission"]

CLAIM_TOLERANCE = {"run": 1e-6, "compact": 5e-4 + 1e-9}
"""A summary holds all digits; claims that are typed by hand hold at least three."""

_EMBEDDER = Unavailable("none", "the leaderboard embeds no reasoning")


@dataclass(frozen=True, slots=True)
class Checked:
    """A submission that passed, with what its replies give."""

    submission: Submission
    official: OfficialSplit
    summary: dict[str, Any]
    """Of our own grading, in the form of a run's ``summary.json``."""
    questions: tuple[Question, ...]
    """Without their prompts and pictures."""
    shown: Mapping[str, tuple[SampleRecord, ...]]
    """All graded samples of the questions that were asked for, by question."""
    replies_hash: str
    """Of all raw replies with their keys."""
    prompts: str
    """Whether the stated hashes of prompts and pictures are the official ones."""
    claims: int
    """Numbers that were claimed and follow."""


def check_submission(
    folder: Path,
    *,
    split: Path | None = None,
    officials: Mapping[str, OfficialSplit] = OFFICIAL,
    show: Callable[[OfficialSplit, int], bool] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Checked:
    """Grade a submission from its raw replies.

    Args:
        folder: A run of ``npbench eval`` or a compact submission.
        split: The official split on disk; None makes its rows anew.
        officials: The official splits by name.
        show: Whether the samples of an instance are to be returned, by its position.
        progress: Called with (rows done, rows in all).

    Raises:
        InputError: If anything is altered, missing, extra, doubled, unofficial, of another schema,
            or claimed without following from the replies.
    """
    submission = read_submission(folder)
    try:
        official = find_official(submission.split, submission.dataset_hash, officials)
    except InputError as error:
        raise InputError(f"{folder}: {error}") from None
    _check_manifest(submission)
    request = official_request(official)

    def keep(number: int) -> bool:
        return show is not None and show(official, number // request.rows_per_unit)

    with tempfile.TemporaryDirectory(prefix="npbench-check-") as name:
        raw, target = (RunFolder(Path(name, part)) for part in ("raw", "graded"))
        hashed = _collect(submission, row_ids(request), raw)
        prompts = _Prompts(submission.manifest)
        with _held(target):
            rows = official_rows(official, split, progress=progress)
            questions, kept = _grade(raw, target, rows, prompts, keep)
        if prompts.complaint:  # only now is it certain that the rows are the official ones
            raise InputError(f"{folder}: {prompts.complaint}")
        suite = get_suite(official.suite)
        summary = summarize(
            Benchmark(suite.name, suite.version, questions, official.content_hash),
            target,
            scan(target.samples),
            _summary_manifest(submission, official),
            embedder=_EMBEDDER,
        )
    _check_claims(submission, summary)
    return Checked(
        submission=submission,
        official=official,
        summary=summary,
        questions=tuple(questions),
        shown=kept,
        replies_hash=hashed,
        prompts=prompts.outcome(folder),
        claims=len(submission.claims),
    )


def _held(folder: RunFolder) -> RunFolder:
    """A new folder of samples, open for writing."""
    folder.folder.mkdir()
    folder.hold()
    return folder


def _grade(
    raw: RunFolder,
    target: RunFolder,
    rows: Iterable[Mapping[str, Any]],
    prompts: "_Prompts",
    keep: Callable[[int], bool],
) -> tuple[list[Question], dict[str, tuple[SampleRecord, ...]]]:
    """Grade all samples, question by question.

    Args:
        raw: The samples without verdicts.
        target: Where the graded ones are written.
        rows: All rows of the official split, in order.
        prompts: Looks at every sample.
        keep: Whether the samples of a row are returned, by its position.

    Returns:
        The questions without their prompts and pictures, and the samples that are kept.
    """
    index = scan(raw.samples)
    keys = index.by_question()
    questions: list[Question] = []
    kept: dict[str, tuple[SampleRecord, ...]] = {}
    for number, row in enumerate(rows):
        question = _question(row)
        records = [graded(question, one) for one in raw.records(index, keys[question.id])]
        for record in records:
            prompts.look_at(question, record)
            target.append(record)
        if keep(number):
            kept[question.id] = tuple(records)
        questions.append(replace(question, parts=()))
    return questions, kept


def _check_manifest(submission: Submission) -> None:
    manifest = submission.manifest
    if manifest.sampling.k == 0 and not manifest.sampling.greedy:
        raise InputError(f"{submission.folder}: its manifest asks for no reply")
    known = manifest.prompt_format
    if known is None:
        return
    if known not in PROMPT_FORMATS:
        raise unknown_name("prompt format", plain(known), PROMPT_FORMATS)
    if manifest.prompt_hash is not None and manifest.prompt_hash != format_hash(known):
        raise InputError(
            f"{submission.folder}: its prompt format {known} has other words than the official one"
        )


def _question(row: Mapping[str, Any]) -> Question:
    grading = scoring.Question.from_row(row)
    category = {
        "group": grading.group,
        "task": grading.task.name,
        "level": grading.level,
        "modality": row["modality"],
    }
    if row["style"] is not None:
        category["style"] = row["style"]
    parts = (row["prompt"],) if row["image"] is None else (row["image"], row["prompt"])
    return Question(grading.id, grading.instance_id, parts, None, category, grading)


def _collect(submission: Submission, ids: Mapping[str, int], target: RunFolder) -> str:
    """Write the raw samples without their verdicts; returns the hash of all replies.

    Raises:
        InputError: If a sample of the official split is not there exactly once, or another is.
    """
    sampling = submission.manifest.sampling
    wanted = {("greedy", 0)} if sampling.greedy else set()
    wanted |= {("sampled", number) for number in range(sampling.k)}
    total = len(ids) * len(wanted)
    seen: dict[str, dict[tuple[str, int], bool]] = defaultdict(dict)
    replies: dict[tuple[str, str, int], str] = {}
    where = submission.folder
    with _held(target):
        for number, sample in enumerate(raw_samples(submission)):
            if number >= MAX_ATTEMPTS * total:
                raise InputError(f"{where} has more than {MAX_ATTEMPTS} lines a sample")
            key = (sample.decode, sample.sample)
            if sample.id not in ids:
                raise InputError(
                    f"{where} answers {plain(sample.id, limit=120)!r}, no id of the official split"
                )
            if key not in wanted:
                raise InputError(f"{where} has an extra sample: {_key(sample)}")
            if seen[sample.id].get(key) is not None and (
                seen[sample.id][key] or submission.kind == "compact"
            ):
                raise InputError(f"{where} has a sample twice: {_key(sample)}")
            seen[sample.id][key] = sample.reply is not None
            replies[sample.id, *key] = digest(sample.reply)
            target.append(_record(submission, sample))
    missing = [
        (name, *key) for name in ids for key in sorted(wanted) if key not in seen.get(name, ())
    ]
    if missing:
        name, decode, sample_number = missing[0]
        raise InputError(
            f"{where} lacks {len(missing)} of {total} samples, "
            f"such as {decode} sample {sample_number} of {name}"
        )
    return digest(sorted([*key, value] for key, value in replies.items()))


def _record(submission: Submission, sample: RawSample) -> SampleRecord:
    return SampleRecord(
        benchmark=submission.split,
        id=sample.id,
        instance_id=sample.id.rpartition("-")[0],
        decode=sample.decode,
        sample=sample.sample,
        seed=None,
        reply=sample.reply,
        finish_reason=sample.finish_reason,
        stop_reason=sample.stop_reason,
        num_tokens=sample.num_tokens,
        error=None if sample.reply is not None else "no reply",
        prompt_hash=sample.prompt_hash or "",
        image_hash=sample.image_hash,
    )


def _key(sample: RawSample | SampleRecord) -> str:
    return f"{plain(sample.decode, limit=20)} sample {sample.sample} of {sample.id}"


class _Prompts:
    """Compares the stated hashes of prompts and pictures with those of the official split.

    A picture's hash is of its file, which another version of the PNG encoder writes otherwise: then
    all of them differ. Where some differ and some do not, data was altered.
    """

    def __init__(self, manifest: Origin) -> None:
        self.complaint: str | None = None
        self._manifest = manifest
        self._stated = self._same = self._other = 0
        self._first_other = ""
        self._asked: tuple[str, str, str | None] = ("", "", None)

    def look_at(self, question: Question, record: SampleRecord) -> None:
        """Keep the first complaint about a graded sample."""
        self.complaint = self.complaint or self._complaint(question, record)

    def _complaint(self, question: Question, record: SampleRecord) -> str | None:
        if record.error and record.error.startswith("not graded"):
            return f"{_key(record)} is {plain(record.error)}"
        if self._manifest.prompt_format is None or not record.prompt_hash:
            return None
        if self._asked[0] != question.id:
            prompt = build_prompt(
                question.parts,
                prompt_format=self._manifest.prompt_format,
                system=self._manifest.system_prompt,
            )
            self._asked = (question.id, prompt_hash(prompt), image_hash(prompt))
        _, text, picture = self._asked
        if record.prompt_hash != text:
            return f"{_key(record)} was asked another prompt than the official one"
        if (record.image_hash is None) != (picture is None):
            return f"{_key(record)} was shown another picture than the official one"
        self._stated += 1
        if record.image_hash == picture:
            self._same += 1
        else:
            self._other += 1
            self._first_other = self._first_other or _key(record)
        return None

    def outcome(self, folder: Path) -> str:
        """What was compared, for the entry.

        Raises:
            InputError: If some pictures are the official ones and others are not.
        """
        if self._other and self._same:
            raise InputError(
                f"{folder}: {self._first_other} was shown another picture than the official one"
            )
        if not self._stated:
            return "not stated"
        return "texts are the official ones" if self._other else "texts and pictures are official"


def _summary_manifest(submission: Submission, official: OfficialSplit) -> dict[str, Any]:
    manifest = submission.manifest
    return {
        "model": manifest.model.model_dump(),
        "benchmark": {"name": official.suite, "version": official.name},
        "sampling": manifest.sampling.model_dump(mode="json"),
        "grader": GRADERS,
    }


def _check_claims(submission: Submission, summary: Mapping[str, Any]) -> None:
    """Refuse a claimed number that the replies do not give."""
    if not submission.claims:
        return
    numbers = claims_of_summary(summary)
    tolerance = CLAIM_TOLERANCE[submission.kind]
    for name, claimed in submission.claims.items():
        known = name if name in numbers else f"overall.{name}"
        if known not in numbers:
            raise InputError(
                f"{submission.folder} claims {plain(name, limit=80)} = {claimed:g}, "
                f"which the replies do not give"
            )
        if not abs(claimed - numbers[known]) <= tolerance:
            raise InputError(
                f"{submission.folder} claims {plain(name, limit=80)} = {claimed:g}, "
                f"the replies give {numbers[known]:g}"
            )
