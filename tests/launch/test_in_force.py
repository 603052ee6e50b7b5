"""Which part of a policy was in force, from what the processes of a run reported."""

from __future__ import annotations

from typing import Any

from tests.cases import each
from tests.launch.test_launch_plan import planned
from whygpu.launch.in_force import parts_in_force
from whygpu.model.policy import CallOutcome, FrameworkUse, PartState, ProcessRecord, Reading

GIB = 1 << 30


def process(
    *readings: Reading,
    framework: str = "torch",
    complete: bool = True,
    calls: tuple[CallOutcome, ...] = (),
    devices: tuple[str, ...] = (),
) -> ProcessRecord:
    use = FrameworkUse(framework, "1.0", devices, None)
    return ProcessRecord(1, complete, (use,), (), {}, calls=calls, readings=readings)


def reported(name: str, value: Any, framework: str = "torch") -> Reading:
    held = tuple(value) if isinstance(value, list) else value
    return Reading(framework, name, "reported", held)


NO_CUDA = Reading("torch", "memory_limits", "not-reached", None, "PyTorch did not start CUDA")
OLD = Reading("torch", "memory_limits", "unknown", None, "this release has no such name")


def only(words: str, *records: ProcessRecord) -> PartState:
    (found,) = parts_in_force(planned(words), records)
    return found


@each(
    ("value", "state"),
    [(False, "in-force"), (True, "not-in-force"), (None, "not-in-force"), (0, "not-in-force")],
)
def test_a_switch_is_in_force_if_the_framework_reports_it(value: Any, state: str) -> None:
    found = only("cudnn=off", process(reported("cudnn_enabled", value)))
    assert (found.part, found.framework, found.state) == ("cudnn", "torch", state)
    (reading,) = found.readings
    assert (reading.name, reading.wanted, reading.reported) == ("cudnn_enabled", False, value)


@each(
    ("limits", "state"),
    [
        ([4 * GIB], "in-force"),
        ([4 * GIB, 2 * GIB], "in-force"),
        ([4 * GIB, 20 * GIB], "not-in-force"),
        ([None], "not-in-force"),
        ([0], "not-in-force"),
        ("4GiB", "not-in-force"),
    ],
)
def test_every_gpu_must_stay_below_the_limit(limits: Any, state: str) -> None:
    assert only("memory=4GiB", process(reported("memory_limits", limits))).state == state


def test_each_gpu_has_a_limit_of_its_own() -> None:
    plan = planned("gpu:0,1 memory=50%")
    wanted = next(
        each.wanted
        for each in plan.expectations
        if (each.framework, each.reading) == ("tensorflow", "memory_limits")
    )
    for limits, state in ((wanted, "in-force"), (wanted[::-1], "not-in-force")):
        reading = reported("memory_limits", limits, "tensorflow")
        session = Reading("tensorflow", "session_memory_fractions", "not-reached", None, "none")
        (found,) = parts_in_force(plan, [process(reading, session, framework="tensorflow")])
        assert found.state == state


def test_one_process_that_differs_is_enough() -> None:
    good, bad = (process(reported("cudnn_enabled", value)) for value in (False, True))
    assert only("cudnn=off", good, bad).state == "not-in-force"
    assert only("cudnn=off", good, good).state == "in-force"


@each(
    ("readings", "state", "reason"),
    [
        ([[NO_CUDA]], "cannot-tell", "PyTorch did not start CUDA"),
        ([[NO_CUDA], [reported("memory_limits", [GIB])]], "in-force", ""),
        ([[OLD], [reported("memory_limits", [GIB])]], "cannot-tell", OLD.reason),
        ([[]], "cannot-tell", "it was not reported"),
    ],
)
def test_what_cannot_be_told_has_its_reason(
    readings: list[list[Reading]], state: str, reason: str
) -> None:
    found = only("memory=4GiB", *(process(*each) for each in readings))
    assert (found.state, found.reason) == (state, reason)


def test_a_process_that_was_killed_cannot_tell() -> None:
    found = only("cudnn=off", process(complete=False))
    assert (found.state, found.reason) == ("cannot-tell", "the process ended without a report")


def test_a_call_that_failed_says_why() -> None:
    failed = CallOutcome("torch", "set_memory_limit", "failed", "RuntimeError: no")
    other = CallOutcome("torch", "set_seed", "failed", "not of this part")
    found = only("memory=4GiB", process(OLD, calls=(failed, other)))
    assert found.calls == (failed,)
    assert found.reason == f"set_memory_limit failed: RuntimeError: no; {OLD.reason}"


def test_a_framework_without_a_switch() -> None:
    on_gpu = process(framework="jax", devices=("gpu:0",))
    assert only("xla=off", on_gpu).state == "not-in-force"
    assert only("cudnn=off", on_gpu).state == "not-in-force"
    on_cpu = only("cudnn=off", process(framework="jax", devices=("cpu",)))
    assert on_cpu.state == "cannot-tell"
    assert on_cpu.reason == "JAX has no switch for cuDNN, and used no GPU"
    assert only("memory=growth", process()).state == "in-force"


def test_frameworks_that_the_program_did_not_import_are_left_out() -> None:
    states = parts_in_force(planned("cudnn=off tf32=off"), [process(framework="torch")])
    assert {state.framework for state in states} == {"torch"}


def test_nothing_can_be_told_of_a_program_that_reported_nothing() -> None:
    states = parts_in_force(planned("cudnn=off tf32=off"), [])
    assert [(each.part, each.framework, each.state) for each in states] == [
        ("cudnn", "", "cannot-tell"),
        ("tf32", "", "cannot-tell"),
    ]


def test_flags_are_whole_words() -> None:
    wanted = "--xla_gpu_deterministic_ops=true"
    for flags, state in (
        (f"--one=1 {wanted}", "in-force"),
        (f"{wanted}x", "not-in-force"),
        (None, "not-in-force"),
    ):
        found = only("deterministic", process(reported("XLA_FLAGS", flags, "jax"), framework="jax"))
        assert found.state == state
