"""A pool of processes that work through many files and end at once if the work is interrupted."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from whygpu.host.systems import STOP_SIGNALS, cores

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

_CHUNK = 16
_BATCH = 4096
"""Items per batch for the processes."""


class WorkerPool:
    """Use it in a `with` statement. `prepare` runs once in each process, before the first item."""

    def __init__(self, prepare: Callable[[], object], workers: int = 0) -> None:
        import multiprocessing

        self._others = multiprocessing.active_children()
        self._prepare = prepare
        self._workers = workers or cores()
        self._executor = self._started()

    def _started(self) -> ProcessPoolExecutor:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        methods = multiprocessing.get_all_start_methods()
        # A forked worker already has the catalogue.
        context = multiprocessing.get_context("fork" if "fork" in methods else None)
        return ProcessPoolExecutor(
            self._workers, context, initializer=_start_worker, initargs=(self._prepare,)
        )

    def __enter__(self) -> WorkerPool:
        return self

    def results(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        chunk: int = _CHUNK,
        lost: Callable[[Item], Result] | None = None,
    ) -> Iterator[Result]:
        """The result for each item, in the order of the items.

        A process may be killed, most likely because memory ran out. `lost` gives the result of an
        item whose process was killed twice; without it, that is an error.
        """
        from concurrent.futures import BrokenExecutor

        done = 0
        while done < len(items):
            # Not all at once: a million files would need a million futures.
            batch = items[done : done + _BATCH]
            try:
                for result in self._executor.map(work, batch, chunksize=chunk):
                    done += 1
                    yield result
            except BrokenExecutor:
                if lost is None:
                    raise
                self._executor = self._started()
                # One of the next items may be the reason, so each gets the pool for itself.
                for item in items[done : done + chunk * self._workers]:
                    done += 1
                    yield self._alone(work, item, lost)

    def _alone(
        self, work: Callable[[Item], Result], item: Item, lost: Callable[[Item], Result]
    ) -> Result:
        from concurrent.futures import BrokenExecutor

        try:
            return self._executor.submit(work, item).result()
        except BrokenExecutor:
            self._executor = self._started()
            return lost(item)

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
