"""Compares what a log suggests with the facts of a machine: confirms, refutes or refines it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from whygpu.causes.evidence.illegal_instructions import SIGNAL, looked_at
from whygpu.diagnosis.other_machine import other_machine
from whygpu.model.cause import Cause
from whygpu.model.derived import and_list, usable_gpu
from whygpu.model.explanation import Explanation
from whygpu.model.finding import MACHINE, Evidence, Finding, Remedy, seen
from whygpu.model.libraries import LibraryCopy
from whygpu.model.log import LibraryEvent, Log
from whygpu.model.observed import Absent, Known
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot

_GPU_NOT_REACHED = frozenset(("no-nvidia-driver", "docker-no-gpu-runtime"))
"""What a log without a GPU suggests to somebody who may have one."""

_LASTING = frozenset("12368")
"""Families of faults that stay until somebody fixes them. Memory use and programs change."""


def corroborate(
    explanation: Explanation, log: Log, report: Report, causes: Sequence[Cause]
) -> Explanation:
    """The explanation, with the facts of the machine added to each root cause."""
    differences = other_machine(log, report.snapshot)
    if differences:
        return _not_compared(explanation, differences)
    by_code = {cause.code: cause for cause in causes}
    if explanation.verdict == "unknown":
        return _from_machine_alone(explanation, log, report)
    if _has_no_gpu(report.snapshot):
        explanation = _without_gpu(explanation)
    confirmed: list[Finding] = []
    open_still: list[Finding] = []
    refuted: list[Finding] = []
    for root in explanation.root_causes:
        if _judged_here(root):
            confirmed.append(root)
            continue
        root = _with_library_facts(root, log, report.snapshot)
        # By the page: what the machine shows of a broader cause may be another case of it.
        same = next((f for f in report.findings if f.code == root.code), None)
        deeper = _deeper(root, report, by_code)
        if same is not None and same.explained_by is None:
            confirmed.append(_confirmed(root, same))
        elif deeper is not None:
            confirmed.append(_made_exact(root, deeper))
        elif _passed(root, report):
            refuted.append(_refuted(root))
        else:
            open_still.append(root)
    if confirmed:
        symptoms = [root._replace(explained_by=confirmed[0].code) for root in refuted]
        roots = [*confirmed, *open_still]
        return _with_roots(explanation, roots, [*explanation.symptoms, *symptoms])
    return _with_roots(explanation, [*open_still, *refuted], explanation.symptoms)


def _has_no_gpu(machine: Snapshot) -> bool:
    """A container or WSL may hide one that the host has."""
    facts = (usable_gpu(machine), machine.system.container, machine.system.wsl)
    return all(isinstance(fact, Absent) for fact in facts)


def _without_gpu(explanation: Explanation) -> Explanation:
    """What reached no GPU has no other reason here; what the program did then is the cause."""
    missed = [root for root in explanation.root_causes if root.cause in _GPU_NOT_REACHED]
    if not missed:
        return explanation
    first, codes = missed[0], {root.code for root in missed}
    ended = [
        symptom._replace(
            explained_by=None,
            message=f"{symptom.message}. This machine has no GPU",
            confidence="certain",
            ask=None,
        )
        for symptom in explanation.symptoms
        if symptom.explained_by in codes and symptom.effect == "broken"
    ]
    alone = first._replace(
        message=f"{first.message}. This machine has no GPU, so that is expected",
        remedies=(Remedy("Let the program run on the CPU, or use a machine with a GPU."),),
        confidence="certain",
        ask=None,
    )
    others = [root for root in explanation.root_causes if root.code not in codes]
    kept = [symptom for symptom in explanation.symptoms if symptom.explained_by not in codes]
    if ended:
        kept.append(alone._replace(explained_by=ended[0].code))
    return _with_roots(explanation, [*ended, *others] if ended else [alone, *others], kept)


def _not_compared(explanation: Explanation, differences: Sequence[str]) -> Explanation:
    """What this machine has says nothing about another one."""
    return explanation._replace(
        headline=f"{explanation.headline}. This was not compared with this machine, because the "
        f"log is of another one, or from before a change: {'; '.join(differences)}"
    )


def _with_roots(
    explanation: Explanation, roots: Sequence[Finding], symptoms: Sequence[Finding]
) -> Explanation:
    changed = tuple(roots[:1]) != explanation.root_causes[:1]
    headline = roots[0].message if changed else explanation.headline
    return explanation._replace(
        root_causes=tuple(roots), symptoms=tuple(symptoms), headline=headline
    )


def _from_machine_alone(explanation: Explanation, log: Log, report: Report) -> Explanation:
    """The log does not show the reason, but a fault of the machine may be the reason."""
    roots = [
        finding._replace(
            confidence="possible",
            message=f"the log does not say why, but this machine has a fault that would: "
            f"{finding.message}",
        )
        for finding in report.root_causes
        if finding.severity == "error" and finding.subject in (MACHINE, log.framework)
    ]
    if not roots:
        return _with_processor(explanation, log)
    return _with_roots(
        explanation._replace(verdict="found", guidance=None), roots, explanation.symptoms
    )


def _judged_here(root: Finding) -> bool:
    """Whether its detector used the facts of the machine in addition to the log."""
    return any(evidence.kind == "machine" for evidence in root.evidence)


def _with_processor(explanation: Explanation, log: Log) -> Explanation:
    """After an illegal instruction without an explanation: what is known about the processor."""
    if log.processor is None or not log.says(SIGNAL):
        return explanation
    return explanation._replace(
        headline="an illegal instruction ended the program, but it is unknown which one: "
        f"{looked_at(log.processor)}. To see whether it is one of oneDNN's, run the program with "
        "ONEDNN_MAX_CPU_ISA=AVX2"
    )


def _confirmed(root: Finding, same: Finding) -> Finding:
    return root._replace(
        message=f"{root.message}. This machine confirms it: {same.message}",
        evidence=(*root.evidence, *same.evidence),
        remedies=same.remedies,
        confidence="certain",
        ask=None,
    )


def _deeper(root: Finding, report: Report, causes: Mapping[str, Cause]) -> Finding | None:
    """A root cause found on the machine that explains what the log shows."""
    return next(
        (
            finding
            for finding in report.root_causes
            if finding.severity == "error" and root.cause in causes[finding.code].explains
        ),
        None,
    )


def _made_exact(root: Finding, deeper: Finding) -> Finding:
    return deeper._replace(
        message=f"{root.message}. This machine shows why: {deeper.message}",
        evidence=(*root.evidence, *deeper.evidence),
        ask=None,
    )


def _passed(root: Finding, report: Report) -> bool:
    return root.code[2] in _LASTING and any(
        outcome.code == root.code and outcome.status == "passed" for outcome in report.outcomes
    )


def _refuted(root: Finding) -> Finding:
    return root._replace(
        confidence="possible",
        message=f"{root.message}. This machine does not show it now: either it was fixed since, "
        "or the log comes from another environment",
    )


def _with_library_facts(root: Finding, log: Log, machine: Snapshot) -> Finding:
    """Which copies of the libraries that are missing in the log exist here."""
    if not isinstance(machine.cuda, Known):
        return root
    lines = {evidence.line for evidence in root.evidence}
    missed: dict[str, LibraryEvent] = {
        event.library: event
        for event in log.library_events("not-found")
        if event.line in lines and event.component != "cuda"
    }
    facts = [
        fact
        for event in missed.values()
        for fact in _of_library(event, machine.cuda.value.copies, machine.cuda.source)
    ]
    if not facts:
        return root
    listed = and_list([evidence.text for evidence in facts])
    return root._replace(message=f"{root.message}; {listed}", evidence=(*root.evidence, *facts))


def _of_library(
    event: LibraryEvent, copies: Sequence[LibraryCopy], source: str
) -> Iterator[Evidence]:
    ours = [copy for copy in copies if copy.name == event.component]
    exact = next((copy for copy in ours if copy.soname == event.library), None)
    if exact is not None:
        yield seen(
            Known(exact.path, source), f"this environment has {event.library} at {exact.path}"
        )
    elif ours:
        there = and_list(sorted({_described(copy) for copy in ours}))
        yield seen(
            Known(there, source),
            f"this environment has {there} instead, which cannot replace {event.library}",
        )
    else:
        yield seen(
            Known("", source), f"this environment has no copy of {event.component} in any version"
        )


def _described(copy: LibraryCopy) -> str:
    version = f" ({copy.version.value})" if isinstance(copy.version, Known) else ""
    owner = f" from {copy.owner}" if copy.owner else ""
    return f"{copy.soname}{version}{owner}"
