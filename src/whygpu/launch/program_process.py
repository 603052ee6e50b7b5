"""Starts the program and waits for it as a shell would.

The program shares our terminal and process group, so signals from the keyboard reach it directly. A
signal that is sent to us alone is forwarded.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from whygpu.errors import UsageError
from whygpu.launch.streams import ErrorStream
from whygpu.model.memory_use import HostMemory

EXIT_NOT_STARTED = 126
EXIT_NOT_FOUND = 127
_LAST_WORDS = 0.5
"""Seconds to wait for output that the program wrote before its end."""
_LONGEST_WAIT = 0.5
"""Seconds between two checks of the program. An older thread of ours does not block SIGCHLD; if the
kernel delivers the signal to that thread, it is lost."""
_BEFORE_EXEC = 4 << 20
"""Bytes that our forked copy may use before exec replaces it with the program."""
_FROM_KERNEL = 0x80
"""si_code of a signal that the terminal sent, and not a process."""
_SET_PARENT_DEATH_SIGNAL = 1
_PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
)


class Ended(NamedTuple):
    code: int
    """As a shell reports it: the program's exit code, or 128 plus the signal that ended it."""
    signal: int
    """The signal that ended it; 0 for none."""
    error_text: str
    """The beginning and the end of what it wrote to standard error."""
    peak_memory_bytes: int
    """Of its largest process; 0 if that is not known."""
    memory: HostMemory
    """The memory of the computer while the program ran."""


class _Signals(NamedTuple):
    """The signal settings that we were started with, which the program gets as well."""

    mask: set[int | signal.Signals]
    on_child: Any


class NotStarted(UsageError):
    """The program does not exist or must not be executed. Nothing was run."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def run(
    argv: Sequence[str],
    environ: Mapping[str, str],
    at_end: Callable[[], None] = lambda: None,
    forwarded: Callable[[bytes], None] = lambda data: None,
) -> Ended:
    """Run a command to its end, and call `at_end` before signals reach us again.

    `forwarded` is called with each part of its standard error, in another thread.
    """
    waited = {signal.SIGCHLD, signal.SIGWINCH, *_PASSED_ON}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    # If SIGCHLD is ignored, the kernel discards the child's exit status.
    on_child = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    stream = ErrorStream(forwarded)
    try:
        process = _start(argv, environ, stream, _Signals(before, on_child))
        stream.start()
        inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        # Imported while the program starts, so that the program does not wait for it.
        from whygpu.launch.host_memory import watch

        seen = watch(process.pid)
        status, reported_peak = _wait(process, stream, waited)
        memory = seen()
        at_end()
        _drop(waited)
    finally:
        signal.signal(signal.SIGCHLD, on_child)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if not stream.finish(_LAST_WORDS):
        stream.hand_over()
    died = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = 128 + died if died else os.WEXITSTATUS(status)
    peak = _own_peak(reported_peak, inherited, memory.peak)
    return Ended(code, died, stream.text(), peak, memory._replace(peak=peak or None))


def _own_peak(reported_peak: int, inherited: int, seen: int | None) -> int:
    """The peak memory of the program; 0 if it is not known.

    The kernel's peak of a process includes the time before exec, when it was a copy of us. If the
    peak is no larger than ours, take the largest size that was seen of the program.
    """
    return reported_peak if reported_peak > inherited + _BEFORE_EXEC else seen or 0


def _start(
    argv: Sequence[str],
    environ: Mapping[str, str],
    stream: ErrorStream,
    signals: _Signals,
) -> subprocess.Popen[bytes]:
    # Looked up here: between fork and exec, a process should do as little as possible.
    prctl = ctypes.CDLL(None, use_errno=True).prctl if os.uname().sysname == "Linux" else None

    def prepare() -> None:
        signal.signal(signal.SIGCHLD, signals.on_child)
        signal.pthread_sigmask(signal.SIG_SETMASK, signals.mask)
        if prctl is not None:
            # If whygpu is killed, the program is killed too.
            prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)

    def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            env=dict(environ),
            stdout=stream.descriptors.get(1),
            stderr=stream.descriptors.get(2),
            # A program may inherit more than three open files.
            close_fds=False,
            preexec_fn=prepare,
        )

    try:
        return start(argv)
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            # A script without a #! line is run by the shell.
            return start(["/bin/sh", *argv])
        raise _not_started(argv[0], environ.get("PATH"), error) from error


def _not_started(program: str, search_path: str | None, error: OSError) -> NotStarted:
    if error.errno == errno.ENOENT:
        return NotStarted(f"{program}: {_what_is_not_there(program, search_path)}", EXIT_NOT_FOUND)
    if error.errno == errno.ENOTDIR:
        return NotStarted(f"{program}: {error.strerror}", EXIT_NOT_FOUND)
    return NotStarted(f"{program}: {error.strerror}", EXIT_NOT_STARTED)


def _what_is_not_there(program: str, search_path: str | None) -> str:
    # A word without a slash is searched on PATH, even if the current folder has such a file.
    if "/" not in program:
        if shutil.which(program, path=search_path) is None:
            return "command not found"
    elif not os.path.lexists(program):
        return "there is no such file"
    elif not os.path.exists(program):
        return "it is a link to a file that is not there"
    return "the interpreter that it names is not there"


def _wait(
    process: subprocess.Popen[bytes], stream: ErrorStream, waited: set[signal.Signals]
) -> tuple[int, int]:
    while True:
        received = signal.sigtimedwait(waited, _LONGEST_WAIT)
        if received is None or received.si_signo == signal.SIGCHLD:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                # So that Popen does not wait for it a second time.
                process.returncode = os.waitstatus_to_exitcode(status)
                return status, used.ru_maxrss * 1024
        elif received.si_signo == signal.SIGWINCH:
            stream.resized()
            _send(process, signal.SIGWINCH)
        elif received.si_code != _FROM_KERNEL:
            _send(process, received.si_signo)


def _drop(waited: set[signal.Signals]) -> None:
    """Discard signals that arrived after the end of the program: pending, they would end us."""
    while signal.sigtimedwait(waited, 0) is not None:
        pass


def _send(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, number)
