"""Why memory ran out, judged by its course: a leak, a program that is too big, gaps, or others.

Pure. What tells a leak from a program that is merely too big is what came before the request that
failed. A leak has done rounds of the same work, and after each more memory stayed in use. A program
that is too big fails in its first round; or it has worked on a level, and one request goes beyond
it. Memory also rises steadily while a large model is built, or during one long first step: so a
rise alone is no leak, unless something shows that rounds were completed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import median
from typing import NamedTuple

from whygpu.model.finding import Confidence
from whygpu.model.lazy_regex import late
from whygpu.model.memory_use import Kept, Point, Reason
from whygpu.model.shortage import MemoryPlace
from whygpu.model.units import size_text

_FEWEST_POINTS = 24
"""Fewer say nothing of steadiness: eight windows of three."""
_WINDOWS = 12
"""Few enough that each holds several rounds of work, whose troughs are what stays in use."""
_RISING = 0.85
"""Of all pairs of windows, the later one is above the earlier in so many. On a level it is half of
them, and so many in one of a thousand runs."""
_STEADY = 0.2
"""Of the whole rise, that comes at least from the first third of the run to the second, and from
that to the last. Where it comes at once, it is another phase of the work, and no drip."""
_LEVEL = 0.1
"""Thirds of the run whose troughs differ by a tenth of the peak are on a level: caches fill, sizes
vary, and a look does not always meet the lowest moment."""
_SAME = 0.01
_FULL = 0.8
"""Of the limit: so much in use, and no more of it for a while, is a wait for memory."""
_LAST = 2
"""Windows at the end that one large step may fill."""
_LEAST_RISE = 0.1
"""Of the limit. A rise that fills less of it is not why it is full."""
_ROUNDS = 3
"""Two rounds are needed to see that the second is like the first; the third is for luck."""
_TURNOVER = 8.0
"""Pieces ever given out for each that is in use. Building a model with its optimizer makes up to
four; every training step throws away a multiple of what it keeps."""
_MANY = 8
_MOSTLY = 0.5
_CONTEXT = 1 << 29
"""What a process has on a GPU beside its tensors: context, kernels, library workspaces."""
_OF_MODELS = late(r"param|weight|layer|block|model|module|state|variable|embed|bias|kernel", re.I)
"""Names of lists of arrays that are a model and no results."""
_GAPS = 0.02
"""Of the limit: less than this is reserved and unused in any program."""


class Course(NamedTuple):
    """What is known of a run that died for want of memory. Sizes are in bytes; None is unknown."""

    place: MemoryPlace
    asked: int | None = None
    free: int | None = None
    limit: int | None = None
    held: int | None = None
    """By live tensors on a GPU; by the whole program on the computer."""
    unused: int | None = None
    """Reserved by this process's allocator and not in use."""
    largest_free: int | None = None
    """The largest piece of `unused`."""
    others: int | None = None
    points: tuple[Point, ...] = ()
    """Memory in use over time, since the frameworks were imported."""
    steps: int | None = None
    """Training steps that were completed, at least."""
    rounds: int | None = None
    """Of the loop under way that had begun most often before; 0 also where none was under way, and
    None where that is not known."""
    progress: int = 0
    """Lines of output that tell of work done."""
    turnover: float | None = None
    """Pieces of memory ever given out for each that is in use."""
    kept: tuple[Kept, ...] = ()


class Judgement(NamedTuple):
    reason: Reason
    confidence: Confidence
    because: str
    """In words that can end a sentence."""


class Trend(NamedTuple):
    """The troughs of a curve: in the first third of the run, and in the last."""

    first: int
    last: int
    steady: bool
    """They rise all the way, and not at once."""
    level: bool
    peak_before: int
    """The most that was in use, but for the last windows."""
    at_end: int

    @property
    def rise(self) -> int:
        return self.last - self.first

    @property
    def surge(self) -> int:
        """What came at the end beyond all that was in use before."""
        return max(0, self.at_end - self.peak_before)


def judge(course: Course) -> Judgement:
    """The first of these that can tell."""
    trend = trend_of(course.points, course.limit)
    return (
        _more_than_there_is(course)
        or _others(course)
        or _gaps(course)
        or _never_fitted(course, trend)
        or _leak(course, trend)
        or _kept(course)
        or _level(course, trend)
        or _first_round(course)
        or _one_request(course)
        or Judgement("unknown", "possible", _open_question(course, trend))
    )


def trend_of(points: Sequence[Point], limit: int | None = None) -> Trend | None:
    """How the memory that stays in use went; None where too little was seen of it."""
    points = _until_full(points, limit)
    if len(points) < _FEWEST_POINTS:
        return None
    count = min(_WINDOWS, len(points) // 3)
    edges = [len(points) * number // count for number in range(count + 1)]
    troughs = [min(point.low for point in points[start:end]) for start, end in pairwise(edges)]
    # In the first window, the model is still being made.
    settled = troughs[1:]
    third = len(settled) // 3
    thirds = settled[:third], settled[third:-third], settled[-third:]
    early, middle, at_last = (median(part) for part in thirds)
    rise = at_last - early
    peak = max(point.high for point in points)
    return Trend(
        first=min(thirds[0]),
        last=max(thirds[-1]),
        steady=rise > 0
        and min(middle - early, at_last - middle) >= _STEADY * rise
        and _part_rising(settled) >= _RISING,
        level=abs(rise) <= _LEVEL * max(peak, limit or 0),
        peak_before=max(point.high for point in points[: edges[-1 - _LAST]]),
        at_end=points[-1].high,
    )


def _until_full(points: Sequence[Point], limit: int | None) -> Sequence[Point]:
    """Without the wait at the end: TensorFlow and XLA hope for seconds that memory comes free."""
    last = points[-1].high if points else 0
    if limit is not None and last < _FULL * limit:
        return points
    full = len(points)
    while full and abs(points[full - 1].low - last) <= _SAME * last:
        full -= 1
    return points[: full + 1]


def _part_rising(troughs: Sequence[int]) -> float:
    pairs = list(combinations(troughs, 2))
    return sum(later > earlier for earlier, later in pairs) / len(pairs)


def _more_than_there_is(course: Course) -> Judgement | None:
    if course.asked and course.limit and course.asked > course.limit:
        return Judgement(
            "too-big",
            "certain",
            f"a single request of {size_text(course.asked)} is larger than the limit "
            f"({size_text(course.limit)})",
        )
    return None


def _own(course: Course) -> int:
    return (course.held or 0) + (course.unused or 0)


def _shortfall(course: Course) -> int:
    return max(0, (course.asked or 0) - (course.free or 0))


def _others(course: Course) -> Judgement | None:
    """They hold more than this process, and without them the request would have been met."""
    others, limit = course.others, course.limit
    if others is None or limit is None:
        return None
    own = _own(course)
    if others <= max(own, limit // 3) or others - _CONTEXT < _shortfall(course):
        return None
    return Judgement(
        "other-process",
        "certain" if own < limit // 4 else "likely",
        f"other processes hold {size_text(others)} of {size_text(limit)}, and this process "
        f"holds {size_text(own)}",
    )


def _gaps(course: Course) -> Judgement | None:
    """More is reserved and not in use than was asked for, in pieces that are all too small."""
    asked, unused, limit = course.asked, course.unused, course.limit
    if not asked or unused is None or limit is None:
        return None
    if unused < asked or unused < _GAPS * limit:
        return None
    if course.largest_free is not None and course.largest_free >= asked:
        # There was room for it when all was over: what it was part of needed more besides.
        return None
    return Judgement(
        "fragmentation",
        "likely",
        f"{size_text(unused)} is reserved but unused: more than the request, but in blocks that "
        "are too small",
    )


def _never_fitted(course: Course, trend: Trend | None) -> Judgement | None:
    """It is more than was left when the program had just begun."""
    asked, limit = course.asked, course.limit
    if not asked or not limit or trend is None or course.place != "gpu":
        return None
    left = limit - trend.first - (course.others or 0)
    if asked <= left:
        return None
    return Judgement(
        "too-big",
        "likely",
        f"{size_text(max(0, left))} was free soon after the start, less than the "
        f"{size_text(asked)} of the request that failed",
    )


def _worked(course: Course) -> str:
    """What shows that rounds of work were completed; empty where nothing does."""
    rounds = max(course.steps or 0, course.rounds or 0)
    if course.steps is not None and course.steps >= _ROUNDS:
        return f"over {rounds} rounds of work"
    if course.turnover is not None and course.turnover >= _TURNOVER:
        if rounds >= _ROUNDS:
            return f"over {rounds} rounds of work"
        return "while it freed most of the memory that it had allocated"
    if course.progress >= _ROUNDS:
        return f"while it reported progress {course.progress} times"
    return ""


def _leak(course: Course, trend: Trend | None) -> Judgement | None:
    if trend is None or not _rises(course, trend) or trend.rise < _shortfall(course):
        return None
    worked, holder = _worked(course), _holder(course, trend.rise)
    if not worked and (holder is None or not _are_results(course, holder)):
        return None
    sure = bool(worked) and (trend.rise >= _MOSTLY * (course.limit or 0) or holder is not None)
    # The steps that parameters tell of are the least that were done; a loop's counter is exact.
    each = f", about {size_text(trend.rise // course.rounds)} in each" if course.rounds else ""
    return Judgement(
        "leak",
        "certain" if sure else "likely",
        f"the memory that stays in use rose from {size_text(trend.first)} to "
        f"{size_text(trend.last)} {worked or _rounds(course, holder)}{each}{_naming(holder)}",
    )


def _rises(course: Course, trend: Trend) -> bool:
    return trend.steady and trend.rise >= _LEAST_RISE * (course.limit or trend.last)


def _holder(course: Course, whole: int | None) -> Kept | None:
    """The one thing of the program's that most of this memory hangs on."""
    for kept in course.kept:
        if kept.arrays < _MANY:
            continue
        if kept.bytes is None or (whole is not None and kept.bytes >= _MOSTLY * whole):
            return kept
    return None


def _are_results(course: Course, kept: Kept) -> bool:
    """Made round after round, and neither the data nor the model, which loops make as well.

    What has a graph was computed, by as many rounds as there are of it.
    """
    if kept.bytes is None:
        return True
    points = _until_full(course.points, course.limit)
    early = points[len(points) // 4 :]
    there_before = min((point.low for point in early), default=0) >= kept.bytes
    return (
        max(course.rounds or 0, course.steps or 0) >= _MANY
        and kept.of != "numpy"
        and not _OF_MODELS.search(kept.name)
        and not there_before
    )


def _rounds(course: Course, holder: Kept | None) -> str:
    made = holder.arrays if holder and holder.bytes is None else 0
    rounds = max(course.rounds or 0, course.steps or 0, made)
    return f"over {rounds} rounds of work"


def _naming(kept: Kept | None) -> str:
    if kept is None:
        return ""
    if kept.bytes is None:
        return f"; `{kept.name}` holds {kept.arrays} results together with their graphs"
    return f"; `{kept.name}` holds {kept.arrays} arrays, {size_text(kept.bytes)} of it"


def _kept(course: Course) -> Judgement | None:
    """Too fast for its curve: but a loop was under way, and its results are all still there."""
    holder = _holder(course, course.held or course.limit)
    if holder is None or not _are_results(course, holder):
        return None
    return Judgement(
        "leak",
        "likely",
        f"everything made {_rounds(course, holder)} is still in memory{_naming(holder)}",
    )


def _level(course: Course, trend: Trend | None) -> Judgement | None:
    """Rounds of work on a level, and then one request, or another phase, that goes beyond it."""
    worked = _worked(course)
    if trend is None or not trend.level or not worked:
        return None
    was = f"the memory that stays in use was constant at {size_text(trend.first)} {worked}"
    if trend.surge <= max(course.asked or 0, _LEVEL * trend.peak_before):
        return Judgement(
            "too-big",
            "likely",
            f"{was}, so nothing accumulates: one request was larger than those before (a larger "
            "batch, a longer input, another phase)",
        )
    if course.rounds == 0:
        return Judgement(
            "too-big",
            "likely",
            f"{was}, so nothing accumulates: the next phase failed in its first round",
        )
    return None


def _first_round(course: Course) -> Judgement | None:
    # "Epoch 1/5" comes before the first step: where steps are counted, it tells of nothing done.
    announced = 1 if course.steps == 0 else 0
    if course.progress > announced or course.steps or _worked(course):
        return None
    if course.rounds == 0:
        return Judgement("too-big", "likely", "it failed in its first round of work")
    if course.rounds is None and course.steps == 0:
        return Judgement("too-big", "likely", "it failed before a training step was completed")
    return None


def _one_request(course: Course) -> Judgement | None:
    asked, limit = course.asked, course.limit
    if asked and limit and asked >= _MOSTLY * limit:
        return Judgement(
            "too-big", "likely", f"a single request is {size_text(asked)} of {size_text(limit)}"
        )
    return None


def _open_question(course: Course, trend: Trend | None) -> str:
    if trend is None:
        return "it ended before its memory use showed a trend"
    if trend.steady:
        return (
            f"the memory in use rose steadily, from {size_text(trend.first)} to "
            f"{size_text(trend.last)}, but nothing shows whether rounds of work were "
            "completed: it may be a leak, one large step, "
            f"or the making of data and a model{_naming(_holder(course, course.held))}"
        )
    if trend.level and trend.surge > _LEVEL * trend.peak_before:
        return (
            f"the memory in use was constant at {size_text(trend.first)} and rose by "
            f"{size_text(trend.surge)} shortly before the end: one large step, or a fast leak"
        )
    if trend.level:
        return (
            f"the memory in use was constant at {size_text(trend.first)}, and nothing shows how "
            "much work was done"
        )
    return (
        f"the memory in use went from {size_text(trend.first)} to {size_text(trend.last)} without "
        "a clear trend"
    )
