"""Explains many logs, on all cores if there are enough of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from whygpu.fleet.job_logs import JobReader, LogFile
from whygpu.host.systems import cores
from whygpu.host.worker_pool import WorkerPool
from whygpu.model.fleet_logs import JobLog, UnreadLog

OnProgress = Callable[[int, int], None]
_WORTH_A_POOL = 64
"""Starting processes takes as long as explaining this many."""
_CHUNK = 8


def explained(
    logs: Sequence[LogFile],
    reader: JobReader,
    *,
    workers: int = 0,
    on_progress: OnProgress | None = None,
) -> Iterator[JobLog | UnreadLog]:
    """A row for each log, in their order. `workers` is 0 for one process on each core."""
    number = workers or cores()
    if len(logs) < _WORTH_A_POOL or number < 2:
        yield from _counted(map(reader, logs), len(logs), on_progress)
        return
    # The processes are forked, so that they need not load the catalogue again.
    reader.prepare()
    with WorkerPool(reader.prepare, number) as pool:
        rows = pool.results(reader, logs, chunk=_CHUNK, lost=_killed)
        yield from _counted(rows, len(logs), on_progress)


def _killed(log: LogFile) -> UnreadLog:
    return UnreadLog(log.path, "the process that read it was killed, perhaps for lack of memory")


def _counted(
    rows: Iterator[JobLog | UnreadLog], total: int, on_progress: OnProgress | None
) -> Iterator[JobLog | UnreadLog]:
    for done, row in enumerate(rows, 1):
        if on_progress is not None:
            on_progress(done, total)
        yield row
