"""The report of a check: an outcome per cause, a verdict per framework, and the root causes."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from whygpu.model.finding import Finding
from whygpu.model.short_repr import shows_itself
from whygpu.model.snapshot import Snapshot
from whygpu.model.standing import EXIT_CODES, Standing

Status = Literal["found", "passed", "not-applicable", "undetermined", "crashed"]
STATUSES: tuple[Status, ...] = get_args(Status)
FrameworkVerdict = Literal["gpu", "cpu", "broken", "not-installed", "unknown"]
MachineVerdict = Literal["gpu", "cpu", "broken", "no-gpu", "unknown"]


class Outcome(NamedTuple):
    """The outcome for one cause. A crashed detector is an outcome of its own, never a pass."""

    code: str
    cause: str
    status: Status
    reasons: tuple[str, ...] = ()
    """Why it is undetermined or not applicable, how it crashed, or the gaps next to findings."""
    findings: tuple[Finding, ...] = ()

    @property
    def gaps(self) -> tuple[str, ...]:
        """What could not be judged, even if there are findings."""
        return self.reasons if self.status in ("undetermined", "crashed", "found") else ()


class FrameworkReport(NamedTuple):
    name: str
    version: str
    verdict: FrameworkVerdict
    because: tuple[str, ...]
    """Codes of the findings that decide the verdict."""
    summary: str
    """The verdict in a few words: what was seen that decides it."""


@shows_itself
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
        """Outcomes with something that could not be judged, even if they have findings."""
        return tuple(outcome for outcome in self.outcomes if outcome.gaps)

    @property
    def standing(self) -> Standing:
        if self.verdict in ("cpu", "broken"):
            return "wrong"
        if any(finding.severity != "info" for finding in self.findings):
            return "attention"
        return "unknown" if self.undetermined or self.verdict == "unknown" else "fine"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
