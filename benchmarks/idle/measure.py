"""Runs one planted program under `whygpu run --profile`, as it is or with its cure."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

from benchmarks.idle.cases import Planted
from benchmarks.machine import Interpreters

HERE = pathlib.Path(__file__).parent
LONGEST = 120.0
"""Seconds that one run of a program may take."""
_WORK = ("computing", "unknown")


class ProgramFailed(Exception):
    """A planted program did not run to its end, or left no profile."""


class Place(NamedTuple):
    """Where the programs run, and for how long at most."""

    device: str = "cpu"
    interpreters: Interpreters = Interpreters({})
    limit: float = LONGEST
    recordings: pathlib.Path | None = None
    """What the framework's profilers record is kept there, in a folder for each program."""

    def whygpu(self, case: Planted, *, cured: bool) -> list[str]:
        """The words that start whygpu."""
        folder = "-"
        if self.recordings is not None and not cured:
            name = f"{case.program}_{case.backend}" if case.backend else case.program
            folder = str(self.recordings / name)
        return [sys.executable, "-I", str(HERE / "keeping.py"), folder]

    def interpreter(self, case: Planted) -> str:
        """The one that was given, or that of the framework environments; those have no GPU."""
        given = self.interpreters.of(case.framework)
        if given or self.device == "gpu":
            return given
        from tests.targets import folder

        return str(folder().absolute() / case.target / "bin" / "python")

    def program(self, case: Planted) -> str:
        programs = "gpu_programs" if self.device == "gpu" else "programs"
        return str(HERE / programs / f"{case.program}.py")


CPU = Place()


def profiled(case: Planted, place: Place = CPU, *, cured: bool = False) -> dict[str, Any]:
    """The profile of one program, from the report of its run."""
    environ = {k: v for k, v in os.environ.items() if k not in ("CURED", "KERAS_BACKEND")}
    if place.device == "cpu":
        # Threads of PyTorch that wait for each other on a busy machine would hide everything else.
        environ["OMP_NUM_THREADS"] = "1"
    if case.backend:
        environ["KERAS_BACKEND"] = case.backend
    if cured:
        environ["CURED"] = "1"
    with tempfile.TemporaryDirectory() as made:
        report = pathlib.Path(made) / "report.json"
        whygpu = place.whygpu(case, cured=cured)
        words = [*whygpu, "run", "--no-repair", "--quiet"]
        words += ["--device", place.device, "--profile", "--report", str(report), "--"]
        _run([*words, place.interpreter(case), place.program(case)], environ, place.limit)
        try:
            answer: dict[str, Any] = json.loads(report.read_text())["profile"]
        except (OSError, ValueError, KeyError) as error:
            raise ProgramFailed(f"no profile in the report: {error!r}") from error
    return answer


def _run(words: list[str], environ: dict[str, str], limit: float) -> None:
    process = subprocess.Popen(
        words,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        _, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"it took longer than {limit:.0f} s") from None
    finally:
        _end_all(process)
    if process.returncode:
        raise ProgramFailed(errors.strip()[-2000:] or f"exit code {process.returncode}")


def _end_all(process: subprocess.Popen[str]) -> None:
    """End the program, and what it started: one that is left behind would disturb the next."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Outcome(NamedTuple):
    case: Planted
    named: str
    """The category that the answer names; "computing" if it names none."""
    answer: dict[str, Any]

    @property
    def is_right(self) -> bool:
        named = self.named == (self.case.bottleneck or "computing")
        return named and self.case.says.lower() in json.dumps(self.answer).lower()


def outcome(case: Planted, place: Place = CPU) -> Outcome:
    return judged(case, profiled(case, place))


def judged(case: Planted, answer: dict[str, Any]) -> Outcome:
    if answer["verdict"] != "waiting":
        return Outcome(case, answer["verdict"], answer)
    named = next(each["category"] for each in answer["shares"] if each["category"] not in _WORK)
    return Outcome(case, named, answer)


class Comparison(NamedTuple):
    """The quickest of several runs of the original, and of the cured program.

    They take turns, because other work on the machine comes and goes: the quickest run is the one
    that it disturbed least. Time in which a program waited for a core is not counted.
    """

    original: dict[str, Any]
    cured: dict[str, Any]

    @property
    def gain(self) -> float:
        """How many times faster the steps of the cured program are."""
        return _step(self.original) / _step(self.cured)


def compared(
    case: Planted, answer: dict[str, Any], place: Place = CPU, *, turns: int, until: float
) -> Comparison:
    """`answer` is that of the first turn. No turn but the first begins after the moment `until`."""
    originals, cured = [answer], [profiled(case, place, cured=True)]
    for _ in range(turns - 1):
        if time.monotonic() > until:
            break
        originals.append(profiled(case, place))
        cured.append(profiled(case, place, cured=True))
    return Comparison(min(originals, key=_step), min(cured, key=_step))


def _step(answer: dict[str, Any]) -> float:
    if answer["window"] is None:
        raise ProgramFailed(answer["headline"])
    return float(answer["window"]["step_seconds"] * (1 - answer["crowded"]))
