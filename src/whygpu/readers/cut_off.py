"""Detects a log that was cut in the middle of an error, so that what it says is missing."""

from __future__ import annotations

import re

from whygpu.model.log import Log

MISSING = "the exception's own line is missing"
_HEADER = re.compile(
    r"^[\s|]{0,12}(?:\+ )?(?:[\w.]{0,80}\s{0,80})Traceback \(most recent call last\)"
)
_FRAME = re.compile(r"^[\s|]{0,16}File \"[^\"\n]{1,400}(?:\", line \d{1,9}(?:, in |$)|$)")
"""A frame of a traceback, complete or not. faulthandler's frames have no comma before `in`."""
_BY_THE_USER = re.compile(r"^[\s|]{0,12}(?:KeyboardInterrupt|SystemExit)\b")
_WHOLE_NAME = re.compile(
    r"(?:Error|Exception|Warning|Group|Iteration|Exit|Interrupt|Empty|Full|Timeout|Expired)$"
)
"""How names of exceptions end. Another ending in the last line of a log may be half a name."""

_MESSAGE_FIRST = re.compile(r"!!! Exception during processing ?!!! \S")
"""ComfyUI prints the message before the traceback."""
_ABOVE = 2
"""The most lines from such a message to its traceback."""


_HEAD_OF_RECORD = re.compile(
    r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{1,9}: [EF](?: [\w./-]{0,120}(?::\d{0,6})?)?$"
    r"|[EF]\d{4} \d\d:\d\d:[\d.]{2,20} {1,4}\d{1,8}(?: [\w./-]{0,120}(?::\d{0,6})?)?$"
)
"""How an error of TensorFlow or glog begins, without its message."""


def cut_off(log: Log) -> str:
    """What is missing, as a sentence without a full stop; empty if every error is complete."""
    if log.lines and _HEAD_OF_RECORD.match(log.lines[-1].text):
        return "it ends in the middle of an error; the message itself is missing"
    return _cut_traceback(log)


def _cut_traceback(log: Log) -> str:
    start = _last_traceback(log)
    if start is None:
        return ""
    last = log.lines[-1].number
    ends = [raised for raised in log.raised if raised.line >= start]
    above = (line.text for line in log.lines if 0 < start - line.number <= _ABOVE)
    if any(_MESSAGE_FIRST.match(text) for text in above):
        return ""
    if any(raised.line < last or raised.message or _is_whole(raised.type) for raised in ends):
        return ""
    if any(_BY_THE_USER.match(line.text) for line in log.lines if line.number > start):
        return ""
    if _HEADER.match(log.line(start).text):
        return f"it ends in the middle of a traceback; {MISSING}"
    return f"it is only the middle of a traceback; {MISSING}"


def _is_whole(name: str) -> bool:
    return _WHOLE_NAME.search(name) is not None


def _last_traceback(log: Log) -> int | None:
    """The first line of the last traceback. At the start of a log, that line may be missing."""
    headers = [line.number for line in log.lines if _HEADER.match(line.text)]
    if headers:
        return headers[-1]
    first = next((line for line in log.lines[:2] if _FRAME.match(line.text)), None)
    return None if first is None or log.raised else first.number
