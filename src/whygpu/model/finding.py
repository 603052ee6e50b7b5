"""A thing that is wrong, with its evidence and what to do about it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.remedy import Action, InstallFramework, steps_of

Severity = Literal["error", "warning", "info"]
Confidence = Literal["certain", "likely", "possible"]
Effect = Literal["broken", "cpu", "none"]
"""What a cause does to its subject: it does not run at all, it runs on the CPU, or neither."""
EvidenceKind = Literal["machine", "probe", "log", "code"]

MACHINE = "machine"
"""The subject of a finding that concerns every framework."""


class Evidence(NamedTuple):
    kind: EvidenceKind
    where: str
    text: str
    line: int | None = None
    """The line number in a log or a source file."""


class Remedy(NamedTuple):
    text: str
    action: Action | None = None
    """What to do, as data; None when there is nothing to paste. `model/commands.py` writes it."""

    @property
    def wishes(self) -> bool:
        """Whether the planner must choose the release to install."""
        return any(isinstance(step, InstallFramework) for step in steps_of(self.action))


class Finding(NamedTuple):
    code: str
    """Names the page."""
    cause: str
    """The slug of the page's cause, or of the broader cause that it is a special case of."""
    severity: Severity
    subject: str
    """A framework's name, or MACHINE."""
    message: str
    """What was seen, what was expected, where."""
    evidence: tuple[Evidence, ...]
    remedies: tuple[Remedy, ...]
    effect: Effect
    confidence: Confidence = "certain"
    explained_by: str | None = None
    """The code of the root cause this follows from; None for a root cause."""
    ask: str | None = None
    """The question or command that would confirm it, if the evidence alone does not."""


class Gap(NamedTuple):
    """Something that a detector could not judge, in addition to its findings."""

    reason: str


def seen(observed: Observed[Any], text: str | None = None) -> Evidence:
    """Evidence from the snapshot: where the fact comes from, and the fact."""
    if isinstance(observed, Known):
        return Evidence("machine", observed.source, str(observed.value) if text is None else text)
    if isinstance(observed, Absent):
        return Evidence("machine", observed.source, "not there" if text is None else text)
    return Evidence("machine", "not seen", observed.reason if text is None else text)
