"""What differs between operating systems and is needed on all of them.

Parts of whygpu need Linux throughout; they call require_linux() before they import their modules.
tools/portability.py lists these modules.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from whygpu.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

if sys.platform == "win32":
    STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK)
    READ = os.O_RDONLY | os.O_BINARY | os.O_NOINHERIT
    WRITE = os.O_WRONLY | os.O_BINARY | os.O_NOINHERIT
    NOT_THROUGH_LINKS = 0
    KILLED = 1
else:
    STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    WRITE = os.O_WRONLY | os.O_CLOEXEC
    NOT_THROUGH_LINKS = os.O_NOFOLLOW
    KILLED = -signal.SIGKILL
"""Signals that ask a process to stop; flags of os.open() for bytes as they are, without waiting for
the other end of a pipe and without passing the descriptor on; the exit code of a process that was
killed."""


_NAMES = {"darwin": "macOS", "win32": "Windows"}


def require_linux(what: str) -> None:
    """Raise UsageError on another system; `what` names the verb, for the message."""
    if sys.platform != "linux":
        here = _NAMES.get(sys.platform, sys.platform)
        raise UsageError(f"{what} needs Linux, or Windows with WSL 2; this is {here}")


def require_posix(what: str) -> None:
    """The same for what macOS has as well."""
    if sys.platform == "win32":
        raise UsageError(f"{what} needs Linux or macOS, or Windows with WSL 2; this is Windows")


def cores() -> int:
    """The number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that has its own process group, with the group.

    Windows has no groups that can be killed: there, only the process itself ends.
    """
    # The process is gone, or its number belongs to another user's process now.
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
