"""Asks a backend every question of a benchmark: samples on disk, each graded as it comes in.

The work left is a set difference by key, so a run goes on where it stopped, whatever stopped it.
One failure is one record.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType

from evaluators.backends.base import Backend, Completion, ModelInfo, Request, Sampling
from evaluators.benchmark import Benchmark, Question
from evaluators.prompts import build_prompt, format_hash, image_hash, prompt_hash
from evaluators.records import Decode, RunManifest, SampleRecord
from evaluators.rescoring import GRADERS, graded
from evaluators.run_folder import RunFolder, SampleIndex
from npbench.errors import InputError
from npbench.rng import digest

__all__ = ["MAX_ATTEMPTS", "Outcome", "RunSettings", "make_manifest", "run", "sample_seed"]

MAX_ATTEMPTS = 3
"""Sessions of a run that may try a sample which fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """What a run does besides the benchmark and the model."""

    sampling: Sampling
    prompt_format: str = "answer-line"
    system_prompt: str | None = None
    min_pixels: int | None = None
    max_pixels: int | None = None
    judge: str | None = None
    """What the manifest says of the judge."""

    def __post_init__(self) -> None:
        """Checks the format and the limits."""
        format_hash(self.prompt_format)
        low, high = self.min_pixels or 0, self.max_pixels
        if low < 0 or (high is not None and high < max(low, 1)):
            raise InputError(f"pixels must be limited by 0 <= min <= max, got {low} and {high}")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a session of a run did."""

    total: int
    """Samples that the run has when it is whole."""
    done: int
    """Samples that are on disk, failed ones included."""
    made: int
    """Samples of this session."""
    interrupted: bool


def sample_seed(run_seed: int, question: str, sample: int) -> int:
    """The seed of a sample, a hash in [0, 2^31): neighbouring run seeds share no stream.

    It is the same whether the sample is drawn alone, with the others of its question or later.
    """
    return int(digest("sample", run_seed, question, sample)[:16], 16) % 2**31


def make_manifest(
    benchmark: Benchmark,
    model: ModelInfo,
    settings: RunSettings,
    *,
    backend: str,
    command: str,
    commit: str | None,
    started: str,
    benchmark_notes: dict[str, str | int | None],
    versions: dict[str, str],
) -> RunManifest:
    """The manifest of a run.

    Args:
        benchmark: The questions that are asked, after any limit.
        model: What the backend says of the model.
        settings: How it is asked.
        backend: The backend's name.
        command: The command line.
        commit: The commit of this code, where it is known.
        started: When.
        benchmark_notes: How the questions were chosen: ``limit``, ``modality``, ``source``.
        versions: Of Python and of this package, beside those that the backend names.
    """
    sampling = {**asdict(settings.sampling), "stop": list(settings.sampling.stop)}
    return RunManifest(
        command=command,
        commit=commit,
        started=started,
        benchmark={
            "name": benchmark.name,
            "version": benchmark.version,
            "dataset_hash": benchmark.dataset_hash,
            "rows": len(benchmark.questions),
            **benchmark_notes,
        },
        model={"name": model.name, "fingerprint": model.fingerprint, **model.details},
        backend=backend,
        prompt_format=settings.prompt_format,
        prompt_hash=format_hash(settings.prompt_format),
        system_prompt=settings.system_prompt,
        sampling=sampling,
        pixels={"min": settings.min_pixels, "max": settings.max_pixels},
        grader=GRADERS,
        judge=settings.judge,
        versions={**versions, **model.versions},
    )


def run(
    benchmark: Benchmark,
    backend: Backend,
    settings: RunSettings,
    folder: RunFolder,
    index: SampleIndex,
    *,
    progress: Callable[[int, int], None] | None = None,
    stopping: Callable[[], None] | None = None,
) -> Outcome:
    """Make every sample that is missing, and write each as soon as it is there.

    The first interruption asks for no further sample and writes those that are under way; the
    second one stops at once. Neither loses a finished sample.

    Args:
        benchmark: The questions.
        backend: Where replies come from.
        settings: How they are asked for.
        folder: The claimed run.
        index: The samples that it has.
        progress: Called with (samples done, samples in all).
        stopping: Called at the first interruption.

    Raises:
        InputError: If a sample on disk was asked with another prompt.
    """
    wanted = _samples_of_each(settings.sampling)
    total = len(benchmark.questions) * len(wanted)
    work = _Work(benchmark, settings, index, wanted)
    done = sum(not work.is_open(key) for key in index.entries)
    made = 0
    if progress:
        progress(done, total)
    with _stopping(stopping) as stop:
        for completion in backend.generate(work.requests(stop)):
            folder.append(work.record(completion))
            made += 1
            if progress:
                progress(done + made, total)
        interrupted = stop.is_set() and done + made < total
        if done + made < total and not interrupted:
            raise RuntimeError(f"the backend lost {total - done - made} of {total} samples")
    return Outcome(total, done + made, made, interrupted)


def _samples_of_each(sampling: Sampling) -> list[tuple[Decode, int]]:
    greedy: list[tuple[Decode, int]] = [("greedy", 0)] if sampling.greedy else []
    return greedy + [("sampled", sample) for sample in range(sampling.k)]


@dataclass(slots=True)
class _Asked:
    """A question under way."""

    question: Question
    prompt_hash: str
    image_hash: str | None
    left: int
    """Samples that have not come in."""


class _Work:
    """The samples that are missing, as requests, and the questions that are under way."""

    def __init__(
        self,
        benchmark: Benchmark,
        settings: RunSettings,
        index: SampleIndex,
        wanted: list[tuple[Decode, int]],
    ) -> None:
        self._benchmark = benchmark
        self._settings = settings
        self._index = index
        self._wanted = wanted
        self._asked: dict[str, _Asked] = {}

    def is_open(self, key: tuple[str, Decode, int]) -> bool:
        """Whether a sample is to be made: it is missing, or failed and may be tried again."""
        entry = self._index.entries.get(key)
        return entry is None or (not entry.generated and entry.attempts < MAX_ATTEMPTS)

    def requests(self, stop: threading.Event) -> Iterator[Request]:
        """The requests in the order of the questions, until the run is stopped."""
        settings = self._settings
        seen: set[str] = set()
        for question in self._benchmark.questions:
            if question.id in seen:
                raise InputError(
                    f"two questions of {self._benchmark.name} have the id {question.id}"
                )
            seen.add(question.id)
            known = [
                entry
                for decode, sample in self._wanted
                if (entry := self._index.entries.get((question.id, decode, sample)))
            ]
            missing: dict[Decode, list[int]] = {}
            for decode, sample in self._wanted:
                if self.is_open((question.id, decode, sample)):
                    missing.setdefault(decode, []).append(sample)
            if not missing and not known:
                continue
            prompt = build_prompt(
                question.parts, prompt_format=settings.prompt_format, system=settings.system_prompt
            )
            asked = _Asked(
                question, prompt_hash(prompt), image_hash(prompt), sum(map(len, missing.values()))
            )
            if any(entry.prompt_hash != asked.prompt_hash for entry in known):
                raise InputError(
                    f"the run asked {question.id} with another prompt; choose another folder"
                )
            self._asked[question.id] = asked
            for decode, samples in missing.items():
                if stop.is_set():
                    return
                seeds = tuple(
                    sample_seed(settings.sampling.seed, question.id, sample) for sample in samples
                )
                yield Request(question.id, prompt, decode, tuple(samples), seeds)

    def record(self, completion: Completion) -> SampleRecord:
        """The graded record of a completion; a question is forgotten with its last one."""
        request, reply = completion.request, completion.reply
        asked = self._asked[request.id]
        question = asked.question
        asked.left -= 1
        if not asked.left:
            del self._asked[request.id]
        sampled = request.decode == "sampled"
        return graded(
            question,
            SampleRecord(
                benchmark=self._benchmark.name,
                id=question.id,
                instance_id=question.instance_id,
                decode=request.decode,
                sample=completion.sample,
                seed=request.seeds[request.samples.index(completion.sample)] if sampled else None,
                reply=reply.text,
                reasoning=reply.reasoning,
                finish_reason=reply.finish_reason,
                stop_reason=reply.stop_reason,
                num_tokens=reply.num_tokens,
                gold=question.gold,
                error=reply.error,
                prompt_hash=asked.prompt_hash,
                image_hash=asked.image_hash,
                picture_sizes=reply.picture_sizes,
            ),
        )


@contextmanager
def _stopping(notify: Callable[[], None] | None) -> Iterator[threading.Event]:
    """An event that the first interruption sets; the second one interrupts as usual."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, before)
        if notify:
            notify()

    signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
