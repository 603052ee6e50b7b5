"""Experiments on a GPU: they can be interrupted, go on where they stopped, and tell no names."""

from __future__ import annotations

import getpass
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.machine import Interpreters
from tests.cases import each
from tests.hardware.tensorflow_programs import PROGRAMS
from tests.patience import PATIENCE, wait_until
from tools.gpu_experiments import Experiment, Machine, NotYet, Row, experiments, run_program
from tools.gpu_runs import run, scrubbed
from tools.record_gpu import ROWS, carried_out, chosen, rows_of
from whygpu.model.shell import quoted


def machine(folder: Path) -> Machine:
    return Machine(Interpreters({}, sys.executable), folder, None)


def experiment(name: str, code: int | None = 0) -> Experiment:
    return Experiment(name, lambda machine, rows, seconds: {"code": code}, 5.0)


def names(rows: list[Row]) -> list[str]:
    return [row["name"] for row in rows]


def test_every_program_and_every_search_with_its_truth_is_an_experiment() -> None:
    every = [each.name for each in experiments()]
    assert len(every) == len(set(every))
    assert {f"program/{each.name}" for each in PROGRAMS} <= set(every)
    found = {name.partition("/")[2] for name in every if name.startswith("find/")}
    assert found == {name.partition("/")[2] for name in every if name.startswith("truth/")}
    # The truth is looked for around what the search has found.
    assert all(every.index(f"find/{name}") < every.index(f"truth/{name}") for name in found)


def test_what_was_done_is_not_done_again_and_what_ran_out_of_time_is(tmp_path: Path) -> None:
    rows = [{"name": "a/1", "code": 1}, {"name": "a/2", "code": None}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / ROWS).write_text(text + '{"name": "a/3", "co')
    waiting = [experiment(f"a/{number}") for number in range(1, 5)]
    # What may run out of time once more comes last.
    assert names(list(carried_out(waiting, machine(tmp_path), 60.0))) == ["a/3", "a/4", "a/2"]


def test_a_search_is_not_started_with_too_little_time_to_get_anywhere(tmp_path: Path) -> None:
    long = Experiment("a/1", lambda machine, rows, seconds: {"code": 0}, 300.0)
    waiting = [long, experiment("a/2")]
    assert names(list(carried_out(waiting, machine(tmp_path), 60.0))) == ["a/2"]


class Recorder:
    """tools.record_gpu with a program in place of the interpreter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "rows"
        self.started = folder / "started"
        self.python = folder / "python"
        self.interpreter_does(f"echo $$ >> {quoted(str(self.started))}; exec sleep {PATIENCE:.0f}")

    def interpreter_does(self, commands: str) -> None:
        self.python.write_text(f"#!/bin/sh\n{commands}\n")
        self.python.chmod(0o755)

    def begin(self) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", "tools.record_gpu", str(self.folder), "--device", "cpu"]
        words += ["--python", str(self.python), "--only", "program/count-gpus", "program/versions"]
        return subprocess.Popen(
            words, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE, text=True
        )

    def begin_and_wait(self) -> subprocess.Popen[str]:
        process = self.begin()
        wait_until(lambda: self.started.exists() and self.started.read_text(), process)
        return process

    def nothing_runs(self) -> bool:
        return not any(_is_running(int(word)) for word in self.started.read_text().split())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_it_leaves_no_program_behind_and_it_can_go_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    recorder = Recorder(tmp_path)
    process = recorder.begin_and_wait()
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert ("call again for 2: program/count-gpus" in errors) == (number != signal.SIGKILL)
    wait_until(recorder.nothing_runs)
    rows = recorder.folder / ROWS
    assert rows.read_text() == ""
    rows.write_text('{"name": "program/count-gpus", "co')
    recorder.interpreter_does("echo 2.21.0")
    assert recorder.begin().wait(PATIENCE) == 0
    assert {name: row["code"] for name, row in rows_of(recorder.folder).items()} == {
        "program/count-gpus": 0,
        "program/versions": 0,
    }


@pytest.mark.slow
def test_two_do_not_measure_at_a_time(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    first = recorder.begin_and_wait()
    second = recorder.begin()
    _, errors = second.communicate(timeout=PATIENCE)
    assert "another process records into" in errors
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=PATIENCE)


def test_the_truth_goes_on_with_the_processes_that_had_ended(tmp_path: Path) -> None:
    # The interpreter does not exist: a process that were started would fail.
    here = Machine(Interpreters({}, str(tmp_path / "none")), tmp_path, None)
    (truth,) = (each for each in experiments() if each.name == "truth/jax_conv-jax")
    seen = [
        {"batch": 100, "fits": True, "code": 0, "how": ""},
        {"batch": 101, "fits": False, "code": 1, "how": "out of memory"},
        {"batch": 104, "fits": False, "code": None, "how": ""},
    ]
    rows: dict[str, dict[str, Any]] = {
        "find/jax_conv-jax": {"batch": 100, "smallest_not": 101},
        "truth/jax_conv-jax": {"code": None, "processes": seen},
    }
    row = truth.carry_out(here, rows, 5.0)
    assert (row["code"], row["runs"], row["does_not"]) == (0, 100, 101)
    assert [each["batch"] for each in row["processes"]] == [100, 101]


def test_of_an_experiment_that_was_done_again_the_last_row_counts(tmp_path: Path) -> None:
    (tmp_path / ROWS).write_text('{"name": "a/1", "code": null}\n{"name": "a/1", "code": 0}\n')
    assert rows_of(tmp_path) == {"a/1": {"name": "a/1", "code": 0}}


def test_nothing_is_started_if_hardly_any_time_is_left(tmp_path: Path) -> None:
    assert not list(carried_out([experiment("a/1")], machine(tmp_path), 10.0))


def test_an_experiment_that_cannot_be_carried_out_does_not_stop_the_others(tmp_path: Path) -> None:
    def broken(machine: Machine, rows: Mapping[str, Row], seconds: float) -> Row:
        raise KeyError("no such model")

    def early(machine: Machine, rows: Mapping[str, Row], seconds: float) -> Row:
        raise NotYet("find/x")

    waiting = [Experiment("a/1", broken, 5.0), Experiment("a/2", early, 5.0), experiment("a/3")]
    rows = list(carried_out(waiting, machine(tmp_path), 60.0))
    assert names(rows) == ["a/1", "a/3"]
    assert "no such model" in rows[0]["error"]
    assert rows[0]["code"] is None


def test_without_a_package_nothing_was_measured() -> None:
    program = PROGRAMS[0]._replace(code="import accelerate_of_nobody as accelerate")
    ended = run_program(program, sys.executable)
    assert ended.code == 1
    lacking = program._replace(code="raise ModuleNotFoundError(\"No module named 'accelerate'\")")
    with pytest.raises(NotYet, match="the package accelerate in"):
        run_program(lacking, sys.executable)


def test_only_experiments_that_limit_their_memory_run_side_by_side(tmp_path: Path) -> None:
    both = threading.Barrier(2)

    def meets(machine: Machine, rows: Mapping[str, Row], seconds: float) -> Row:
        both.wait(PATIENCE)
        return {"code": 0}

    def alone(machine: Machine, rows: Mapping[str, Row], seconds: float) -> Row:
        return {"code": 0, "others": threading.active_count() - at_rest}

    at_rest = threading.active_count() + 1
    waiting = [Experiment(f"a/{number}", meets, 5.0, "limited") for number in range(2)]
    waiting += [Experiment(f"b/{number}", alone, 5.0) for number in range(2)]
    rows = list(carried_out(waiting, machine(tmp_path), 60.0, jobs=2))
    assert [row["code"] for row in rows] == [0, 0, 0, 0]
    assert [row["others"] for row in rows[2:]] == [0, 0]


@each(("only", "left"), [([], 3), (["a"], 2), (["a/1", "b"], 2)])
def test_experiments_are_chosen_by_name_or_kind(only: list[str], left: int) -> None:
    every = [experiment("a/1"), experiment("a/2"), experiment("b/1")]
    assert len(chosen(every, only)) == left


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SystemExit, match="unknown: c"):
        chosen([experiment("a/1")], ["c"])


@pytest.mark.slow
def test_a_process_whose_time_is_over_ends_with_all_that_it_has_started(tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = f"""
import pathlib, subprocess, sys, time
child = subprocess.Popen(["sleep", "{PATIENCE}"])
pathlib.Path({str(child)!r}).write_text(str(child.pid))
try:
    time.sleep({PATIENCE})
except KeyboardInterrupt:
    print("what it has found so far")
"""
    ended = run([sys.executable, "-c", code], seconds=3.0)
    assert ended.code is None
    assert "found so far" in ended.output
    until = time.monotonic() + PATIENCE
    while _is_running(int(child.read_text())) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _is_running(int(child.read_text()))


def _is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def test_a_log_tells_nothing_of_the_machine(tmp_path: Path) -> None:
    folder = tmp_path / "secret-project"
    text = (
        f'  File "{folder}/lib/python3.12/site-packages/keras/x.py", line 2\n'
        f'  File "{tempfile.gettempdir()}/gpu-run-abc/y.py"\n'
        f"node {socket.gethostname()} GPU-8a9c1d2e-0000-4444-8888-1234567890ab 10.20.30.40\n"
    )
    clean = scrubbed(text, str(folder / "bin" / "python"))
    for word in ("secret-project", "gpu-run-abc", "8a9c1d2e", "10.20.30.40"):
        assert word not in clean
    if len(socket.gethostname()) > 3 and socket.gethostname() != "localhost":
        assert socket.gethostname() not in clean
    assert "site-packages/keras/x.py" in clean
    assert getpass.getuser() == "root" or getpass.getuser() not in clean
