"""Lines are searched only if they contain certain words: no pattern may match without one."""

from __future__ import annotations

import re

from tests.cases import each
from tools.phrase_words import required_by
from whygpu.readers import device_reports, failures, statuses, versions

QUICK = (
    *((pattern, failures._ABOUT_ENDS) for _, pattern in failures._ENDS),
    *((pattern, device_reports._ABOUT_DEVICES) for _, pattern in device_reports._WORDS),
    *((pattern, statuses.ABOUT_STATUSES) for pattern in (statuses._NUMBERED, statuses._ANY_NUMBER)),
    *((pattern, versions._ABOUT_VERSIONS) for _, pattern in versions._PATTERNS),
)


@each(("pattern", "words"), QUICK)
def test_whatever_a_pattern_matches_contains_one_of_the_words(
    pattern: re.Pattern[str], words: tuple[str, ...]
) -> None:
    for branch in branches(pattern):
        assert any(
            all(any(word in needed for word in words) for needed in one_of)
            for one_of in required_by(branch)
        ), branch.pattern


def test_every_name_of_a_status_contains_one_of_the_words() -> None:
    for prefix, _ in statuses._PREFIXES:
        assert any(word in prefix.lower() for word in statuses.ABOUT_STATUSES), prefix


def branches(pattern: re.Pattern[str]) -> list[re.Pattern[str]]:
    """The alternatives at the top of a pattern: each of them has its own words."""
    parts, depth, start, source = [], 0, 0, pattern.pattern
    place = 0
    while place < len(source):
        if source[place] == "\\":
            place += 2
            continue
        if source[place] == "[":
            place = source.index("]", place + 2)
        depth += {"(": 1, ")": -1}.get(source[place], 0)
        if source[place] == "|" and not depth:
            parts.append(source[start:place])
            start = place + 1
        place += 1
    parts.append(source[start:])
    return [re.compile(part, pattern.flags) for part in parts]
