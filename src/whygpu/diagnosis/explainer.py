"""Explains a log: root causes first, harmless lines separately, and doubt stated as such.

Several symptoms compete. A finding that explains another comes before it. What ended the program
comes before what it survived, certain before likely, and early before late. If a failure has no
known cause and is unrelated to the GPU, the lines about the GPU are irrelevant.

The judgement is a sequence of steps (`_JUDGEMENTS`). Each takes the case as the steps before it
have left it, and may change the verdict:

    detect ─► rank ─► verdict ─► is a part missing? ─► did all tests pass? ─► is there a doubt?
           ─► was the CPU meant? ─► what is beside the point? ─► headline and guidance
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from whygpu.causes.evidence.log_subjects import excerpt
from whygpu.diagnosis.doubts import doubt_about
from whygpu.diagnosis.for_people import wants_gpu
from whygpu.diagnosis.guidance import for_incomplete, for_other_failure, for_unknown
from whygpu.diagnosis.health import health
from whygpu.diagnosis.log_findings import (
    Detected,
    detect,
    reason_for_cpu,
    roots_and_symptoms,
    survived,
)
from whygpu.diagnosis.log_verdict import (
    SUSPICIOUS,
    stranger,
    time_limit_without_gpu,
    unexplained_failures,
    verdict_of,
)
from whygpu.model.cause import Cause
from whygpu.model.explanation import Explanation, Guidance, LogVerdict
from whygpu.model.finding import Evidence, Finding
from whygpu.model.lazy_regex import late
from whygpu.model.log import Failure, Line, Log
from whygpu.readers.cut_off import cut_off
from whygpu.readers.markdown import above_output, around_output
from whygpu.readers.test_results import all_tests_passed
from whygpu.tables.gpu_vocabulary import message_is_about_gpu
from whygpu.tables.sentences import is_of_a_person

_MOST_UNEXPLAINED = 8
_HAS_NONE = late(
    r"\b(?:no|without(?: an?| any)?|(?:not|n['’]t) (?:have|need|want|own)(?: an?| any)?)"
    r"(?: \w{2,12})? (?:GPUs?|CUDA|cards?)\b",
    re.IGNORECASE,
)
"""Somebody without a GPU, or who does not need one."""


def explain(log: Log, causes: Sequence[Cause]) -> Explanation:
    """The whole judgement. It is pure: the same log and catalogue give the same answer.

    If the log as it is shows no cause, its lines may have been wrapped, or typed with mistakes.
    """
    answer = _explain(log, causes)
    if answer.verdict in ("found", "nothing-wrong"):
        return answer
    for reading in log.other_readings:
        reading = reading._replace(unread=log.unread, memory=log.memory, processor=log.processor)
        other = _explain(reading, causes)
        if _answers(other, guesses=reading.corrected):
            return other
    return answer


def _answers(explanation: Explanation, *, guesses: bool) -> bool:
    """Whether it has a cause. Lines that were joined by mistake may seem to have one."""
    if explanation.verdict != "found":
        return False
    return guesses or explanation.root_causes[0].confidence != "possible"


class _Case(NamedTuple):
    """What is known of a log, and what has been judged so far."""

    log: Log
    detected: Detected
    roots: tuple[Finding, ...]
    symptoms: tuple[Finding, ...]
    unexplained: tuple[Failure, ...]
    overtime: Failure | None
    """The time limit that ended a job which worked without a GPU."""
    verdict: LogVerdict
    missing: str = ""
    """Which part of the log was not judged."""
    doubt: Guidance | None = None
    """Why it does not earn a tick, although no failure was seen."""
    tests_passed: int | None = None
    """The line that says that all tests passed."""
    on_cpu_because: Finding | None = None
    """Why a program that has done its work did it on the CPU."""


def _explain(log: Log, causes: Sequence[Cause]) -> Explanation:
    case = _first_look(log, causes)
    for judge in _JUDGEMENTS:
        case = judge(case)
    return _explanation(case, causes)


def _first_look(log: Log, causes: Sequence[Cause]) -> _Case:
    detected = detect(log, causes)
    roots, symptoms = roots_and_symptoms(detected.real, log, causes)
    overtime = time_limit_without_gpu(log, reason_for_cpu(roots))
    if overtime is not None:
        # It is no reason of its own: the work was slow because it was done on the CPU.
        log = log._replace(failures=())
    unexplained = unexplained_failures(log, detected.lines())
    verdict = verdict_of(log, roots, detected.noise, unexplained)
    if overtime is not None and roots and verdict == "nothing-wrong":
        verdict = "found"
    return _Case(log, detected, roots, symptoms, unexplained, overtime, verdict)


def _without_failure(case: _Case) -> bool:
    """A program that only reports its devices has not worked, and has not failed either."""
    return case.verdict == "nothing-wrong" or (case.verdict == "unknown" and not case.log.failures)


def _unless_part_is_missing(case: _Case) -> _Case:
    missing = cut_off(case.log) or (_not_read(case) if _without_failure(case) else "")
    if not missing:
        return case
    weighty = any(root.severity != "info" for root in case.roots)
    answered = case.verdict == "found" and weighty
    return case._replace(missing=missing, verdict="found" if answered else "unknown")


def _not_read(case: _Case) -> str:
    """Why a failure may not have been seen; empty if the whole log was judged."""
    if case.log.unread:
        # A log reports a failure at its end, which may be the part that was not read.
        return f"a part of it was not read: {case.log.unread}"
    return "a part of whygpu failed on it, which is a bug" if case.detected.crashed else ""


def _if_all_tests_passed(case: _Case) -> _Case:
    """What a test prints, or raises on purpose, is no fault."""
    if case.missing or case.verdict == "nothing-wrong":
        return case
    passed = all_tests_passed(case.log)
    if passed is None:
        return case
    return case._replace(tests_passed=passed, verdict="nothing-wrong")


def _unless_in_doubt(case: _Case) -> _Case:
    if case.missing or case.tests_passed is not None or not _without_failure(case):
        return case
    doubt = doubt_about(
        case.log,
        case.roots,
        case.detected.noise,
        has_findings=bool(case.detected.real),
        fine=case.verdict == "nothing-wrong",
    )
    return case if doubt is None else case._replace(doubt=doubt, verdict="unknown")


def _if_work_was_on_cpu(case: _Case) -> _Case:
    reason = reason_for_cpu(case.roots) if case.verdict == "nothing-wrong" else None
    if reason is not None and case.tests_passed is None and _is_unwanted(case.log):
        # It worked, but not as its user wants it to.
        return case._replace(verdict="found")
    return case._replace(on_cpu_because=reason)


def _is_unwanted(log: Log) -> bool:
    """Whether a person wants the GPU, or writes about theirs around what they show."""
    return wants_gpu(log) or any(
        message_is_about_gpu(line.text) and not _HAS_NONE.search(line.text)
        for line in _of_a_person(log)
    )


def _of_a_person(log: Log) -> Sequence[Line]:
    return around_output(log.lines) or [
        line for line in above_output(log.lines) if is_of_a_person(line.text)
    ]


def _without_what_is_beside_the_point(case: _Case) -> _Case:
    beside = survived(case.roots, case.log)
    roots = tuple(root for root in case.roots if root not in beside)
    symptoms = (*case.symptoms, *beside)
    if case.verdict != "found":
        # What the log says about the GPU is true, but not the cause.
        roots, symptoms = (), (*roots, *symptoms)
    return case._replace(roots=roots, symptoms=symptoms)


_JUDGEMENTS: tuple[Callable[[_Case], _Case], ...] = (
    _unless_part_is_missing,
    _if_all_tests_passed,
    _unless_in_doubt,
    _if_work_was_on_cpu,
    _without_what_is_beside_the_point,
)


def _explanation(case: _Case, causes: Sequence[Cause]) -> Explanation:
    shown = _shown(case)
    guidance = case.doubt or _guidance(case, causes, suspicious=bool(shown))
    return Explanation(
        verdict=case.verdict,
        headline=_of_which_run(case.log) + _headline(case, guidance),
        root_causes=case.roots,
        symptoms=case.symptoms,
        noise=case.detected.noise,
        unexplained=shown,
        crashed=case.detected.crashed,
        name=case.log.name,
        lines_read=case.log.lines_read,
        guidance=guidance,
        unread=case.log.unread,
        on_cpu=case.on_cpu_because is not None,
    )


def _guidance(case: _Case, causes: Sequence[Cause], *, suspicious: bool) -> Guidance | None:
    if case.verdict == "unknown" and case.missing:
        return for_incomplete(case.missing)
    if case.verdict == "unknown":
        return for_unknown(case.log, case.unexplained, causes, suspicious=suspicious)
    return for_other_failure(stranger(case.unexplained)) if case.verdict == "not-gpu" else None


def _shown(case: _Case) -> tuple[Evidence, ...]:
    """The lines that no finding explains."""
    numbers = {failure.line for failure in case.unexplained}
    if case.verdict == "unknown":
        claimed = case.detected.lines()
        numbers.update(
            line.number
            for line in case.log.lines
            if line.number not in claimed
            and (line.level in ("error", "fatal") or SUSPICIOUS.search(line.text))
        )
    chosen = sorted(numbers)
    if len(chosen) > _MOST_UNEXPLAINED:
        half = _MOST_UNEXPLAINED // 2
        chosen = [*chosen[:half], *chosen[-half:]]
    return case.log.evidence(*chosen)


def _of_which_run(log: Log) -> str:
    runs = log.earlier_runs
    if not runs:
        return ""
    others = "an earlier run" if runs == 1 else f"{runs} earlier runs"
    return f"in the last run (the log also has {others}): "


def _headline(case: _Case, guidance: Guidance | None) -> str:
    if case.verdict == "found":
        return _of_time_limit(case.overtime) + _of_roots(case.roots)
    if case.verdict == "unknown" and guidance is not None:
        before = "" if guidance.to_question else "cannot tell from this log: "
        return f"{before}{guidance.understood}"
    if case.verdict == "not-gpu":
        failure = stranger(case.unexplained)
        message = guidance.understood if guidance else excerpt(failure.text)
        return f"the failure is unrelated to the GPU; see line {failure.line}: {message}"
    return _of_tick(case)


def _of_tick(case: _Case) -> str:
    if case.tests_passed is not None:
        return (
            f"all tests passed, line {case.tests_passed}; no error that they printed made one of "
            "them fail"
        )
    if case.on_cpu_because is not None:
        return (
            "the program did its work on the CPU; that is not a fault unless it should use a GPU: "
            f"{case.on_cpu_because.message}"
        )
    harmless = "; the lines that look like a problem are harmless" if case.detected.noise else ""
    works = health(case.log)
    return f"nothing in this log shows a fault{': ' + works if works else ''}{harmless}"


def _of_time_limit(failure: Failure | None) -> str:
    return "" if failure is None else f"the job reached its time limit at line {failure.line}: "


def _of_roots(roots: Sequence[Finding]) -> str:
    """A cause that is only possible must not read like an answer."""
    if roots[0].confidence != "possible":
        return roots[0].message
    if len(roots) == 1:
        return f"this log alone does not show the cause; it may be: {roots[0].message}"
    names = ", ".join(dict.fromkeys(root.cause for root in roots))
    return (
        f"this log alone does not show the cause; it may be one of {names}. The first: "
        f"{roots[0].message}"
    )
