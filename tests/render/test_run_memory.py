"""The numbers below an explanation, for each way in which memory can end a run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from whygpu.model.memory_use import FitEstimate, MemoryEnd
from whygpu.render.run_memory import memory_text

GIB = 1 << 30

END = MemoryEnd(
    place="gpu",
    device="gpu:0",
    of="torch",
    asked=2 * GIB,
    free=GIB // 2,
    limit=10 * GIB,
    limit_is="--memory",
    held=9 * GIB,
    unused=GIB // 4,
    others=3 * GIB,
    holders=("python (pid 4711, 3.0 GiB)",),
    reason="too-big",
    confidence="likely",
    because="it failed in its first round of work",
    batch=64,
    fits_below=55,
)


def test_all_that_is_known() -> None:
    assert (
        memory_text(END, "train.py", width=78)
        == """\
memory that ran out: the GPU's memory (gpu:0), asked for by PyTorch
  asked for  2 GiB
  free       512 MiB
  limit      10 GiB (--memory)
  held       9 GiB by this program, and 256 MiB reserved and not in use
  others     3 GiB: python (pid 4711, 3.0 GiB)
  why        too big, not a leak (likely): it failed in its first round of
             work
  what fits  a batch below 55 instead of 64, if memory use grows with the
             batch; the unfinished step does not show how far below
  next       `whygpu memory find train.py:FUNCTION` finds the largest batch
             that fits; `whygpu memory estimate` works it out without running
             the program"""
    )


def test_what_is_not_known_is_left_out() -> None:
    sizes = ("asked", "free", "limit", "held", "unused", "others", "fits_below")
    unknown: dict[str, Any] = dict.fromkeys(sizes)
    nothing = END._replace(
        place="shared-memory",
        device="",
        of="shared memory",
        reason="unknown",
        because="",
        **unknown,
    )
    assert memory_text(nothing) == "memory that ran out: shared memory"


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("leak", "release what the program keeps"),
        ("other-process", "`whygpu memory` shows who holds it"),
    ],
)
def test_advice_is_for_the_reason(reason: str, advice: str) -> None:
    said = memory_text(END._replace(reason=reason, fits_below=None))  # type: ignore[arg-type]
    assert advice in said
    assert "memory find" not in said


def test_a_limit_that_did_not_refuse_it_is_not_given() -> None:
    end = END._replace(place="host", device="host", limit=None, limit_is="")
    assert "limit      unknown" in memory_text(end)


FIT = FitEstimate(
    answer="too-big",
    model="Net",
    optimizer="sgd",
    batch=64,
    needs=12 * GIB,
    room=10 * GIB,
    largest=40,
)
TAKES = "training Net with a batch of 64 and sgd takes about 12 GiB, and there was room for 10 GiB"


@each(
    ("changes", "said"),
    [
        ({}, ". A batch of 40 should fit, with a margin for the estimate's error."),
        ({"largest": 0}, ". Not even a batch of 1 fits."),
        ({"largest": None}, ". The largest batch that fits was not found in time."),
        (
            {"answer": "close"},
            ". That is too close to tell. A batch of 40 should fit, with a margin for the "
            "estimate's error.",
        ),
        (
            {"largest": 56},
            ". By this estimate a batch of 56 should fit, but the memory in use at the end "
            "contradicts it: the program holds more than this step.",
        ),
    ],
    ids=["fits", "none", "not-found", "close", "contradicted"],
)
def test_what_would_fit_by_the_estimate(changes: dict[str, Any], said: str) -> None:
    whole = memory_text(END._replace(estimate=FIT._replace(**changes)), width=1000)
    assert f"  estimate   {TAKES}{said}" in whole.splitlines()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"answer": "cannot-tell", "why": "nothing shows the inputs of the module"},
            "cannot be made: nothing shows the inputs of the module",
        ),
        (
            {"answer": "no-room-known", "room": None, "mode": "infer", "optimizer": None},
            "inference with Net with a batch of 64 takes about 12 GiB; how much memory was "
            "available for it is unknown",
        ),
        (
            {"answer": "too-big", "least": True},
            "training Net with a batch of 64 and sgd takes at least 12 GiB, without gaps "
            "between arrays, and there was room for 10 GiB. No batch above 40 fits.",
        ),
    ],
    ids=["cannot", "no-room", "least"],
)
def test_what_an_estimate_cannot_say(changes: dict[str, Any], said: str) -> None:
    whole = memory_text(END._replace(estimate=FIT._replace(**changes)), width=1000)
    assert f"  estimate   {said}" in whole.splitlines()


def test_who_can_estimate_what_the_end_of_a_run_cannot() -> None:
    unknown = END._replace(reason="unknown", estimate=FitEstimate("cannot-tell", "it is JAX's"))
    assert "`whygpu memory estimate a.py:FUNCTION`" in memory_text(unknown, "a.py", width=1000)


def test_an_estimate_that_contradicts_what_happened_says_so() -> None:
    fitting = FIT._replace(answer="would-have-fitted", needs=2 * GIB)
    whole = memory_text(END._replace(estimate=fitting), width=1000)
    assert "takes about 2 GiB, and there was room for 10 GiB: it should have fitted." in whole
    assert "a leak, gaps between arrays, other processes, or parts of the program" in whole
