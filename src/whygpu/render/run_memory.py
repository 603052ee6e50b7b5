"""How memory ended a run, for people and as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.derived import DISPLAY_NAMES, display_name
from whygpu.model.memory_use import FitEstimate, MemoryEnd
from whygpu.model.shortage import HopelessRequest
from whygpu.model.units import size_text
from whygpu.render.text_page import Page

_PLACES = {
    "gpu": "the GPU's memory",
    "host": "the computer's memory",
    "pinned": "the computer's memory, locked for the GPU",
    "shared-memory": "shared memory",
}
_REASONS = {
    "leak": "a leak",
    "too-big": "too big, not a leak",
    "fragmentation": "fragmentation",
    "other-process": "other processes hold it",
    "unknown": "cannot tell",
}
_INDENT = 13


def memory_text(end: MemoryEnd, script: str | None = None, *, width: int = 80) -> str:
    """The numbers below an explanation. `script` is the program's file, if it has one."""
    page = Page(width, color=False)
    page.line(f"memory that ran out: {what_ran_out(end)}")
    for label, text in memory_rows(end, script):
        page.hanging(f"  {label}", text, _INDENT)
    return page.text().rstrip()


def what_ran_out(end: MemoryEnd) -> str:
    device = f" ({end.device})" if end.device not in ("", "host") else ""
    return f"{_PLACES[end.place]}{device}{_by(end)}"


def hopeless_text(request: HopelessRequest) -> str:
    """While the program runs: what it waits for will never happen."""
    return (
        f"TensorFlow asked for {size_text(request.asked)} of GPU memory at once, and its limit is "
        f"{size_text(request.limit)}. It can never get that, but waits up to 10 s for each such "
        "request; Ctrl-C ends the program"
    )


def _by(end: MemoryEnd) -> str:
    return f", asked for by {display_name(end.of)}" if end.of in DISPLAY_NAMES else ""


def memory_rows(end: MemoryEnd, script: str | None) -> Iterator[tuple[str, str]]:
    if end.asked is not None:
        yield "asked for", size_text(end.asked)
    if end.free is not None:
        yield "free", size_text(end.free)
    if end.limit is not None:
        yield "limit", f"{size_text(end.limit)} ({end.limit_is})"
    elif end.place == "host" and end.free is not None:
        yield "limit", "unknown: more main memory was free than was asked for"
    if end.held is not None:
        unused = f", and {size_text(end.unused)} reserved and not in use" if end.unused else ""
        yield "held", f"{size_text(end.held)} by this program{unused}"
    if end.others is not None:
        yield "others", f"{size_text(end.others)}{_named(end)}" if end.others else "nothing"
    if end.because:
        yield "why", f"{_REASONS[end.reason]} ({end.confidence}): {end.because}"
    yield from _what_fits(end)
    yield from _next(end, script)


def _what_fits(end: MemoryEnd) -> Iterator[tuple[str, str]]:
    """What is certain, and what the estimate says."""
    if end.fits_below is not None:
        yield (
            "what fits",
            (
                f"a batch below {end.fits_below} instead of {end.batch}, if memory use grows with "
                "the batch; the unfinished step does not show how far below"
            ),
        )
    if end.estimate is None:
        return
    if end.estimate.answer == "cannot-tell":
        yield "estimate", f"cannot be made: {end.estimate.why}"
        return
    yield "estimate", _estimated(end.estimate, end)


def _estimated(fit: FitEstimate, end: MemoryEnd) -> str:
    doing = "training" if fit.mode == "train" else "inference with"
    optimizer = f" and {fit.optimizer}" if fit.optimizer else ""
    needs = size_text(fit.needs or 0)
    amount = f"at least {needs}, without gaps between arrays" if fit.least else f"about {needs}"
    work = f"{doing} {fit.model} with a batch of {fit.batch}{optimizer}"
    if fit.begun:
        work = f"the process ended without an error message; its last work, {work},"
    takes = f"{work} takes {amount}"
    if fit.room is None:
        return f"{takes}; how much memory was available for it is unknown"
    there = f"{takes}, and there was room for {size_text(fit.room)}"
    if fit.answer == "would-have-fitted":
        return (
            f"{there}: it should have fitted. The rest was taken by a leak, gaps between arrays, "
            "other processes, or parts of the program outside this step"
        )
    close = " That is too close to tell." if fit.answer == "close" else ""
    return f"{there}.{close}{_largest(fit, end)}"


def _largest(fit: FitEstimate, end: MemoryEnd) -> str:
    if fit.largest is None:
        return " The largest batch that fits was not found in time."
    if fit.largest == 0:
        return " Not even a batch of 1 fits."
    if fit.largest >= (fit.batch or 0):
        return ""
    if fit.least:
        return f" No batch above {fit.largest} fits."
    if end.fits_below is not None and fit.largest >= end.fits_below:
        return (
            f" By this estimate a batch of {fit.largest} should fit, but the memory in use at "
            "the end contradicts it: the program holds more than this step."
        )
    return f" A batch of {fit.largest} should fit, with a margin for the estimate's error."


def _named(end: MemoryEnd) -> str:
    return f": {', '.join(end.holders)}" if end.holders else ""


def _next(end: MemoryEnd, script: str | None) -> Iterator[tuple[str, str]]:
    target = shlex.quote(f"{script or 'FILE.py'}:FUNCTION")
    if end.reason == "other-process":
        yield "next", "`whygpu memory` shows who holds it, and what is left"
    elif end.reason == "too-big" and end.place in ("gpu", "host"):
        yield (
            "next",
            (
                f"`whygpu memory find {target}` finds the largest batch that "
                "fits; `whygpu memory estimate` works it out without running the program"
            ),
        )
    elif end.reason == "leak":
        yield "next", "a smaller batch only delays it: release what the program keeps"
    elif end.estimate is not None and end.estimate.answer == "cannot-tell":
        yield (
            "next",
            (
                f"`whygpu memory estimate {target}` estimates a model, or a "
                "JAX function with its arguments, that a function of yours returns"
            ),
        )


def memory_dict(end: MemoryEnd) -> dict[str, Any]:
    """The same as JSON, with the curve that the reason was judged from."""
    data: dict[str, Any] = encode(end)
    return data
