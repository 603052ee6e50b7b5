"""The answer: an outcome for every cause, a verdict for every framework, and the root causes."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from whygpu.model.finding import Finding
from whygpu.model.snapshot import Snapshot

Status = Literal["found", "passed", "not-applicable", "undetermined", "crashed"]
STATUSES: tuple[Status, ...] = get_args(Status)
FrameworkVerdict = Literal["gpu", "cpu", "broken", "not-installed", "unknown"]
MachineVerdict = Literal["gpu", "cpu", "broken", "no-gpu", "unknown"]

EXIT_FINE = 0
EXIT_FOUND = 1
EXIT_UNDETERMINED = 4


class Outcome(NamedTuple):
    """What came of one cause. A detector's crash is an outcome, never a pass."""

    code: str
    cause: str
    status: Status
    reasons: tuple[str, ...] = ()
    """Why it is undetermined, not applicable, or how it crashed; gaps beside findings."""
    findings: tuple[Finding, ...] = ()


class FrameworkReport(NamedTuple):
    name: str
    version: str
    verdict: FrameworkVerdict
    because: tuple[str, ...]
    """Codes of the findings that decide the verdict."""
    summary: str
    """The verdict in a few words: what was seen that decides it."""


class Report(NamedTuple):
    snapshot: Snapshot
    outcomes: tuple[Outcome, ...]
    findings: tuple[Finding, ...]
    """Root causes first, each followed by what it explains."""
    frameworks: tuple[FrameworkReport, ...]
    verdict: MachineVerdict
    headline: str
    """The verdict as the one sentence a report starts with."""

    @property
    def root_causes(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.explained_by is None)

    @property
    def undetermined(self) -> tuple[Outcome, ...]:
        """Outcomes with something that could not be judged, gaps beside findings included."""
        return tuple(
            outcome
            for outcome in self.outcomes
            if outcome.status in ("undetermined", "crashed")
            or (outcome.status == "found" and outcome.reasons)
        )

    @property
    def exit_code(self) -> int:
        if any(finding.severity != "info" for finding in self.findings):
            return EXIT_FOUND
        return EXIT_UNDETERMINED if self.undetermined or self.verdict == "unknown" else EXIT_FINE
