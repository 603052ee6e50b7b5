"""Carries out the action of a remedy: a shell runs exactly the text that users are shown."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from whygpu.model.commands import shell_text
from whygpu.model.remedy import (
    Action,
    DropPath,
    PrependPath,
    SetVariable,
    UnsetVariable,
    steps_of,
)
from whygpu.model.target import Installer

TIME_LIMIT = 3600.0
"""Seconds for all commands of one remedy. Gigabytes over a slow line take long."""
_MOST_LINES = 40
_LONGEST_LINE = 400
_ENVIRONMENT_FILE = "WHYGPU_FIX_VARIABLES"
_UNATTENDED = {
    # pip reads its options from variables as well: never ask, never look for its own update.
    "PIP_YES": "1",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONUNBUFFERED": "1",
}
_DIVERTING = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_DRY_RUN")
"""Variables that make pip install somewhere else than in the environment that runs it."""

_NO_NETWORK = (
    "Failed to establish a new connection",
    "NewConnectionError",
    "Temporary failure in name resolution",
    "Read timed out",
    "ConnectTimeoutError",
    "Could not connect",
    "error sending request",
    "ProxyError",
    "SSLError",
    "CERTIFICATE_VERIFY_FAILED",
    *(f"HTTP error {status}" for status in (401, 403, 407, 429, 500, 502, 503, 504)),
)
"""What pip and uv print if an index does not answer; pip then says that there is no package."""
_NO_SPACE = ("No space left on device", "Disk quota exceeded")

OnLine = Callable[[str], None]


class CarriedOut(NamedTuple):
    exit_code: int
    environ: Mapping[str, str]
    """The variables afterwards."""
    output: tuple[str, ...]
    """The last lines that the commands printed."""

    @property
    def hindrance(self) -> str:
        """What kept the commands from being tried at all: the network or the disk; mostly empty."""
        if self.exit_code == 0:
            return ""
        for signs, what in (
            (_NO_SPACE, "the disk is full"),
            (_NO_NETWORK, "the package index cannot be reached"),
        ):
            lines = [line for line in self.output if any(sign in line for sign in signs)]
            if lines:
                return f"{what}: {lines[-1]}"
        return ""

    @property
    def failure(self) -> str:
        """Why it failed, in the commands' own words; empty if it did not."""
        if self.exit_code == 0:
            return ""
        if self.hindrance:
            return self.hindrance
        errors = [line for line in self.output if line.lower().startswith(("error", "fatal"))]
        return (errors or list(self.output) or [f"exit code {self.exit_code}"])[-1]


def variables_of(action: Action | None) -> tuple[str, ...]:
    """The variables that an action changes."""
    names: list[str] = []
    for step in steps_of(action):
        if isinstance(step, (SetVariable, PrependPath, DropPath)):
            names.append(step.name)
        elif isinstance(step, UnsetVariable):
            names += step.names
    return tuple(dict.fromkeys(names))


def carry_out(
    action: Action,
    installer: Installer,
    environ: Mapping[str, str],
    folder: str,
    *,
    on_line: OnLine | None = None,
    time_limit: float = TIME_LIMIT,
) -> CarriedOut:
    """Run the commands of an action with these variables. `folder` is for a temporary file."""
    text = shell_text(action, installer)
    if text is None:
        return CarriedOut(2, environ, ("there is no command for this system",))
    # `env` writes the variables, because they may make every Python of this machine unusable.
    script = f'{text} && env -0 > "${_ENVIRONMENT_FILE}"'
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        # The variables may hold secrets. pip leaves its own temporary files behind if it is killed.
        listing = os.path.join(temporary, "variables")
        kept = {name: value for name, value in environ.items() if name not in _DIVERTING}
        given = {**kept, **_UNATTENDED, _ENVIRONMENT_FILE: listing, "TMPDIR": temporary}
        code, lines = _run(["/bin/sh", "-c", script], given, folder, on_line, time_limit)
        after = dict(environ)
        if code == 0:
            with open(listing, "rb") as file:
                found = variables_in(file.read())
            for name in variables_of(action):
                after.pop(name, None)
                if name in found:
                    after[name] = found[name]
    return CarriedOut(code, after, lines)


def _run(
    command: list[str],
    environ: Mapping[str, str],
    folder: str,
    on_line: OnLine | None,
    time_limit: float,
) -> tuple[int, tuple[str, ...]]:
    lines: deque[str] = deque(maxlen=_MOST_LINES)
    deadline = time.monotonic() + time_limit
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(environ),
        cwd=folder,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        with process.stdout:
            for line in _lines(process, deadline):
                lines.append(line)
                if on_line is not None:
                    on_line(line)
        if time.monotonic() >= deadline:
            lines.append(f"ERROR: stopped after {time_limit:.0f} s")
            return 124, tuple(lines)
        return process.wait(), tuple(lines)
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _lines(process: subprocess.Popen[bytes], deadline: float) -> Iterator[str]:
    """The lines that the process prints, until it ends or the time is over."""
    assert process.stdout is not None
    descriptor, rest = process.stdout.fileno(), b""
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], min(left, 1.0))[0]:
            continue
        piece = os.read(descriptor, 1 << 16)
        *whole, rest = (rest + piece).replace(b"\r", b"\n").split(b"\n")
        for line in [*whole, *([rest] if not piece else [])]:
            text = line[:_LONGEST_LINE].decode("utf-8", "replace").strip()
            if text:
                yield text
        if not piece:
            return
        rest = rest[-_LONGEST_LINE:]


def variables_in(listing: bytes) -> dict[str, str]:
    """What `env -0` printed."""
    texts = (os.fsdecode(pair).partition("=") for pair in listing.split(b"\0") if pair)
    return {name: value for name, _, value in texts}
