"""The program's process: started, left to itself, and waited for as a shell would.

It shares our terminal and process group, so that the keyboard's signals reach it without us; a
signal that is sent to us alone is passed on.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
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
"""Seconds for what the program wrote before its end to pass."""
_LONGEST_WAIT = 0.5
"""Seconds between two looks at the program. A thread of ours that was started before does not block
SIGCHLD, and if the kernel gives the signal to that thread, it is lost."""
_BEFORE_EXEC = 4 << 20
"""Bytes that our copy may come to have before the program takes its place."""
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
    """As a shell has it: the program's own, or 128 and the signal that ended it."""
    signal: int
    """The signal that ended it; 0 for none."""
    error_text: str
    """The two ends of what it wrote to standard error."""
    peak_memory_bytes: int
    """Of its largest process; 0 where it is not known."""
    memory: HostMemory
    """The computer's, while it ran."""


class _Signals(NamedTuple):
    """What we were started with, and the program is to be."""

    mask: set[int | signal.Signals]
    on_child: Any


class NotStarted(UsageError):
    """There is no such program, or it may not be run; nothing was."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def run(
    argv: Sequence[str], environ: Mapping[str, str], at_end: Callable[[], None] = lambda: None
) -> Ended:
    """Run a command to its end, and call `at_end` before signals reach us again."""
    waited = {signal.SIGCHLD, signal.SIGWINCH, *_PASSED_ON}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    # Where its news are ignored, a child's end is not told, and its exit code is lost.
    on_child = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    stream = ErrorStream()
    try:
        process = _start(argv, environ, stream, _Signals(before, on_child))
        stream.start()
        inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        # While the program starts: it is not to wait for what it does not need.
        from whygpu.launch.host_memory import watch

        seen = watch(process.pid)
        status, told = _wait(process, stream, waited)
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
    peak = _own_peak(told, inherited, memory.peak)
    return Ended(code, died, stream.text(), peak, memory._replace(peak=peak or None))


def _own_peak(told: int, inherited: int, seen: int | None) -> int:
    """The program's peak; 0 where it is not known.

    What the kernel tells of a process begins with what the one had that it was forked from. Where
    it is no more than that, it is ours, and the program's is what was seen of it.
    """
    return told if told > inherited + _BEFORE_EXEC else seen or 0


def _start(
    argv: Sequence[str],
    environ: Mapping[str, str],
    stream: ErrorStream,
    signals: _Signals,
) -> subprocess.Popen[bytes]:
    # Looked up here: between fork and exec a program should do as little as it can.
    prctl = ctypes.CDLL(None, use_errno=True).prctl if os.uname().sysname == "Linux" else None

    def prepare() -> None:
        signal.signal(signal.SIGCHLD, signals.on_child)
        signal.pthread_sigmask(signal.SIG_SETMASK, signals.mask)
        if prctl is not None:
            # Whoever kills us outright means the program.
            prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)

    def start(words: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            env=dict(environ),
            stdout=stream.descriptors.get(1),
            stderr=stream.descriptors.get(2),
            # As without us: a program may be given more than three open files.
            close_fds=False,
            preexec_fn=prepare,
        )

    try:
        return start(argv)
    except OSError as error:
        if error.errno == errno.ENOEXEC:
            # A script without a first line that says otherwise is a shell's.
            return start(["/bin/sh", *argv])
        raise _not_started(argv[0], error) from error


def _not_started(program: str, error: OSError) -> NotStarted:
    if error.errno == errno.ENOENT and not os.path.lexists(program):
        where = "there is no such file" if "/" in program else "command not found"
        return NotStarted(f"{program}: {where}", EXIT_NOT_FOUND)
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return NotStarted(f"{program}: {error.strerror}", EXIT_NOT_FOUND)
    return NotStarted(f"{program}: {error.strerror}", EXIT_NOT_STARTED)


def _wait(
    process: subprocess.Popen[bytes], stream: ErrorStream, waited: set[signal.Signals]
) -> tuple[int, int]:
    while True:
        told = signal.sigtimedwait(waited, _LONGEST_WAIT)
        if told is None or told.si_signo == signal.SIGCHLD:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                # Popen is not to wait for it a second time.
                process.returncode = os.waitstatus_to_exitcode(status)
                return status, used.ru_maxrss * 1024
        elif told.si_signo == signal.SIGWINCH:
            stream.resized()
            _send(process, signal.SIGWINCH)
        elif told.si_code != _FROM_KERNEL:
            _send(process, told.si_signo)


def _drop(waited: set[signal.Signals]) -> None:
    """Signals that came for the program after its end. Left pending, they would end us instead."""
    while signal.sigtimedwait(waited, 0) is not None:
        pass


def _send(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, number)
