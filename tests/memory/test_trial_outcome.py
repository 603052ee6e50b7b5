"""What a trial's end means: only want of memory is taken for want of memory."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from whygpu.memory.trial_outcome import Limits, gauges_of, judge, leak_of, steady_rise
from whygpu.model.batch import Gauge
from whygpu.model.task_end import TaskEnd, TaskEnding
from whygpu.model.task_wire import (
    DeviceReading,
    ExceptionMessage,
    HostReading,
    LoadedMessage,
    MemoryMessage,
    StepMessage,
    TaskMessage,
)

MIB = 1 << 20
LIMITS = Limits(memory=1000 * MIB, gpu=None)


def host(now: int, peak: int) -> HostReading:
    return HostReading(now * MIB, peak * MIB, address_space=2 * peak * MIB)


def step(number: int, now: int, peak: int, device: DeviceReading | None = None) -> StepMessage:
    return StepMessage(number, 0.5 / number, host(now, peak), device)


def gpu(now: int, peak: int, **others: int) -> DeviceReading:
    """In MiB."""
    known: dict[str, Any] = {name: size * MIB for name, size in others.items()}
    return DeviceReading(now * MIB, peak * MIB, "GPU", **known)


LOADED = LoadedMessage(host(100, 100), None, one_program=False)


def ended(
    ending: TaskEnding = "finished",
    how: str = "",
    *,
    steps: tuple[TaskMessage, ...] = (),
    text: str = "",
    traceback: str = "",
    peak: int = 0,
) -> TaskEnd:
    kind, _, words = how.partition(": ")
    exception = ExceptionMessage("error", kind, words, traceback) if traceback else None
    return TaskEnd(ending, how, (LOADED, *steps), text, exception, 4.0, peak * MIB)


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
        (ended("hopeless-request", "asked for 5 GiB"), "asked for 5 GiB"),
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
    assert (trial.outcome, trial.how) == ("too-slow", "not finished within 600 s")


def test_a_gpu_counts_what_the_compiled_step_needs() -> None:
    """And holds between steps what it held least; the framework's own limit comes first."""
    one = step(1, 300, 700, gpu(500, 5000, limit=8000))
    two = step(2, 300, 700, gpu(450, 5000, limit=8000, need=3000))
    three = step(3, 300, 700, gpu(500, 5000, limit=8000, need=2900))
    steps = (one, two, three)
    first, second = gauges_of(ended(steps=steps), Limits(1000 * MIB, 16000 * MIB))
    assert first == Gauge("gpu", 450 * MIB, 5000 * MIB, 3000 * MIB, 8000 * MIB)
    assert second.name == "memory"
    (alone, _) = gauges_of(ended(steps=(one,)), LIMITS)
    assert alone.peak == 5000 * MIB


def test_what_xla_was_refused_is_what_the_batch_needs_beside_what_was_held() -> None:
    broken = MemoryMessage(host(300, 300), gpu(900, 9, limit=4000), "broken")
    begun = LoadedMessage(host(300, 300), gpu(5, 9, limit=4000), one_program=False)
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
    device = gpu(1300, 1660, limit=7000)
    later = gpu(1300, 1660, limit=7000, gradients=1400)
    end = ended(steps=(step(1, 9, 9, device), step(2, 9, 9, later), step(3, 9, 9, later)))
    whole, gradients, _ = gauges_of(end, LIMITS)
    assert (whole.name, whole.steady) == ("gpu", 1660 * MIB)
    assert gradients == Gauge("gpu-gradients", 1300 * MIB, 1400 * MIB, 1400 * MIB, whole.limit)
    assert len(gauges_of(ended(steps=(step(1, 9, 9, later), step(2, 9, 9, device))), LIMITS)) == 2


def test_what_one_compiled_program_needs_is_not_what_several_do() -> None:
    device = gpu(100, 5000, need=300, limit=20000)
    several = ended(steps=(step(1, 300, 700, device), step(2, 300, 700, device)))
    assert gauges_of(several, LIMITS)[0].steady == 5000 * MIB
    loaded = LOADED._replace(one_program=True)
    one = several._replace(messages=(loaded, *several.messages[1:]))
    assert gauges_of(one, LIMITS)[0].steady == 300 * MIB


def test_the_smaller_limit_of_a_gpu_counts() -> None:
    end = ended(steps=(step(1, 300, 700, gpu(100, 200, limit=9000)),))
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


def rising(each: int, in_use: list[int] | None, anonymous: int = 200 * MIB) -> TaskEnd:
    """Resident memory rises with each of eight steps; `in_use` is what malloc has given out."""
    steps = []
    for number in range(1, 9):
        counted = None if in_use is None else in_use[number - 1]
        held = host(200 + each * number, 400)._replace(anonymous=anonymous, in_use=counted)
        steps.append(step(number, 0, 0)._replace(host=held))
    return ended(steps=tuple(steps))


def counts(each: int, start: int = 150) -> list[int]:
    return [(start + each * number) * MIB for number in range(8)]


def test_holes_are_no_leak() -> None:
    """Resident memory rises for long where nothing is kept; what is in use does not."""
    assert leak_of(rising(2, counts(0))) is None
    assert leak_of(rising(2, counts(2))) == 2 * MIB
    # Where malloc tells nothing, or an allocator of another make is at work, it has to be much.
    assert leak_of(rising(2, None)) is None
    assert leak_of(rising(30, None)) == 30 * MIB
    assert leak_of(rising(30, counts(0, start=1))) == 30 * MIB


def test_counters_of_32_bits_wrap_around() -> None:
    wrapped = [(count + (1 << 32) - 155 * MIB) % (1 << 32) for count in counts(2)]
    assert max(wrapped) > wrapped[-1]
    assert leak_of(rising(2, wrapped, anonymous=5 << 30)) == 2 * MIB


def test_a_leak_is_reported_however_the_trial_ended() -> None:
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


NO_ALGORITHM = (
    "NotFoundError: Graph execution error:\n\nAutotuning failed for HLO: %cudnn-conv-bw-filter.2 = "
    "(f32[32,3,3,16]{3,2,1,0}, u8[0]{0}) custom-call(%a, %b) with error: NOT_FOUND: No valid "
    "config found! [Op:__inference_one_step_on_data_1544]"
)
REFUSED = (
    "W0000 00:00:1794848748.344727 bfc_allocator.cc:311] Allocator (GPU_0_bfc) ran out of memory "
    "trying to allocate 1.14GiB with freed_by_count=0. The caller indicates that this is not a "
    "failure, but this may mean that there could be performance gains if more memory were."
)


def test_xla_without_an_algorithm_lacks_memory_only_where_some_was_refused() -> None:
    kind = NO_ALGORITHM.partition("\n")[0]
    failed = ended("exception", kind, traceback=NO_ALGORITHM)
    assert judge(8, failed, LIMITS).outcome == "failed"
    short = judge(8, failed._replace(error_text=REFUSED), LIMITS)
    assert short.outcome == "does-not-fit"
    assert "Autotuning failed for HLO" in short.how


def test_a_gpu_that_cannot_be_started_says_nothing_about_the_batch() -> None:
    """As seen while another process held all of an NVIDIA H200."""
    how = "InternalError: cudaSetDevice() on GPU:0 failed. Status: out of memory"
    trial = judge(8, ended("exception", how, traceback=f"Traceback\n{how}"), LIMITS)
    assert trial.outcome == "failed"
    assert trial.how == f"{how}: other processes hold the memory of the GPU"
