"""How busy a log says that the GPU was, while the program worked."""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

_SAMPLES = late(
    # nvidia-smi's table: |  6012MiB / 40960MiB |      3%      Default |
    # (a GPU that holds less than some hundred MiB is not used by the program at all).
    r"\b(?:[3-9]\d\d|\d{4,7})MiB\s{0,4}/\s{0,4}\d{1,7}MiB\s{0,4}\|\s{0,8}(?P<smi>\d{1,3})%"
    # what programs and monitors print: GPU utilization: 3%, gpu_util=3.2%
    r"|(?i:\bgpu[ _-]?(?:\d{1,2}[ _-])?util(?:i[sz]ation)?)\W{1,8}(?P<said>\d{1,3})(?:\.\d{1,4})? ?%"
    # nvidia-smi --query-gpu=utilization.gpu --format=csv
    r"|^(?P<query>\d{1,3}) %, \d{1,7} (?:%|MiB)",
    re.MULTILINE,
)
_FINISHED = late(r"[Ff]inished training|[Tt]raining (?:finished|complete|done)\b")
LOW = 20
"""A GPU that is busy for less than this share of the time, in per cent, mostly waits."""
ENOUGH = 3
"""A single sample may fall between two steps."""


class Utilisation(NamedTuple):
    most: int
    """The highest sample, in per cent."""
    lines: tuple[int, ...]


def low_utilisation(log: Log) -> Utilisation | None:
    """The samples, if the program worked and the GPU was hardly used in any of them."""
    samples = [
        (int(next(group for group in match.groups.values() if group)), match.line)
        for match in log.find(_SAMPLES)
    ]
    if not samples or not log.progress:
        return None
    # Before the first step, and after the end, an idle GPU is what one expects.
    first, last = log.progress[0], log.progress[-1]
    ended = any(match.line == last for match in log.find(_FINISHED))
    working = [
        (per_cent, line)
        for per_cent, line in samples
        if first < line and not (ended and line > last)
    ]
    if not working or max(working)[0] >= LOW:
        return None
    return Utilisation(max(working)[0], tuple(line for _, line in working))
