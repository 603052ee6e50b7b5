"""Verbs about many machines and the logs of many jobs: fleet_report and the like."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from whygpu.errors import UsageError
from whygpu.probes import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from whygpu.model.fleet import FleetReport
    from whygpu.model.fleet_logs import FleetLogs, LogExample

    Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

LONGEST_LIMIT = 86400.0


def fleet_report(
    snapshots: Paths,
    *,
    expect: str | os.PathLike[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> FleetReport:
    """Which of many machines are not like the others, and why?

    `snapshots` are folders with one snapshot for each node, or single snapshots; the name of a
    file is the name of its node. `expect` is a file with the names of all nodes, such as a hostfile
    of MPI: those without a snapshot are reported, and those that it does not name.

    Example:
        report = whygpu.fleet_report("snapshots/")
        report.causes      # nodes by root cause
        report.drift       # what differs between machines with the same GPUs
    """
    from whygpu.api.machine import diagnose
    from whygpu.fleet.judging import report_on
    from whygpu.fleet.node_lists import expected_nodes
    from whygpu.fleet.snapshot_files import find_snapshots

    found = find_snapshots(paths_of(snapshots))
    expected = expected_nodes(os.fspath(expect)) if expect is not None else ()
    report = report_on(
        found.files, expected=expected, full_diagnosis=diagnose, on_progress=on_progress
    )
    return report._replace(other_files=found.other_files, unread_folders=found.unread_folders)


def fleet_check(
    ray: str = "auto",
    *,
    python: str | None = None,
    probe: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
    stress: float | None = None,
    node_limit: float | None = None,
    keep: str | os.PathLike[str] | None = None,
    expect: str | os.PathLike[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> FleetReport:
    """Take a snapshot on every node of a Ray cluster now, and report on them.

    `ray` is the address of the cluster; "auto" is the one that this machine belongs to. `python`,
    `probe`, `timeout` and `stress` are those of `check`, on each node. A node that has not
    answered after `node_limit` seconds counts as hung (default: 300, and 16 times `stress` more).
    `keep` is a folder for the snapshots. `expect` is that of `fleet_report`: a node that was dead
    before is in no list of Ray.

    Example:
        whygpu.fleet_check("auto", probe=False).lost
    """
    import tempfile
    from contextlib import ExitStack

    from whygpu.api.machine import diagnose
    from whygpu.fleet.gathering import NodeRequest
    from whygpu.fleet.gathering import node_limit as usual_limit
    from whygpu.fleet.judging import report_on
    from whygpu.fleet.node_lists import expected_nodes
    from whygpu.fleet.ray_nodes import gather

    if node_limit is None:
        node_limit = usual_limit(stress)
    if not 0 < node_limit <= LONGEST_LIMIT:
        raise UsageError(
            "expected a number of seconds between 0 and a day",
            option="node_limit",
            value=node_limit,
        )
    # A list that cannot be read ends it before the nodes are asked.
    expected = expected_nodes(os.fspath(expect)) if expect is not None else ()
    with ExitStack() as stack:
        if keep is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="whygpu-fleet-"))
        else:
            folder = os.fspath(keep)
            _make_folder(folder)
        request = NodeRequest(python, probe, timeout, node_limit, stress)
        gathered = gather(folder, request, address=ray, on_node=on_progress)
        return report_on(
            gathered.files, lost=gathered.lost, expected=expected, full_diagnosis=diagnose
        )


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {path}: {error.strerror}") from error


def fleet_explain(
    logs: Paths,
    *,
    names: Iterable[str] = (),
    node_from: str | None = None,
    workers: int = 0,
    ray: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> FleetLogs:
    """What ends the jobs of a cluster: by cause, by node and by week, with an example of each?

    `logs` are folders of logs, or single logs. `names` are patterns for the names of logs in the
    folders, such as "job-*". `node_from` is a regular expression whose first group is the name of
    the node in the path of a log; without it, the first folder of the path is. `workers` is the
    number of processes: one on each core, if it is 0. `ray` is the address of a Ray cluster, whose
    nodes all see the logs, to use instead ("auto": the one that this machine belongs to).

    Example:
        found = whygpu.fleet_explain("/shared/logs", node_from=r"(gpu-\\d+)")
        found.causes[0].jobs, found.causes[0].nodes
    """
    import re

    from whygpu.fleet.job_logs import JobReader, find_logs
    from whygpu.fleet.log_pool import explained
    from whygpu.fleet.log_summary import summarise_logs

    try:
        re.compile(node_from or "")
    except re.error as error:
        raise UsageError(
            f"it is no regular expression: {error}", option="node_from", value=node_from
        ) from error
    if not 0 <= workers <= MOST_WORKERS:
        raise UsageError(
            f"expected a number of processes up to {MOST_WORKERS}", option="workers", value=workers
        )
    # Other machines do not have the current folder of this process.
    given = [os.path.abspath(path) if ray is not None else path for path in paths_of(logs)]
    found = find_logs(given, tuple(names))
    reader = JobReader(node_from)
    if ray is None:
        rows = explained(found.logs, reader, workers=workers, on_progress=on_progress)
    else:
        from whygpu.fleet.ray_logs import explained_by_ray

        rows = explained_by_ray(found.logs, reader, address=ray, on_progress=on_progress)
    return summarise_logs(rows, found, _example_in_log)


def fleet_recipe(name: str, *, folder: str = "whygpu-snapshots", image: str | None = None) -> str:
    """A script ("slurm", "slurm-prolog") or manifest ("kubernetes") that takes the snapshots.

    `folder` is where Slurm's nodes save them, and `image` what Kubernetes runs: an image with
    whygpu and the frameworks to check. Nothing is started.

    Example:
        print(whygpu.fleet_recipe("kubernetes", image="registry.example.com/training:1"))
    """
    from whygpu.fleet.recipes import NO_IMAGE, recipe

    return recipe(name, folder=os.path.abspath(folder), image=NO_IMAGE if image is None else image)


MOST_WORKERS = 256


def _example_in_log(file: str, code: str) -> LogExample | None:
    """The finding as `explain` shows it: without private data, and with the release to install."""
    from whygpu.api.logs import explain_file
    from whygpu.model.fleet_logs import LogExample

    try:
        explanation = explain_file(file)
    except UsageError:
        return None
    found = (finding for finding in explanation.root_causes if finding.code == code)
    return next((LogExample(file, item, explanation.installer) for item in found), None)


def paths_of(given: Paths) -> list[str]:
    several = [given] if isinstance(given, str | os.PathLike) else given
    try:
        return [os.fspath(path) for path in several]
    except TypeError:
        raise UsageError(
            f"expected a folder or several paths, received {type(given).__name__}"
        ) from None
