"""A backend that is many: each worker on Ray holds one of its own and answers whole questions.

Replies are functions of seed and question, so it does not matter who answers. They come back in
the order of the requests, and the driver alone writes them: what is on disk at any time is a
beginning of what one process writes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from evaluators.backends import BackendOptions, make_backend
from evaluators.backends.base import Backend, Completion, ModelInfo, Reply, Request
from npbench.errors import InputError
from npbench.ray_pool import PATIENCE, RayPool, WorkerError, check_workers, ray_session

__all__ = ["Answers", "RayBackend", "Replica", "ray_backend"]

BATCH_BYTES = 4 << 20
"""Pictures and text of a batch, unless one question has more."""

Batch = Sequence[Request]
Answers = Sequence[tuple[str, str, int, Reply]]
"""Question, decode and number of a sample, and what became of it."""


class Replica:
    """Holds a backend in a worker."""

    def __init__(self, name: str, options: BackendOptions) -> None:
        """Make the backend.

        Raises:
            InputError: If it cannot be made.
        """
        self._backend: Backend = make_backend(name, options)

    def statement(self) -> Mapping[str, Any]:
        """What the manifest says of the model."""
        return asdict(self._backend.describe())

    def __call__(self, batch: Batch) -> Answers:
        """The replies to a batch, without the requests and their pictures."""
        return [
            (made.request.id, made.request.decode, made.sample, made.reply)
            for made in self._backend.generate(batch)
        ]


class RayBackend:
    """Backends on Ray that answer as one of them would."""

    def __init__(self, name: str, pool: RayPool[Batch, Answers], *, batch_samples: int) -> None:
        """A backend over the workers of a pool.

        Args:
            name: Of the backend that each worker holds.
            pool: The workers, each a :class:`Replica`.
            batch_samples: Samples that a worker is sent at a time, unless one question has more.
        """
        self.name = name
        self.pool = pool
        self._batch_samples = batch_samples

    def describe(self) -> ModelInfo:
        """What the workers say of the model; all must say the same."""
        return ModelInfo(**self.pool.statement())

    def generate(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """The completions in the order of the requests, whoever made them."""
        asked: list[Batch] = []

        def batches() -> Iterator[Batch]:
            for batch in _batches(requests, samples=self._batch_samples):
                asked.append(batch)
                yield batch

        for answers in self.pool.map(batches(), ordered=True):
            yield from _completions(asked.pop(0), answers)


def _batches(requests: Iterable[Request], *, samples: int) -> Iterator[Batch]:
    """Batches of whole questions: one backend sees all requests of a question, and its picture."""
    batch: list[Request] = []
    for question in _questions(requests):
        if batch and (
            sum(len(request.samples) for request in [*batch, *question]) > samples
            or sum(map(_size, [*batch, *question])) > BATCH_BYTES
        ):
            yield batch
            batch = []
        batch += question
    if batch:
        yield batch


def _questions(requests: Iterable[Request]) -> Iterator[list[Request]]:
    question: list[Request] = []
    for request in requests:
        if question and question[0].id != request.id:
            yield question
            question = []
        question.append(request)
    if question:
        yield question


def _size(request: Request) -> int:
    return sum(len(part) for part in request.prompt.parts)


def _completions(batch: Batch, answers: Answers | None) -> Iterator[Completion]:
    """The completions of a batch in its order.

    Raises:
        WorkerError: If there is not exactly one reply to each sample.
    """
    wanted = [(request, sample) for request in batch for sample in request.samples]
    asked = f"{len(wanted)} samples of {batch[0].id} to {batch[-1].id}"
    if not isinstance(answers, list):
        raise WorkerError(f"a worker gave back {answers!r:.40} and no replies to {asked}")
    found = {(name, decode, sample): reply for name, decode, sample, reply in answers}
    keys = {(request.id, request.decode, sample) for request, sample in wanted}
    if len(answers) != len(wanted) or set(found) != keys:
        raise WorkerError(
            f"a worker gave back {len(answers)} replies to {asked}, {len(keys & set(found))} of "
            f"them to what was asked; what was finished is kept"
        )
    for request, sample in wanted:
        yield Completion(request, sample, found[request.id, request.decode, sample])


@contextmanager
def ray_backend(
    name: str,
    options: BackendOptions,
    *,
    workers: int | None = None,
    address: str | None = None,
    notify: Callable[[str], None] | None = None,
    replica: Callable[[str, BackendOptions], Any] = Replica,
    patience: float = PATIENCE,
) -> Iterator[RayBackend]:
    """A backend in every worker of a Ray cluster, for as long as the context lasts.

    Args:
        name: Of the backend.
        options: What each is told; of several base urls, each worker is told one.
        workers: How many; None is one for each base url, or one.
        address: ``auto`` or HOST:PORT of a running cluster; None starts Ray on this machine.
        notify: Told of each worker that dies.
        replica: What holds a backend in a worker.
        patience: Seconds that a batch may take before its worker is replaced.

    Raises:
        InputError: If the workers are fewer than the base urls, or Ray cannot be had; later, if a
            backend cannot be made, or workers die too often.
    """
    urls = options.base_urls
    count = check_workers(workers if workers is not None else max(1, len(urls)))
    if count < len(urls):
        raise InputError(f"{len(urls)} base urls need as many workers at least, got {count}")
    told = [
        replace(options, base_urls=(urls[number % len(urls)],)) if urls else options
        for number in range(count)
    ]
    with ray_session(address, workers=count) as ray:
        num_gpus = _num_gpus(name, options) if ray.cluster_resources().get("GPU") else 0
        makers = [partial(replica, name, one) for one in told]
        with RayPool[Batch, Answers](
            makers, num_gpus=num_gpus, notify=notify, patience=patience
        ) as pool:
            yield RayBackend(name, pool, batch_samples=_batch_samples(name, options))


def _num_gpus(name: str, options: BackendOptions) -> int:
    """GPUs of a worker, on a cluster that has some."""
    if name == "vllm":
        return options.tensor_parallel
    on_gpu = options.device is None or options.device.startswith("cuda")
    return int(name == "transformers" and on_gpu)


def _batch_samples(name: str, options: BackendOptions) -> int:
    """Samples of a batch: what the backend generates together, or enough to keep it busy."""
    if name == "transformers":
        return options.batch_size
    return {"vllm": 256, "openai": 4 * options.concurrency}.get(name, 64)
