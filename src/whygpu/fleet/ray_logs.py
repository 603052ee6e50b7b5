"""Explains many logs with the processes of a Ray cluster, which all have to see the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from whygpu.fleet.job_logs import JobReader, LogFile
from whygpu.fleet.ray_cluster import connected
from whygpu.model.fleet_logs import JobLog, UnreadLog
from whygpu.model.outside_text import excerpt, one_line

OnProgress = Callable[[int, int], None]
_CHUNK = 64
"""Logs of one task. Starting a task takes as long as explaining one log."""
_WAITING = 4
"""Tasks for each processor of the cluster that may wait: all at once would fill its memory."""


def explained_by_ray(
    logs: Sequence[LogFile],
    reader: JobReader,
    *,
    address: str = "auto",
    on_progress: OnProgress | None = None,
) -> Iterator[JobLog | UnreadLog]:
    """A row for each log, as they come. The logs of a task that fails are rows as well."""
    chunks = [logs[start : start + _CHUNK] for start in range(0, len(logs), _CHUNK)]
    done = 0
    with connected(address) as ray:
        task = ray.remote(_explain_chunk).options(num_cpus=1, max_retries=2)
        most = max(1, int(ray.cluster_resources().get("CPU", 1))) * _WAITING
        left = iter(chunks)
        pending: dict[Any, Sequence[LogFile]] = {}
        while True:
            while len(pending) < most and (chunk := next(left, None)) is not None:
                pending[task.remote(reader, chunk)] = chunk
            if not pending:
                return
            ready, _ = ray.wait(list(pending), num_returns=1)
            for reference in ready:
                rows = _rows(ray, reference, pending.pop(reference))
                done += len(rows)
                if on_progress is not None:
                    on_progress(done, len(logs))
                yield from rows


def _explain_chunk(reader: JobReader, logs: Sequence[LogFile]) -> list[JobLog | UnreadLog]:
    return [reader(log) for log in logs]


def _rows(ray: Any, reference: Any, logs: Sequence[LogFile]) -> list[JobLog | UnreadLog]:
    try:
        rows: list[JobLog | UnreadLog] = ray.get(reference)
    except ray.exceptions.RayError as error:
        why = excerpt(one_line(f"its task failed: {type(error).__name__}: {error}"), 200)
        return [UnreadLog(log.path, why) for log in logs]
    return rows
