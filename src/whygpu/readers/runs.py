"""Finds the runs of a program that were appended to one log, and attempts that a person describes.

The last one counts.
"""

from __future__ import annotations

import re
from itertools import pairwise

from whygpu.model.log import Line, Log

_COMMAND = re.compile(
    # user@host:~/folder$ , (env) $ , C:\folder> , PS C:\folder>
    r"^(?:\([\w.-]{1,40}\) ?)?(?:[\w.-]{1,60}@[\w.-]{1,60}:?[^\n$#%>]{0,80}"
    r"|(?:PS )?[A-Z]:\\[^\n>]{0,120}|\[[^\]\n]{1,60}\])?\s?[$#>%] ?"
    r"(?:\w{1,40}=\S{0,80} ){0,6}(?:sudo )?"
    r"(?:python[\d.]{0,5}|torchrun|accelerate launch|deepspeed|mpirun|bash|sh)\b[^\n]{0,200}?"
    r"(?P<program>[^\s'\"=]{1,200}\.(?:py|sh))\b"
)
_OF_AN_ERROR = re.compile(
    r"\s|File \"|\S{0,80} {0,80}Traceback \(|[\w.]{1,120}(?:Error|Exception|Warning)\b"
)
_NOT_LETTERS = re.compile(r"[^A-Za-z]+")
_ENOUGH_LETTERS = 12
"""A shorter line is not typical of the start of a program."""


def lines_of_earlier_runs(log: Log) -> tuple[frozenset[int], int]:
    """The numbers of the lines that earlier runs wrote, and how many runs these were.

    What was done between two runs, such as an installation, belongs to neither.
    """
    ends = _ends(log)
    starts = _starts(log, ends)
    if len(starts) < 2 or not _says_something(log, starts[-1]):
        return _of_earlier_attempts(log)
    dropped: set[int] = set()
    for start, following in pairwise(starts):
        last = max((last for end, last in ends if start <= end < following), default=following)
        dropped.update(range(start, min(last + 1, following)))
    return frozenset(dropped), len(starts) - 1


_DONE = (
    r"(?:re-?)?install\w{0,3}|up(?:graded|dated)|downgraded|changed|fixed|switched|added|removed"
    r"|rebooted|restarted|created|built|tried"
)
_BUT_NOW = re.compile(
    rf"\b(?:{_DONE})\b[^\n]{{0,200}}\b(?:now|today|after that|then)\b(?! ?\?)"
    r"|\b(?:[Nn]ow|[Tt]oday|[Aa]fter that)(?:,? (?:I (?:get|got|have|see)|it (?:runs|says|fails"
    r"|works|gives|prints)|the error|there is|with)\b| ?:)"
    r"|\b(?:jetzt (?:bekomme|kommt|erscheint|sagt)|maintenant (?:j['’]ai|il)"
    r"|ahora (?:me|obtengo|da|sale))"
    r"|现在(?:报|出现|变成|提示)"
)
"""What somebody writes between two attempts: "I reinstalled it, and now I get"."""
_AS_BEFORE = re.compile(
    r"\b(?:still|same|again|immer noch|wieder|encore|toujours|todav[ií]a|sigue)\b|还是|仍然", re.I
)
_COMPLAINS = re.compile(
    r"error|exception|fail|cannot|could not|unable|invalid"
    r"|not (?:found|compiled|available|detected|enabled)"
    r"|killed|\bFalse\b|\[\]",
    re.IGNORECASE,
)
_MOST_LINES_OF_A_PERSON = 60


def _of_earlier_attempts(log: Log) -> tuple[frozenset[int], int]:
    """The lines with complaints before the sentence that leads to what happens now."""
    if len(log.lines) > _MOST_LINES_OF_A_PERSON:
        return frozenset(), 0
    turns = [
        line.number
        for line in log.lines
        if line.level == "none" and _BUT_NOW.search(line.text) and not _AS_BEFORE.search(line.text)
    ]
    told = [line for line in turns if _complains_from(log, line)]
    if not told:
        return frozenset(), 0
    title = _title(log)
    before = [
        line.number
        for line in log.lines
        if line.number < told[-1] and _COMPLAINS.search(line.text) and line.number != title
    ]
    return frozenset(before), min(len(before), 1)


def _complains_from(log: Log, turn: int) -> bool:
    """Whether the log shows what happens now, good or bad."""
    # The sentence may have been read as a part of the message before it.
    lines = [failure.last for failure in log.failures]
    lines += [each.line for each in log.statuses]
    lines += [each.line for each in log.libraries]
    lines += [each.line for each in log.reports]
    lines += [each.line for each in log.allocations]
    return any(line >= turn for line in lines)


def _title(log: Log) -> int:
    """The line above all others of a report, which names the problem; 0 if there is none."""
    first, below = log.lines[0], log.lines[1:2]
    is_apart = any(not line.text.strip() or line.number > first.number + 1 for line in below)
    return first.number if is_apart else 0


def _ends(log: Log) -> list[tuple[int, int]]:
    """The first and last lines of all that may have ended a run, even if a later run worked."""
    raised = [(each.line, each.line + each.message.count("\n")) for each in log.raised]
    return raised + [(failure.line, failure.last) for failure in log.failures]


def _starts(log: Log, ends: list[tuple[int, int]]) -> list[int]:
    """Where the same program starts: the command in a shell, or else its first line again."""
    commands = [(line.number, match) for line in log.lines if (match := _COMMAND.match(line.text))]
    if commands:
        program = commands[-1][1]["program"]
        starts = [number for number, match in commands if match["program"] == program]
    else:
        first = log.lines[0] if log.lines else None
        shape = _shape(first.text) if first and _begins(first) else ""
        starts = [line.number for line in log.lines if shape and _shape(line.text) == shape]
    return [
        number
        for place, number in enumerate(starts)
        # Several processes of one run begin alike; a new run begins after one has ended.
        if not place or any(starts[place - 1] < end < number for end, _ in ends)
    ]


def _begins(line: Line) -> bool:
    """Whether a program may begin with this line: it is no part of an error."""
    return (
        line.level in ("none", "info")
        and not _OF_AN_ERROR.match(line.text)
        and len(_shape(line.text)) >= _ENOUGH_LETTERS
    )


def _shape(text: str) -> str:
    return _NOT_LETTERS.sub("", text)


def _says_something(log: Log, start: int) -> bool:
    failed = any(failure.line >= start for failure in log.failures)
    return failed or any(number >= start for number in log.progress)
