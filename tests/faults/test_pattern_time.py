"""No text makes a regular expression of a reader, a cause or the privacy gate slow.

Four times as long a text may take four times as long, and not sixteen times. What a character costs
is limited as well: repetitions that are bounded one by one can still be slow inside each other.
"""

from __future__ import annotations

import functools
import pkgutil
import re
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from tests.cases import each
from tools.phrase_words import constants, parser, patterns_in
from whygpu import causes, privacy, readers

SIZE = 2_000
QUICK = 0.0007
"""Seconds of CPU time: what takes no longer than this at the full size is not looked at again."""
SLOWEST = 20e-6
"""Seconds of CPU time for each character, whatever the growth."""
MOST_GROWTH = 9
"""From a quarter of the size to the full one: linear is 4, quadratic 16."""
RUNS = 4

TABLES = ("failures_elsewhere", "failures_without_reason", "gpus", "out_of_memory")
"""Tables whose patterns meet the text of logs."""

ALPHABET = ("a", "Z", "0", " ", "\n", ".", "/", "\\", ":", "'", '"', "[")
PAIRS = ("a ", "a.", "a/", "a\n", "0.", "0 ", "A.")
FRAGMENTS = (
    'File "a.py", line 1\n',
    "E tensorflow/a/b.cc:1] ",
    "libcudnn.so.8: cannot open ",
    "torch.cuda.aError: ",
)


def modules() -> Iterator[str]:
    for package in (readers, causes, privacy):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield found.name
    yield from (f"whygpu.tables.{name}" for name in TABLES)


@functools.cache
def patterns() -> dict[re.Pattern[str], str]:
    """Every pattern, with the first module that has it."""
    found: dict[re.Pattern[str], str] = {}
    for module in modules():
        for pattern in patterns_in(list(vars(import_module(module)).values())):
            found.setdefault(pattern, module)
    return found


def literals_in(parsed: Any) -> Iterator[str]:
    """The words that a pattern spells out, wherever they are nested in it."""
    word = ""
    for node in parsed:
        if isinstance(node, tuple) and node[0] is constants.LITERAL:
            word += chr(node[1])
            continue
        if word:
            yield word
            word = ""
        stack = list(node) if isinstance(node, tuple | list) else []
        while stack:
            item = stack.pop()
            if isinstance(item, parser.SubPattern):
                yield from literals_in(item)
            elif isinstance(item, tuple | list):
                stack.extend(item)
    if word:
        yield word


def hostile_texts(pattern: re.Pattern[str], size: int) -> Iterator[str]:
    """Long runs of everything, and of what the pattern itself asks for, without its end."""
    words = [word for word in dict.fromkeys(literals_in(parser.parse(pattern.pattern))) if word]
    longest = sorted(words, key=len, reverse=True)[:4]
    joined = " ".join(words[:-1])
    for unit in (*ALPHABET, *PAIRS, *FRAGMENTS, *longest, joined):
        if unit:
            yield (unit * (size // len(unit) + 1))[:size]
    for word in longest[:2]:
        for unit in ("a", " ", "0"):
            yield word + unit * (size - len(word))


def seconds(pattern: re.Pattern[str], text: str) -> float:
    began = time.thread_time()
    pattern.search(text)
    return time.thread_time() - began


def is_slow(pattern: re.Pattern[str], text: str) -> bool:
    whole, quarter = seconds(pattern, text), float("inf")
    for _ in range(RUNS):
        if whole < QUICK:
            return False
        quarter = min(quarter, seconds(pattern, text[: len(text) // 4]))
        if whole <= min(MOST_GROWTH * quarter, SLOWEST * len(text)):
            return False
        # A machine that is busy elsewhere makes anything slow once.
        whole = min(whole, seconds(pattern, text))
    return True


def test_every_pattern_takes_linear_time() -> None:
    slow = [
        (module, pattern.pattern, text[:60])
        for pattern, module in patterns().items()
        for text in hostile_texts(pattern, SIZE)
        if is_slow(pattern, text)
    ]
    assert slow == []


@each("bad", [r"\s+x|(?:a|b)*c", r"[a-z]{1,60}[^ ]{0,80}\s"])
def test_the_measure_notices_a_bad_pattern(bad: str) -> None:
    pattern = re.compile(bad)
    assert any(is_slow(pattern, text) for text in hostile_texts(pattern, SIZE))


def test_patterns_are_found() -> None:
    assert len(patterns()) > 200
