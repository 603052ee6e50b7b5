"""Counts what ended many jobs: by cause, by node, by week. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import get_args

from whygpu.fleet.job_logs import FoundLogs
from whygpu.model.explanation import LogVerdict
from whygpu.model.fleet_logs import (
    Count,
    FleetLogs,
    JobLog,
    LogCauseGroup,
    LogExample,
    NodeJobs,
    OpenJobs,
    UnreadLog,
    VerdictJobs,
)

ExampleOf = Callable[[str, str], LogExample | None]
"""From a file and a code to what was found in it."""

MOST_UNREAD = 1000
"""Files that could not be read, by name; beyond that they are counted only."""
MOST_DOUBTS = 1000
"""Different reasons why a log does not decide. What logs say is not bounded, the answer is."""
OTHER_DOUBTS = "other reasons"


def summarise_logs(
    results: Iterable[JobLog | UnreadLog], found: FoundLogs, example_of: ExampleOf
) -> FleetLogs:
    """The rows are counted as they come: a million of them need no more memory than a thousand."""
    verdicts: Counter[LogVerdict] = Counter()
    causes: dict[str, _Jobs] = defaultdict(_Jobs)
    jobs_of_node: Counter[str] = Counter()
    found_on_node: Counter[str] = Counter()
    weeks: Counter[str] = Counter()
    doubts: dict[str, OpenJobs] = {}
    unread: list[UnreadLog] = []
    files = unread_files = 0
    for row in results:
        files += 1
        if isinstance(row, UnreadLog):
            unread_files += 1
            if len(unread) < MOST_UNREAD:
                unread.append(row)
            continue
        verdicts[row.verdict] += 1
        jobs_of_node[row.node] += 1
        if row.verdict == "unknown":
            _add_doubt(doubts, row)
        if row.verdict == "found":
            causes[row.code].add(row)
            found_on_node[row.node] += 1
            weeks[row.week] += 1
    return FleetLogs(
        files=files,
        other_files=found.other_files,
        verdicts=tuple(
            VerdictJobs(verdict, verdicts[verdict])
            for verdict in get_args(LogVerdict)
            if verdicts[verdict]
        ),
        causes=_groups(causes, example_of),
        nodes=tuple(
            NodeJobs(node, jobs_of_node[node], with_cause)
            for node, with_cause in _most_first(found_on_node)
            if node
        ),
        weeks=_in_time(weeks),
        unknown=tuple(sorted(doubts.values(), key=lambda item: (-item.jobs, item.reason))),
        unread=tuple(unread),
        unread_files=unread_files,
        unread_folders=found.unread_folders,
    )


def _add_doubt(doubts: dict[str, OpenJobs], row: JobLog) -> None:
    reason = row.doubt
    if reason not in doubts and len(doubts) >= MOST_DOUBTS:
        reason = OTHER_DOUBTS
    before = doubts.get(reason, OpenJobs(reason, 0, row.file))
    doubts[reason] = OpenJobs(reason, before.jobs + 1, min(before.file, row.file))


class _Jobs:
    """The jobs of one cause."""

    def __init__(self) -> None:
        self.cause = ""
        self.jobs = 0
        self.first = ""
        self.nodes: Counter[str] = Counter()
        self.weeks: Counter[str] = Counter()

    def add(self, row: JobLog) -> None:
        self.cause = row.cause
        self.jobs += 1
        self.first = min(self.first or row.file, row.file)
        self.nodes[row.node] += 1
        self.weeks[row.week] += 1


def _groups(causes: dict[str, _Jobs], example_of: ExampleOf) -> tuple[LogCauseGroup, ...]:
    groups = (
        LogCauseGroup(
            code=code,
            cause=found.cause,
            jobs=found.jobs,
            nodes=tuple(Count(node, jobs) for node, jobs in _most_first(found.nodes) if node),
            weeks=_in_time(found.weeks),
            example=example_of(found.first, code),
        )
        for code, found in causes.items()
    )
    return tuple(sorted(groups, key=lambda group: (-group.jobs, group.code)))


def _most_first(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _in_time(weeks: Counter[str]) -> tuple[Count, ...]:
    return tuple(Count(week, jobs) for week, jobs in sorted(weeks.items()))
