"""A run as a page needs it: checked, with its questions where the data is still there."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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


class _Asked(BaseModel):
    name: str
    version: str
    dataset_hash: str
    rows: int
    limit: int | None
    accepted_rows: int | None
    modality: str | None
    source: str | None


class _Model(BaseModel):
    name: str


class _Sampling(BaseModel):
    greedy: bool
    k: int


class _Manifest(BaseModel):
    """What a page reads of a manifest by name; the rest is shown as it is."""

    command: str
    backend: str
    prompt_format: str
    benchmark: _Asked
    model: _Model
    sampling: _Sampling


_Value = float | None


class _Row(BaseModel):
    """What a page reads of a row of a summary by name, besides the metrics."""

    n: int
    k: int
    samples: int
    ci: dict[str, tuple[float, float] | None]
    curves: dict[str, dict[int, float]]
    pass_at_k: dict[int, float] = Field(alias="pass@k")
    diversity: dict[str, float | str | None]
    states: dict[str, int]
    rates: dict[str, _Value]
    acc_answered: _Value
    reasons: dict[str, int]
    errors: dict[str, int]
    floors: dict[str, dict[str, float]]

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
    torn_bytes: int
    repeated_lines: int


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
    total = manifest["benchmark"]["rows"] * len(run.wanted)
    whole = len(index.entries) == total
    if not whole:
        notices.append(
            f"{name} is unfinished: it has {len(index.entries)} of {total} samples, and its "
            f"tables are of the questions whose samples are all there; npbench eval --resume "
            f"finishes it"
        )
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
