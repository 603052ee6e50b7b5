"""How busy a log says that the GPU was, while the program worked."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

_SAMPLES = late(
    # The tables of nvidia-smi and nvitop: |  6012MiB / 40960MiB |      3%      Default |
    # (a GPU that holds less than some hundred MiB is not used by the program at all).
    r"\b(?P<held>[3-9]\d\d|\d{4,7})MiB\s{0,4}/\s{0,4}[\d.]{1,8}[MG]iB\s{0,4}[|│]\s{0,8}(?P<smi>\d{1,3})%"
    # gpustat: | 41'C,   3 % | 21034 / 24576 MB |
    r"|\|\s{0,4}\d{1,3}['°]C,\s{0,6}(?P<stat>\d{1,3}) %\s{0,4}(?:,[^|\n]{1,40})?\|"
    r"\s{0,6}(?P<of_stat>[3-9]\d\d|\d{4,7}) / {0,6}\d{1,7} MB"
    # what programs and monitors print: GPU utilization: 3%, gpu_util=3.2%
    r"|(?i:\bgpu[ _-]?(?:\d{1,2}[ _-])?util(?:i[sz]ation)?)\W{1,8}(?P<said>\d{1,3})(?:\.\d{1,4})? ?%"
    # nvtop: GPU[|||            3%] MEM[||||||22.1Gi/24.0Gi]
    r"|\bGPU\[[| ]{0,200}(?P<top>\d{1,3})%\](?: MEM\[[| ]{0,200}(?P<of_top>\d{1,4})(?:\.\d{1,3})?Gi/)?"
    # nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader
    r"|^(?P<query>\d{1,3}) %, \d{1,7} (?:%|MiB)",
    re.MULTILINE,
)
_MONITOR = late(
    r"^(?:# {0,4})?gpu {1,8}(?P<columns>(?:[a-z]{1,9} {1,8}){0,20}sm\b[a-z ]{0,200})$", re.MULTILINE
)
"""The head of the table of `nvidia-smi dmon`. Its # looks like the prompt of a shell."""
_QUERY = late(r"^(?P<columns>[a-z][^\n]{0,300}\butilization\.gpu \[%\][^\n]{0,300})$", re.MULTILINE)
"""The head of `nvidia-smi --query-gpu=... --format=csv`, unless its first column has the values."""
_UNITS = "Idx"
"""The second line of that head begins with it."""
_FINISHED = late(r"[Ff]inished training|[Tt]raining (?:finished|complete|done)\b")
LOW = 20
"""A GPU that is busy for less than this share of the time, in per cent, mostly waits."""
ENOUGH = 3
"""A single sample may fall between two steps."""
MOST_ROWS = 200
MUCH_MEMORY = 1000
"""MiB: a desktop takes less, so that a program other than the desktop has it."""


class Sample(NamedTuple):
    per_cent: int
    line: int
    held: int = 0
    """MiB that were in use, if the line says so."""


class Utilisation(NamedTuple):
    most: int
    """The highest sample, in per cent."""
    lines: tuple[int, ...]
    working: bool = True
    """Whether the log shows that the program worked at that time."""


def low_utilisation(log: Log) -> Utilisation | None:
    """The samples, if the program worked and the GPU was hardly used in any of them."""
    shown = samples(log)
    if not shown or not log.progress:
        return None
    # Before the first step, and after the end, an idle GPU is what one expects.
    first, last = log.progress[0], log.progress[-1]
    ended = any(match.line == last for match in log.find(_FINISHED))
    return _if_low(
        [each for each in shown if first < each.line and not (ended and each.line > last)]
    )


def idle_although_held(log: Log) -> Utilisation | None:
    """Samples of a GPU that was hardly used, when the log shows no work of a program.

    A single one counts if much of the memory was in use, and so a program was there. Before the
    first step, an idle GPU is what one expects, but not one that works a little.
    """
    shown = samples(log)
    if log.progress and any(each.line > log.progress[0] for each in shown):
        return None
    held = any(each.held >= MUCH_MEMORY for each in shown)
    works = bool(log.progress) and any(each.per_cent for each in shown)
    if not (held or works or (len(shown) >= ENOUGH and not log.progress)):
        return None
    low = _if_low(shown)
    return None if low is None else low._replace(working=False)


def _if_low(shown: list[Sample]) -> Utilisation | None:
    most = max((each.per_cent for each in shown), default=LOW)
    return Utilisation(most, tuple(each.line for each in shown)) if most < LOW else None


def samples(log: Log) -> list[Sample]:
    """What monitors, and programs themselves, printed."""
    found = []
    for match in log.find(_SAMPLES):
        groups = match.groups
        held = int(groups["held"] or groups["of_stat"] or 0) or 1024 * int(groups["of_top"] or 0)
        per_cent = groups["smi"] or groups["stat"] or groups["said"] or groups["query"]
        per_cent = per_cent or groups["top"] or "0"
        found.append(Sample(int(per_cent), match.line, held))
    found += [*_monitored(log), *_queried(log)]
    return sorted(set(found), key=lambda each: each.line)


def _monitored(log: Log) -> Iterator[Sample]:
    """The rows below each head of `nvidia-smi dmon`."""
    for head in log.find(_MONITOR):
        columns = ["gpu", *(head.groups["columns"] or "").split()]
        place = columns.index("sm")
        first = bisect_right(log.lines, head.line, key=lambda line: line.number)
        for line in log.lines[first : first + MOST_ROWS]:
            cells = line.text.lstrip("# ").split()
            if cells[:1] == [_UNITS]:
                continue
            if len(cells) != len(columns) or not cells[place].isdecimal():
                break
            yield Sample(int(cells[place]), line.number)


def _queried(log: Log) -> Iterator[Sample]:
    """The rows below each head of `nvidia-smi --query-gpu`."""
    for head in log.find(_QUERY):
        columns = [each.partition(" ")[0] for each in (head.groups["columns"] or "").split(", ")]
        place = columns.index("utilization.gpu") if "utilization.gpu" in columns else 0
        held = columns.index("memory.used") if "memory.used" in columns else None
        first = bisect_right(log.lines, head.line, key=lambda line: line.number)
        for line in log.lines[first : first + MOST_ROWS]:
            cells = [each.partition(" ")[0] for each in line.text.strip().split(", ")]
            if len(cells) != len(columns) or not cells[place].isdecimal():
                break
            mib = cells[held] if held is not None else ""
            yield Sample(int(cells[place]), line.number, int(mib) if mib.isdecimal() else 0)
