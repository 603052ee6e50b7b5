"""The verb about what changed: diff."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from whygpu.api.arguments import checked
from whygpu.api.machine import load_snapshot, snapshot
from whygpu.causes import machine_catalogue
from whygpu.errors import UsageError
from whygpu.model.differences import DiffAnswer
from whygpu.model.snapshot import Snapshot
from whygpu.probes import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    from whygpu.differences.answering import Named
    from whygpu.probes.runner import Progress

NOW = "this machine, now"


@checked
def diff(
    before: str | Snapshot,
    after: str | Snapshot | None = None,
    *,
    probe: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
    on_progress: Progress | None = None,
) -> DiffAnswer:
    """What changed between two machines, environments or days, and does it matter?

    `before` and `after` are snapshots, files with snapshots, or environments of this machine. None
    means the active environment of the shell. Environments are examined now; `probe` and `timeout`
    are those of `check`.

    Example:
        answer = whygpu.diff("good.json", "bad.json")
        answer.headline, answer.reasons
    """
    if before == after == "-":
        raise UsageError("standard input can be only one of the two snapshots")

    def named(side: str | Snapshot | None, called: str) -> Named:
        from whygpu.differences.answering import Named

        if isinstance(side, Snapshot):
            return Named(called, side)
        if side is not None and not _is_environment(side):
            return Named("standard input" if side == "-" else side, load_snapshot(side))
        taken = snapshot(side, probe=probe, timeout=timeout, on_progress=on_progress)
        return Named(NOW if side is None else side, taken)

    # A file that cannot be read ends it before anything is examined.
    if after is not None and not (isinstance(after, str) and _is_environment(after)):
        second = named(after, "the second snapshot")
        first = named(before, "the first snapshot")
    else:
        first = named(before, "the first snapshot")
        second = named(after, "the second snapshot")
    from whygpu.differences.answering import answer

    return answer(first, second, machine_catalogue())


def _is_environment(path: str) -> bool:
    """A folder, or a program that may be an interpreter. Snapshots are not executable files."""
    if os.path.isdir(path):
        return True
    from whygpu.readers.unpacking import without_packing

    may_run = os.path.isfile(path) and os.access(path, os.X_OK)
    return may_run and not without_packing(path).endswith(".json")
