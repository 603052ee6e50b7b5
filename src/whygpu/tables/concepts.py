"""The concepts of a sentence: what a person speaks of, what they deny, and which figures."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.tables.vocabulary import DENIABLE, DISABLED, FIGURES, WORDS

_TOKEN = late(r"§[a-z]+|[a-z0-9\u0400-\u04ff]+|[^\x00-\u04ff\s]|[.,;:!?()—]")
"""A word, one character of a script without spaces, a figure's concept, or a mark."""
_MARKS = frozenset(".,;:!?()—、。，；？")
_ELISION = late(r"\b(n|l|d|j|s|qu)['’](?=[^\W\d_]{2})")
_JOINED = late(r"(?<=\w)[./](?=\w)")
"""In tf.keras and Keras/TensorFlow, a mark separates no clauses."""
_LONGEST_ENDING = 12
_REACH = 10
"""The most words between a denial and what it denies."""
_REACH_BACK = 4


def folded(text: str) -> str:
    """Lower case, without accents, and with full-width letters as others."""
    parts = unicodedata.normalize("NFKD", text.lower())
    return unicodedata.normalize("NFC", "".join(c for c in parts if not unicodedata.combining(c)))


class _Entries(NamedTuple):
    words: dict[str, list[tuple[tuple[str, ...], str]]]
    """By the first word: the other words of an entry, and its concept."""
    stems: dict[str, list[str]]
    long: dict[str, list[str]]
    """Long words by their first letter, for those that are misspelt."""


_FEWEST_LETTERS = 6
_LEAVES_OUT = frozenset(("<without", "<leave-out", "<left-out"))
_BESIDE_OTHERS = _LEAVES_OUT | {"person", "nth", "one"}
"""Entries of these take no words away from those of others."""


@cache
def _entries() -> _Entries:
    words: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    stems: dict[str, list[str]] = {}
    long: dict[str, list[str]] = {}
    for concept, row in WORDS.items():
        for entry in row:
            tokens = _TOKEN.findall(folded(entry))
            if entry.endswith("-") and len(tokens) == 1:
                stems.setdefault(tokens[0], []).append(concept)
                continue
            words.setdefault(tokens[0], []).append((tuple(tokens[1:]), concept))
            if len(tokens) == 1 and len(tokens[0]) >= _FEWEST_LETTERS and tokens[0].isascii():
                long.setdefault(tokens[0][0], []).append(tokens[0])
    return _Entries(words, stems, long)


def _at(tokens: list[str], place: int) -> tuple[int, list[str]]:
    """How many words the longest entry at this place has, and the concepts of all that long."""
    entries = _entries()
    word = tokens[place]
    length = 0
    found: list[str] = []
    beside: list[str] = []
    for rest, concept in entries.words.get(word, ()):
        size = 1 + len(rest)
        if tuple(tokens[place + 1 : place + size]) != rest:
            continue
        if concept in _BESIDE_OTHERS:
            beside.append(concept)
        elif size >= length:
            found = [*found, concept] if size == length else [concept]
            length = size
    if length <= 1:
        for end in range(max(2, len(word) - _LONGEST_ENDING), len(word) + 1):
            found += entries.stems.get(word[:end], ())
        length = 1 if found else 0
    if not (found or beside) and len(word) >= _FEWEST_LETTERS and word.isascii() and word.isalpha():
        meant = _meant(word)
        if meant:
            return _at([meant], 0)
    return length, [*found, *beside]


@lru_cache(maxsize=512)
def _meant(word: str) -> str:
    """The long word of the vocabulary that differs in one letter, or in two neighbours."""
    return next((known for known in _entries().long.get(word[0], ()) if _near(word, known)), "")


def _near(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    a, b = one[start:], other[start:]
    if len(a) == len(b):
        return a[1:] == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
    return (a[1:] == b) if len(a) > len(b) else (a == b[1:])


def _clauses(tokens: list[str]) -> Iterator[list[tuple[int, str]]]:
    """The concepts of each clause, with their places."""
    clause: list[tuple[int, str]] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        if token in _MARKS:
            yield clause
            clause = []
        if token.startswith("§"):
            clause.append((place, token[1:]))
        length, found = _at(tokens, place)
        if "<break" in found:
            yield clause
            clause = []
        clause += [(place, concept) for concept in found if concept != "<break"]
        place += max(length, 1)
    yield clause


def _denied(clause: list[tuple[int, str]]) -> set[str]:
    """What a clause denies: of each denial, the next thing that can be denied, or the last one."""
    things = [(place, concept) for place, concept in clause if concept in DENIABLE]
    denied: set[str] = set()
    for place, role in clause:
        if not role.startswith("<not"):
            continue
        after = [at for at, _ in things if place <= at <= place + _REACH]
        before = [at for at, concept in things if at < place and concept != "gpu"]
        near = [at for at in before if place - at <= _REACH_BACK] if role == "<not-after" else []
        chosen = near[-1:] or after[:1] or before[-1:]
        denied.update(concept for at, concept in things if at in chosen)
    return denied


def _left_out(clause: list[tuple[int, str]]) -> set[str]:
    """What a clause leaves out: "without the GPU", "turn cuDNN off", "the GPU is disabled"."""
    things = [(place, concept) for place, concept in clause if concept in DISABLED]
    left: set[str] = set()
    for place, role in clause:
        if role not in _LEAVES_OUT:
            continue
        after = [at for at, _ in things if at > place]
        before = [at for at, _ in things if at < place]
        chosen = before[-1:] or after[:1] if role == "<left-out" else after[:1]
        if role == "<leave-out" and not chosen:
            chosen = before[-1:]
        left.update(concept for at, concept in things if at in chosen)
    return left


@lru_cache(maxsize=256)
def concepts_of(sentence: str) -> frozenset[str]:
    """The concepts of a sentence; `-` is before one that is denied, `/` before what
    is left out, `~gpu` stands for a clause that denies something of the GPU."""
    text = folded(sentence.replace("§", " "))
    text = _ELISION.sub(r"\1 ", text)
    for pattern, word in FIGURES:
        text = pattern.sub(word, text)
    text = _JOINED.sub(" ", text.replace("'", "").replace("’", ""))
    tokens = _TOKEN.findall(text)
    said: set[str] = set()
    for clause in _clauses(tokens):
        there = {concept for _, concept in clause}
        denied = _denied(clause)
        said |= {concept for concept in there if concept not in denied or concept == "gpu"}
        said |= {f"-{concept}" for concept in denied}
        said |= {f"/{concept}" for concept in _left_out(clause)}
        denies = any(concept.startswith("<not") for concept in there)
        if denies and "gpu" in there:
            said.add("~gpu")
        if "keras" in there and (denies or "cpu" in there):
            said.add("-keras")
        elif "tensorflow" in there and "keras" not in there and not denies:
            said.add("+tensorflow")
    return frozenset(concept for concept in said if not concept.startswith("<"))
