"""Predicted gains: only for changes that help, and never better than what cannot be beaten."""

from __future__ import annotations

import pytest

from tests.profiling import made
from whygpu.model.profile import Gain, ProcessProfile, ProfileOptions, WorkerUse
from whygpu.profiling.judge import judged


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


def test_own_code_has_a_limit_and_no_promise() -> None:
    (gain,) = gains(made.profile([(made.COMPUTING, 5), (made.own("rewards"), 5)]))
    assert gain.at_most
    assert gain.to_low == pytest.approx(0.025, rel=0.05)


def test_evaluation_half_as_often_saves_half_of_it() -> None:
    (gain,) = gains(made.profile([(made.COMPUTING, 10), (made.own("validate"), 10)]))
    assert gain.to_low == pytest.approx(0.075, rel=0.05)


def test_small_things_are_not_offered() -> None:
    step = [(made.COMPUTING, 30), (made.ONE_PROCESS, 10), (made.calling("builtins.print"), 1)]
    assert not [gain for gain in gains(made.profile(step)) if "log" in gain.change]
