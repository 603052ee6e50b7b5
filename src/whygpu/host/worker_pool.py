"""A pool of processes that work through many files and end at once if the work is interrupted."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from whygpu.host.systems import STOP_SIGNALS, cores

Item = TypeVar("Item")
Result = TypeVar("Result")

_CHUNK = 16
_BATCH = 4096
"""Items per batch for the processes."""


class WorkerPool:
    """Use it in a `with` statement. `prepare` runs once in each process, before the first item."""

    def __init__(self, prepare: Callable[[], object], workers: int = 0) -> None:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        self._others = multiprocessing.active_children()
        methods = multiprocessing.get_all_start_methods()
        # A forked worker already has the catalogue.
        context = multiprocessing.get_context("fork" if "fork" in methods else None)
        self._executor = ProcessPoolExecutor(
            workers or cores(), context, initializer=_start_worker, initargs=(prepare,)
        )

    def __enter__(self) -> WorkerPool:
        return self

    def results(
        self, work: Callable[[Item], Result], items: Sequence[Item], *, chunk: int = _CHUNK
    ) -> Iterator[Result]:
        """The result for each item, in the order of the items."""
        # Not all at once: a million files would need a million futures.
        for start in range(0, len(items), _BATCH):
            batch = items[start : start + _BATCH]
            yield from self._executor.map(work, batch, chunksize=chunk)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        import multiprocessing

        if kind is not None:
            for worker in multiprocessing.active_children():
                if worker not in self._others:
                    worker.terminate()
        self._executor.shutdown(wait=True, cancel_futures=True)


def _start_worker(prepare: Callable[[], object]) -> None:
    # Ctrl-C reaches every process of the terminal; the parent decides.
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    prepare()
    # What these workers build are thousands of objects without a cycle. Searching them for cycles
    # takes longer than building them.
    gc.set_threshold(100_000)
