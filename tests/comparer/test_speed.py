"""Why a GPU is slower than the CPU, from what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases import each
from tests.comparer.kit import run
from whygpu.comparer import speed
from whygpu.model.comparison import Timing
from whygpu.model.figures import figure, seconds

CPU = run("cpu", timing=Timing(0.1, (0.010, 0.010, 0.011), items=32))


def slower(**measured: Any) -> str:
    timing = Timing(2.0, (0.020, 0.021, 0.022))._replace(**measured)
    summary = speed.summary(run("gpu", timing=timing), CPU)
    assert summary is not None
    return summary.slower_because


@each(
    ("measured", "reason"),
    [
        ({"input_seconds": 0.015, "compute_seconds": 0.002}, "the work is input-bound: "),
        ({"transfer_seconds": 0.014, "compute_seconds": 0.002}, "the work is transfer-bound: "),
        (
            {"launches": 4000, "busy_seconds": 0.004, "compute_seconds": 0.02},
            "the work is too small: its 4,000 kernels take 4 ms of 20 ms, and launching them ",
        ),
        (
            {"launches": 3, "busy_seconds": 0.019, "compute_seconds": 0.02},
            "the computation itself takes ",
        ),
        ({}, "of something that whygpu did not measure"),
    ],
)
def test_the_reason(measured: dict[str, Any], reason: str) -> None:
    assert slower(**measured).startswith(reason)


def test_input_is_no_excuse_for_the_rest() -> None:
    """Making it takes as long for the CPU: what makes the GPU slower is reported too."""
    reason = slower(input_seconds=0.015, transfer_seconds=0.004, compute_seconds=0.001)
    assert "input-bound: making the input on the host takes 15 ms of 21 ms" in reason
    assert "slower because the work is transfer-bound: moving input and output takes 4 ms" in reason


def test_little_work_is_small_where_kernels_were_not_measured() -> None:
    cpu = run("cpu", timing=Timing(0.1, (0.001, 0.001)))
    gpu = run("gpu", timing=Timing(0.1, (0.004, 0.004)))
    summary = speed.summary(gpu, cpu)
    assert summary is not None
    assert "the CPU needs 1 ms" in summary.slower_because


def test_no_reason_where_it_is_not_slower_for_certain() -> None:
    assert slower(seconds=(0.001, 0.001)) == ""
    assert slower(seconds=(0.009, 0.012, 0.030)) == ""
    on_cpu = speed.summary(run("keras:jax", timing=Timing(1.0, (0.5,))), CPU)
    assert on_cpu is not None
    assert on_cpu.slower_because == ""


def test_the_summary() -> None:
    summary = speed.summary(CPU, CPU)
    assert summary is not None
    assert (summary.median_seconds, summary.calls, summary.against_cpu) == (0.010, 3, None)
    assert summary.items_per_second == pytest.approx(3200)
    faster = speed.summary(run("gpu", timing=Timing(1.0, (0.001, 0.001))), CPU)
    assert faster is not None
    assert faster.against_cpu == pytest.approx(10)
    assert speed.summary(run("gpu"), CPU) is None


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        ((20.0,), "called once"),
        ((54e-6, 60e-6, 9e-3, 14e-3), "busy machine"),
        ((1.0, 1.1, 1.2, 1.3, 50.0), ""),
    ],
)
def test_no_speed_comes_from_noise(calls: tuple[float, ...], why: str) -> None:
    noisy = run("gpu", timing=Timing(1.0, calls))
    for summary in (speed.summary(noisy, CPU), speed.summary(CPU, noisy)):
        assert summary is not None
        assert (summary.against_cpu is None) is bool(why)
        assert not (why and summary.slower_because)
    found = speed.summary(noisy, None)
    assert found is not None
    assert bool(found.no_measurement) is bool(why)
    assert why in found.no_measurement


def test_figures_in_words() -> None:
    assert [figure(n) for n in (0, 0.04, 12.34, 567.2, 3.14e-5, 2e6, 99.9)] == [
        "0", "0.04", "12", "567", "3.1e-05", "2.0e+06", "100",
    ]  # fmt: skip
    assert [seconds(n) for n in (2.5, 0.0123, 4e-6)] == ["2.5 s", "12.3 ms", "4 µs"]
