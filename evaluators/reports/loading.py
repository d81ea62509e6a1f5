"""A run as a page needs it: checked, with its questions where the data is still there."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, model_validator

from evaluators.benchmark import Benchmark, Question
from evaluators.embedders import Unavailable
from evaluators.question_scores import QuestionScores, question_scores
from evaluators.records import SCHEMA, Key
from evaluators.run_folder import SAMPLES, RunFolder, SampleIndex, read_manifest, scan
from evaluators.sessions import SUMMARY, choose
from evaluators.summary import METRICS, summarize
from npbench.console import read_json
from npbench.errors import InputError

__all__ = ["LoadedRun", "load_runs"]

_NOT_EMBEDDED = Unavailable("none", "a page makes no embeddings; npbench grade --embedder does")

Opened = Benchmark | InputError
"""A run's questions, or why they cannot be had."""


_MOST_SAMPLES = 100_000
"""Of a question; a larger k is a damaged manifest."""

_Flag = Annotated[bool, Field(strict=True)]
_Count = Annotated[int, Field(strict=True, ge=0)]
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Value = _Number | None


class _Asked(BaseModel):
    name: str
    version: str
    dataset_hash: str
    rows: _Count
    limit: _Count | None
    accepted_rows: _Count | None
    modality: str | None
    source: str | None


class _Model(BaseModel):
    name: str


class _Sampling(BaseModel):
    greedy: _Flag
    k: _Count = Field(le=_MOST_SAMPLES)


class _Manifest(BaseModel):
    """What a page reads of a manifest by name; the rest is shown as it is."""

    command: str
    backend: str
    prompt_format: str
    benchmark: _Asked
    model: _Model
    sampling: _Sampling


class _Row(BaseModel):
    """What a page reads of a row of a summary by name, besides the metrics."""

    n: _Count
    k: _Count
    samples: _Count
    ci: dict[str, tuple[_Number, _Number] | None]
    curves: dict[str, dict[int, _Number]]
    pass_at_k: dict[int, _Number] = Field(alias="pass@k")
    diversity: dict[str, _Number | str | None]
    states: dict[str, _Count]
    rates: dict[str, _Value]
    acc_answered: _Value
    reasons: dict[str, _Count]
    errors: dict[str, _Count]
    floors: dict[str, dict[str, _Number]]

    @model_validator(mode="before")
    @classmethod
    def _has_metrics(cls, row: Any) -> Any:
        TypeAdapter(dict[str, _Value]).validate_python({name: row[name] for name in METRICS})
        return row


class _Summary(BaseModel):
    """What a page reads of a summary by name."""

    overall: _Row
    groups: dict[str, _Row]
    tasks: dict[str, _Row]
    by: dict[str, dict[str, _Row]]
    official: dict[str, Any]
    estimators: dict[str, str]
    torn_bytes: _Count
    repeated_lines: _Count


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run that was read."""

    label: str
    """Its model's name, told apart from those of the other runs of the page."""
    folder: RunFolder
    manifest: Mapping[str, Any]
    index: SampleIndex
    summary: Mapping[str, Any] | None
    """None where neither a summary nor the data to make one of is there."""
    benchmark: Benchmark | None
    """The questions, None where the data is not there."""
    whole: bool
    """Whether every sample is there."""
    notices: tuple[str, ...]
    """What a reader must know of how it was read."""

    @property
    def wanted(self) -> list[tuple[str, int]]:
        """Decode and number of the samples that each question has in a whole run."""
        sampling = self.manifest["sampling"]
        greedy = [("greedy", 0)] if sampling["greedy"] else []
        return [*greedy, *(("sampled", number) for number in range(sampling["k"]))]

    def states(self) -> Counter[str]:
        """How many samples are in each state."""
        return Counter(entry.state.value for entry in self.index.entries.values())

    def scores(self) -> list[QuestionScores]:
        """The scores of the questions whose samples are all there; empty without questions."""
        if self.benchmark is None:
            return []
        found = []
        for question in _whole_questions(self.benchmark, self.index, self.wanted):
            keys = [(question.id, decode, number) for decode, number in self.wanted]
            records = self.folder.records(self.index, keys)
            greedy = records[0] if self.manifest["sampling"]["greedy"] else None
            sampled = records[1:] if greedy else records
            found.append(question_scores(question, greedy, sampled, embedder=_NOT_EMBEDDED))
        return found


def load_runs(folders: Sequence[Path], *, data: Path | None) -> list[LoadedRun]:
    """The runs in folders, in their order.

    Args:
        folders: The runs.
        data: Where the data lies now; None takes the folders that the manifests name.

    Raises:
        InputError: If a folder is no run, a run has no sample, or ``data`` is not what was asked.
    """
    manifests = [_manifest(folder) for folder in folders]
    opened: dict[tuple[Any, ...], Opened] = {}
    runs = []
    for folder, manifest, label in zip(
        folders, manifests, _labels(folders, manifests), strict=True
    ):
        stated = manifest["benchmark"]
        fields = ("name", "dataset_hash", "source", "modality", "limit", "accepted_rows")
        key = tuple(stated[name] for name in fields)
        if key not in opened:
            opened[key] = _open(folder, stated, data)
        runs.append(_load(folder, manifest, label, opened[key]))
    return runs


def _manifest(folder: Path) -> dict[str, Any]:
    manifest = read_manifest(folder)
    _check(_Manifest, manifest, f"{folder}/run.json")
    return manifest


def _check(model: type[BaseModel], data: Any, where: str) -> None:
    try:
        model.model_validate(data)
    except KeyError as error:
        raise InputError(f"{where} cannot be read: it has no {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{where} cannot be read: {place} {first['msg']}") from None


def _open(folder: Path, stated: Mapping[str, Any], data: Path | None) -> Opened:
    source = data or (Path(stated["source"]) if stated["source"] else None)
    try:
        benchmark = choose(
            stated["name"],
            source=source,
            modality=stated["modality"],
            limit=stated["limit"],
            rows=stated["accepted_rows"],
        ).benchmark
        if benchmark.dataset_hash != stated["dataset_hash"]:
            raise InputError(f"the data in {source} is not what {folder.resolve().name} was asked")
    except InputError as error:
        if data is not None:
            raise
        return error
    return benchmark


def _load(folder: Path, manifest: dict[str, Any], label: str, opened: Opened) -> LoadedRun:
    index = scan(folder / SAMPLES)
    name = folder.resolve().name
    if not index.entries:
        raise InputError(f"{folder} has no samples yet; go on with: npbench eval --resume {folder}")
    _check_scores(RunFolder(folder), index)
    run = LoadedRun(
        label=label,
        folder=RunFolder(folder),
        manifest=manifest,
        index=index,
        summary=_summary(folder, manifest),
        benchmark=opened if isinstance(opened, Benchmark) else None,
        whole=True,
        notices=(),
    )
    notices = []
    if isinstance(opened, InputError):
        notices.append(
            f"{name}: its questions are not shown, and curves have no intervals, because the data "
            f"cannot be read ({opened}); npbench report --data DIR says where it lies now"
        )
    strays = _strays(run)
    if strays:
        question, decode, number = strays[0]
        notices.append(
            f"{name} holds samples that it was not asked for: {len(strays)}, such as {decode} "
            f"sample {number} of {question}; they are in no table"
        )
    total = manifest["benchmark"]["rows"] * len(run.wanted)
    asked = len(index.entries) - len(strays)
    whole = asked == total
    if not whole:
        notices.append(
            f"{name} is unfinished: it has {asked} of {total} samples, and its tables are of the "
            f"questions whose samples are all there; npbench eval --resume finishes it"
        )
    repeated = index.repeated - (run.summary["repeated_lines"] if run.summary else 0)
    if repeated > 0:
        notices.append(f"{name}: {repeated} repeated lines were counted once")
    if run.summary is not None and _states(run.summary) != run.states():
        if whole:
            notices.append(
                f"{name}: its summary is not of its samples; the numbers here are computed from "
                f"the samples, and npbench grade writes the summary anew"
            )
        run = replace(run, summary=None)
    if run.summary is None:
        run = replace(run, summary=_summarized(run))
        if run.summary is None:
            notices.append(f"{name}: no question has all its samples and data, so no tables")
    return replace(run, whole=whole, notices=tuple(notices))


def _check_scores(folder: RunFolder, index: SampleIndex) -> None:
    for keys in index.by_question().values():
        for record in folder.records(index, keys):
            if not math.isfinite(record.score):
                raise InputError(
                    f"{folder.samples}: the score of {record.decode} sample {record.sample} of "
                    f"{record.id} must be finite, got {record.score}; npbench grade writes it anew"
                )


def _strays(run: LoadedRun) -> list[Key]:
    """The samples of other questions, or with other numbers, than the manifest asks for."""
    wanted = set(run.wanted)
    ids = None if run.benchmark is None else {q.id for q in run.benchmark.questions}
    return [
        (name, decode, number)
        for name, decode, number in run.index.entries
        if (decode, number) not in wanted or (ids is not None and name not in ids)
    ]


def _summary(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    path = folder / SUMMARY
    if not path.exists():
        return None
    summary: Any = read_json(path)
    if not isinstance(summary, dict) or summary.get("schema") != SCHEMA:
        found = summary.get("schema") if isinstance(summary, dict) else None
        raise InputError(f"{path} has the schema {found}; this version reads {SCHEMA}")
    _check(_Summary, summary, str(path))
    if summary.get("manifest") != manifest:
        raise InputError(f"{path} is of another run than run.json; npbench grade writes it anew")
    return summary


def _states(summary: Mapping[str, Any]) -> Counter[str]:
    return Counter(summary["overall"]["states"])


def _summarized(run: LoadedRun) -> dict[str, Any] | None:
    """The summary of the questions whose samples are all there, None without any."""
    if run.benchmark is None:
        return None
    questions = list(_whole_questions(run.benchmark, run.index, run.wanted))
    if not questions:
        return None
    part = replace(run.benchmark, questions=questions)
    return summarize(part, run.folder, run.index, run.manifest, embedder=_NOT_EMBEDDED)


def _whole_questions(
    benchmark: Benchmark, index: SampleIndex, wanted: Sequence[tuple[str, int]]
) -> Iterator[Question]:
    there: Callable[[Key], bool] = index.entries.__contains__
    for question in benchmark.questions:
        if all(there((question.id, decode, number)) for decode, number in wanted):
            yield question


def _labels(folders: Sequence[Path], manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """A name for each run, as short as tells them apart."""
    models = [
        str(manifest["model"]["name"]).rstrip("/").rpartition("/")[2] for manifest in manifests
    ]
    pairs = [(model, folder.resolve().name) for model, folder in zip(models, folders, strict=True)]
    labels = []
    for number, (model, name) in enumerate(pairs, 1):
        if models.count(model) == 1:
            labels.append(model)
        elif pairs.count((model, name)) == 1:
            labels.append(f"{model}, {name}")
        else:
            labels.append(f"{model}, {name}, run {number}")
    return labels
