"""The summary of a test suite: whether all tests passed, whatever they printed."""

from __future__ import annotations

import re

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

_ALL_PASSED = late(
    # pytest; nothing failed if the word is not there.
    r"^=* ?[1-9]\d{0,6} passed"
    r"(?:, \d{1,6} (?:skipped|deselected|xfailed|xpassed|warnings?|subtests passed))*"
    r" in \d[\d.]{0,9}s\b"
    # unittest
    r"|^Ran [1-9]\d{0,6} tests? in [\d.]{1,12}s\s{1,4}OK(?: \([^\n)]{0,60}\))?$"
    # CTest
    r"|^100% tests passed, 0 tests failed out of [1-9]",
    re.MULTILINE,
)


def all_tests_passed(log: Log) -> int | None:
    """The line that says so, if nothing failed after it."""
    found = list(log.find(_ALL_PASSED))
    if not found or any(failure.line > found[-1].line for failure in log.failures):
        return None
    return found[-1].line
