"""Verbs about past runs: history, and the comparison of a failure with the last good run."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from whygpu.api.arguments import checked
from whygpu.errors import UsageError
from whygpu.host import state_folder
from whygpu.model.codec import DecodeError, decode, encode
from whygpu.model.derived import usable_gpu
from whygpu.model.history import History, PastRun, SinceGood
from whygpu.model.observed import Absent, Known
from whygpu.model.snapshot import Snapshot
from whygpu.past_runs.store import HistoryError, Store
from whygpu.readers import bounded_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from whygpu.launch.execution import Prepared
    from whygpu.model.policy import RunReport
    from whygpu.model.report import Report
    from whygpu.privacy import Redactor

_GOOD = ("gpu", "no-gpu")
_LISTED = 20


@checked
def history(most: int = _LISTED) -> History:
    """The checks and runs that were recorded on this machine, newest first.

    Nothing is recorded unless `whygpu history on` was called once.

    Example:
        whygpu.history().runs
    """
    store = _store()
    recording = state_folder.is_recording()
    return History(recording, store.path, store.runs(most), store.count(), store.size_bytes())


@checked
def record_history(recording: bool = True) -> History:
    """From now on, record each check and run of the command line, or do so no longer.

    Example:
        whygpu.record_history()
    """
    folder = state_folder.state_folder()
    if recording:
        # An error means that nothing was changed. A history that cannot be read records nothing.
        history(0)
    try:
        if recording:
            state_folder.start_recording(folder)
        else:
            state_folder.stop_recording(folder)
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror or error}") from error
    try:
        return history(0)
    except HistoryError as error:
        state = "on" if recording else "off"
        raise HistoryError(f"recording is {state} now, but {error}") from error


def clear_history() -> History:
    """Remove everything that was recorded. Whether runs are recorded does not change.

    Example:
        whygpu.clear_history()
    """
    _store().clear()
    return history(0)


def recorded_snapshot(number: int) -> Snapshot:
    """The snapshot that was recorded with one run."""
    found = _snapshot(number)
    if found is None:
        raise UsageError(f"there is no run {number}; `whygpu history` lists them")
    return found


def since_good_check(report: Report) -> SinceGood | None:
    """A check that found a fault, compared with the last good one of the same environment.

    None if nothing is wrong, or there was no good one. HistoryError if the history is unusable.
    """
    machine = _public(report.snapshot)
    if report.verdict == "cpu":
        # Only a machine with a GPU gets the verdict "cpu". It is not compared with one without: a
        # login node, or a job that did not ask for a GPU.
        good = _last_good(machine, None, ("gpu",))
    else:
        good = _last_good(machine, None)
        if _is_good(report) and not (good is not None and _has_lost_its_gpu(report, good)):
            return None
    return _compared(good, machine)


def _is_good(report: Report) -> bool:
    has_error = any(finding.severity == "error" for finding in report.root_causes)
    return report.verdict in _GOOD and not has_error


def _has_lost_its_gpu(report: Report, good: PastRun) -> bool:
    """Nothing is wrong with a machine without a GPU, unless it had one the last time."""
    return report.verdict == "no-gpu" and good.verdict == "gpu" and good.here


def since_good_run(report: RunReport, machine: Snapshot, argv: Sequence[str]) -> SinceGood | None:
    """A run that failed, or fell back to the CPU, compared with the last good one of the program.

    None also if what changed does not explain it: most failures have nothing to do with the GPU.
    """
    if not report.exit_code and not report.fallback:
        return None
    public = _public(machine)
    # On a machine with a GPU, a run on the CPU of another one is no example.
    verdicts = ("gpu", "cpu") if _has_no_gpu(machine) else ("gpu",)
    since = _compared(_last_good(public, _program(argv), verdicts), public)
    if since is None or not any(
        reason.sets for reason in since.answer.reasons if reason.present == "after"
    ):
        return None
    return since


def remember_check(report: Report) -> None:
    """Record a check. HistoryError if that is not possible."""
    _remember(
        PastRun(
            number=0,
            at=_now(),
            verb="check",
            target="",
            program="",
            verdict=report.verdict,
            summary=report.headline,
            exit_code=report.exit_code,
            good=_is_good(report),
            here=True,
        ),
        report.snapshot,
    )


def remember_run(report: RunReport, machine: Snapshot, argv: Sequence[str]) -> None:
    """Record a run. HistoryError if that is not possible."""
    used = {use.name for record in report.records for use in record.frameworks}
    _remember(
        PastRun(
            number=0,
            at=_now(),
            verb="run",
            target="",
            program=_program(argv),
            verdict=report.device,
            summary=f"{', '.join(sorted(used)) or 'no framework'}; exit code {report.exit_code}",
            exit_code=report.exit_code,
            good=not report.exit_code
            and (report.device == "gpu" or (report.device == "cpu" and _has_no_gpu(machine))),
            here=True,
        ),
        machine,
    )


def _has_no_gpu(machine: Snapshot) -> bool:
    return isinstance(usable_gpu(machine), Absent)


def machine_of(prepared: Prepared) -> Snapshot:
    """What a program under `run` saw of the machine."""
    from whygpu.launch.execution import seen_by_program

    if prepared.report is not None and not prepared.plan.repairs:
        return prepared.report.snapshot
    return seen_by_program(prepared.plan, os.environ)


def _store() -> Store:
    return Store(state_folder.state_folder(), _this_machine())


def _this_machine() -> str:
    """The name of the machine, as a number that does not show it."""
    from hashlib import sha256

    from whygpu.host.local import LocalHost

    name = LocalHost().platform.host_name
    return sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _public(machine: Snapshot) -> Snapshot:
    """Without private data, as a snapshot that is posted."""
    return _redactor().value(machine)


def _clean(text: str) -> str:
    return _redactor().text(text)


def _redactor() -> Redactor:
    from whygpu.host.local import LocalHost
    from whygpu.privacy import Redactor

    return Redactor(LocalHost().platform)


def _target(machine: Snapshot) -> str:
    interpreter = machine.target.interpreter
    return interpreter.value.path if isinstance(interpreter, Known) else ""


def _program(argv: Sequence[str]) -> str:
    """The program and its script or module. Arguments may be secrets, and change.

    A script has its folder: every project has a train.py.
    """
    program = os.path.basename(argv[0])
    for place, word in enumerate(argv[1:], 1):
        if word == "-m" and argv[place + 1 :]:
            return f"{program} -m {argv[place + 1]}"
        if word.endswith((".py", ".pyw")):
            return _clean(f"{program} {os.path.abspath(word)}")
    return program


def _remember(run: PastRun, machine: Snapshot) -> None:
    public = _public(machine)
    content = json.dumps(encode(public), separators=(",", ":")).encode()
    _store().add(run._replace(target=_target(public)), content)


def _last_good(
    machine: Snapshot, program: str | None, verdicts: Sequence[str] = _GOOD
) -> PastRun | None:
    return _store().last_good(_target(machine), program, verdicts)


def _compared(good: PastRun | None, machine: Snapshot) -> SinceGood | None:
    before = None if good is None else _snapshot(good.number)
    if good is None or before is None:
        return None
    from whygpu.causes import machine_catalogue
    from whygpu.differences.answering import Named, answer

    found = answer(Named(good.at[:10], before), Named("now", machine), machine_catalogue())
    return SinceGood(good, found)


def _snapshot(number: int) -> Snapshot | None:
    content = _store().snapshot(number)
    if content is None:
        return None
    try:
        return decode(Snapshot, bounded_json.loads(content))
    except (DecodeError, ValueError) as error:
        raise HistoryError(f"run {number} of the history is damaged: {error}") from error
