"""What a guard did and what it could not keep the same, for the program and for its reader."""

from __future__ import annotations

import sys
from typing import NamedTuple

from whygpu.model.shortage import Shortage
from whygpu.model.units import size_text


class Cut(NamedTuple):
    """A step that ran out of memory, and how it was computed in the end."""

    step: int
    """Counted from 1 since the guard was made; evaluation steps are counted apart."""
    of: str
    """training or evaluation."""
    samples: int
    micro_batches: int
    micro_batch: int
    """Samples in the largest micro-batch."""
    asked: int | None
    """Bytes that were asked for and refused, where the framework says."""
    said: str
    """The framework's own words."""


class GuardReport(NamedTuple):
    """Everything that a guard has to tell. `str()` of it is for people."""

    steps: int
    """Training steps since the guard was made."""
    steps_in_parts: int
    """Those of them that were computed in more than one part."""
    cuts: tuple[Cut, ...]
    differences: tuple[str, ...]
    """In what a step in parts is not the same as the step of the whole batch, beyond rounding."""

    def __str__(self) -> str:
        if not self.steps_in_parts and not self.cuts:
            return f"{self.steps} steps, none of them short of memory"
        lines = [f"{self.steps} steps, {self.steps_in_parts} of them in micro-batches"]
        lines += [f"  {cut_words(cut)}" for cut in self.cuts]
        lines += [f"  not the same: {words}" for words in self.differences]
        return "\n".join(lines)


def cut_words(cut: Cut) -> str:
    asked = f" ({size_text(cut.asked)} asked for)" if cut.asked else ""
    return (
        f"{cut.of} step {cut.step}: out of memory with {cut.samples} samples{asked}; computed in "
        f"{cut.micro_batches} micro-batches of at most {cut.micro_batch}, as one step over all "
        f"{cut.samples}"
    )


def shortage_words(shortage: Shortage) -> str:
    """The numbers that an error gives: asked for 2.0 GiB, 1.1 GiB free, of 8.0 GiB."""
    told = (("asked for", shortage.asked), ("free", shortage.free), ("in all", shortage.total))
    words = [f"{name} {size_text(count)}" for name, count in told if count is not None]
    return ", ".join(words) or "no numbers are given"


class Record:
    """What has happened so far. Each thing is said once on standard error, when it happens."""

    def __init__(self) -> None:
        self.steps = 0
        self.steps_in_parts = 0
        self._cuts: list[Cut] = []
        self._differences: list[str] = []

    @property
    def report(self) -> GuardReport:
        cuts, differences = tuple(self._cuts), tuple(self._differences)
        return GuardReport(self.steps, self.steps_in_parts, cuts, differences)

    def cut(self, cut: Cut) -> None:
        self._cuts.append(cut)
        say(cut_words(cut))

    def differs(self, words: str) -> None:
        if words not in self._differences:
            self._differences.append(words)
            say(f"not the same as the whole batch: {words}")


def say(words: str) -> None:
    """One line for the person at the terminal; a program without standard error goes without."""
    if sys.stderr is not None:
        print(f"whygpu: {words}", file=sys.stderr, flush=True)
