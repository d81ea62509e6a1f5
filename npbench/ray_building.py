"""The chunks of a split made on Ray: workers send Parquet files, the driver alone writes them."""

import io
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Any

from npbench.building import ChunkSource, chunk_positions, libraries, make_chunk
from npbench.ray_pool import PATIENCE, RayPool, WorkerError, check_workers, ray_session
from npbench.splits import Request

__all__ = ["ChunkMaker", "ray_chunks"]


class ChunkMaker:
    """Makes chunks of one split in a worker."""

    def __init__(self, request: Request) -> None:
        """A maker for the split of a request."""
        self._request = request

    def statement(self) -> Mapping[str, Any]:
        """The versions of the libraries that draw and solve."""
        return libraries()

    def __call__(self, chunk: int) -> tuple[int, bytes]:
        """The number of a chunk and its Parquet file."""
        return chunk, make_chunk(self._request, chunk)


def ray_chunks(
    *,
    workers: int,
    address: str | None = None,
    notify: Callable[[str], None] | None = None,
    maker: Callable[[Request], Any] = ChunkMaker,
    patience: float = PATIENCE,
) -> ChunkSource:
    """Chunks from ``workers`` processes on Ray, which starts with the first chunk that is missing.

    Args:
        workers: Processes, each on a CPU of its own.
        address: ``auto`` or HOST:PORT of a running cluster; None starts Ray on this machine.
        notify: Told of each worker that dies.
        maker: What makes the chunks in a worker.
        patience: Seconds that a chunk may take before its worker is replaced.

    Raises:
        InputError: If the number of workers is wrong; later, if Ray is not there, if machines
            have other versions of the libraries, or if workers die too often.
    """
    check_workers(workers)

    def chunks(
        request: Request, missing: Iterator[int]
    ) -> Generator[tuple[int, bytes], None, None]:
        first = next(missing, None)
        if first is None:
            return
        makers = [partial(maker, request)] * workers
        with (
            ray_session(address, workers=workers),
            RayPool[int, Any](makers, stated=libraries(), notify=notify, patience=patience) as pool,
        ):
            for made in pool.map(chain([first], missing), ordered=False):
                yield _checked(request, made)

    return chunks


def _checked(request: Request, made: Any) -> tuple[int, bytes]:
    """What a worker sent, where it is a chunk with all its rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not isinstance(made, tuple) or len(made) != 2:
        raise WorkerError(f"a worker gave back {made!r:.40} and no chunk")
    chunk, data = made
    wanted = len(chunk_positions(request, chunk)) * request.rows_per_unit
    try:
        found = pq.read_metadata(io.BytesIO(data)).num_rows
    except (TypeError, pa.ArrowException) as error:
        raise WorkerError(f"a worker gave back no file for chunk {chunk}: {error}") from None
    if found != wanted:
        raise WorkerError(f"a worker gave back {found} rows for chunk {chunk}, which has {wanted}")
    return chunk, data
