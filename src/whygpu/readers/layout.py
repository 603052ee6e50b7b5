"""Undoes line wrapping, and prefixes that are the same on many lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

Numbered = tuple[int, str]

_NARROWEST, _WIDEST = 40, 250
_ENOUGH_FULL_LINES = 4
_ENOUGH_SIGNS = 3
_WIDEST_USUAL = 132
FEW_LINES = 200
"""A longer text shows clearly whether it was wrapped."""
_HEADER = re.compile(r"(?:Exception Group )?Traceback \(most recent call last\)")
_DIGITS = re.compile(r"\d+")
_LONGEST_PREFIX = 120
_LONGEST_TRACEBACK = 300


_FRAME = re.compile(r"\s{0,16}File \"[^\"\n]{1,400}\", line \d{1,7}(?:, in \S|,?$)")
_FRAME_START = re.compile(r"\s{0,16}File \"")
_STARTS = re.compile(
    # What begins a line of its own: frames, headers, records, exceptions, prompts, tables.
    r"\s\s|File \"|Traceback \(|During handling|The above exception|\[?\d{4}-\d\d-\d\d"
    r"|\d\d:\d\d:\d\d"
    r"|\[?[IWEF](?:\d{4})? |(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Warning)\b"
    r"|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b|\$ |>>>|\.\.\. |[|+*#=<>-]|\[[a-z]{0,4}\d{0,4}\]"
    r"|Epoch |\d{1,6}/\d{1,6} \[|File \S{1,200}:\d"
)


_TASK = re.compile(r"\d{1,5}: ?")
"""The number of a task, which srun --label adds to each line."""
_ENOUGH_ALIKE = 3


def without_margin(lines: Sequence[Numbered]) -> list[Numbered]:
    """The lines, without what stands before every one of them: blanks, or the number of a task."""
    texts = [text for _, text in lines if text.strip()]
    if len(texts) < _ENOUGH_ALIKE:
        return list(lines)
    if all(_TASK.match(text) for text in texts):
        return [(number, _TASK.sub("", text, count=1)) for number, text in lines]
    margin = min(len(text) - len(text.lstrip()) for text in texts)
    return [(number, text[margin:]) for number, text in lines] if margin else list(lines)


class Wrapping(NamedTuple):
    """How the lines of a text were cut."""

    width: int
    between_words: bool
    """By a mail program or a tracker; a console cuts anywhere."""
    sure: bool = True


def joined(lines: Sequence[Numbered], wrapping: Wrapping) -> list[Numbered]:
    """Undo the wrapping of a console or a tracker, after which no line is wider than a limit."""
    whole: list[Numbered] = []
    before = ""
    for number, text in lines:
        glue = _glue(wrapping, before, text)
        if glue is None:
            whole.append((number, text))
        else:
            first, start = whole[-1]
            whole[-1] = (first, f"{start}{glue}{text}")
        before = text
    return whole


def _glue(wrapping: Wrapping, before: str, text: str) -> str | None:
    """What was between two lines before the text was wrapped; None if they were two lines."""
    if not before or not text:
        return None
    full = len(before) == wrapping.width
    if full and not wrapping.between_words and wrapping.sure:
        return ""
    if not _may_go_on(before, text):
        return None
    if full and (not wrapping.between_words or _ends_in_path(before)):
        return ""
    if wrapping.between_words:
        return " " if _had_no_room(before, text, wrapping.width) else None
    # The blank at the end of a full line is not shown.
    return " " if len(before) == wrapping.width - 1 else None


def wrapping_of(texts: Sequence[str]) -> Wrapping | None:
    """How a text was wrapped, if it shows that clearly."""
    for wrapping in _imaginable(texts, _WIDEST):
        cut = _cut_between_words if wrapping.between_words else _cut_anywhere
        if cut(texts, wrapping.width):
            return wrapping
    return None


def possible_wrappings(texts: Sequence[str]) -> tuple[Wrapping, ...]:
    """How a short text may have been wrapped: some line that goes on has no room for more."""
    imaginable = (each._replace(sure=False) for each in _imaginable(texts, _WIDEST_USUAL))
    return tuple(
        wrapping
        for wrapping in imaginable
        if any(_glue(wrapping, text, following) is not None for text, following in pairwise(texts))
    )


def _imaginable(texts: Sequence[str], widest: int) -> Iterator[Wrapping]:
    # A word that is longer than the limit stays whole.
    width = max((len(text) for text in texts if " " in text.strip()), default=0)
    if _NARROWEST <= width <= widest:
        yield Wrapping(width, between_words=True)
    width = max(map(len, texts), default=0)
    if _NARROWEST <= width <= widest:
        yield Wrapping(width, between_words=False)


def _cut_between_words(texts: Sequence[str], width: int) -> bool:
    """Sentences and frames go on in the next line, whose first word had no room."""
    full = short = against = 0
    for text, following in pairwise(texts):
        if not text or not following or following[0].isupper() or not _may_go_on(text, following):
            continue
        if not _had_no_room(text, following, width):
            against += following[0].islower()
        elif len(text) < width - 1:
            short += 1
        else:
            full += 1
    return short + full >= _ENOUGH_SIGNS and short > max(full // 2, 2 * against)


def _cut_anywhere(texts: Sequence[str], width: int) -> bool:
    """Nearly every long line has the same width, and the next one goes on in mid-word."""
    full = [place for place, text in enumerate(texts[:-1]) if len(text) == width]
    nearly = sum(1 for text in texts if len(text) > width * 0.9)
    cut = [place for place in full if _goes_on(texts[place], texts[place + 1])]
    if len(full) >= _ENOUGH_FULL_LINES:
        return len(full) * 3 >= nearly * 2 and len(cut) * 2 > len(full)
    frames = [place for place in full if _unfinished(texts[place])]
    return bool(frames) and len(full) == len({*cut, *frames})


def _had_no_room(text: str, following: str, width: int) -> bool:
    return len(text) + 1 + len(following.partition(" ")[0]) > width


def _ends_in_path(text: str) -> bool:
    """The last word is part of a path, which is cut if it is wider than the limit."""
    return "/" in text.rpartition(" ")[2] or "\\" in text.rpartition(" ")[2]


def _may_go_on(text: str, following: str) -> bool:
    return _unfinished(text) or not (_STARTS.match(following) or _alike(text, following))


def _unfinished(text: str) -> bool:
    """A frame of a traceback that lacks its end."""
    return _FRAME_START.match(text) is not None and _FRAME.match(text) is None


def _goes_on(text: str, following: str) -> bool:
    """Whether the next line continues this one. Rows of a table are as wide, but do not."""
    if not following or text[-1] in "|+-=_#*]" or following[0].isupper():
        return False
    return not _alike(text, following)


def _alike(text: str, following: str) -> bool:
    """Lines of one kind begin alike."""
    return _DIGITS.sub("", text[:12]) == _DIGITS.sub("", following[:12])


_GLOG = r"[IWEF]\d{4} \d\d:\d\d:[\d.]{2,12} {1,8}\d{1,20} "
_RELAYED = re.compile(
    rf"{_GLOG}(?P<relay>[\w./-]{{1,120}}:\d{{1,6}})\] (?={_GLOG}[\w./-]{{1,120}}:\d)"
)


def unrelayed(lines: Sequence[Numbered]) -> list[Numbered]:
    """The lines without the heads of a program that logs the output of another as its own.

    Each line of that output is then an "info" of the relay, also its errors. A record directly
    behind the head of another shows which place in the source is the relay.
    """
    relays = {found["relay"] for _, text in lines if (found := _RELAYED.match(text))}
    if not relays:
        return list(lines)
    head = re.compile(rf"{_GLOG}(?:{'|'.join(map(re.escape, relays))})\] ?")
    return [(number, head.sub("", text, count=1)) for number, text in lines]


def unprefixed(lines: Sequence[Numbered]) -> list[Numbered]:
    """Tracebacks without the prefix that a logger added to each line, whatever it is.

    The first line of a traceback is always the same, so the text before it is the prefix. The next
    lines have the same prefix, except for its numbers.
    """
    shortened = list(lines)
    for index, (_, text) in enumerate(lines):
        header = _HEADER.search(text, 0, _LONGEST_PREFIX + 40)
        prefix = text[: header.start()] if header else ""
        if not prefix.strip() or prefix.endswith("  "):
            continue
        shape = _DIGITS.sub("0", prefix)
        pattern = re.compile(re.escape(shape).replace("0", r"\d+"))
        for place in range(index, min(index + _LONGEST_TRACEBACK, len(lines))):
            number, line = lines[place]
            match = pattern.match(line)
            if match is None:
                break
            shortened[place] = (number, line[match.end() :])
    return shortened
