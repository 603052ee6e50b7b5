"""What the causes find in a log, and which of their findings comes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from whygpu.diagnosis.engine import fold
from whygpu.model.cause import Cause
from whygpu.model.finding import MACHINE, Finding
from whygpu.model.log import Log

_CONFIDENCE = ("certain", "likely", "possible")
_NOISE_FAMILY = "9"
_MORE_OFTEN = ("compute-capability-too-new",)
"""Of two guesses about the same lines, these turn out to be right more often."""


class Detected(NamedTuple):
    """What the detectors returned."""

    real: tuple[Finding, ...]
    noise: tuple[Finding, ...]
    """Harmless lines that look like a problem."""
    crashed: tuple[str, ...]

    def lines(self) -> frozenset[int]:
        """The lines that are evidence of some finding."""
        return lines_of((*self.real, *self.noise))


def detect(log: Log, causes: Sequence[Cause]) -> Detected:
    found: list[Finding] = []
    crashed: list[str] = []
    for cause in causes:
        if cause.log_detector is None:
            continue
        try:
            found.extend(map(_settled, cause.log_detector(log)))
        except Exception as error:
            # A bug in one detector must neither prevent the answer nor go unnoticed.
            crashed.append(f"{cause.code}: {type(error).__name__}: {error}")
    return Detected(
        real=tuple(finding for finding in found if finding.code[2] != _NOISE_FAMILY),
        noise=tuple(finding for finding in found if finding.code[2] == _NOISE_FAMILY),
        crashed=tuple(crashed),
    )


def _settled(finding: Finding) -> Finding:
    """A certain finding needs no question."""
    return finding._replace(ask=None) if finding.confidence == "certain" else finding


def roots_and_symptoms(
    findings: Sequence[Finding], log: Log, causes: Sequence[Cause]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The root causes, first the one to name first, and what follows from them."""
    folded = _folded(findings, {cause.code: cause for cause in causes})
    roots = sorted((f for f in folded if f.explained_by is None), key=lambda f: _rank(f, log))
    return tuple(roots), tuple(f for f in folded if f.explained_by is not None)


def _folded(findings: Sequence[Finding], causes: dict[str, Cause]) -> list[Finding]:
    """Mark consequences. A log is about one run, whichever framework each line concerns.

    A guess does not explain what is more certain than it.
    """
    alike = [finding._replace(subject=MACHINE) for finding in findings]
    known = iter(fold([f for f in alike if f.confidence != "possible"], causes))
    guesses = (f for f in fold(alike, causes) if f.confidence == "possible")
    return [
        f._replace(explained_by=next(guesses if f.confidence == "possible" else known).explained_by)
        for f in findings
    ]


def _rank(finding: Finding, log: Log) -> tuple[bool, bool, bool, bool, int, int, bool, str]:
    lines = [evidence.line for evidence in finding.evidence if evidence.line is not None]
    ends_it = ends_program(finding, log)
    return (
        finding.confidence == "possible" and not ends_it,
        finding.severity == "info",
        not ends_it,
        # What only takes time matters less than what keeps work off the GPU.
        finding.severity == "warning" and finding.effect == "none",
        _CONFIDENCE.index(finding.confidence),
        min(lines, default=0),
        finding.cause not in _MORE_OFTEN,
        finding.code,
    )


def survived(roots: Sequence[Finding], log: Log) -> tuple[Finding, ...]:
    """If it is known what ended the program: the findings that it survived, and mere guesses."""
    if not roots or not ends_program(roots[0], log):
        return ()
    return tuple(
        root
        for root in roots[1:]
        if (root.severity == "info" or is_guess(root)) and not ends_program(root, log)
    )


def ends_program(finding: Finding, log: Log) -> bool:
    """Whether the failure that ended the program is in the evidence."""
    lines = lines_of((finding,))
    return any(
        not lines.isdisjoint(range(failure.line, failure.last + 1)) for failure in log.failures
    )


def lines_of(findings: Sequence[Finding]) -> frozenset[int]:
    """The lines of the log that are their evidence."""
    return frozenset(e.line for finding in findings for e in finding.evidence if e.line is not None)


def is_guess(finding: Finding) -> bool:
    return finding.confidence == "possible"


def reason_for_cpu(roots: Sequence[Finding]) -> Finding | None:
    """What the log itself gives as the reason why the work was done on the CPU."""
    return next((root for root in roots if root.effect == "cpu" and not is_guess(root)), None)
