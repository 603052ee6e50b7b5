"""What a guard did, and what it could not keep the same: as values and as text."""

from __future__ import annotations

import sys
from typing import NamedTuple

from whygpu.model.figures import counted
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
    """Bytes that were requested and refused, if the framework says."""
    message: str
    """The framework's own message."""


class GuardReport(NamedTuple):
    """Everything that a guard reports. `str()` of it is for people."""

    steps: int
    """Training steps since the guard was made."""
    steps_in_parts: int
    """Those of them that were computed in more than one part."""
    cuts: tuple[Cut, ...]
    differences: tuple[str, ...]
    """What differs, by more than rounding, between a step in parts and one of the whole batch."""

    def __str__(self) -> str:
        if not self.steps_in_parts and not self.cuts:
            return f"{counted(self.steps, 'step')}, and none ran out of memory"
        lines = [f"{counted(self.steps, 'step')}, {self.steps_in_parts} of them in micro-batches"]
        lines += [f"  {cut_words(cut)}" for cut in self.cuts]
        lines += [f"  difference from the whole batch: {text}" for text in self.differences]
        return "\n".join(lines)


def cut_words(cut: Cut) -> str:
    asked = f" ({size_text(cut.asked)} asked for)" if cut.asked else ""
    return (
        f"{cut.of} step {cut.step}: out of memory with {counted(cut.samples, 'sample')}{asked}; "
        f"computed in {cut.micro_batches} micro-batches of at most {cut.micro_batch}, as one step "
        f"over all {cut.samples}"
    )


def shortage_words(shortage: Shortage) -> str:
    """The numbers in an error: asked for 2 GiB, free 1.1 GiB, total 8 GiB."""
    numbers = (("asked for", shortage.asked), ("free", shortage.free), ("total", shortage.total))
    known = [f"{name} {size_text(count)}" for name, count in numbers if count is not None]
    return ", ".join(known) or "the error gives no numbers"


class Record:
    """What has happened so far. Each thing is printed once on standard error, when it happens."""

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

    def differs(self, text: str) -> None:
        if text not in self._differences:
            self._differences.append(text)
            say(f"difference from the whole batch: {text}")


def say(text: str) -> None:
    """Print one line on standard error, if the program has one."""
    if sys.stderr is not None:
        print(f"whygpu: {text}", file=sys.stderr, flush=True)
