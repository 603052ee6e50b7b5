"""Runs whygpu's command line without what Windows or macOS does not have: a script.

    python -m tests.other_system win32 explain train.log

The names are what CPython 3.8 for Windows and the documentation of macOS lack beside Linux. Modules
of the standard library are imported before, because they were written for this system.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import importlib.abc
import multiprocessing.pool
import os
import platform
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

LOADED = (
    concurrent.futures,
    ctypes,
    multiprocessing.pool,
    platform,
    selectors,
    shutil,
    subprocess,
    tempfile,
    uuid,
)
"""Modules of the standard library that choose their system when they are imported."""

MISSING_MODULES = {
    "win32": ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"),
    "darwin": (),
}
MISSING_NAMES: dict[str, dict[ModuleType, str]] = {
    "win32": {
        os: "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_SYNC WEXITSTATUS WIFSIGNALED WNOHANG "
        "WTERMSIG chown confstr fchmod fchown fork getegid geteuid getgid getloadavg getpgid "
        "getpgrp getuid getxattr killpg listxattr lockf major makedev memfd_create minor mkfifo "
        "nice pread register_at_fork sched_getaffinity set_blocking setpgid setsid setxattr "
        "statvfs sysconf tcgetpgrp uname wait wait3 wait4 waitid",
        signal: "SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP "
        "SIGUSR1 SIGUSR2 SIGWINCH SIGXCPU SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm pause "
        "pthread_kill pthread_sigmask setitimer sigpending sigtimedwait sigwait sigwaitinfo",
    },
    "darwin": {
        os: "getxattr listxattr memfd_create sched_getaffinity setxattr",
        signal: "sigtimedwait sigwaitinfo",
    },
}
ADDED: dict[str, dict[ModuleType, dict[str, object]]] = {
    "win32": {
        os: {"O_BINARY": 0, "O_NOINHERIT": os.O_CLOEXEC},
        signal: {"SIGBREAK": signal.SIGUSR1},
        sys: {"getwindowsversion": lambda: SimpleNamespace(major=10, minor=0, build=22631)},
    },
    "darwin": {},
}


class _NoSuchModule(importlib.abc.MetaPathFinder):
    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if name in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def become(system: str) -> None:
    platform.uname()  # It is cached.
    for module, names in ADDED[system].items():
        for name, value in names.items():
            setattr(module, name, value)
    for module, text in MISSING_NAMES[system].items():
        for name in text.split():
            delattr(module, name)
    missing = MISSING_MODULES[system]
    for name in missing:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _NoSuchModule(missing))
    sys.platform = system


def main(system: str, *words: str) -> int:
    assert not any(name.startswith("whygpu") for name in sys.modules)
    become(system)
    sys.argv = ["whygpu", *words]
    from whygpu.cli.start import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
