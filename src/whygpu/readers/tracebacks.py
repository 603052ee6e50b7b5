"""Python's exceptions in a log: tracebacks, chained causes, groups, IPython's way, bare last lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.model.log import Line, Raised

_NAME = r"(?P<type>(?:[A-Za-z_][\w]{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|Failure|Fault))"
_LAST = re.compile(
    rf"(?:[\s|+]{{0,12}}|.{{0,80}}?\b(?:raised|Exception|exception|Error|ERROR|Caused by|error):? )"
    rf"{_NAME}(?: \(see above for traceback\))?(?::\s?(?P<message>.*)|$)"
)
_HEADER = re.compile(
    r"\s*(?:\| {0,4})?(?:\+ )?(?:Exception Group )?Traceback \(most recent call last\):?"
)
_IPYTHON_HEADER = re.compile(r"(?P<type>\w+)\s+Traceback \(most recent call last\)")
_FRAME = re.compile(
    r"\s*(?:\| {0,8})?File \"(?P<file>[^\"\n]{1,400})\", line \d+"
    r"|(?P<ipython>[~/\w][^\s]{0,300}\.pyc?) in \w|(?:File|Cell) (?P<new>[^\s:]{1,300}\.py):\d+"
)
_CHAINED = re.compile(
    r"\s*(?:\| {0,8})?(?:During handling of the above exception, another exception occurred"
    r"|The above exception was the direct cause of the following exception)"
)
_MOST_MESSAGE_LINES = 12
_NO_EXCEPTION = ("KeyboardInterrupt",)


def raised(lines: Sequence[Line]) -> tuple[Raised, ...]:
    """Every exception, in the order of the log; one that led to another is marked handled."""
    found: list[Raised] = []
    frames: list[str] = []
    for index, line in enumerate(lines):
        frame = _FRAME.match(line.text)
        if frame:
            frames.append(frame["file"] or frame["ipython"] or frame["new"])
            continue
        if _CHAINED.match(line.text):
            if found:
                found[-1] = found[-1]._replace(handled=True)
            frames = []
            continue
        if _HEADER.match(line.text) or _IPYTHON_HEADER.match(line.text):
            frames = []
            continue
        match = _LAST.match(line.text)
        if match is None or match["type"] in _NO_EXCEPTION:
            continue
        message = [match["message"] or "", *_continuation(lines, index + 1)]
        kind = match["type"].rpartition(".")[2]
        found.append(Raised(line.number, kind, "\n".join(message).strip(), tuple(frames)))
        frames = []
    return tuple(found)


def _continuation(lines: Sequence[Line], start: int) -> list[str]:
    """The further lines of a message: up to a record, a frame, another exception, or an empty line."""
    taken: list[str] = []
    for line in lines[start : start + _MOST_MESSAGE_LINES]:
        if (
            line.level != "none"
            or not line.text.strip()
            or _FRAME.match(line.text)
            or _HEADER.match(line.text)
            or _CHAINED.match(line.text)
            or _LAST.match(line.text)
        ):
            break
        taken.append(line.text.strip())
    return taken
