"""What the GPU did, beside what the program's thread did: shares, reasons and gains."""

from __future__ import annotations

import pytest

from tests.profiling import made
from whygpu.model.device_recording import (
    Copy,
    DeviceRecording,
    GpuProcess,
    GpuReadings,
    Kernel,
    Span,
)
from whygpu.model.profile import ProcessProfile, ProfileAnswer, ProfileOptions
from whygpu.profiling.judge import judged

ITEM = made.calling("torch.Tensor.item", "loss.item()")
TO_GPU = made.calling("torch.Tensor.cuda", "x.cuda()")
STEP = 10 * made.PERIOD


def answer(profile: ProcessProfile) -> ProfileAnswer:
    return judged([profile], ProfileOptions(), on_gpu=True)


def recorded(
    profile: ProcessProfile,
    kernels: list[tuple[float, float]],
    *,
    copies: list[Copy] | None = None,
    waits: list[tuple[float, float]] | None = None,
    calls: list[tuple[float, float]] | None = None,
    staging: list[tuple[float, float]] | None = None,
    begin: int = 10,
    end: int = 40,
) -> ProcessProfile:
    """Each step of the recording has these kernels, in samples after its beginning."""

    def spread(parts: list[tuple[float, float]]) -> list[Span]:
        # A sample shows the moment at which it was taken: at the end of its stretch of time.
        return [
            Span(
                step * STEP + (since + 0.5) * made.PERIOD, step * STEP + (until + 0.5) * made.PERIOD
            )
            for step in range(begin, end)
            for since, until in parts
        ]

    moved = [
        copy._replace(begin=span.begin, end=span.end)
        for copy in copies or []
        for span in spread([(copy.begin, copy.end)])
    ]
    recording = DeviceRecording(
        begin * STEP,
        end * STEP,
        kernels=tuple(Kernel(*span, "kernel", 1000) for span in spread(kernels)),
        copies=tuple(sorted(moved)),
        waits=tuple(spread(waits or [])),
        calls=tuple(spread(calls or [])),
        staging=tuple(spread(staging or [])),
        multiprocessors=132,
    )
    bus = GpuReadings(pcie_generation=5, pcie_width=16)
    return profile._replace(device=recording, gpus=(bus,))


def test_the_gpu_that_computes_while_the_program_loads_is_not_waiting() -> None:
    """The thread loads for 70 % of the time, and the GPU computes all the while."""
    profile = made.profile([(made.COMPUTING, 3), (made.ONE_PROCESS, 7)])
    found = answer(recorded(profile, [(0, 10)]))
    assert found.verdict == "computing"
    assert found.total("computing") == pytest.approx(1, abs=0.02)
    assert found.headline.startswith("The GPU computed for")
    assert found.gains == ()


def test_an_idle_gpu_waits_for_what_the_thread_does() -> None:
    profile = made.profile([(made.COMPUTING, 3), (made.ONE_PROCESS, 7)])
    found = answer(recorded(profile, [(0, 3)]))
    assert found.verdict == "waiting"
    assert found.total("input") == pytest.approx(0.7, abs=0.02)
    assert found.headline == (
        "The GPU computed for 30 % of the time. It waited for the input pipeline for 70 %."
    )


def test_a_part_of_the_loading_that_overlaps_is_not_counted() -> None:
    profile = made.profile([(made.COMPUTING, 3), (made.ONE_PROCESS, 7)], cores=8)
    found = answer(recorded(profile, [(0, 6)]))
    assert found.total("input") == pytest.approx(0.4, abs=0.02)
    gain = found.gains[0]
    # The GPU needs six tenths of a step, whatever the workers do.
    assert gain.to_low == pytest.approx(0.6 * STEP, rel=0.05)


def test_idle_time_while_the_framework_is_called_is_launching() -> None:
    profile = made.profile([(made.COMPUTING, 10)])
    found = answer(recorded(profile, [(0, 2)], calls=[(n / 10, n / 10 + 0.05) for n in range(100)]))
    assert found.total("launches") == pytest.approx(0.8, abs=0.02)
    assert found.shares[0].detail.startswith("1 kernels a step")
    assert any("CUDA graph" in gain.change for gain in found.gains)


def test_a_long_time_without_a_call_of_cuda_is_work_of_the_cpu() -> None:
    profile = made.profile([(made.COMPUTING, 10)])
    found = answer(recorded(profile, [(0, 2)], calls=[(0, 0.1), (8, 10)]))
    assert found.total("cpu-operations") == pytest.approx(0.6, abs=0.12)
    assert found.headline.endswith("operations on the CPU for 60 %.")


def test_waiting_for_the_loss_costs_the_launching_that_could_have_overlapped() -> None:
    """Launching takes half a step, computing the other half, and the loss is read after it."""
    profile = made.profile([(made.COMPUTING, 5), (ITEM, 5)])
    found = answer(recorded(profile, [(5, 10)]))
    assert found.total("synchronisation") == pytest.approx(0.5, abs=0.02)
    assert found.total("launches") == pytest.approx(0, abs=0.02)
    shown = next(share for share in found.shares if share.category == "synchronisation")
    assert shown.where is not None
    assert shown.where.text == "loss.item()"
    gain = next(gain for gain in found.gains if "do not wait" in gain.change)
    assert gain.to_low == pytest.approx(STEP / 2, rel=0.05)


def test_a_short_wait_is_not_charged_with_more_than_it_costs() -> None:
    """The program launches for nine tenths of a step: without the wait, it still would."""
    profile = made.profile([(made.COMPUTING, 9), (ITEM, 1)])
    found = answer(recorded(profile, [(9, 10)]))
    assert found.total("synchronisation") == pytest.approx(0.1, abs=0.02)
    assert found.total("launches") == pytest.approx(0.8, abs=0.02)


def test_a_wait_inside_of_the_framework_is_one() -> None:
    profile = made.profile([(made.COMPUTING, 10)])
    found = answer(recorded(profile, [(5, 10)], waits=[(5, 10)], calls=[(0, 10)]))
    assert found.total("synchronisation") == pytest.approx(0.5, abs=0.02)


def test_copies_are_named_with_their_rate() -> None:
    profile = made.profile([(TO_GPU, 5), (made.COMPUTING, 5)])
    copy = Copy(0, 5, "to the GPU", 50_000_000, pageable=True)
    found = answer(recorded(profile, [(5, 10)], copies=[copy]))
    assert found.total("copies") == pytest.approx(0.5, abs=0.02)
    shown = next(share for share in found.shares if share.category == "copies")
    assert shown.detail == "from ordinary (pageable) memory, 2.0 GB/s of 54"
    assert any("pin_memory" in gain.change for gain in found.gains)


JITTED = made.calling("jaxlib._jax.PjitFunction", "w = train_step(w, x)")


def test_a_copy_into_pinned_memory_by_threads_of_jax_is_a_copy() -> None:
    """The call of the jitted function waits until JAX takes the next step."""
    profile = made.profile([(JITTED, 10)], key="jax train_step")
    found = answer(recorded(profile, [(0, 2)], staging=[(2, 9)]))
    assert found.total("copies") == pytest.approx(0.7, abs=0.02)
    assert found.total("launches") == pytest.approx(0.1, abs=0.02)
    assert found.shares[0].detail == "threads of JAX first copy the data into pinned memory"
    assert any("jax.device_put the next batch" in gain.change for gain in found.gains)


def test_waiting_for_a_result_while_its_data_are_staged_is_waiting_for_the_copy() -> None:
    """Without the wait, the threads would still need as long."""
    profile = made.profile([(JITTED, 1), (ITEM, 9)], key="jax train_step")
    found = answer(recorded(profile, [(8, 10)], staging=[(1, 8)]))
    assert found.total("copies") == pytest.approx(0.7, abs=0.02)
    assert found.total("synchronisation") == pytest.approx(0, abs=0.11)
    waits = [gain for gain in found.gains if "do not wait" in gain.change]
    assert all(gain.to_low >= 0.7 * STEP for gain in waits)


def test_a_copy_into_pinned_memory_costs_nothing_while_the_gpu_computes() -> None:
    profile = made.profile([(JITTED, 10)], key="jax train_step")
    found = answer(recorded(profile, [(0, 10)], staging=[(0, 9)]))
    assert found.verdict == "computing"


def test_what_is_rare_is_found_outside_of_the_recording() -> None:
    """The program evaluates only after the recording has ended."""
    first = made.profile([(made.COMPUTING, 10)], steps=60)
    evaluated = made.profile([(made.COMPUTING, 5), (made.own("validate"), 5)], steps=60)
    half = len(first.times) // 2
    places = (*first.places, *evaluated.places)
    moved = len(first.places)
    stacks = (
        *first.stacks,
        *(tuple(number + moved for number in stack) for stack in evaluated.stacks),
    )
    later = tuple(number + len(first.stacks) for number in evaluated.stack_of[half:])
    profile = first._replace(places=places, stacks=stacks, stack_of=first.stack_of[:half] + later)
    found = answer(recorded(profile, [(0, 10)], begin=10, end=30))
    assert found.total("evaluation") == pytest.approx(0.3, abs=0.05)
    assert found.total("computing") == pytest.approx(0.7, abs=0.05)


def test_without_a_recording_nothing_is_claimed() -> None:
    profile = made.profile([(made.COMPUTING, 3), (made.ONE_PROCESS, 7)])
    found = answer(profile)
    assert found.verdict == "unclear"
    assert found.gains == ()


def test_pauses_of_the_profiler_are_not_the_programs() -> None:
    profile = made.profile([(made.COMPUTING, 10)])
    plain = answer(recorded(profile, [(0, 10)]))
    run = profile.recording._replace(pauses=((15 * STEP, 17 * STEP),))
    paused = answer(recorded(profile, [(0, 10)])._replace(recording=run))
    assert plain.window is not None
    assert paused.window is not None
    assert paused.window.seconds == pytest.approx(plain.window.seconds - 2 * STEP)
    assert sum(share.share for share in paused.shares) == pytest.approx(1)


def test_the_profilers_own_cost_is_said() -> None:
    profile = recorded(made.profile([(made.COMPUTING, 10)], steps=80), [(0, 10)])
    begin, end = 10 * STEP, 40 * STEP
    run = profile.recording._replace(
        begin=begin, end=end, pauses=((begin - 0.2, begin), (end, end + 0.3))
    )
    same = answer(profile._replace(recording=run))
    assert any(" steps), and the rest" in note for note in same.notes)
    assert any("0.5 s of waiting for it" in note for note in same.notes)
    # The steps after the recording take half as long.
    (marks,) = profile.marks
    times = tuple(time if time <= end else end + (time - end) / 2 for time in marks.times)
    quick = profile._replace(recording=run, marks=(marks._replace(times=times),))
    assert any("100 % longer than the others" in note for note in answer(quick).notes)


def test_another_process_is_named_with_what_it_costs() -> None:
    """Every other kernel takes three times as long: the GPU works for somebody else meanwhile."""
    profile = recorded(made.profile([(made.COMPUTING, 10)]), [(0, 2), (2, 8), (8, 9)])
    assert profile.device is not None
    processes = (GpuProcess(7), GpuProcess(8, 6 << 30))
    (gpu,) = profile.gpus
    shared = profile._replace(gpus=(gpu._replace(pid=7, processes=processes),))
    found = answer(shared)
    assert any("another process has this GPU open: process 8" in note for note in found.notes)
    assert any("no other process" in gain.change for gain in found.gains)
    alone = answer(profile)
    assert not any("process" in note for note in alone.notes)
    assert not any("process" in gain.change for gain in alone.gains)


def test_products_in_float32_are_a_gain_with_a_limit() -> None:
    profile = recorded(made.profile([(made.COMPUTING, 10)]), [(0, 10)])
    assert profile.device is not None
    slow = tuple(
        kernel._replace(name="void cutlass_80_simt_sgemm_256x128")
        for kernel in profile.device.kernels
    )
    found = answer(profile._replace(device=profile.device._replace(kernels=slow)))
    assert found.verdict == "computing"
    (gain,) = found.gains
    assert gain.at_most
    assert "TF32" in gain.change
    assert answer(profile).gains == ()


def test_kernels_that_wait_for_other_gpus_are_mentioned() -> None:
    profile = recorded(made.profile([(made.COMPUTING, 10)]), [(0, 10)])
    assert profile.device is not None
    named = tuple(
        kernel._replace(name="ncclDevKernel_AllReduce_Sum_f32_RING_LL")
        for kernel in profile.device.kernels
    )
    found = answer(profile._replace(device=profile.device._replace(kernels=named)))
    assert any("communication with other GPUs" in note for note in found.notes)


def test_a_sample_that_covers_a_pause_is_shortened() -> None:
    """While a profiler stops, Python may not run, and no sample is taken."""
    profile = recorded(made.profile([(made.COMPUTING, 10)], steps=80), [(0, 10)])
    begin, end = 40.02 * STEP, 59.98 * STEP
    kept = [number for number, time in enumerate(profile.times) if not begin < time < end]
    run = profile.recording._replace(pauses=((begin, end),))
    paused = answer(
        profile._replace(
            recording=run,
            times=tuple(profile.times[number] for number in kept),
            stack_of=tuple(profile.stack_of[number] for number in kept),
            thread_seconds=tuple(profile.thread_seconds[number] for number in kept),
            process_seconds=tuple(profile.process_seconds[number] for number in kept),
        )
    )
    assert paused.window is not None
    assert paused.total("computing") == pytest.approx(1, abs=0.02)
    assert sum(share.share for share in paused.shares) == pytest.approx(1)


def test_steps_that_the_profiler_slowed_down_are_left_out() -> None:
    """While it ran, launching took twice as long. The GPU's work took as long as ever."""
    step = 2 * STEP
    slow = made.profile([(made.COMPUTING, 20)], steps=40)
    quick = made.profile([(made.COMPUTING, 10)], steps=80)
    shift = slow.times[-1]
    profile = slow._replace(
        seconds=shift + quick.seconds,
        times=slow.times + tuple(shift + time for time in quick.times[1:]),
        stack_of=slow.stack_of + quick.stack_of[1:],
        thread_seconds=slow.thread_seconds + tuple(shift + each for each in quick.times[1:]),
        process_seconds=slow.process_seconds + tuple(shift + each for each in quick.times[1:]),
        marks=(
            slow.marks[0]._replace(
                seen=120,
                times=slow.marks[0].times + tuple(shift + each for each in quick.marks[0].times),
            ),
        ),
    )
    kernels = tuple(
        Kernel(number * step + 0.2 * STEP, number * step + 0.6 * STEP, "kernel")
        for number in range(10, 40)
    )
    recording = DeviceRecording(10 * step, 40 * step, kernels=kernels)
    run = profile.recording._replace(begin=10 * step, end=40 * step)
    found = answer(profile._replace(device=recording, recording=run))
    assert found.window is not None
    assert found.window.left_out == pytest.approx(30, abs=1)
    assert found.window.step_seconds == pytest.approx(STEP, rel=0.05)
    # A fifth of the slow steps is two fifths of the others.
    assert found.total("computing") == pytest.approx(0.4, abs=0.05)
    assert found.total("launches") == pytest.approx(0.6, abs=0.05)
