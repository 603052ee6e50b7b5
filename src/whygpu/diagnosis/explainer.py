"""Explains a log: root causes first, harmless lines separately, and doubt stated as such.

Several symptoms compete. A finding that explains another comes before it. What ended the program
comes before what it survived, certain before likely, and early before late. If a failure has no
known cause and is unrelated to the GPU, the lines about the GPU are irrelevant.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.causes.evidence.log_subjects import excerpt
from whygpu.causes.evidence.log_utilisation import idle_although_held, low_utilisation
from whygpu.diagnosis.engine import fold
from whygpu.diagnosis.for_people import (
    FEW_LINES,
    for_own_words,
    for_reported_fault,
    for_told_trouble,
    wants_gpu,
)
from whygpu.diagnosis.guidance import (
    for_idle_gpu,
    for_incomplete,
    for_lost_numbers,
    for_other_failure,
    for_slow_steps,
    for_two_answers,
    for_unknown,
    for_work_without_gpu,
    is_time_limit,
)
from whygpu.diagnosis.health import health
from whygpu.model.cause import Cause
from whygpu.model.explanation import Explanation, Guidance, LogVerdict
from whygpu.model.finding import MACHINE, Evidence, Finding
from whygpu.model.log import Failure, Log
from whygpu.readers.cut_off import cut_off
from whygpu.readers.test_results import all_tests_passed
from whygpu.readers.work_progress import lost_numbers
from whygpu.tables.gpu_vocabulary import message_is_about_gpu

_CONFIDENCE = ("certain", "likely", "possible")
_NOISE_FAMILY = "9"
_SUSPICIOUS = re.compile(
    r"error|exception|fail|cannot|could not|unable|abort|fatal|not found|invalid|killed",
    re.IGNORECASE,
)
_MOST_UNEXPLAINED = 8
_PRINTED_ERROR = re.compile(r"\W{0,4}(?:[Ee]rror|ERROR|[Ee]xception)\b")
_SOON = 40
"""The most lines from an error to the exception that follows from it, with its traceback."""
_CLOSE = 3
"""The most lines between a message and the failure that directly follows it."""
_ENOUGH_RECORDS = 2
"""So many records of the program's own logger show that it went on."""
_ENOUGH_LINES = 3
"""So many lines of ordinary output show the same."""


_SLOW_STEPS = ("files-read-in-training-process", "slow-small-or-input-bound")
"""If a library itself warns that the steps may be slow, a log without a failure is not fine."""


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


def _explain(log: Log, causes: Sequence[Cause]) -> Explanation:
    found, crashed = _detect(log, causes)
    by_code = {cause.code: cause for cause in causes}
    noise = tuple(finding for finding in found if finding.code[2] == _NOISE_FAMILY)
    real = [finding for finding in found if finding.code[2] != _NOISE_FAMILY]
    folded = _folded(real, by_code)
    roots = sorted((f for f in folded if f.explained_by is None), key=lambda f: _rank(f, log))
    symptoms = [f for f in folded if f.explained_by is not None]
    overtime = _time_limit_without_gpu(log, roots)
    if overtime is not None:
        # It is no reason of its own: the work was slow because it was done on the CPU.
        log = log._replace(failures=())
    unexplained = _unexplained_failures(log, found)
    verdict = _verdict(log, roots, noise, unexplained)
    if overtime is not None and roots and verdict == "nothing-wrong":
        verdict = "found"
    # A program that only reports its devices has not worked, and has not failed either.
    without_failure = verdict == "nothing-wrong" or (verdict == "unknown" and not log.failures)
    missing = cut_off(log) or (_not_read(log, crashed) if without_failure else "")
    doubt = _doubt(log, roots, noise) if without_failure and not missing else None
    if doubt is None and verdict == "nothing-wrong" and not (missing or noise):
        # A GPU that is only listed does not answer somebody who reports trouble. Where lines are
        # harmless, the report may be about these.
        doubt = (for_reported_fault(log) if not real else None) or for_told_trouble(log)
    weighty = any(root.severity != "info" for root in roots)
    passed = None
    if verdict in ("found", "unknown", "not-gpu") and not missing:
        # What a test prints, or raises on purpose, is no fault.
        passed = all_tests_passed(log)
    if passed is not None:
        verdict, doubt = "nothing-wrong", None
    if doubt is not None or (missing and not (verdict == "found" and weighty)):
        verdict = "unknown"
    on_cpu_because = _reason_for_cpu(roots) if verdict == "nothing-wrong" else None
    if on_cpu_because is not None and passed is None and wants_gpu(log):
        # It worked, but not as its user wants it to.
        verdict, on_cpu_because = "found", None
    beside = _beside_the_point(roots, log)
    roots, symptoms = [r for r in roots if r not in beside], [*symptoms, *beside]
    if verdict != "found":
        # What the log says about the GPU is true, but not the cause.
        symptoms, roots = [*roots, *symptoms], []
    shown = _shown(log, verdict, found, unexplained)
    guidance = doubt or _guidance(
        verdict, unexplained, log, causes, suspicious=bool(shown), incomplete=missing
    )
    return Explanation(
        verdict=verdict,
        headline=_of_which_run(log)
        + (_of_time_limit(overtime) if verdict == "found" else "")
        + (
            _work_on_cpu(on_cpu_because)
            if on_cpu_because is not None and passed is None
            else _TESTS_PASSED.format(passed)
            if passed is not None
            else _headline(log, verdict, roots, unexplained, guidance, noise)
        ),
        root_causes=tuple(roots),
        symptoms=tuple(symptoms),
        noise=noise,
        unexplained=shown,
        crashed=crashed,
        name=log.name,
        lines_read=log.lines_read,
        guidance=guidance,
        unread=log.unread,
        on_cpu=on_cpu_because is not None,
    )


_TESTS_PASSED = "all tests passed, line {}; no error that they printed made one of them fail"


def _not_read(log: Log, crashed: Sequence[str]) -> str:
    """Why a failure may not have been seen; empty if the whole log was judged."""
    if log.unread:
        # A log reports a failure at its end, which may be the part that was not read.
        return f"a part of it was not read: {log.unread}"
    return "a part of whygpu failed on it, which is a bug" if crashed else ""


def _doubt(log: Log, roots: Sequence[Finding], noise: Sequence[Finding]) -> Guidance | None:
    """Why a log without a failure is still not fine; None if it is fine."""
    lost = lost_numbers(log.lines)
    if lost:
        return for_lost_numbers(lost[0])
    idle = low_utilisation(log) or idle_although_held(log)
    if idle is not None:
        return for_idle_gpu(idle)
    if _reason_for_cpu(roots) is not None:
        return None
    reports = log.without_gpu()
    if reports:
        return for_work_without_gpu(log, reports)
    two_answers = for_two_answers(log)
    if two_answers is not None:
        return two_answers
    harmless = frozenset(e.line for finding in noise for e in finding.evidence if e.line)
    slow = next((root for root in roots if root.cause in _SLOW_STEPS), None)
    amid_output = bool(roots or noise) or len(log.lines) > FEW_LINES
    return for_own_words(log, amid_output=amid_output, harmless=harmless) or (
        for_slow_steps(slow) if slow is not None else None
    )


def _reason_for_cpu(roots: Sequence[Finding]) -> Finding | None:
    """What the log itself gives as the reason why the work was done on the CPU."""
    return next((r for r in roots if r.effect == "cpu" and r.confidence != "possible"), None)


def _of_which_run(log: Log) -> str:
    runs = log.earlier_runs
    if not runs:
        return ""
    others = "an earlier run" if runs == 1 else f"{runs} earlier runs"
    return f"in the last run (the log also has {others}): "


def _time_limit_without_gpu(log: Log, roots: Sequence[Finding]) -> Failure | None:
    """The time limit that ended a job, if the log also says that it worked without a GPU."""
    over = next((failure for failure in log.failures if is_time_limit(failure)), None)
    if over is None or not all(map(is_time_limit, log.failures)):
        return None
    return over if log.without_gpu() or _reason_for_cpu(roots) is not None else None


def _over_time(failure: Failure, log: Log) -> bool:
    """Whether a job reached its time limit, and nothing shows that it worked on the GPU."""
    return is_time_limit(failure) and not log.reports_gpu_at_work()


def _of_time_limit(failure: Failure | None) -> str:
    return "" if failure is None else f"the job reached its time limit at line {failure.line}: "


def _work_on_cpu(reason: Finding) -> str:
    return (
        "the program did its work on the CPU; that is not a fault unless it should use a GPU: "
        f"{reason.message}"
    )


def _detect(log: Log, causes: Sequence[Cause]) -> tuple[list[Finding], tuple[str, ...]]:
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
    return found, tuple(crashed)


def _settled(finding: Finding) -> Finding:
    """A certain finding needs no question."""
    return finding._replace(ask=None) if finding.confidence == "certain" else finding


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


_MORE_OFTEN = ("compute-capability-too-new",)
"""Of two guesses about the same lines, these turn out to be right more often."""


def _rank(finding: Finding, log: Log) -> tuple[bool, bool, bool, bool, int, int, bool, str]:
    lines = [evidence.line for evidence in finding.evidence if evidence.line is not None]
    ends_it = _ends_it(finding, log)
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


def _beside_the_point(roots: Sequence[Finding], log: Log) -> list[Finding]:
    """If it is known what ended the program: the findings that it survived, and mere guesses."""
    if not roots or not _ends_it(roots[0], log):
        return []
    return [
        root
        for root in roots[1:]
        if (root.severity == "info" or root.confidence == "possible") and not _ends_it(root, log)
    ]


def _ends_it(finding: Finding, log: Log) -> bool:
    """Whether the failure that ended the program is in the evidence."""
    lines = {evidence.line for evidence in finding.evidence}
    return any(
        not lines.isdisjoint(range(failure.line, failure.last + 1)) for failure in log.failures
    )


def _unexplained_failures(log: Log, found: Sequence[Finding]) -> list[Failure]:
    """Failures that ended the program and are in the evidence of no finding."""
    claimed = {evidence.line for finding in found for evidence in finding.evidence}
    return [
        failure
        for failure in log.failures
        if not claimed.intersection(range(failure.line, failure.last + 1))
    ]


def _verdict(
    log: Log, roots: Sequence[Finding], noise: Sequence[Finding], unexplained: Sequence[Failure]
) -> LogVerdict:
    weighty = [root for root in roots if root.severity != "info"]
    strangers = [
        failure
        for failure in unexplained
        if not failure.about_gpu and not _of_another_command(failure, weighty)
    ]
    if strangers and not any(_ends_it(root, log) for root in weighty):
        if all(_over_time(failure, log) for failure in strangers):
            return "unknown"
        if not any(_gives_reason(failure) for failure in strangers):
            # A failure without a reason may have any reason, including a GPU library.
            return "found" if weighty or _just_before(roots, strangers) else "unknown"
        if _follow_from(weighty, strangers, log):
            return "found"
        # The program continued after the messages about the GPU, and something else stopped it.
        return "not-gpu"
    if weighty and (log.failures or not log.progress or not _only_possible(weighty)):
        return "found"
    if unexplained and not _leads_to(roots, unexplained):
        return "unknown"
    if unexplained:
        return "found"
    if roots:
        return "nothing-wrong" if _worked(log, roots) else "found"
    if _open_error(log, noise):
        return "unknown"
    return "nothing-wrong" if noise or log.progress or _has_gpu(log) else "unknown"


_OF_AN_INSTALLER = re.compile(
    r"ERROR: (?:ResolutionImpossible|Cannot install|Could not (?:build|find a version)"
    r"|Failed building"
    r"|No matching distribution)|\bmetadata-generation-failed|\bsubprocess-exited-with-error"
    r"|PackagesNotFoundError|(?:LibMamba)?UnsatisfiableError|ResolvePackageNotFound"
)


def _of_another_command(failure: Failure, roots: Sequence[Finding]) -> bool:
    """Whether an installer failed after the program had shown what keeps it off the GPU.

    That was a try to mend it, and has not ended the program.
    """
    return _OF_AN_INSTALLER.match(failure.text) is not None and any(
        root.confidence != "possible"
        and root.effect == "cpu"
        and any(e.line is not None and e.line < failure.line for e in root.evidence)
        for root in roots
    )


def _just_before(roots: Sequence[Finding], failures: Sequence[Failure]) -> bool:
    """Whether something about the GPU directly precedes a message that only says that an operation
    failed. A crash says even less: it may come from any code."""
    return any(
        root.confidence != "possible"
        and any(e.line is not None and 0 < failure.line - e.line <= _CLOSE for e in root.evidence)
        for root in roots
        for failure in failures
        if failure.kind in ("exception", "fatal")
    )


def _follow_from(roots: Sequence[Finding], failures: Sequence[Failure], log: Log) -> bool:
    """Whether each failure is the next one after an error that the program itself printed.

    It caught the exception of a GPU library, went on without a result, and failed for want of it.
    """
    printed = [
        e.line
        for root in roots
        if root.confidence != "possible" and root.effect == "broken"
        for e in root.evidence
        if e.line is not None and _PRINTED_ERROR.match(log.line(e.line).text)
    ]
    return all(
        any(
            0 < failure.line - line <= _SOON
            and not any(line < n < failure.line for n in log.progress)
            for line in printed
        )
        for failure in failures
    )


def _leads_to(roots: Sequence[Finding], failures: Sequence[Failure]) -> bool:
    """Whether something was found about the GPU before each of these failures, which are all about
    it: a program that goes on without a library fails where it needs it."""
    first = min(failure.line for failure in failures)
    return any(
        root.confidence != "possible"
        and root.effect != "none"
        and any(e.line is not None and e.line < first for e in root.evidence)
        for root in roots
    )


def _open_error(log: Log, noise: Sequence[Finding]) -> bool:
    """Whether an error of CUDA, or a record marked as an error about the GPU, is in no finding, and
    no work followed it."""
    claimed = {evidence.line for finding in noise for evidence in finding.evidence}
    last = max(log.progress, default=0)
    if any(status.line > last and status.line not in claimed for status in log.statuses):
        return True
    return any(
        # A fatal record is a failure.
        line.level == "error"
        and line.number not in claimed
        and line.number > last
        and message_is_about_gpu(line.text)
        for line in log.lines
    )


def _only_possible(roots: Sequence[Finding]) -> bool:
    """A guess about a program that works is no answer."""
    return all(root.confidence == "possible" for root in roots)


def _gives_reason(failure: Failure) -> bool:
    """Whether the message says why; a signal or an exit code only says that it ended."""
    return failure.says_why and failure.kind in ("exception", "fatal")


def _worked(log: Log, roots: Sequence[Finding]) -> bool:
    """Whether the program did its work after the last message about the GPU, or at all, if the
    messages only suggest something."""
    if log.progress and _only_possible(roots):
        return True
    last = max((e.line or 0 for root in roots for e in root.evidence), default=0)
    records = [line for line in log.lines if line.number > last and line.level == "info"]
    own = sum(1 for line in records if line.source.endswith(".py"))
    worked = any(line > last for line in log.progress) or own >= _ENOUGH_RECORDS
    return worked or _went_on(log, last)


def _went_on(log: Log, last: int) -> bool:
    """Whether ordinary output follows the last message about the GPU, and nobody asks for one."""
    plain = [line for line in log.lines if line.number > last and line.level == "none"]
    asked = any(report.line > last and report.says == "no-gpu" for report in log.reports)
    suspicious = any(_SUSPICIOUS.search(line.text) for line in plain)
    return len(plain) >= _ENOUGH_LINES and not asked and not suspicious


def _has_gpu(log: Log) -> bool:
    return any(device.event != "ignored" for device in log.devices) or log.reports_gpu()


def _guidance(
    verdict: LogVerdict,
    unexplained: Sequence[Failure],
    log: Log,
    causes: Sequence[Cause],
    *,
    suspicious: bool,
    incomplete: str,
) -> Guidance | None:
    if verdict == "unknown" and incomplete:
        return for_incomplete(incomplete)
    if verdict == "unknown":
        return for_unknown(log, unexplained, causes, suspicious=suspicious)
    return for_other_failure(_stranger(unexplained)) if verdict == "not-gpu" else None


def _stranger(unexplained: Sequence[Failure]) -> Failure:
    """The failure that is unrelated to the GPU: the last one with a reason."""
    return [f for f in unexplained if _gives_reason(f) and not f.about_gpu][-1]


def _headline(
    log: Log,
    verdict: LogVerdict,
    roots: Sequence[Finding],
    unexplained: Sequence[Failure],
    guidance: Guidance | None,
    noise: Sequence[Finding],
) -> str:
    if verdict == "found":
        return _root_headline(roots)
    if verdict == "unknown" and guidance is not None:
        before = "" if guidance.to_question else "cannot tell from this log: "
        return f"{before}{guidance.understood}"
    if verdict == "not-gpu":
        failure = _stranger(unexplained)
        message = guidance.understood if guidance else excerpt(failure.text)
        return f"the failure is unrelated to the GPU; see line {failure.line}: {message}"
    harmless = "; the lines that look like a problem are harmless" if noise else ""
    works = health(log)
    return f"nothing in this log shows a fault{': ' + works if works else ''}{harmless}"


def _root_headline(roots: Sequence[Finding]) -> str:
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


def _shown(
    log: Log, verdict: LogVerdict, found: Sequence[Finding], unexplained: Sequence[Failure]
) -> tuple[Evidence, ...]:
    numbers = [failure.line for failure in unexplained]
    if verdict == "unknown":
        claimed = {evidence.line for finding in found for evidence in finding.evidence}
        numbers += [
            line.number
            for line in log.lines
            if line.number not in claimed
            and (line.level in ("error", "fatal") or _SUSPICIOUS.search(line.text))
        ]
    chosen = sorted(set(numbers))
    if len(chosen) > _MOST_UNEXPLAINED:
        half = _MOST_UNEXPLAINED // 2
        chosen = [*chosen[:half], *chosen[-half:]]
    return log.evidence(*chosen)
