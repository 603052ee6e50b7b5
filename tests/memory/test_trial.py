"""What a trial's end means: only want of memory is taken for want of memory."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from whygpu.memory.trial import Limits, gauges_of, judge, leak_of, steady_rise
from whygpu.model.batch import Gauge
from whygpu.model.work import TaskEnd, TaskEnding

MIB = 1 << 20
LIMITS = Limits(memory=1000 * MIB, gpu=None)


def step(number: int, now: int, peak: int, device: dict[str, Any] | None = None) -> dict[str, Any]:
    host = {"now": now * MIB, "peak": peak * MIB, "address_space": 2 * peak * MIB}
    return {
        "kind": "step",
        "number": number,
        "step_seconds": 0.5 / number,
        "host": host,
        "device": device,
    }


def loaded(now: int) -> dict[str, Any]:
    return {**step(1, now, now), "kind": "loaded"}


def ended(
    ending: TaskEnding = "finished",
    how: str = "",
    *,
    steps: tuple[dict[str, Any], ...] = (),
    text: str = "",
    traceback: str = "",
    peak: int = 0,
) -> TaskEnd:
    return TaskEnd(ending, how, (loaded(100), *steps), text, traceback, 4.0, peak * MIB)


FITS = (step(1, 300, 750), step(2, 310, 720), step(3, 310, 700))
TORCH = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
XLA = "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967296 bytes"


def test_a_trial_that_fits() -> None:
    trial = judge(8, ended(steps=FITS), LIMITS)
    assert (trial.outcome, trial.how, trial.steps) == ("fits", "", 3)
    assert trial.gauges == (Gauge("memory", 100 * MIB, 750 * MIB, 720 * MIB, 1000 * MIB),)
    assert trial.step_seconds == pytest.approx((0.25 + 0.5 / 3) / 2, abs=1e-5)
    assert trial.samples_per_second == pytest.approx(38.4, abs=0.1)


def test_a_peak_that_came_and_went_between_two_looks_counts() -> None:
    assert judge(8, ended(steps=(*FITS, step(4, 310, 1001))), LIMITS).outcome == "does-not-fit"
    assert judge(8, ended(steps=FITS, peak=1001), LIMITS).outcome == "does-not-fit"


@each(
    ("end", "word"),
    [
        (ended("over-limit", "1100 of 1000"), "limit of main memory"),
        (ended("signal", "SIGKILL"), "SIGKILL"),
        (ended("exception", TORCH, traceback=f"Traceback\n{TORCH}"), "CUDA out of memory"),
        (ended("exception", XLA, traceback=XLA), "RESOURCE_EXHAUSTED"),
        (ended("exception", "MemoryError: ", traceback="Traceback\nMemoryError"), "MemoryError"),
        (
            ended(
                "signal",
                "SIGABRT",
                text="terminate called after throwing an instance of 'std::bad_alloc'\n"
                "  what():  std::bad_alloc",
            ),
            "std::bad_alloc",
        ),
        (ended("exit", "exit code 1", text="Traceback\nMemoryError"), "MemoryError"),
    ],
)
def test_what_does_not_fit(end: TaskEnd, word: str) -> None:
    trial = judge(8, end, LIMITS)
    assert trial.outcome == "does-not-fit"
    assert word in trial.how


@each(
    ("end", "how"),
    [
        (ended("exception", "ValueError: bad shape"), "ValueError: bad shape"),
        (
            # What was printed on the way is not what ended it.
            ended("exception", "KeyError: 'memory'", text=f"retried after {TORCH}"),
            "KeyError: 'memory'",
        ),
        (ended("signal", "SIGSEGV", text="Fatal Python error"), "SIGSEGV, without an exception"),
        (ended("signal", "SIGABRT", text="assertion failed"), "SIGABRT, without an exception"),
        (ended("exit", "exit code 0"), "exit code 0, without an exception"),
    ],
)
def test_what_fails_of_something_else(end: TaskEnd, how: str) -> None:
    trial = judge(8, end, LIMITS)
    assert (trial.outcome, trial.how) == ("failed", how)


def test_what_takes_too_long() -> None:
    trial = judge(8, ended("timed-out", "600 s"), LIMITS)
    assert (trial.outcome, trial.how) == ("too-slow", "not done within 600 s")


def test_a_gpu_counts_what_the_compiled_step_needs() -> None:
    """And holds between steps what it held least; the framework's own limit comes first."""
    device = {"now": 500 * MIB, "peak": 5000 * MIB, "reserved": 0, "limit": 8000 * MIB}
    one = step(1, 300, 700, device)
    two = step(2, 300, 700, {**device, "now": 450 * MIB, "need": 3000 * MIB})
    three = step(3, 300, 700, {**device, "need": 2900 * MIB})
    steps = (one, two, three)
    first, second = gauges_of(ended(steps=steps), Limits(1000 * MIB, 16000 * MIB))
    assert first == Gauge("gpu", 450 * MIB, 5000 * MIB, 3000 * MIB, 8000 * MIB)
    assert second.name == "memory"
    (alone, _) = gauges_of(ended(steps=(one,)), LIMITS)
    assert alone.peak == 5000 * MIB


def test_what_xla_was_refused_is_what_the_batch_needs_beside_what_was_held() -> None:
    device = {"now": 5 * MIB, "peak": 9 * MIB, "limit": 4000 * MIB}
    broken = {**step(1, 300, 300, {**device, "now": 900 * MIB}), "kind": "broken"}
    begun = {**step(1, 300, 300, device), "kind": "loaded"}
    end = ended("exception", XLA, steps=(begun, broken))
    trial = judge(64, end, Limits(None, None))
    assert (trial.outcome, trial.steps) == ("does-not-fit", 0)
    assert trial.gauges[0] == Gauge("gpu", 5 * MIB, 4996 * MIB, 4996 * MIB, 4000 * MIB)
    # An allocator can be full before it has reached its limit, and PyTorch asks piece by piece.
    roomy = judge(64, end._replace(how=XLA.replace("4294967296", "1024")), Limits(None, None))
    assert roomy.gauges[0].peak == 4000 * MIB + 1
    pieces = judge(64, end._replace(how=TORCH), Limits(None, None))
    assert pieces.gauges[0].peak == 9 * MIB


def test_what_pytorch_has_had_before_the_update_is_a_gauge_of_its_own() -> None:
    device = {"now": 1300 * MIB, "peak": 1660 * MIB, "limit": 7000 * MIB, "gradients": None}
    later = {**device, "gradients": 1400 * MIB}
    end = ended(steps=(step(1, 9, 9, device), step(2, 9, 9, later), step(3, 9, 9, later)))
    whole, gradients, _ = gauges_of(end, LIMITS)
    assert (whole.name, whole.steady) == ("gpu", 1660 * MIB)
    assert gradients == Gauge("gpu-gradients", 1300 * MIB, 1400 * MIB, 1400 * MIB, whole.limit)
    assert len(gauges_of(ended(steps=(step(1, 9, 9, later), step(2, 9, 9, device))), LIMITS)) == 2


def test_what_one_compiled_program_needs_is_not_what_several_do() -> None:
    device = {"now": 100 * MIB, "peak": 5000 * MIB, "need": 300 * MIB, "limit": 20000 * MIB}
    several = ended(steps=(step(1, 300, 700, device), step(2, 300, 700, device)))
    assert gauges_of(several, LIMITS)[0].steady == 5000 * MIB
    one = several._replace(messages=({**loaded(100), "one_program": True}, *several.messages[1:]))
    assert gauges_of(one, LIMITS)[0].steady == 300 * MIB


def test_the_smaller_limit_of_a_gpu_counts() -> None:
    device = {"now": 100 * MIB, "peak": 200 * MIB, "limit": 9000 * MIB}
    end = ended(steps=(step(1, 300, 700, device),))
    assert gauges_of(end, Limits(None, 8000 * MIB))[0].limit == 8000 * MIB
    assert gauges_of(end, Limits(None, 10000 * MIB))[0].limit == 9000 * MIB
    assert gauges_of(end, Limits(None, None))[0].limit == 9000 * MIB


def test_a_limit_of_address_space_is_a_gauge_of_its_own() -> None:
    gauges = gauges_of(ended(steps=FITS), LIMITS._replace(address_space=4000 * MIB))
    assert gauges[-1] == Gauge("address-space", 200 * MIB, 1500 * MIB, 1500 * MIB, 4000 * MIB)


@each(
    ("held", "rise"),
    [
        ([100, 200, 210, 220, 230, 240, 250, 260], 10),
        ([100, 200, 210, 219, 231, 240, 251, 260], 10),
        ([100, 200, 210, 260, 230, 240, 250, 300, 270, 280], 10),
        ([100, 110, 120, 130], None),
        ([100, 200, 240, 260, 270, 275, 277, 278], None),
        ([100, 200, 240, 200, 240, 200, 240, 200], None),
        ([100, 200, 200, 200, 200, 200, 200, 200], None),
        ([100, 200, 200, 260, 260, 260, 260, 300], None),
    ],
    ids=["steady", "about", "jumping", "too-few", "settling", "to-and-fro", "level", "jumps"],
)
def test_a_leak_rises_by_about_the_same_amount_to_the_end(held: list[int], rise: int) -> None:
    found = steady_rise([each * MIB for each in held], MIB)
    assert found == (None if rise is None else pytest.approx(rise * MIB, rel=0.11))


def rising(each: int, counted: int | None, count: int = 9) -> TaskEnd:
    """Resident memory goes up with each step, and what malloc has given out as well, or not."""
    steps = [step(number, 200 + each * number, 400) for number in range(1, count)]
    for number, one in enumerate(steps):
        in_use = None if counted is None else (150 + counted * number) * MIB
        one["host"].update(anonymous=200 * MIB, in_use=in_use)
    return ended(steps=tuple(steps))


def test_holes_are_no_leak() -> None:
    """Resident memory rises for long where nothing is kept; what is in use does not."""
    assert leak_of(rising(2, counted=0)) is None
    assert leak_of(rising(2, counted=2)) == 2 * MIB
    # Where malloc tells nothing, or an allocator of another make is at work, it has to be much.
    assert leak_of(rising(2, counted=None)) is None
    assert leak_of(rising(30, counted=None)) == 30 * MIB
    other = rising(30, counted=0)
    for step in other.sent("step"):
        step["host"]["in_use"] = MIB
    assert leak_of(other) == 30 * MIB


def test_counters_of_32_bits_wrap_around() -> None:
    end = rising(2, counted=2)
    for step in end.sent("step"):
        step["host"]["in_use"] = (step["host"]["in_use"] + (1 << 32) - 155 * MIB) % (1 << 32)
        step["host"]["anonymous"] = 5 << 30
    assert leak_of(end) == 2 * MIB


def test_a_leak_is_told_whether_it_was_the_end_or_not() -> None:
    rising = tuple(step(number, 200 + 30 * number, 400) for number in range(1, 9))
    for end in (
        ended(steps=rising),
        ended("over-limit", "", steps=rising),
        ended("exception", "MemoryError: ", traceback="MemoryError", steps=rising),
    ):
        trial = judge(8, end, LIMITS)
        assert (trial.outcome, trial.leak_bytes) == ("leaks", 30 * MIB)
    assert judge(8, ended("exception", "KeyError: 1", steps=rising), LIMITS).outcome == "failed"
    assert judge(8, ended("exception", TORCH, steps=FITS), LIMITS).outcome == "does-not-fit"


def test_a_crash_counts_near_a_limit_only() -> None:
    end = ended("signal", "SIGSEGV", text="Fatal Python error: Segmentation fault")
    assert judge(8, end, LIMITS).outcome == "failed"
    trial = judge(8, end, LIMITS, near_limit=True)
    assert (trial.outcome, trial.how) == ("does-not-fit", "SIGSEGV, near the limit")


def test_words_with_several_reasons_count_near_a_limit_only() -> None:
    words = "RuntimeError: could not create a primitive"
    end = ended("exception", words, traceback=f"Traceback\n{words}")
    assert judge(8, end, LIMITS).outcome == "failed"
    trial = judge(8, end, LIMITS, near_limit=True)
    assert (trial.outcome, trial.how) == ("does-not-fit", f"{words}, near the limit")
    other = ended("exception", "ValueError: shapes", traceback="Traceback\nValueError: shapes")
    assert judge(8, other, LIMITS, near_limit=True).outcome == "failed"
