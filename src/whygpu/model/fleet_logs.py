"""The logs of many jobs: what ended them, on which node and in which week."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.explanation import LogVerdict
from whygpu.model.finding import Finding
from whygpu.model.fleet import UnreadFolder
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing
from whygpu.model.target import Installer


class JobLog(NamedTuple):
    """What one log means, in the few words that a count needs."""

    file: str
    node: str
    """Empty if the path does not say."""
    week: str
    """The ISO week in which the file was last written, such as 2026-W46."""
    verdict: LogVerdict
    code: str
    """The most likely root cause; empty without one."""
    cause: str
    doubt: str = ""
    """What the log says instead of a cause, if it does not decide."""


class UnreadLog(NamedTuple):
    """A file that could not be explained."""

    file: str
    reason: str


class Count(NamedTuple):
    name: str
    jobs: int


class LogExample(NamedTuple):
    file: str
    finding: Finding
    installer: Installer


class LogCauseGroup(NamedTuple):
    """The jobs that ended for one cause. Each job counts once, under its most likely cause."""

    code: str
    cause: str
    jobs: int
    nodes: tuple[Count, ...]
    """Most jobs first; without the jobs whose node is not known."""
    weeks: tuple[Count, ...]
    """In the order of time."""
    example: LogExample | None
    """Of the first file by its name; None if it could not be read again."""


class OpenJobs(NamedTuple):
    """Logs that do not decide, for the same reason."""

    reason: str
    jobs: int
    file: str
    """The first of them by its name."""


class VerdictJobs(NamedTuple):
    verdict: LogVerdict
    jobs: int


class NodeJobs(NamedTuple):
    node: str
    jobs: int
    found: int
    """Jobs with a cause that concerns the GPU."""


@shows_itself
class FleetLogs(NamedTuple):
    files: int
    """All that were found, with those that could not be read."""
    other_files: int
    """Files in the folders whose names are not those of logs; they were not read."""
    verdicts: tuple[VerdictJobs, ...]
    causes: tuple[LogCauseGroup, ...]
    """Most jobs first."""
    nodes: tuple[NodeJobs, ...]
    """Nodes by the number of jobs with a cause."""
    weeks: tuple[Count, ...]
    """Jobs with a cause."""
    unknown: tuple[OpenJobs, ...]
    """Logs that do not show whether, or why, the job failed. Most jobs first."""
    unread: tuple[UnreadLog, ...]
    """The first of them, if they are very many."""
    unread_files: int
    unread_folders: tuple[UnreadFolder, ...] = ()

    @property
    def standing(self) -> Standing:
        jobs = {count.verdict: count.jobs for count in self.verdicts}
        if self.causes or jobs.get("not-gpu"):
            return "wrong"
        if self.unread_files or self.unread_folders or jobs.get("unknown") or not self.files:
            return "unknown"
        return "fine"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
