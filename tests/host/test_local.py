"""The machine itself, where files are not files and commands do not end."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
import time

import pytest

from whygpu.host.local import LocalHost
from whygpu.model.observed import Known, Unknown


@pytest.mark.parametrize("question", ["read", "read_bytes", "elf", "symbols", "gpu_code"])
@pytest.mark.parametrize("what", ["a pipe", "a device", "a circle of links", "a folder"])
def test_what_is_no_file_is_unknown_and_keeps_nobody_waiting(
    tmp_path: pathlib.Path, question: str, what: str
) -> None:
    path = tmp_path / "libcuda.so.1"
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a device":
        path.symlink_to("/dev/zero")
    elif what == "a circle of links":
        path.symlink_to(path)
    else:
        path.mkdir()
    started = time.monotonic()
    assert isinstance(getattr(LocalHost(), question)(str(path)), Unknown)
    assert time.monotonic() - started < 5


def test_files_of_the_kernel_are_files() -> None:
    """They say that they are empty, and are not."""
    seen = LocalHost().read("/proc/self/status")
    assert isinstance(seen, Known)
    assert "Pid:" in seen.value


def test_whoever_ends_while_a_thread_waits_for_a_command_takes_it_along(
    tmp_path: pathlib.Path,
) -> None:
    note = tmp_path / "pid"
    program = f"""
        import os, time
        from whygpu.collectors.background import Background
        from whygpu.host.local import LocalHost
        command = ("sh", "-c", "echo $$ > {note}; sleep 300")
        Background(lambda: LocalHost().run(command, timeout=300))
        while not os.path.exists({str(note)!r}) or not os.path.getsize({str(note)!r}):
            time.sleep(0.01)
        raise KeyboardInterrupt
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], stderr=subprocess.DEVNULL, timeout=30
    )
    pid = int(note.read_text())
    deadline = time.monotonic() + 5
    while _runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    """Not gone, and not dead and merely waiting for the init process to take notice."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")
