"""Programs run bare and under `whygpu run`, to see that they cannot tell the difference."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.patience import PATIENCE

PYTHON = sys.executable
WHYGPU = (PYTHON, "-I", "-m", "whygpu", "run")
"""Apart from the variables of Python that a test sets for the program."""
QUIET = (*WHYGPU, "--device", "cpu", "--quiet", "--")
"""With a policy that needs no look at the machine, and without a word of whygpu's own."""


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, without what would colour or change a program's output."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "WHYGPU", "PYTEST"))}
    return {**kept, **changes}


def in_shell(*words: str | Path) -> str:
    """A command as a shell reads it, wherever this is installed: a path may have blanks."""
    return shlex.join(map(str, words))


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    text: str = "",
    cwd: Path | None = None,
    limit: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in argv],
        env=dict(env if env is not None else environment()),
        input=text,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=limit,
    )


def seen(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    """All that a caller sees of a program; a signal as a shell shows it."""
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return code, done.stdout, done.stderr


def same_as_bare(
    argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, text: str = ""
) -> tuple[int, str, str]:
    """What the program does under whygpu, after making sure that it does the same without."""
    bare = seen(run(argv, env=env, text=text))
    ours = seen(run([*QUIET, *argv], env=env, text=text))
    assert ours == bare
    return ours


def unread(pipe: int) -> int:
    """The bytes that wait in a pipe, by either of its ends."""
    count = fcntl.ioctl(pipe, termios.FIONREAD, struct.pack("i", 0))
    return int(struct.unpack("i", count)[0])


def script(folder: Path, code: str, name: str = "program.py") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(code)
    return file


class Terminal:
    """A terminal with a program on it, as a shell would have started it."""

    def __init__(self, argv: Sequence[str | Path], *, rows: int = 24, columns: int = 80) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execve(str(argv[0]), [str(word) for word in argv], environment(TERM="xterm"))
        self.resize(rows, columns)
        self.output = b""

    def resize(self, rows: int, columns: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def type(self, text: bytes) -> None:
        os.write(self.master, text)

    def wait_for(self, pattern: bytes) -> None:
        self._read(lambda: re.search(pattern, self.output) is not None)
        assert re.search(pattern, self.output), self.output

    def end(self) -> tuple[int, bytes]:
        """The exit status, as a shell has it, and all that was shown."""
        self._read(lambda: False)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.master)
        code = os.waitstatus_to_exitcode(status)
        return (code if code >= 0 else 128 - code), self.output

    def _read(self, enough: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not enough() and time.monotonic() < deadline:
            ready, _, _ = select.select([self.master], [], [], 0.1)
            if not ready:
                continue
            data = b""
            with suppress(OSError):
                data = os.read(self.master, 65536)
            if not data:
                return
            self.output += data
