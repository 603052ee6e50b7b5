"""What watching a run has shown of its memory, for the causes that judge its last words."""

from __future__ import annotations

from typing import Literal

from whygpu.causes.evidence.log_memory_figures import Figures
from whygpu.model.finding import Confidence
from whygpu.model.log import Log
from whygpu.model.memory_use import MemoryEnd

Reason = Literal["too-big", "other-process", "fragmentation", "leak"]
Judgement = tuple[Reason, Confidence, str, "Reason | None"]
"""Why, how sure that is, what shows it, and what is not excluded."""


def completed(figures: Figures, seen: MemoryEnd | None) -> Figures:
    """The figures of a log with what it leaves out and watching has shown."""
    if seen is None:
        return figures
    if seen.limit is not None and None in (figures.free, figures.held):
        # What is free and held is then counted within the limit in force, which may be less than
        # what a GPU of that name has.
        figures = figures._replace(total_least=seen.limit, total_most=seen.limit)
    return figures._replace(
        requested=figures.requested if figures.requested is not None else seen.asked,
        free=figures.free if figures.free is not None else seen.free,
        held=figures.held if figures.held is not None else seen.held,
    )


def by_watching(log: Log) -> Judgement | None:
    """How memory went while the program ran outranks what its last words suggest."""
    seen = log.memory
    if seen is None or seen.reason == "unknown":
        return None
    return seen.reason, seen.confidence, seen.because, None


def doubted(log: Log, judgement: Judgement) -> Judgement:
    """Where watching did not tell, a full GPU is no proof that the program is too big."""
    reason, _, because, also = judgement
    if log.memory is None or reason != "too-big":
        return judgement
    return reason, "likely", because, also or "leak"
