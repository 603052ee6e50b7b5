"""What watching a run has shown about its memory, for the causes that judge its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from whygpu.causes.evidence.log_memory_figures import Figures
from whygpu.model.finding import Confidence
from whygpu.model.log import Log

if TYPE_CHECKING:
    from whygpu.model.memory_use import MemoryEnd

Reason = Literal["too-big", "other-process", "fragmentation", "leak"]
Judgement = tuple[Reason, Confidence, str, "Reason | None"]
"""The reason, its confidence, the evidence as text, and a reason that is not excluded."""


def completed(figures: Figures, seen: MemoryEnd | None) -> Figures:
    """The figures of a log, completed with those from watching the run."""
    if seen is None:
        return figures
    if seen.limit is not None and None in (figures.free, figures.held):
        # Free and held memory then count within the limit in force, which may be less than the
        # memory of a GPU of that name.
        figures = figures._replace(total_least=seen.limit, total_most=seen.limit)
    return figures._replace(
        requested=figures.requested if figures.requested is not None else seen.asked,
        free=figures.free if figures.free is not None else seen.free,
        held=figures.held if figures.held is not None else seen.held,
    )


def by_watching(log: Log) -> Judgement | None:
    """The course of memory during the run overrides what the end of the log suggests."""
    seen = log.memory
    if seen is None or seen.reason == "unknown":
        return None
    return seen.reason, seen.confidence, seen.because, None


def doubted(log: Log, judgement: Judgement) -> Judgement:
    """If watching was not conclusive, a full GPU does not prove that the program is too big."""
    reason, _, because, also = judgement
    if log.memory is None or reason != "too-big":
        return judgement
    return reason, "likely", because, also or "leak"
