"""The words that spare searching a phrase are right, current, and rare enough to be worth it."""

from __future__ import annotations

import re

import pytest

from tests.cases import each
from tests.kit import examples
from tools import phrase_words
from whygpu.causes import catalogue
from whygpu.model.lazy_regex import in_outline
from whygpu.readers.log import read_text


@each(
    ("pattern", "words"),
    [
        (r"[Cc]uda error", ("cuda error",)),
        (r"\d+ GPUs? found|no device", (" found", "no device")),
        (r"(?:libcudnn|cudnn64_)\w{1,9}(?: not)? found", ("cudnn64_", "libcudnn")),
        (r"(?:nccl){1,2}x{0,3}", ("nccl",)),
        (r"(?:nccl)?\d", ()),
        (r"cuda|\d", ()),
        (r"(?!never)\w", ()),
        (r"[ab]cuda[^x]", ("cuda",)),
    ],
)
def test_any_match_contains_one_of_the_words(pattern: str, words: tuple[str, ...]) -> None:
    assert phrase_words.words_of(re.compile(pattern)) == words


def test_the_table_is_current() -> None:
    current = phrase_words.PATH.read_text(encoding="utf-8")
    assert current == phrase_words.text(), "run `make docs`"


@pytest.mark.slow
def test_asking_for_words_first_loses_no_match() -> None:
    logs = [
        read_text(example.text)
        for cause in catalogue()
        for example in examples(cause.page)
        if example.kind == "log"
    ]
    patterns = phrase_words.phrases().values()
    words = {pattern: phrase_words.words_of(pattern) for pattern in patterns}
    lost = [
        (pattern.pattern, log.text)
        for log in logs
        for pattern in patterns
        if pattern.search(log.text)
        and words[pattern]
        and not any(in_outline(word) in log.outline for word in words[pattern])
    ]
    assert len(logs) > 200
    assert not lost


def test_most_phrases_are_not_searched_at_all() -> None:
    text = "runtimeerror: cuda out of memory. tried to allocate 20.00 mib (gpu 0; 7.79 gib total)"
    asked = [phrase_words.words_of(pattern) for pattern in phrase_words.phrases().values()]
    searched = [words for words in asked if not words or any(word in text for word in words)]
    assert len(searched) < 0.25 * len(asked)
