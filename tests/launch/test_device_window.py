"""When the profiler of a framework runs in a program, and when it stays away."""

from __future__ import annotations

from typing import Any

import pytest

from tests.patience import wait_until
from whygpu.launch.inprocess import bootstrap

device_window: Any = bootstrap("profile.device_window")


class FakeClock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


class FakeProfiler:
    kind = "kineto"
    name = "a profiler"

    def __init__(self, *, is_ready: bool = True, fails: bool = False) -> None:
        self.is_ready = is_ready
        self.is_safe = True
        self.fails = fails
        self.done: list[str] = []

    def ready(self) -> bool:
        return self.is_ready

    def safe(self) -> bool:
        return self.is_safe

    def wait(self) -> None:
        self.done.append("wait")

    def start(self) -> None:
        if self.fails:
            raise RuntimeError("CUPTI is missing")
        self.done.append("start")

    def mark(self) -> None:
        self.done.append("mark")

    def stop(self) -> None:
        self.done.append("stop")

    def files(self) -> list[str]:
        return ["file"]


class Program:
    """A loop of steps that calls what the recorder calls."""

    def __init__(self, profiler: FakeProfiler, step_seconds: float = 0.05) -> None:
        self.clock = FakeClock()
        self.window = device_window.Window(self.clock)
        self.window.add("torch", profiler)
        self.step_seconds = step_seconds
        self.steps = 0

    def train(self, steps: int) -> None:
        for _ in range(steps):
            self.clock.time += self.step_seconds
            self.steps += 1
            self.window.look("torch", self.steps, self.clock.time)
            if self.window.due:
                self.window.switch()


def test_it_runs_once_for_a_second_of_steps_after_the_first_ones() -> None:
    profiler = FakeProfiler()
    program = Program(profiler)
    program.train(9)
    assert profiler.done == []
    program.train(200)
    assert profiler.done == ["wait", "start", "mark", "wait", "mark", "stop"]
    found = program.window.result()
    assert found["end"] - found["begin"] == pytest.approx(1.0, abs=0.11)
    assert found["files"] == ["file"]
    assert len(found["pauses"]) == 2


def test_samples_are_frequent_when_the_recording_begins() -> None:
    """A sampler that notices the recording only when it wakes up has late samples in it, and two of
    them may stand for a fifth of a second."""
    program = Program(FakeProfiler(), step_seconds=0.5)
    program.train(9)
    assert not program.window.is_near()
    program.window.look("torch", 10, program.clock.time)
    assert program.window.due == "start"
    assert program.window.is_near()
    program.window.switch()
    assert program.window.is_near()
    program.train(20)
    assert not program.window.is_near()


def test_they_are_not_for_long_where_the_profiler_cannot_start() -> None:
    profiler = FakeProfiler()
    profiler.is_safe = False
    program = Program(profiler)
    program.train(20)
    assert program.window.is_near()
    program.train(100)
    assert program.window.due == "start"
    assert not program.window.is_near()


def test_long_steps_are_recorded_for_longer() -> None:
    program = Program(FakeProfiler(), step_seconds=0.8)
    program.train(100)
    found = program.window.result()
    assert found["end"] - found["begin"] == pytest.approx(3.2, abs=0.01)


def test_a_program_that_ends_meanwhile_keeps_what_was_recorded() -> None:
    profiler = FakeProfiler()
    program = Program(profiler)
    program.train(15)
    found = program.window.result()
    assert profiler.done[-1] == "stop"
    assert found["files"] == ["file"]


def test_without_a_gpu_nothing_starts() -> None:
    profiler = FakeProfiler(is_ready=False)
    program = Program(profiler)
    program.train(100)
    assert profiler.done == []
    assert "files" not in program.window.result()


def test_another_framework_is_not_profiled() -> None:
    profiler = FakeProfiler()
    program = Program(profiler)
    program.window.look("jax", 100, 1.0)
    assert not program.window.due
    assert program.window.result() == {}


def test_a_profiler_that_does_not_start_is_a_reason_and_no_error() -> None:
    program = Program(FakeProfiler(fails=True))
    program.train(100)
    assert program.window.result()["problem"] == "RuntimeError: CUPTI is missing"


def test_it_waits_while_a_graph_is_captured() -> None:
    profiler = FakeProfiler()
    profiler.is_safe = False
    program = Program(profiler)
    program.train(20)
    assert profiler.done == []
    profiler.is_safe = True
    program.train(1)
    assert profiler.done == ["wait", "start", "mark"]


def test_the_programs_own_profiler_comes_first() -> None:
    profiler = FakeProfiler()
    program = Program(profiler)
    own = device_window.giving_way(lambda: "started", lambda: program.window, "PyTorch's profiler")
    assert own() == "started"
    program.train(100)
    assert profiler.done == []
    assert program.window.result()["problem"] == "the program uses PyTorch's profiler itself"


def test_ours_stops_before_the_programs_own_starts() -> None:
    profiler = FakeProfiler()
    program = Program(profiler)
    program.train(12)

    def start() -> str:
        return profiler.done[-1]

    assert device_window.giving_way(start, lambda: program.window, "it")() == "stop"


def test_it_stops_without_a_step_as_well() -> None:
    """The interpreter stops it between two instructions of the thread that started it."""
    profiler = FakeProfiler()
    program = Program(profiler)
    program.train(12)
    program.window.look("torch", 12, program.clock.time + 60)
    wait_until(lambda: profiler.done[-1] == "stop")


def test_the_steps_that_were_asked_for_are_recorded() -> None:
    profiler = FakeProfiler()
    program = Program(profiler)
    program.window = device_window.Window(program.clock, 50)
    program.window.add("torch", profiler)
    program.train(49)
    assert profiler.done == []
    program.train(1)
    assert profiler.done == ["wait", "start", "mark"]


def test_it_stays_away_where_another_tool_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/nsight/libinjection.so")
    profiler = FakeProfiler()
    program = Program(profiler)
    program.train(100)
    assert profiler.done == []
    assert "another tool profiles CUDA" in program.window.result()["problem"]
