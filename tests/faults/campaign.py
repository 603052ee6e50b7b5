"""Runs many attacks, with one process per core, and counts what held."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from typing import NamedTuple

from tests.faults.case import Case
from tests.faults.promises import broken
from tests.faults.sandbox import Sandbox
from tests.faults.table import ATTACKS, KINDS, cases

CORES = os.cpu_count() or 1
_AT_ONCE = 4
"""Inputs that a process takes at a time: most take a few hundredths of a second."""


class Failure(NamedTuple):
    kind: str
    case: Case
    problems: tuple[str, ...]
    stderr: str

    def __str__(self) -> str:
        said = "\n    ".join(self.problems)
        return f"{self.kind}: {self.case}\n    {said}\n    standard error: {self.stderr[-1500:]}"


class Held(NamedTuple):
    """What was seen of one kind of attack."""

    inputs: int = 0
    failed: int = 0
    peak_kib: int = 0


class Result(NamedTuple):
    kinds: dict[str, Held]
    codes: dict[int, int]
    failures: tuple[Failure, ...]

    @property
    def inputs(self) -> int:
        return sum(held.inputs for held in self.kinds.values())

    @property
    def peak_kib(self) -> int:
        return max(held.peak_kib for held in self.kinds.values())


class _Start(NamedTuple):
    """What is kept of one start of whygpu."""

    kind: str
    code: int
    peak_kib: int
    failure: Failure | None


def campaign(
    count: int,
    seed: int,
    *,
    kinds: frozenset[str] = KINDS,
    jobs: int = CORES,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Result:
    """Run so many inputs, drawn with this seed; how many jobs there are changes none of them."""
    held = {attack.kind: Held() for attack in ATTACKS if attack.kind in kinds}
    codes: dict[int, int] = {}
    failures: list[Failure] = []
    supply = ((attack.kind, case) for attack, case in cases(count, seed, kinds))
    # A fork of a process that has threads, as the tests' own have, can hang.
    with multiprocessing.get_context("spawn").Pool(jobs, _open_sandbox) as pool:
        for done, start in enumerate(pool.imap_unordered(_attack, supply, _AT_ONCE), start=1):
            so_far = held[start.kind]
            held[start.kind] = Held(
                so_far.inputs + 1,
                so_far.failed + (start.failure is not None),
                max(so_far.peak_kib, start.peak_kib),
            )
            codes[start.code] = codes.get(start.code, 0) + 1
            if start.failure is not None:
                failures.append(start.failure)
            on_progress(done)
        pool.close()
        pool.join()
    return Result(held, codes, tuple(failures))


_sandboxes: list[Sandbox] = []
"""The one of this process. It ends with the process, which holds the pipe that it reads from."""


def _open_sandbox() -> None:
    _sandboxes.append(Sandbox())


def _attack(drawn: tuple[str, Case]) -> _Start:
    kind, case = drawn
    outcome = _sandboxes[0].run(case)
    failure = None
    if problems := tuple(broken(outcome)):
        said = outcome.stderr.decode("utf-8", "backslashreplace")
        failure = Failure(kind, case, problems, said)
    return _Start(kind, outcome.code, outcome.peak_kib, failure)
