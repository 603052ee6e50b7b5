"""Exceptions in a log, judged by the file and the code that raised them."""

from __future__ import annotations

import re
from bisect import bisect_left

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match, Raised

INSTALLED = late(r"[/\\](?:site|dist)-packages[/\\]")
"""Files of installed packages, not of the program."""
_UNDERLINE = late(r"[\s^~]{0,300}$")
_POINTED_AT = late(r"-{1,6}> ?\d{1,6}\s(?P<code>[^\n]{0,300})")
_MOST_LINES_BACK = 14


def code_of(log: Log, raised: Raised) -> str:
    """The line of code that raised it, as the traceback shows it; empty if it shows none."""
    end = bisect_left(log.lines, raised.line, key=lambda line: line.number)
    before = [line.text for line in log.lines[max(0, end - _MOST_LINES_BACK) : end]]
    for text in reversed(before):
        pointed = _POINTED_AT.match(text.strip())
        if pointed:
            return pointed["code"].strip()
    for text in reversed(before[-3:]):
        if not _UNDERLINE.match(text):
            return text.strip()
    return ""


def raised_by(raised: Raised, files: re.Pattern[str], *, below: str = "") -> bool:
    """Whether the innermost frame is in these files; frames of the package `below` are skipped."""
    frames = raised.frames
    while below and frames and f"-packages/{below}/" in frames[-1].replace("\\", "/"):
        frames = frames[:-1]
    return bool(frames) and files.search(frames[-1]) is not None


def match_at(log: Log, raised: Raised) -> Match:
    """The exception as a match of a pattern."""
    return Match(raised.line, log.line(raised.line).text, {})


_INTERNAL = late(
    r"(?:cannot import name '?(?P<name>\w{1,60})'? from|No module named) '?"
    r"(?P<module>tensorflow(?:_core)?\.python\.(?!keras\b|platform|pywrap|_)[\w.]{1,80})"
)


def internal_import(raised: Raised) -> str:
    """What the program's own code imports from inside TensorFlow, where it does not exist; else empty.

    Nothing there is public, and any release may move it. `tensorflow.python.keras` is Keras.
    """
    found = _INTERNAL.search(raised.message)
    if found is None or not raised.frames or INSTALLED.search(raised.frames[-1]):
        return ""
    return ".".join(filter(None, (found["module"], found["name"])))
