"""Shared by log detectors: the subject of a finding, excerpts, and harmless messages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.model import outside_text
from whygpu.model.cause import Cause
from whygpu.model.derived import DISPLAY_NAMES, display_name
from whygpu.model.finding import MACHINE, Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match


def subject_of(log: Log) -> str:
    """The framework of the log, or the machine."""
    return log.framework if log.framework in DISPLAY_NAMES else MACHINE


def framework_title(log: Log) -> str:
    """TensorFlow 2.4, PyTorch, or "the framework"."""
    if log.framework not in DISPLAY_NAMES:
        return "the framework"
    version = log.version_of(log.framework)
    return f"{display_name(log.framework)} {version}" if version else display_name(log.framework)


def excerpt(text: str, longest: int = 160) -> str:
    """The first line of a text, cut between words if it is too long."""
    return outside_text.excerpt(text.strip().partition("\n")[0], longest)


def harmless(cause: Cause, pattern: re.Pattern[str], meaning: str) -> None:
    """Register the detector of a harmless message: one finding for all its lines."""

    @cause.on_log
    def detect_in_log(log: Log) -> Iterator[Finding]:
        # A line that ended the program is not harmless, whatever its text.
        lines = {match.line for match in log.find(pattern)} - log.failed_lines()
        if lines:
            times = "" if len(lines) == 1 else f" (on {len(lines)} lines)"
            yield cause.finding(
                subject=subject_of(log),
                message=meaning + times,
                evidence=log.evidence(*lines),
                remedies=(Remedy("Nothing needs to be done."),),
            )


def ended_after(log: Log, line: int) -> tuple[int, ...]:
    """The failures at or after this line that ended the program."""
    words = log.line(line).text.strip()
    return tuple(
        failure.line
        for failure in log.failures
        # A message may begin on the line after the name of its exception.
        if failure.last >= line or (words and words in failure.text)
    )


def ended_by(log: Log, pattern: re.Pattern[str]) -> Match | None:
    """The first match in a message that ended the program."""
    ends = log.failed_lines()
    return next((match for match in log.find(pattern) if match.line in ends), None)


def failed_elsewhere(log: Log, line: int) -> bool:
    """Whether the program continued after this line and failed for an unrelated reason."""
    from whygpu.causes.evidence.missing_gpu_statements import lines_lacking_a_gpu

    lacking_gpu = lines_lacking_a_gpu(log)
    return any(
        failure.line > line
        and failure.kind == "exception"
        and failure.line not in lacking_gpu
        and not failure.about_gpu
        for failure in log.failures
    )


def is_tensorflow(log: Log) -> bool:
    """Whether TensorFlow wrote this log: by its name, or by records of its C++ code."""
    if log.framework:
        return log.framework in ("tensorflow", "keras")
    return any(line.source.endswith(".cc") for line in log.lines)


_OF_THE_PROGRAM = late(
    r"(?:FileNotFound|Permission|ModuleNotFound|Import|Key|Index|Name|Syntax|Attribute|Type|Value"
    r"|Unicode\w{0,8}|JSONDecode|Connection\w{0,8}|HTTP)Error\b"
)


def gpu_ends_after(log: Log, line: int) -> tuple[int, ...]:
    """Like ended_after, without exceptions that a GPU failure does not cause."""
    return tuple(
        failure.line
        for failure in log.failures
        if failure.last >= line and not _OF_THE_PROGRAM.match(failure.text)
    )
