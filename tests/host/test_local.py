"""The machine itself, where files are not files and commands do not end."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

from tests.patience import PATIENCE, stopped_in_time, wait_until
from whygpu.host.base import Completed
from whygpu.host.files import names_in
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
    assert isinstance(getattr(LocalHost(), question)(str(path)), Unknown)


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
        [sys.executable, "-c", textwrap.dedent(program)],
        stderr=subprocess.DEVNULL,
        timeout=PATIENCE,
    )
    pid = int(note.read_text())
    wait_until(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    """Not gone, and not dead and merely waiting for the init process to take notice."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def test_a_file_that_is_too_large_is_unknown_unless_its_start_is_enough(
    tmp_path: pathlib.Path,
) -> None:
    path = tmp_path / "METADATA"
    path.write_bytes(b"x" * 2000)
    host = LocalHost()
    assert host.read(str(path), 1024) == Unknown(f"{path}: it is larger than 1 KiB")
    assert host.read(str(path), 1024, whole=False) == Known("x" * 1024, str(path))
    assert isinstance(host.read(str(path), 2000), Known)


def test_a_folder_with_too_many_entries_is_unknown(tmp_path: pathlib.Path) -> None:
    for number in range(11):
        (tmp_path / str(number)).touch()
    with pytest.raises(OSError, match="more than 10 entries"):
        names_in(str(tmp_path), 10)
    assert len(names_in(str(tmp_path), 11)) == 11


def test_both_streams_and_the_exit_code_of_a_short_command() -> None:
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    done = LocalHost().run([sys.executable, "-c", program], timeout=20)
    assert done == Known(Completed(3, "out\n", "err\n", False), sys.executable)


def test_what_a_command_printed_before_its_time_was_up_is_kept() -> None:
    program = "import time; print('first', flush=True); time.sleep(600)"
    expected = Known(Completed(-9, "first\n", "", True), sys.executable)
    done, _ = stopped_in_time(
        lambda limit: LocalHost().run([sys.executable, "-c", program], timeout=limit),
        lambda done: done == expected,
    )
    assert done == expected


def test_what_a_command_leaves_in_another_session_ends_with_it(tmp_path: pathlib.Path) -> None:
    command = tmp_path / "command"
    seconds = f"7654.{os.getpid()}"
    command.write_text(f"#!/bin/sh\n(setsid sleep {seconds} >/dev/null 2>&1 &)\nexit 0\n")
    command.chmod(0o755)
    LocalHost().run([str(command)], timeout=20)
    alive = [path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")]
    assert f"sleep\0{seconds}\0".encode() not in alive
