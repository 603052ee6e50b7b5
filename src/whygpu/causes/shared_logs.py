"""What log detectors share: whom a finding is about, sizes in words, and noise."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.model.cause import Cause
from whygpu.model.derived import DISPLAY_NAMES, display_name
from whygpu.model.finding import MACHINE, Finding, Remedy
from whygpu.model.log import Log


def subject_of(log: Log) -> str:
    """The framework that the log is about, or the machine."""
    return log.framework if log.framework in DISPLAY_NAMES else MACHINE


def framework_title(log: Log) -> str:
    """TensorFlow 2.4, PyTorch, or simply the framework."""
    if log.framework not in DISPLAY_NAMES:
        return "the framework"
    version = log.version_of(log.framework)
    return f"{display_name(log.framework)} {version}" if version else display_name(log.framework)


def in_gib(size: int) -> str:
    """A size as people say it: 8.02 GiB, 138 KiB."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} bytes"


def noise(cause: Cause, log: Log, pattern: re.Pattern[str], meaning: str) -> Iterator[Finding]:
    """One finding for all the lines that say a harmless thing."""
    lines = [match.line for match in log.find(pattern)]
    if lines:
        times = "" if len(lines) == 1 else f" (said {len(lines)} times)"
        yield cause.finding(
            subject=subject_of(log),
            message=meaning + times,
            evidence=log.evidence(*lines),
            remedies=(Remedy("Nothing needs to be done about it."),),
        )
