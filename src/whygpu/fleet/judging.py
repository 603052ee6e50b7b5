"""Judges the snapshots of many nodes, on all cores if there are enough of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from whygpu.causes import machine_catalogue
from whygpu.diagnosis.engine import diagnose
from whygpu.errors import UsageError
from whygpu.fleet.expected import compared
from whygpu.fleet.summary import ExampleOf, node_report, summarise
from whygpu.host.files import read_whole
from whygpu.host.systems import cores
from whygpu.host.worker_pool import WorkerPool
from whygpu.model.derived import installer_of
from whygpu.model.fleet import Example, FleetReport, NodeLoss, NodeReport
from whygpu.model.outside_text import excerpt
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot
from whygpu.readers import limits
from whygpu.readers.saved_snapshot import read_snapshot

OnProgress = Callable[[int, int], None]
"""The number of snapshots that were judged, and the total."""
Diagnose = Callable[[Snapshot], Report]

_WORTH_A_POOL = 200
"""Starting processes takes as long as judging this many."""
_CHUNK = 32

NodeFile = tuple[str, str]
"""A node and the path of its snapshot."""


def report_on(
    files: Mapping[str, str],
    *,
    lost: Iterable[NodeLoss] = (),
    expected: Sequence[str] = (),
    full_diagnosis: Diagnose,
    on_progress: OnProgress | None = None,
) -> FleetReport:
    """The report on these snapshots. `expected` are nodes that should be among them.

    `full_diagnosis` also chooses the releases that remedies install. That takes ten times as long
    as the rest, so it is used for one node of each cause.
    """
    reports: list[NodeReport] = []
    losses = list(lost)
    for done, result in enumerate(_judged(list(files.items())), 1):
        if isinstance(result, NodeReport):
            reports.append(result)
        else:
            losses.append(result)
        if on_progress is not None:
            on_progress(done, len(files))
    by_name = compared(expected, files.keys() | {loss.node for loss in losses})
    losses += [NodeLoss(node, "missing", "no snapshot of it was given") for node in by_name.missing]
    report = summarise(reports, losses, _examples(files, full_diagnosis))
    return report._replace(unexpected=by_name.unexpected) if expected else report


def _judged(files: Sequence[NodeFile]) -> Iterator[NodeReport | NodeLoss]:
    if len(files) < _WORTH_A_POOL or cores() < 2:
        yield from map(judge_file, files)
        return
    machine_catalogue()
    with WorkerPool(machine_catalogue) as pool:
        yield from pool.results(judge_file, files, chunk=_CHUNK, lost=_killed)


def _killed(file: NodeFile) -> NodeLoss:
    why = "the process that judged it was killed, perhaps for lack of memory"
    return NodeLoss(file[0], "crashed", why)


def judge_file(file: NodeFile) -> NodeReport | NodeLoss:
    """The judgement on one node. Whatever its file holds, the result is one row."""
    node, path = file
    try:
        return node_report(node, diagnose(_read(path), machine_catalogue()))
    except UsageError as error:
        return NodeLoss(node, "unreadable", str(error))
    except Exception as error:
        # One odd snapshot must not hide ten thousand others.
        return NodeLoss(node, "crashed", f"{type(error).__name__}: {excerpt(str(error))}")


def _read(path: str) -> Snapshot:
    """A regular file only: a pipe in a folder of snapshots could block forever."""
    try:
        content = read_whole(path, limits.SNAPSHOT)
    except OSError as error:
        raise UsageError(f"its file cannot be read: {error.strerror}") from error
    # Without the path: nodes with the same fault have the same reason, and are reported together.
    return read_snapshot(content, "its file")


def _examples(files: Mapping[str, str], full_diagnosis: Diagnose) -> ExampleOf:
    known: dict[str, Report] = {}

    def example(node: str, code: str) -> Example | None:
        try:
            if node not in known:
                known[node] = full_diagnosis(_read(files[node]))
        except Exception:
            # The file was replaced meanwhile, or no release could be chosen. The group is reported
            # all the same.
            return None
        report = known[node]
        found = (finding for finding in report.root_causes if finding.code == code)
        installer = installer_of(report.snapshot)
        return next((Example(node, finding, installer) for finding in found), None)

    return example
