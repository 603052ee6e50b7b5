"""Processes of experiments on a GPU: run one within its time, and clean what it printed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from whygpu.host.local import LocalHost
from whygpu.privacy import Redactor

GRACE_SECONDS = 20.0
"""How long a process may take to report what it has found when its time is over."""
STOPPING_SECONDS = 5.0
"""The same, if the recorder itself is asked to end."""
_UNTOUCHED = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
"""The interpreter under test stays as it is."""


_ENDING_WITH_US = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""PR_SET_PDEATHSIG survives exec: a recorder that is killed leaves no program on the GPU."""


class Stopped(Exception):
    """stop_all() was called: what the process printed is no measurement."""


class Ended(NamedTuple):
    code: int | None
    """None if it was stopped because its time was over."""
    output: str
    errors: str
    """Empty if both were read together, as a user would paste them."""
    seconds: float


def run(
    command: Sequence[str],
    *,
    seconds: float,
    environ: Mapping[str, str] | None = None,
    together: bool = False,
) -> Ended:
    """Run a command in an empty folder, in a session of its own: if its time is over, it is asked
    to end, and then it is killed with all that it has started."""
    if _stopping.is_set():
        raise Stopped
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gpu-run-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", _ENDING_WITH_US, *command],
            cwd=folder,
            env={**os.environ, **_UNTOUCHED, **(environ or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if together else subprocess.PIPE,
            start_new_session=True,
        )
        _running.add(process)
        try:
            if _stopping.is_set():
                _signal_all(process, signal.SIGKILL)
            code, output, errors = _within(process, seconds)
        finally:
            _running.discard(process)
    if _stopping.is_set():
        raise Stopped
    return Ended(code, _text(output), _text(errors), time.monotonic() - began)


_running: set[subprocess.Popen[bytes]] = set()
_stopping = threading.Event()


def stop_all() -> None:
    """End every process of every thread; from now on, run() raises Stopped."""
    _stopping.set()
    until = time.monotonic() + STOPPING_SECONDS
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in list(_running):
            _signal_all(process, number)
        while _running and time.monotonic() < until:
            time.sleep(0.05)


def _within(
    process: subprocess.Popen[bytes], seconds: float
) -> tuple[int | None, bytes, bytes | None]:
    for number, patience in ((signal.SIGINT, seconds), (signal.SIGKILL, GRACE_SECONDS)):
        try:
            output, errors = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            _signal_all(process, number)
        except BaseException:
            _signal_all(process, signal.SIGKILL)
            raise
        else:
            return (process.returncode if number == signal.SIGINT else None), output, errors
    output, errors = process.communicate()
    return None, output, errors


def _signal_all(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _text(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace")


def scrubbed(text: str, python: str) -> str:
    """A log without what it says of this machine: folders, names, addresses, identifiers."""
    folder = Path(python).absolute().parent.parent
    for place in {str(folder), str(folder.resolve())}:
        text = text.replace(place, "/home/user/venv")
    text = text.replace(tempfile.gettempdir() + "/gpu-run-", "/home/user/work-")
    return Redactor(LocalHost().platform).text(text)
