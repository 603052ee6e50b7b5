"""Errors that state two versions, the required one and the one that is there, in any words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from whygpu.model.log import Log
from whygpu.tables.versions import release_numbers

Subject = Literal["capability", "cudnn", "driver", "cuda"]


class Unmet(NamedTuple):
    line: int
    of: Subject
    required: tuple[int, ...]
    found: tuple[int, ...]
    text: str

    @property
    def too_old(self) -> bool:
        return self.found < self.required


_SUBJECTS: tuple[tuple[Subject, re.Pattern[str]], ...] = (
    ("capability", re.compile(r"(?:compute|cuda) capabilit", re.IGNORECASE)),
    ("cudnn", re.compile(r"cudnn", re.IGNORECASE)),
    ("driver", re.compile(r"\bdrivers?\b", re.IGNORECASE)),
    ("cuda", re.compile(r"\bcuda\b", re.IGNORECASE)),
)
_VERSION = re.compile(
    r"(?<![\w.+@-])v?(?P<number>\d{1,3}\.(?:\d{1,3}|x)(?:\.\d{1,3}){0,2})(?![\w.]*\w)"
)
_REQUIRED_BEFORE = re.compile(
    r"(?:requires?|required|needs?|at least|minimum|>=?|\bsupports?\b|built|compiled|\bexpect\w{0,4}|must be)"
    r"[^\d]{0,60}$",
    re.IGNORECASE,
)
_REQUIRED_AFTER = re.compile(
    r"^[\w.]{0,8},? (?:or (?:greater|higher|later|newer|above|up)|and (?:above|newer)|is (?:required|needed))"
)
_OF_ANOTHER = re.compile(
    r"\b(?:[Pp]ython|[Uu]buntu|[Ww]indows|gcc|pip|conda|[Nn]um[Pp]y|[Tt]ransformers)\W{0,3}$"
)
"""Software whose version has nothing to do with the GPU."""
_REPORTED = re.compile(r"\n[\w ()./-]{2,40}: v?\d[\w.+-]{0,40}(?=\n|$)")
"""Below a message, people write which versions they have."""
_PATH = re.compile(r"\S{0,400}[/\\]\S{0,400}")
_ALTERNATIVE = re.compile(r"(?:, | or | and |, or )(?:CUDA )?", re.IGNORECASE)
"""What stands between two releases if either of them is accepted."""
_LONGEST = 600
_MOST_VERSIONS = 4


@lru_cache(maxsize=1)
def unmet_requirement(log: Log) -> Unmet | None:
    """The first one in what ended the program, or in an error record that no work follows."""
    return next(_all(log), None)


def _all(log: Log) -> Iterator[Unmet]:
    for failure in log.failures:
        yield from _in(failure.line, failure.text)
    last = max(log.progress, default=0)
    for place, line in enumerate(log.lines):
        if line.number > last and (line.level == "error" or "Error" in line.text[:40]):
            below = log.lines[place + 1].text if place + 1 < len(log.lines) else ""
            yield from _in(line.number, f"{line.text} {below.strip()}")


def _in(line: int, text: str) -> Iterator[Unmet]:
    text = _REPORTED.sub("", _PATH.sub("", text[:_LONGEST]))
    of = next((name for name, words in _SUBJECTS if words.search(text)), None)
    versions = [
        match
        for match in _VERSION.finditer(text)
        if not _OF_ANOTHER.search(text[max(0, match.start() - 20) : match.start()])
    ]
    if of is None or not 2 <= len(versions) <= _MOST_VERSIONS:
        return
    required: list[re.Match[str]] = []
    for match in versions:
        between = text[required[-1].end() : match.start()] if required else ""
        if _ALTERNATIVE.fullmatch(between) or _is_required(text, match):
            required.append(match)
    others = [_numbers(match) for match in versions if match not in required]
    least = min(map(_numbers, required), default=())
    if least and len(others) == 1 and others[0] not in map(_numbers, required):
        yield Unmet(line, of, least, others[0], text)


def _numbers(match: re.Match[str]) -> tuple[int, ...]:
    return release_numbers(match["number"].replace("x", "0"))


def _is_required(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 80) : match.start()]
    return bool(_REQUIRED_BEFORE.search(before) or _REQUIRED_AFTER.match(text[match.end() :]))
