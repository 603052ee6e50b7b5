"""Turns a snapshot into a report: one outcome per cause, and consequences under root causes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from whygpu.diagnosis.verdicts import judge_frameworks, judge_machine
from whygpu.model.cause import Cause
from whygpu.model.derived import gpu_proven_by, keras_backend
from whygpu.model.finding import MACHINE, Finding, Gap
from whygpu.model.observed import Known, NotApplicable, Undetermined
from whygpu.model.report import Outcome, Report, Status
from whygpu.model.snapshot import Snapshot

_SEVERITIES = ("error", "warning", "info")
_FAMILIES = "814236579"
"""The order in which a program meets faults when it starts: container, driver, device selection,
libraries, builds, Keras, memory, program, noise. The first one must be fixed first."""


Kin = Mapping[str, str]
"""Frameworks that use another one, whose faults also explain theirs."""
NO_KIN: Kin = {}


def diagnose(snapshot: Snapshot, causes: Sequence[Cause]) -> Report:
    """The whole judgement. It is pure: the same snapshot and catalogue give the same report."""
    outcomes = tuple(
        outcome_of(cause, snapshot) for cause in causes if cause.machine_detector is not None
    )
    by_code = {cause.code: cause for cause in causes}
    found = [finding for outcome in outcomes for finding in outcome.findings]
    findings = arrange(fold(reconcile(found, snapshot), by_code, _kin(snapshot)))
    frameworks = judge_frameworks(snapshot, findings)
    gaps = tuple(dict.fromkeys(reason for outcome in outcomes for reason in outcome.gaps))
    verdict, headline = judge_machine(snapshot, findings, frameworks, gaps)
    return Report(
        snapshot=snapshot,
        outcomes=outcomes,
        findings=findings,
        frameworks=frameworks,
        verdict=verdict,
        headline=headline,
    )


def outcome_of(cause: Cause, snapshot: Snapshot) -> Outcome:
    """Run one detector. Whatever it does, the result is exactly one outcome."""
    findings: list[Finding] = []
    reasons: list[str] = []
    status: Status = "passed"
    detector = cause.machine_detector
    if detector is None:
        return Outcome(cause.code, cause.slug, "not-applicable", ("it has no machine detector",))
    try:
        for item in detector(snapshot):
            if isinstance(item, Gap):
                reasons.append(item.reason)
            else:
                findings.append(item)
    except Undetermined as error:
        reasons.append(error.reason)
    except NotApplicable as error:
        # If nothing was yielded before, this is the outcome; otherwise it is a gap beside findings.
        if not findings and not reasons:
            return Outcome(cause.code, cause.slug, "not-applicable", (f"none: {error}",))
    except Exception as error:
        status = "crashed"
        reasons.append(f"{type(error).__name__}: {error}")
    if status != "crashed":
        status = "found" if findings else "undetermined" if reasons else "passed"
    return Outcome(cause.code, cause.slug, status, tuple(reasons), tuple(findings))


def reconcile(findings: Iterable[Finding], snapshot: Snapshot) -> list[Finding]:
    """Weaken findings that a probe refutes: a framework that computed on the GPU can use it.

    Such a finding stays as a weak warning, because the files do show something unusual.
    """
    proven = {probe.name for probe in snapshot.probes if gpu_proven_by(probe)}

    def refuted(finding: Finding) -> bool:
        return (
            finding.effect != "none"
            and finding.severity == "error"
            # A probe does not refute a finding that comes from the probe itself.
            and not any(evidence.kind == "probe" for evidence in finding.evidence)
            and (finding.subject in proven or (finding.subject == MACHINE and bool(proven)))
        )

    return [
        finding._replace(
            severity="warning",
            confidence="possible",
            message=f"{finding.message}; however, the probe computed on the GPU, so this does not "
            "prevent it here",
        )
        if refuted(finding)
        else finding
        for finding in findings
    ]


def _kin(snapshot: Snapshot) -> Kin:
    """Keras uses its backend, so a fault of the backend explains what Keras does."""
    keras = snapshot.framework("keras")
    backend = keras_backend(snapshot, keras.value) if isinstance(keras, Known) else keras
    return {"keras": backend.value} if isinstance(backend, Known) else {}


def fold(findings: Iterable[Finding], causes: dict[str, Cause], kin: Kin = NO_KIN) -> list[Finding]:
    """Mark each finding that another one explains with the code of its root cause."""
    pending = list(findings)
    return [
        finding._replace(explained_by=root.code) if root is not finding else finding
        for finding in pending
        for nearer in [_root_of(finding, pending, causes, kin)]
        # A fault of the machine that explains a finding may itself be caused by a framework.
        for root in [_root_of(nearer, pending, causes, kin)]
    ]


def _root_of(
    finding: Finding, findings: list[Finding], causes: dict[str, Cause], kin: Kin
) -> Finding:
    root, visited = finding, [finding]
    while True:
        parent = next(
            (
                other
                for other in findings
                if root.cause in causes[other.code].explains
                and _can_lead_to(other, root)
                # The whole chain must concern the explained finding: a fault of one framework may
                # follow from a fault of the machine, but does not explain another framework's.
                and _concerns(other, root, kin)
                and _concerns(other, finding, kin)
                and other not in visited
            ),
            None,
        )
        if parent is None:
            return root
        visited.append(parent)
        root = parent


def _can_lead_to(explaining: Finding, explained: Finding) -> bool:
    """What leaves the GPU usable is no reason that it is not used."""
    return explaining.effect != "none" or explained.effect == "none"


def _concerns(explaining: Finding, explained: Finding, kin: Kin) -> bool:
    subjects = (explaining.subject, explained.subject)
    return (
        MACHINE in subjects
        or explaining.subject == explained.subject
        or kin.get(explained.subject) == explaining.subject
    )


def arrange(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Root causes in the order in which to fix them, each followed by what it explains."""

    def rank(finding: Finding) -> tuple[int, bool, int, str]:
        return (
            _SEVERITIES.index(finding.severity),
            finding.effect != "broken",
            _FAMILIES.index(finding.code[2]),
            finding.code,
        )

    ordered: list[Finding] = []
    for root in sorted((f for f in findings if f.explained_by is None), key=rank):
        ordered.append(root)
        followers = [f for f in findings if f.explained_by == root.code and f not in ordered]
        # If two root causes have the same code, each is followed by findings on its own subject.
        others = {f.subject for f in findings if f.code == root.code and f.explained_by is None}
        others.discard(root.subject)
        ordered.extend(sorted((f for f in followers if f.subject not in others), key=rank))
    return tuple(ordered)
