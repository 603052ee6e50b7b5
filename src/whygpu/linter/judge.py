"""Runs every code detector on one program. Pure: the same text always gives the same findings."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.model.cause import Cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.program import Program


class Crash(Exception):
    """A bug in a detector, with its cause. The findings of other detectors are kept."""


def relevant(causes: Sequence[Cause], text: str) -> list[Cause]:
    """The causes whose defect this text may have, according to its words."""
    return [
        cause
        for cause in causes
        if cause.code_detector is not None and any(word in text for word in cause.code_words)
    ]


def judge(program: Program, causes: Sequence[Cause]) -> tuple[list[CodeFinding], list[str]]:
    """Findings in file order, one per place and cause; and crashes."""
    found: dict[tuple[str, object], CodeFinding] = {}
    crashes: list[str] = []
    for cause in causes:
        detector = cause.code_detector
        if detector is None:
            continue
        try:
            for item in detector(program):
                found.setdefault((cause.code, item.place.start), item)
        except RecursionError:
            # Not a bug: the program is nested too deeply for this detector, and perhaps for others.
            raise
        except Exception as error:
            crashes.append(f"{cause.code}: {type(error).__name__}: {error}")
    ordered = sorted(found.values(), key=lambda item: (item.place.start, item.finding.code))
    return ordered, crashes
