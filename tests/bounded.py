"""Runs a program in a separate process and measures its peak memory.

The address space is limited as well: if whygpu no longer stops a memory bomb, the test fails with a
MemoryError and does not use up the machine's memory.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
from typing import NamedTuple

LARGEST = 300 << 20
"""whygpu itself stays below this for any input."""
_ADDRESS_SPACE = 4 << 30
_SECONDS = 120

_PRELUDE = f"""
import atexit, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({_ADDRESS_SPACE}, {_ADDRESS_SPACE}))
def note(path=sys.argv.pop(1)):
    # Not getrusage: its figure includes the process that started this one.
    with open("/proc/self/status") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
    with open(path, "w") as file:
        file.write(peak)
atexit.register(note)
"""
_CLI = """
from whygpu.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


class Ended(NamedTuple):
    code: int
    stdout: str
    stderr: str
    peak: int
    """Peak resident memory, in bytes."""


def run(program: str, *words: str, folder: pathlib.Path | None = None, given: bytes = b"") -> Ended:
    """Run a piece of Python, with these words as its sys.argv[1:]."""
    with tempfile.TemporaryDirectory() as scratch:
        noted = os.path.join(scratch, "peak")
        done = subprocess.run(
            [sys.executable, "-c", _PRELUDE + textwrap.dedent(program), noted, *words],
            input=given,
            capture_output=True,
            timeout=_SECONDS,
            cwd=folder,
        )
        peak = int(pathlib.Path(noted).read_text()) * 1024
    return Ended(
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
        peak,
    )


def whygpu(*words: str, folder: pathlib.Path | None = None, given: bytes = b"") -> Ended:
    """Run the command line and check that it stays below the limit."""
    ended = run(_CLI, *words, folder=folder, given=given)
    assert ended.peak < LARGEST, f"{ended.peak >> 20} MiB; {ended.stderr[-2000:]}"
    assert "Traceback" not in ended.stderr, ended.stderr[-2000:]
    assert ended.code in (0, 1, 2, 4), ended.stderr[-2000:]
    return ended
