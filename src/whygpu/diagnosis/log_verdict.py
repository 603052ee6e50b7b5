"""Whether a log has a known cause, another failure, or nothing that is wrong.

The verdict follows from what ended the program. A failure that no finding explains is either
unrelated to the GPU, or follows from what was found before it, or the log does not say why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.diagnosis.guidance import is_time_limit
from whygpu.diagnosis.log_findings import ends_program, is_guess, lines_of
from whygpu.model.explanation import LogVerdict
from whygpu.model.finding import Finding
from whygpu.model.log import Failure, Log
from whygpu.tables.gpu_vocabulary import message_is_about_gpu

SUSPICIOUS = re.compile(
    r"error|exception|fail|cannot|could not|unable|abort|fatal|not found|invalid|killed",
    re.IGNORECASE,
)
_PRINTED_ERROR = re.compile(r"\W{0,4}(?:[Ee]rror|ERROR|[Ee]xception)\b")
_SOON = 40
"""The most lines from an error to the exception that follows from it, with its traceback."""
_CLOSE = 3
"""The most lines between a message and the failure that directly follows it."""
_ENOUGH_RECORDS = 2
"""So many records of the program's own logger show that it went on."""
_ENOUGH_LINES = 3
"""So many lines of ordinary output show the same."""


def unexplained_failures(log: Log, claimed: frozenset[int]) -> tuple[Failure, ...]:
    """Failures that ended the program and are in the evidence of no finding."""
    return tuple(
        failure
        for failure in log.failures
        if claimed.isdisjoint(range(failure.line, failure.last + 1))
    )


def verdict_of(
    log: Log, roots: Sequence[Finding], noise: Sequence[Finding], unexplained: Sequence[Failure]
) -> LogVerdict:
    weighty = [root for root in roots if root.severity != "info"]
    strangers = [
        failure
        for failure in unexplained
        if not failure.about_gpu and not _of_another_command(failure, weighty)
    ]
    if strangers and not any(ends_program(root, log) for root in weighty):
        return _verdict_on_strangers(log, roots, weighty, strangers)
    if weighty and (log.failures or not log.progress or not all(map(is_guess, weighty))):
        # A guess about a program that works is no answer.
        return "found"
    if unexplained:
        return "found" if _leads_to(roots, unexplained) else "unknown"
    if roots:
        return "nothing-wrong" if _worked(log, roots) else "found"
    if _has_open_error(log, noise):
        return "unknown"
    return "nothing-wrong" if noise or log.progress or _has_gpu(log) else "unknown"


def _verdict_on_strangers(
    log: Log, roots: Sequence[Finding], weighty: Sequence[Finding], strangers: Sequence[Failure]
) -> LogVerdict:
    """For failures that do not sound like the GPU, and that no finding explains."""
    if all(_over_time(failure, log) for failure in strangers):
        return "unknown"
    if not any(gives_reason(failure) for failure in strangers):
        # A failure without a reason may have any reason, including a GPU library.
        return "found" if weighty or _just_before(roots, strangers) else "unknown"
    if _follow_from(weighty, strangers, log):
        return "found"
    # The program continued after the messages about the GPU, and something else stopped it.
    return "not-gpu"


def stranger(unexplained: Sequence[Failure]) -> Failure:
    """The failure that is unrelated to the GPU: the last one with a reason."""
    return [f for f in unexplained if gives_reason(f) and not f.about_gpu][-1]


def time_limit_without_gpu(log: Log, reason: Finding | None) -> Failure | None:
    """The time limit that ended a job, if the log also says that it worked without a GPU."""
    over = next((failure for failure in log.failures if is_time_limit(failure)), None)
    if over is None or not all(map(is_time_limit, log.failures)):
        return None
    return over if log.without_gpu() or reason is not None else None


def _over_time(failure: Failure, log: Log) -> bool:
    """Whether a job reached its time limit, and nothing shows that it worked on the GPU."""
    return is_time_limit(failure) and not log.reports_gpu_at_work()


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
        not is_guess(root)
        and root.effect == "cpu"
        and any(e.line is not None and e.line < failure.line for e in root.evidence)
        for root in roots
    )


def _just_before(roots: Sequence[Finding], failures: Sequence[Failure]) -> bool:
    """Whether something about the GPU directly precedes a message that only says that an operation
    failed. A crash says even less: it may come from any code."""
    return any(
        not is_guess(root)
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
        if not is_guess(root) and root.effect == "broken"
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
        not is_guess(root)
        and root.effect != "none"
        and any(e.line is not None and e.line < first for e in root.evidence)
        for root in roots
    )


def _has_open_error(log: Log, noise: Sequence[Finding]) -> bool:
    """Whether an error of CUDA, or a record marked as an error about the GPU, is in no finding, and
    no work followed it."""
    claimed = lines_of(noise)
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


def gives_reason(failure: Failure) -> bool:
    """Whether the message says why; a signal or an exit code only says that it ended."""
    return failure.says_why and failure.kind in ("exception", "fatal")


def _worked(log: Log, roots: Sequence[Finding]) -> bool:
    """Whether the program did its work after the last message about the GPU, or at all, if the
    messages only suggest something."""
    if log.progress and all(map(is_guess, roots)):
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
    suspicious = any(SUSPICIOUS.search(line.text) for line in plain)
    return len(plain) >= _ENOUGH_LINES and not asked and not suspicious


def _has_gpu(log: Log) -> bool:
    return any(device.event != "ignored" for device in log.devices) or log.reports_gpu()
