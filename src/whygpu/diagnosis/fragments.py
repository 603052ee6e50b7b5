"""Which causes have a message that contains some words: for a text too short to be recognised.

People often paste the part of a message that they remember. No detector takes such a part for
evidence, and rightly so: several causes write the same words. The pages say which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.model.cause import Cause
from whygpu.model.log import Log

_MOST_LINES = 3
"""A longer text is a log, in which any line may be part of some message by chance."""
_SHORTEST = 8
_BLANK = re.compile(r"\s+")


def causes_with_words_of(log: Log, causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """The causes whose pages show a message with one of the lines, most messages first."""
    lines = [_folded(line.text) for line in log.lines if line.text.strip()]
    wanted = [line for line in lines if len(line) >= _SHORTEST]
    if not wanted or len(lines) > _MOST_LINES:
        return ()
    counted = [(sum(text.count(line) for line in wanted), cause) for cause, text in _shown(causes)]
    counted.sort(key=lambda row: (-row[0], row[1].code))
    return tuple(cause for count, cause in counted if count)


def _shown(causes: Sequence[Cause]) -> Iterator[tuple[Cause, str]]:
    for cause in causes:
        if cause.log_detector is not None:
            yield cause, _folded(f"{cause.guide} {cause.firing_logs}")


def _folded(text: str) -> str:
    return _BLANK.sub(" ", text).strip().rstrip(".").lower()
