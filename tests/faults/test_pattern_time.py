"""No text makes a regular expression slow that meets logs, source code or what nodes send.

Four times as long a text may take four times as long, and not sixteen times. A bounded repetition
looks worse than that in a text not much longer than its bound, so what seems to grow too fast is
looked at again in a longer text. What a character costs is limited as well: repetitions that are
bounded one by one can still be slow inside each other.
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
from whygpu import causes, diagnosis, fleet, linter, privacy, readers

SIZE = 2_000
QUICK = 0.0007
"""Seconds of CPU time: what takes no longer than this at the full size is not looked at again."""
PLAIN = re.compile("[a-z]{0,400}[.]")
SLOWEST = 33
"""Times what a character costs `PLAIN`, measured at the same moment, whatever the growth."""
MOST_GROWTH = 9
"""From a quarter of the size to the full one: linear is 4, quadratic 16."""
RUNS = 8

TABLES = (
    *("concepts", "failures_elsewhere", "failures_without_reason", "gpu_vocabulary", "gpus"),
    *("out_of_memory", "sentences", "topics", "translated_messages", "versions", "vocabulary"),
)
"""Tables whose patterns meet the text of logs."""
MODEL = ("log", "outside_text", "units")
"""Modules of the model that do, too."""

ALPHABET = ("a", "Z", "0", " ", "\n", ".", "/", "\\", ":", "'", '"', "[")
PAIRS = ("a ", "a.", "a/", "a\n", "0.", "0 ", "A.")
FRAGMENTS = (
    'File "a.py", line 1\n',
    "E tensorflow/a/b.cc:1] ",
    "libcudnn.so.8: cannot open ",
    "torch.cuda.aError: ",
)


def modules() -> Iterator[str]:
    for package in (readers, causes, privacy, diagnosis, linter, fleet):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield found.name
    yield from (f"whygpu.tables.{name}" for name in TABLES)
    yield from (f"whygpu.model.{name}" for name in MODEL)


@functools.cache
def patterns() -> dict[re.Pattern[Any], str]:
    """Every pattern, with the first module that has it."""
    found: dict[re.Pattern[Any], str] = {}
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


def hostile_texts(pattern: re.Pattern[Any], size: int) -> Iterator[str]:
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


def seconds(pattern: re.Pattern[Any], text: str) -> float:
    reads_bytes = isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, bytes)
    subject = text.encode() if reads_bytes else text
    began = time.thread_time()
    pattern.search(subject)
    return time.thread_time() - began


def quickest(pattern: re.Pattern[Any], text: str) -> float:
    """Of a few runs: a machine that is busy elsewhere makes anything slow once."""
    return min(seconds(pattern, text) for _ in range(RUNS))


def takes_longer_than(limit: float, pattern: re.Pattern[Any], text: str) -> bool:
    return all(seconds(pattern, text) > limit for _ in range(RUNS))


def grows_too_fast(pattern: re.Pattern[Any], text: str) -> bool:
    quarter = quickest(pattern, text[: len(text) // 4])
    return takes_longer_than(max(QUICK, MOST_GROWTH * quarter), pattern, text)


def costs_too_much(pattern: re.Pattern[Any], text: str) -> bool:
    plain = quickest(PLAIN, "a" * len(text))
    return takes_longer_than(SLOWEST * plain, pattern, text)


def is_slow(pattern: re.Pattern[Any], text: str, longer: str) -> bool:
    if seconds(pattern, text) < QUICK:
        return False
    if costs_too_much(pattern, text):
        return True
    return grows_too_fast(pattern, text) and grows_too_fast(pattern, longer)


def slow_texts(pattern: re.Pattern[Any]) -> list[str]:
    texts = zip(hostile_texts(pattern, SIZE), hostile_texts(pattern, 4 * SIZE), strict=True)
    return [text[:60] for text, longer in texts if is_slow(pattern, text, longer)]


def test_every_pattern_takes_linear_time() -> None:
    slow = [
        (module, pattern.pattern, slow_texts(pattern)) for pattern, module in patterns().items()
    ]
    assert [row for row in slow if row[2]] == []


@each("bad", [r"\s+x|(?:a|b)*c", r"[a-z]{1,90}[^ ]{0,160}\s", r"word\s*\s*x"])
def test_the_measure_notices_a_bad_pattern(bad: str) -> None:
    """In one of three attempts: the measure would rather miss a pattern than blame a good one."""
    assert any(slow_texts(re.compile(bad)) for _ in range(3))


def test_patterns_are_found() -> None:
    assert len(patterns()) > 200
