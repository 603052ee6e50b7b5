"""The numbers below an explanation, for each way in which memory can end a run."""

from __future__ import annotations

from typing import Any

import pytest

from whygpu.model.memory_use import MemoryEnd
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
  why        too big, and no leak (likely): it failed in its first round of
             work
  what fits  a batch below 55 instead of 64, if memory goes with the batch;
             how far below, the unfinished step does not say
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
    [("leak", "let go of what is kept"), ("other-process", "`whygpu memory` shows who holds it")],
)
def test_advice_is_for_the_reason(reason: str, advice: str) -> None:
    said = memory_text(END._replace(reason=reason, fits_below=None))  # type: ignore[arg-type]
    assert advice in said
    assert "memory find" not in said


def test_a_limit_that_did_not_refuse_it_is_not_given() -> None:
    end = END._replace(place="host", device="host", limit=None, limit_is="")
    assert "limit      not known" in memory_text(end)
