"""Names that a text reveals in one place and repeats as plain words in another.

`alice@gpubox42:~$` names a user and a host. "out of memory on gpubox42" does so only for somebody
who has read the prompt. Comparing the cleaned text with the original shows what the rules have
removed. Names among that are then removed as whole words from everything in the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice

from whygpu.model.codec import vocabulary
from whygpu.model.lazy_regex import late
from whygpu.model.snapshot import Snapshot
from whygpu.privacy.people import COMMON_FOLDERS
from whygpu.privacy.rules import PLACEHOLDER

USER, HOST = "<user>", "<host>"
NOBODYS_NAMES = frozenset(
    ("", "root", "localhost", "nvidia", "python", "lib", "bin", "numpy", "conda", "ubuntu", "user")
)
"""Names that identify nobody, and common parts of paths and package names."""
_PLACEHOLDER = late(rf"({PLACEHOLDER}|~)")
_NAME = late(r"[A-Za-z][\w.-]{2,62}[A-Za-z0-9]")
"""Shorter names are too often a part of something else."""
_WORD = late(r"[a-z][\w-]{3,40}")
_SEPARATORS = late(r"[/\\,]")
_MAY_NAME = late(r"(?i)@|host|user|node|/home|/scratch|srun|slurm|mpi|\*\*\*|NVRM|NCCL")
_LONGEST_LINE = 400
_MOST_LINES = 300
MOST_NAMES = 64
"""The most names to learn from one answer; a list of a cluster's nodes may have more."""


def learnt_from(original: str, cleaned: str) -> dict[str, str]:
    """Names that were removed from a text, with their placeholders."""
    if not (USER in cleaned or HOST in cleaned or "~" in cleaned):
        return {}
    before, after = original.split("\n"), cleaned.split("\n")
    pairs = zip(before, after, strict=True) if len(before) == len(after) else ((original, cleaned),)
    found: dict[str, str] = {}
    for old, new in pairs:
        if old != new and len(found) < MOST_NAMES:
            found.update((name, word) for name, word in _removed(old, new) if _is_a_name(name))
    return found


def lines_with_names(text: str) -> list[str]:
    """The lines that may reveal a name, because a long log need not be cleaned completely."""
    found = (line for line in text.splitlines() if _MAY_NAME.search(line))
    return list(islice(dict.fromkeys(line[:_LONGEST_LINE] for line in found), _MOST_LINES))


def _removed(original: str, cleaned: str) -> Iterator[tuple[str, str]]:
    """The text that each placeholder replaced. If the texts do not match, nothing is learnt."""
    parts = re.split(_PLACEHOLDER.pattern, cleaned)
    if not original.startswith(parts[0]):
        return
    at = len(parts[0])
    for place in range(1, len(parts), 2):
        placeholder, following = parts[place], parts[place + 1]
        is_last = place + 2 == len(parts)
        end = len(original) if is_last and not following else original.find(following, at)
        if end < 0 or not (following or is_last):
            return
        gap = original[at:end]
        if placeholder in (USER, HOST):
            yield from ((name, placeholder) for name in gap.split(",") if name)
        elif placeholder == "~":
            yield re.split(_SEPARATORS.pattern, gap)[-1], USER
        at = end + len(following)


def _is_a_name(text: str) -> bool:
    """Whether it can only be a name: machines may be called gpu, and people Will."""
    if not _NAME.fullmatch(text):
        return False
    lowered = text.lower()
    return lowered not in NOBODYS_NAMES | COMMON_FOLDERS and lowered not in _ordinary_words()


@cache
def _ordinary_words() -> frozenset[str]:
    """The words of the pages about causes: English words and technical terms."""
    from whygpu.causes import catalogue  # most answers name nobody

    pages = (f"{cause.slug} {cause.page}".lower() for cause in catalogue())
    words = frozenset(word for page in pages for word in _WORD.findall(page))
    return words | vocabulary(Snapshot)


def without(names: Mapping[str, str], text: str) -> str:
    """The text without these names as whole words."""
    for name, placeholder in names.items():
        if name in text:
            text = _whole_word(name, placeholder).sub(placeholder, text)
    return text


@cache
def _whole_word(name: str, placeholder: str) -> re.Pattern[str]:
    word = re.escape(name)
    if placeholder == HOST:
        return re.compile(
            rf"(?<![A-Za-z0-9<-]){word}(?:\.[A-Za-z][\w-]{{0,62}}){{0,8}}(?![A-Za-z0-9>-])"
        )
    return re.compile(rf"(?<![\w.<-]){word}(?![\w>-]|\.\w)")
