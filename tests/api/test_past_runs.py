"""Runs that fail, compared with the last good run of the same program."""

from __future__ import annotations

import pathlib

import pytest

from tests.kit import machine
from tests.test_recorded_machines import judged
from whygpu.api import past_runs
from whygpu.model.observed import Absent
from whygpu.model.policy import DevicePolicy, RunReport
from whygpu.model.snapshot import Snapshot

TRAIN = ["/usr/bin/python3", "/project/train.py", "--token", "secret"]
GOOD = RunReport(0, "gpu", False, DevicePolicy(), (), Absent("example"), (), False)
FAILED = GOOD._replace(exit_code=1, device="none")
FELL_BACK = GOOD._replace(device="cpu", fallback=True)


@pytest.fixture(autouse=True)
def recording(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    past_runs.record_history(True)


def seen(name: str) -> Snapshot:
    """What `run` sees of a machine: it does not run the frameworks itself."""
    return judged(name).snapshot._replace(probes=(), probes_left_out="not run")


@pytest.mark.slow
@pytest.mark.parametrize("report", [FAILED, FELL_BACK])
def test_the_last_good_run_of_the_program(report: RunReport) -> None:
    past_runs.remember_run(GOOD, seen("h200-healthy-keras-jax"), TRAIN)
    since = past_runs.since_good_run(report, seen("h200-hidden-empty"), TRAIN)
    assert since is not None
    assert since.run.program == "python3 /project/train.py"
    assert "secret" not in repr(tuple(since.run))
    (reason,) = since.answer.reasons
    assert [since.answer.differences[place].title for place in reason.sets[0]] == [
        "CUDA_VISIBLE_DEVICES"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("report", [GOOD, GOOD._replace(device="cpu")])
def test_a_run_that_is_as_it_should_be(report: RunReport) -> None:
    past_runs.remember_run(GOOD, seen("h200-healthy-keras-jax"), TRAIN)
    assert past_runs.since_good_run(report, seen("h200-hidden-empty"), TRAIN) is None


def test_a_failure_that_no_change_explains() -> None:
    past_runs.remember_run(GOOD, seen("h200-healthy-keras-jax"), TRAIN)
    assert past_runs.since_good_run(FAILED, seen("h200-healthy-keras-torch"), TRAIN) is None


@pytest.mark.slow
def test_another_program() -> None:
    past_runs.remember_run(GOOD, seen("h200-healthy-keras-jax"), TRAIN)
    other = ["python3", "-m", "package.train"]
    assert past_runs.since_good_run(FAILED, seen("h200-hidden-empty"), other) is None
    past_runs.remember_run(GOOD, seen("h200-healthy-keras-jax"), other)
    since = past_runs.since_good_run(FAILED, seen("h200-hidden-empty"), other)
    assert since is not None
    assert since.run.program == "python3 -m package.train"


ON_CPU = GOOD._replace(device="cpu")
NO_GPU = 'start = "no-gpu"\nprobes_left_out = "not run"\n'
LEGACY = '[environment.variables.TF_USE_LEGACY_KERAS]\nvalue = "1"'


def test_a_run_on_the_cpu_is_good_where_there_is_no_gpu() -> None:
    past_runs.remember_run(ON_CPU, machine(NO_GPU), TRAIN)
    past_runs.remember_run(ON_CPU, machine('probes_left_out = "not run"'), TRAIN)
    assert [run.good for run in past_runs.history().runs] == [False, True]
    since = past_runs.since_good_run(FAILED, machine(NO_GPU + LEGACY), TRAIN)
    assert since is not None
    assert since.run.number == 1
    (reason,) = since.answer.reasons
    assert since.answer.differences[reason.sets[0][0]].title == "TF_USE_LEGACY_KERAS"


def test_a_run_on_the_cpu_is_no_example_for_a_machine_with_a_gpu() -> None:
    past_runs.remember_run(ON_CPU, machine(NO_GPU), TRAIN)
    with_gpu = machine('probes_left_out = "not run"\n' + LEGACY)
    assert past_runs.since_good_run(FAILED, with_gpu, TRAIN) is None
