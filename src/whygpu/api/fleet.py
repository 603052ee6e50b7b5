"""Verbs about many machines: fleet_report."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from whygpu.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whygpu.model.fleet import FleetReport

    Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def fleet_report(
    snapshots: Paths,
    *,
    expect: str | os.PathLike[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> FleetReport:
    """Which of many machines are not like the others, and why?

    `snapshots` are folders with one snapshot for each node, or single snapshots; the name of a
    file is the name of its node. `expect` is a file with the names of all nodes: those without a
    snapshot are reported.

    Example:
        report = whygpu.fleet_report("snapshots/")
        report.causes      # nodes by root cause
        report.drift       # what differs between machines with the same GPUs
    """
    from whygpu.api.machine import diagnose
    from whygpu.fleet.judging import report_on
    from whygpu.fleet.snapshot_files import expected_nodes, snapshot_files

    files = snapshot_files(paths_of(snapshots))
    expected = expected_nodes(os.fspath(expect)) if expect is not None else ()
    return report_on(files, expected=expected, full_diagnosis=diagnose, on_progress=on_progress)


def paths_of(given: Paths) -> list[str]:
    several = [given] if isinstance(given, str | os.PathLike) else given
    try:
        return [os.fspath(path) for path in several]
    except TypeError:
        raise UsageError(
            f"expected a folder or several paths, received {type(given).__name__}"
        ) from None
