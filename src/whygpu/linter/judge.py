"""Runs every code detector on one program. Pure: the same text always gives the same findings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

from whygpu.linter.doubts import Doubts
from whygpu.linter.text_words import TextWords, Word, word_of
from whygpu.model.cause import Cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.program import Program

_ABOUT_GPUS = (
    *("torch", "tensorflow", "jax", "keras", "gpu", "GPU", "cuda", "CUDA", "TF_", "XLA_"),
    *("cupy", "onnxruntime"),
)
"""A program with none of these uses no framework, and sets no variable of one."""


def is_about_gpus(text: str) -> bool:
    return any(word in text for word in _ABOUT_GPUS)


def possible(causes: Sequence[Cause], text: TextWords) -> tuple[Cause, ...]:
    """The causes whose frameworks the text names; nearly all texts name one of them at most."""
    given = tuple(causes)
    return _with_needs(given, frozenset(text.present(_needs_of(given))))


@lru_cache(maxsize=64)
def _needs_of(causes: tuple[Cause, ...]) -> tuple[Word, ...]:
    """Each word once."""
    return tuple(dict.fromkeys(word_of(word) for cause in causes for word in cause.code_needs))


@lru_cache(maxsize=1024)
def _with_needs(causes: tuple[Cause, ...], present: frozenset[str]) -> tuple[Cause, ...]:
    return tuple(
        cause
        for cause in causes
        if cause.code_detector is not None
        and (not cause.code_needs or not present.isdisjoint(cause.code_needs))
    )


def words_in(causes: Sequence[Cause], text: TextWords) -> tuple[str, ...]:
    """The words of the text that findings of these causes need."""
    return tuple(text.present(_words_of(tuple(causes))))


@lru_cache(maxsize=1024)
def _words_of(causes: tuple[Cause, ...]) -> tuple[Word, ...]:
    """Each word once."""
    return tuple(dict.fromkeys(word_of(word) for cause in causes for word in cause.code_words))


def relevant(
    causes: Sequence[Cause], words: Collection[str], text: str | None = None
) -> list[Cause]:
    """The causes whose defect a text with these words may have.

    `text` is None if the program is more than this text.
    """
    present = frozenset(words)
    return [
        cause
        for cause in causes
        if cause.code_detector is not None
        and not present.isdisjoint(cause.code_words)
        and (text is None or cause.code_possible is None or cause.code_possible(text))
    ]


def judge(program: Program, causes: Sequence[Cause]) -> tuple[list[CodeFinding], list[str]]:
    """Findings in file order, one per place and cause; and crashes."""
    found: dict[tuple[str, object], CodeFinding] = {}
    crashes: list[str] = []
    doubts = Doubts(program)
    for cause in causes:
        detector = cause.code_detector
        if detector is None:
            continue
        try:
            for found_here in detector(program):
                item = doubts.settled(found_here)
                if item is not None:
                    found.setdefault((cause.code, item.place.start), item)
        except RecursionError:
            # Not a bug: the program is nested too deeply for this detector, and perhaps for others.
            raise
        except Exception as error:
            crashes.append(f"{cause.code}: {type(error).__name__}: {error}")
    ordered = sorted(found.values(), key=lambda item: (item.place.start, item.finding.code))
    return ordered, crashes
