"""Predicted gains: only for changes that help, and never better than what cannot be beaten."""

from __future__ import annotations

import pytest

from tests.profiling import made
from whygpu.model.profile import (
    CodePlace,
    Compilation,
    FrameworkProfile,
    Gain,
    ProcessProfile,
    ProfileOptions,
    PythonCalls,
    StageTime,
    WorkerUse,
)
from whygpu.profiling.judge import judged
from whygpu.render.profile_text import gain_text

FROM_PYTHON = "func_graph_from_py_func"


def gains(profile: ProcessProfile) -> tuple[Gain, ...]:
    return judged([profile], ProfileOptions(), on_gpu=False).gains


def test_workers_overlap_the_input_with_the_step() -> None:
    (gain,) = gains(made.profile([(made.COMPUTING, 10), (made.ONE_PROCESS, 10)], cores=8))
    assert gain.change == "num_workers=2 in the DataLoader"
    assert gain.from_seconds == pytest.approx(0.1, rel=0.02)
    assert gain.to_low == pytest.approx(0.05, rel=0.05)
    assert gain.to_low <= gain.to_high < gain.from_seconds


def test_one_core_cannot_do_two_things() -> None:
    assert gains(made.profile([(made.COMPUTING, 10), (made.ONE_PROCESS, 10)], cores=1)) == ()


def test_a_step_that_uses_all_cores_leaves_none_for_workers() -> None:
    busy = made.profile([(made.COMPUTING, 10), (made.ONE_PROCESS, 10)], cores=2, busy_cores=2.0)
    free = made.profile([(made.COMPUTING, 10), (made.ONE_PROCESS, 10)], cores=2, busy_cores=1.0)
    assert gains(busy)[0].to_low > gains(free)[0].to_low


def with_workers(count: int, busy: float, cores: int) -> ProcessProfile:
    profile = made.profile([(made.COMPUTING, 5), (made.WORKERS, 15)], cores=cores)
    curve = tuple(busy * time for time in profile.times)
    workers = tuple(WorkerUse(number, profile.times, curve) for number in range(count))
    return profile._replace(workers=workers)


def test_busy_workers_need_company_and_cores() -> None:
    (gain,) = gains(with_workers(1, 1.0, cores=8))
    assert gain.change == "num_workers=4 in the DataLoader"
    assert gains(with_workers(2, 1.0, cores=2)) == ()


def test_workers_that_wait_are_not_limited_by_the_cores() -> None:
    (gain,) = gains(with_workers(2, 0.1, cores=2))
    assert gain.change == "num_workers=8 in the DataLoader"


def test_workers_that_wait_for_a_core_are_limited_by_the_cores() -> None:
    """On a busy machine they look as if they waited for storage, which could serve more of them."""
    profile = with_workers(2, 0.1, cores=2)
    starved = [each._replace(waited=tuple(0.8 * t for t in each.times)) for each in profile.workers]
    assert gains(profile._replace(workers=tuple(starved))) == ()


def test_own_code_has_a_limit_and_no_promise() -> None:
    (gain,) = gains(made.profile([(made.COMPUTING, 5), (made.own("rewards"), 5)]))
    assert gain.at_most
    assert 0.02 < gain.to_low < 0.025


def test_evaluation_half_as_often_saves_half_of_it() -> None:
    (gain,) = gains(made.profile([(made.COMPUTING, 10), (made.own("validate"), 10)]))
    assert gain.to_low == pytest.approx(0.075, rel=0.05)


def test_what_is_done_rarely_may_cost_nothing_at_all() -> None:
    """Files are written while the program goes on; in each step, it waited for the disk. And the
    rest of a step finds its data in the caches."""
    (gain,) = gains(made.profile([(made.COMPUTING, 10), (made.own("write_checkpoint"), 10)]))
    assert gain.to_low == pytest.approx(0.04, rel=0.05)
    assert gain.to_high == pytest.approx(0.064, rel=0.05)
    assert gain_text(gain).startswith("save a tenth as often: 1.6 to 2.5 x faster or more (a step")


def test_what_is_not_seen_without_compiling_has_no_limit() -> None:
    tracing = CodePlace("library", "tensorflow/python/framework/func_graph.py", FROM_PYTHON, 5)
    (gain,) = gains(made.profile([(made.COMPUTING, 1), ((tracing, made.LOOP), 9)]))
    assert gain.or_more


def test_small_things_are_not_offered() -> None:
    step = [(made.COMPUTING, 30), (made.ONE_PROCESS, 10), (made.calling("builtins.print"), 1)]
    assert not [gain for gain in gains(made.profile(step)) if "log" in gain.change]


def test_workers_are_not_offered_where_other_programs_use_the_cores() -> None:
    profile = made.profile([(made.COMPUTING, 2), (made.ONE_PROCESS, 18)], cores=2)
    idle = tuple(0.02 * time for time in profile.times)
    busy = profile._replace(idle=WorkerUse(0, profile.times, idle))
    free = profile._replace(idle=WorkerUse(0, profile.times, profile.times))
    assert gains(free)[0].change == "num_workers=2 in the DataLoader"
    assert gains(busy) == ()
    assert (
        "no core of the machine was idle"
        in judged([busy], ProfileOptions(), on_gpu=False).notes[-1]
    )


def test_waiting_for_storage_needs_no_cores() -> None:
    profile = made.profile([(made.COMPUTING, 2), (made.ONE_PROCESS, 18)], cores=2)
    nothing = tuple(0.1 * time for time in profile.times)
    idle = WorkerUse(0, profile.times, tuple(0.0 * time for time in profile.times))
    waiting = profile._replace(thread_seconds=nothing, process_seconds=nothing, idle=idle)
    assert gains(waiting)[0].change == "num_workers=4 in the DataLoader"


def test_waiting_for_a_core_is_not_waiting_for_storage() -> None:
    profile = made.profile([(made.COMPUTING, 2), (made.ONE_PROCESS, 18)], cores=2)
    third = tuple(0.3 * time for time in profile.times)
    crowded = WorkerUse(1, profile.times, tuple(0.7 * time for time in profile.times))
    profile = profile._replace(thread_seconds=third, process_seconds=third)
    assert gains(profile)[0].change == "num_workers=4 in the DataLoader"
    (gain,) = gains(profile._replace(waited=crowded))
    assert gain.change == "num_workers=2 in the DataLoader"
    nothing = WorkerUse(0, profile.times, tuple(0.0 * time for time in profile.times))
    assert gains(profile._replace(waited=crowded, idle=nothing)) == ()


def test_the_first_batch_of_new_workers_is_due_to_their_start() -> None:
    start = CodePlace("library", "torch/utils/data/dataloader.py", "__init__", 1100)
    fork = CodePlace("standard", "multiprocessing/popen_fork.py", "_launch", 60)
    starting = (fork, start, made.LOOP)
    profile = made.profile([(starting, 2), (made.WORKERS, 6), (made.COMPUTING, 2)])
    (gain,) = gains(profile)
    assert gain.change == "persistent_workers=True in the DataLoader"
    assert gain.to_low == pytest.approx(0.2 * gain.from_seconds, rel=0.05)


def test_the_limit_of_own_code_spares_what_that_code_calls() -> None:
    line = made.own("rewards")[-1]
    converting = (CodePlace("program", "/home/me/train.py", "rewards", 8, "", "torch.tensor"), line)
    step = [(made.COMPUTING, 2), (made.own("rewards"), 5), (converting, 3)]
    found = judged([made.profile(step)], ProfileOptions(), on_gpu=False)
    (gain,) = (each for each in found.gains if each.at_most)
    assert gain.to_low == pytest.approx((0.2 - found.margin) * gain.from_seconds, rel=0.05)


def test_a_call_that_was_traced_may_be_all_compilation() -> None:
    tracing = CodePlace("library", "tensorflow/python/framework/func_graph.py", FROM_PYTHON, 9)
    step = [(made.COMPUTING, 5), ((tracing, made.LOOP), 5)]
    profile = made.profile(step, key="tensorflow train_step")
    (gain,) = gains(profile)
    assert gain.to_low == pytest.approx(0.5 * gain.from_seconds, rel=0.05)
    traced = tuple(Compilation("train_step", 0.05 * n, 0.04) for n in range(1, 41))
    (gain,) = gains(profile._replace(compilations=traced))
    assert gain.to_low == pytest.approx(0.2 * gain.from_seconds, rel=0.2)
    assert gain.to_high == pytest.approx(0.6 * gain.from_seconds, rel=0.05)


def with_python_stage(seconds: float) -> ProcessProfile:
    """A step that waits for tf.data for 0.08 s of 0.1 s."""
    waiting = (CodePlace("library", "tensorflow/python/data/ops/iterator_ops.py", "next", 7),)
    profile = made.profile(
        [(made.COMPUTING, 4), ((*waiting, made.LOOP), 16)], key="tensorflow train_step"
    )
    return profile._replace(python_calls=(PythonCalls("decode", seconds),))


def test_parallel_calls_are_not_offered_for_a_python_function() -> None:
    (gain,) = gains(with_python_stage(0.0))
    assert "num_parallel_calls" in gain.change
    (gain,) = gains(with_python_stage(2.0))
    assert "num_parallel_calls" not in gain.change
    assert "decode" in gain.change
    assert "Python's lock" in gain.assuming
    assert gain.at_most


def test_what_comes_before_the_steps_does_not_dilute_a_python_function() -> None:
    """Importing TensorFlow took four times as long as the steps: parallel calls were offered."""
    late = with_python_stage(2.0)
    (marks,) = late.marks
    late = late._replace(
        seconds=late.seconds + 30,
        times=(0.0, *(time + 30 for time in late.times[1:])),
        marks=(marks._replace(times=tuple(time + 30 for time in marks.times)),),
    )
    (gain,) = gains(late)
    assert "num_parallel_calls" not in gain.change


def test_a_python_function_that_takes_little_of_the_input_does_not_limit_it() -> None:
    (gain,) = gains(with_python_stage(0.05))
    assert "num_parallel_calls" in gain.change


def test_data_that_another_thread_computes_for_keras_needs_cores() -> None:
    """Decoding on two cores was offered to four threads, because the main thread only waited."""
    fit = CodePlace("program", "/home/me/train.py", "<module>", 9, "model.fit(data)")
    step = CodePlace("library", "tensorflow/python/eager/context.py", "call_function", 7)
    recorded = made.profile([((step, fit), 10)], key="keras fit", cores=2)._replace(
        framework=FrameworkProfile(1.0, 0.9, (StageTime("Generator", 1.0),)),
        data_adapters=("PyDatasetAdapter",),
    )
    waiting = recorded._replace(thread_seconds=(0.0,) * len(recorded.times))
    idle = waiting._replace(process_seconds=waiting.thread_seconds)
    offered = judged([waiting], ProfileOptions(), on_gpu=False).gains[0]
    assert "2 other processes" in offered.change
    assert offered.from_seconds / offered.to_low < 2.1
    assert "4 other threads" in judged([idle], ProfileOptions(), on_gpu=False).gains[0].change
