"""Runs many attacks side by side and counts what held."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.faults.case import Attack, Case
from tests.faults.promises import broken
from tests.faults.sandbox import Outcome, Sandbox
from tests.faults.table import KINDS, cases


class Failure(NamedTuple):
    kind: str
    case: Case
    problems: tuple[str, ...]
    stderr: str

    def __str__(self) -> str:
        said = "\n    ".join(self.problems)
        return f"{self.kind}: {self.case}\n    {said}\n    standard error: {self.stderr[-1500:]}"


class Result(NamedTuple):
    counts: dict[str, int]
    """Inputs by kind."""
    codes: dict[int, int]
    peak_kib: int
    failures: tuple[Failure, ...]

    @property
    def inputs(self) -> int:
        return sum(self.counts.values())


def campaign(
    count: int,
    seed: int,
    *,
    kinds: frozenset[str] = KINDS,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Result:
    """Run so many inputs, drawn with this seed."""
    supply = (pair for pair in cases(count, seed) if pair[0].kind in kinds)
    lock = threading.Lock()
    counts: dict[str, int] = dict.fromkeys(sorted(kinds), 0)
    codes: dict[int, int] = {}
    failures: list[Failure] = []
    peak = 0

    def note(attack: Attack, outcome: Outcome) -> None:
        nonlocal peak
        problems = tuple(broken(outcome))
        with lock:
            counts[attack.kind] += 1
            codes[outcome.code] = codes.get(outcome.code, 0) + 1
            peak = max(peak, outcome.peak_kib)
            if problems:
                said = outcome.stderr.decode("utf-8", "backslashreplace")
                failures.append(Failure(attack.kind, outcome.case, problems, said))
            on_progress(sum(counts.values()))

    def work() -> None:
        with Sandbox() as sandbox:
            for attack, case in _shared(supply, lock):
                note(attack, sandbox.run(case))

    count = os.cpu_count() or 1
    with ThreadPoolExecutor(count) as pool:
        for worker in [pool.submit(work) for _ in range(count)]:
            worker.result()
    return Result(counts, codes, peak, tuple(failures))


def _shared(
    supply: Iterator[tuple[Attack, Case]], lock: threading.Lock
) -> Iterator[tuple[Attack, Case]]:
    """One at a time to whoever asks."""
    while True:
        with lock:
            pair = next(supply, None)
        if pair is None:
            return
        yield pair
