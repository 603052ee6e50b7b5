"""Makes the answer of a search from its trials, with a margin if one is wanted. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from whygpu.memory import batch_aim, batch_search
from whygpu.memory.batch_search import StopReason
from whygpu.memory.forecast import forecast
from whygpu.model.batch import BatchOutcome, BatchResult, Gauge, SearchWishes, Trial

_OUTCOMES: dict[StopReason, BatchOutcome] = {
    "bracketed": "found",
    "predicted": "found",
    "at-largest": "at-largest",
    "trials": "unsettled",
    "nothing-fits": "nothing-fits",
    "leaks": "leaks",
    "failed": "failed",
    "too-slow": "too-slow",
}
_IRREGULAR = 0.04
"""Part of the batch by which trials near the limit may disagree about where it is reached."""
_USABLE = ("found", "at-largest", "unsettled", "too-slow")


def answer(what: str, trials: Sequence[Trial], stop: StopReason) -> BatchResult:
    """The answer without a margin, from the trials alone."""
    valid = batch_search.uncontradicted(trials)
    low, high = batch_search.bracket(valid)
    outcome = _OUTCOMES[stop]
    return BatchResult(
        what=what,
        outcome=outcome,
        batch=low if outcome in _USABLE else None,
        largest_run=low,
        smallest_not=high,
        forecast=_forecast(valid),
        margin=0.0,
        device="",
        limit=_limit(valid),
        frameworks=(),
        trials=tuple(trials),
        traceback="",
        notes=(*_notes(valid), *_contradictions(trials, valid)),
        seconds=0.0,
    )


def _notes(trials: Sequence[Trial]) -> tuple[str, ...]:
    """What contradicts the answer."""
    low, _ = batch_search.bracket(trials)
    failed = _failed_below(trials)
    if not failed:
        return ()
    if min(failed) == low:
        return (
            f"{low} did not fit in one trial but did in another: the step's memory use differs "
            "from run to run",
        )
    return (
        f"{min(failed)} did not fit, but {low} did: the step's memory use differs from run to "
        "run, or some larger batches take less",
    )


def _contradictions(trials: Sequence[Trial], valid: Sequence[Trial]) -> tuple[str, ...]:
    wrong = [trial for trial in trials if trial not in valid]
    if not wrong:
        return ()
    word = "fitted" if wrong[0].outcome == "fits" else "did not fit"
    return (
        f"{wrong[0].batch} {word} in a process that had tried other batches before, but a new "
        "process contradicts this: only the trials in new processes count",
    )


def _failed_below(trials: Sequence[Trial]) -> list[int]:
    """The batches that did not fit in some trial, although as large a batch ran."""
    low, _ = batch_search.bracket(trials)
    return [t.batch for t in trials if t.outcome == "does-not-fit" and t.batch <= (low or 0)]


def is_irregular(trials: Sequence[Trial]) -> bool:
    """Whether main memory does not rise steadily near its limit, so that trials disagree."""
    seen = forecast(trials)
    if seen is None or seen.gauge.on_gpu:
        return False
    return bool(_failed_below(trials)) or seen.scatter > _IRREGULAR


def _fits(trials: Sequence[Trial]) -> list[Trial]:
    fits = [trial for trial in trials if trial.outcome == "fits"]
    return sorted(fits, key=lambda trial: trial.batch)


def _forecast(trials: Sequence[Trial]) -> int | None:
    seen = forecast(trials) if len(_fits(trials)) > 1 else None
    return None if seen is None or math.isinf(seen.batch) else math.floor(seen.batch)


def _limit(trials: Sequence[Trial]) -> Gauge | None:
    """What runs out first, or what ran out if nothing fits."""
    seen = forecast(trials)
    if seen is not None and seen.gauge.name == "gpu-gradients":
        return _fits(trials)[-1].gauge("gpu")
    if seen is not None:
        return seen.gauge
    limited = [gauge for gauge in trials[-1].gauges if gauge.limit is not None] if trials else []
    return max(limited, key=lambda gauge: gauge.peak / (gauge.limit or 1), default=None)


def with_margin(result: BatchResult, wishes: SearchWishes, margin: float) -> BatchResult:
    """The largest batch that leaves so much of the memory free, by the line through the trials."""
    low = result.batch
    if not margin or low is None:
        return result._replace(margin=margin)
    seen = forecast(batch_search.uncontradicted(result.trials))
    if seen is None or seen.slope <= 0:
        batch = low * (1 - margin)
    else:
        peak, limit = seen.gauge.peak, seen.limit
        # A batch that did not run needs at least all there is, whatever the counters say.
        top = low + 1 if result.smallest_not is None else result.smallest_not
        edge = limit if seen.gauge.decides else min(limit, peak + seen.slope * (top - low))
        too_much = peak - (edge - margin * limit)
        batch = low - max(too_much, 0.0) / seen.slope
    return result._replace(margin=margin, batch=batch_aim.on_grid(batch, wishes))
