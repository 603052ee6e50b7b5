"""Files are replaced as a whole or not at all, whatever fails or interrupts on the way."""

from __future__ import annotations

import errno
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
from typing import Any

import pytest

import whygpu
from whygpu.host import writing
from whygpu.host.writing import FileChanged, check_writable, edit_file, write_file

OLD, NEW = b"old content\n" * 400, b"the new content\n" * 500
SOURCE = pathlib.Path(whygpu.__path__[0]).parent


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "file.py"
    path.write_bytes(OLD)
    return path


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_mode_that_open_would_give_it(tmp_path: pathlib.Path) -> None:
    write_file(str(tmp_path / "new"), NEW)
    (tmp_path / "as-open").write_bytes(NEW)
    assert (tmp_path / "new").read_bytes() == NEW
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "as-open").stat().st_mode
    assert names(tmp_path) == ["as-open", "new"]


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o664, 0o2750])
def test_an_old_file_keeps_its_mode(file: pathlib.Path, mode: int) -> None:
    file.chmod(mode)
    write_file(str(file), NEW)
    assert file.read_bytes() == NEW
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert names(file.parent) == ["file.py"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_an_old_file_keeps_its_owner(file: pathlib.Path) -> None:
    os.chown(file, 1234, 2345)
    edit_file(str(file), OLD, NEW)
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 2345)


def test_an_old_file_keeps_its_attributes(file: pathlib.Path) -> None:
    try:
        os.setxattr(file, "user.note", b"mine")
    except OSError as error:
        pytest.skip(f"no extended attributes here: {error}")
    edit_file(str(file), OLD, NEW)
    assert os.getxattr(file, "user.note") == b"mine"


def test_a_link_stays_a_link(file: pathlib.Path) -> None:
    (file.parent / "link").symlink_to("file.py")
    (file.parent / "link-to-link").symlink_to(file.parent / "link")
    write_file(str(file.parent / "link-to-link"), NEW)
    assert (file.parent / "link").is_symlink()
    assert file.read_bytes() == NEW
    (file.parent / "dangling").symlink_to("made")
    write_file(str(file.parent / "dangling"), NEW)
    assert (file.parent / "made").read_bytes() == NEW


def test_links_in_a_circle_are_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_file(str(tmp_path / "a"), NEW)


@pytest.mark.parametrize("name", ["", "folder", "new/", "missing/file"])
def test_what_is_no_place_for_a_file_is_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises((IsADirectoryError, FileNotFoundError)):
        write_file(name, NEW)
    with pytest.raises((IsADirectoryError, FileNotFoundError)):
        check_writable(name)
    assert names(tmp_path) == ["folder"]


def test_a_file_that_may_not_be_written_is_not_replaced(file: pathlib.Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    file.chmod(0o444)
    with pytest.raises(PermissionError):
        write_file(str(file), NEW)
    with pytest.raises(PermissionError):
        check_writable(str(file))
    assert file.read_bytes() == OLD


def test_a_fifo_is_written_to(tmp_path: pathlib.Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()))
    reader.start()
    check_writable(str(fifo))
    write_file(str(fifo), NEW)
    reader.join(10)
    assert got == [NEW]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_devices_are_written_to() -> None:
    write_file(os.devnull, NEW)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="No space left"):
            write_file("/dev/full", NEW)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_our_own_descriptors_keep_what_is_in_their_file(tmp_path: pathlib.Path, name: str) -> None:
    """`{ echo before; whygpu snapshot -o /dev/stdout; } > log` must not lose a line."""
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("there is no /proc here")
    (tmp_path / "link").symlink_to("/dev/stdout")
    code = f"from whygpu.host.writing import write_file; write_file({name!r}, b'content')"
    command = f'echo before; "{sys.executable}" -c "{code}"; echo after'
    with (tmp_path / "log").open("wb") as log:
        subprocess.run(["sh", "-c", command], stdout=log, cwd=tmp_path, check=True)
    assert (tmp_path / "log").read_bytes() == b"before\ncontentafter\n"


def test_a_file_that_has_changed_is_left_alone(file: pathlib.Path) -> None:
    for now in (OLD + b"more", OLD[:-1], b"", NEW):
        file.write_bytes(now)
        with pytest.raises(FileChanged, match="changed since"):
            edit_file(str(file), OLD, NEW)
        assert file.read_bytes() == now
    file.unlink()
    with pytest.raises(FileNotFoundError):
        edit_file(str(file), OLD, NEW)
    assert names(file.parent) == []


class FailsAt:
    """While it is in use, the system call number `step` of the writer fails.

    It is a profiling function, so that nothing of whygpu is replaced.
    """

    def __init__(self, step: int) -> None:
        self.left = step

    def __call__(self, frame: Any, event: str, argument: Any) -> None:
        if event != "c_call" or frame.f_code.co_filename != writing.__file__:
            return
        if getattr(argument, "__module__", "") != "posix":
            return
        self.left -= 1
        if self.left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_whichever_step_fails_the_file_is_whole_and_nothing_else_is_left(
    file: pathlib.Path,
) -> None:
    failures = 0
    for step in range(1, 100):
        file.write_bytes(OLD)
        fault = FailsAt(step)
        sys.setprofile(fault)
        try:
            edit_file(str(file), OLD, NEW)
            content = NEW
        except OSError:
            content = OLD
            failures += 1
        finally:
            sys.setprofile(None)
        assert file.read_bytes() == content, step
        assert names(file.parent) == ["file.py"], step
        if fault.left > 0:
            break
    assert fault.left > 0, "there are more steps than were tried"
    assert failures > 5


SCRIPT = """
import os
from whygpu.host.writing import edit_file
before, after = open("old", "rb").read(), open("new", "rb").read()
os.access("/begin", 0)
edit_file("file.py", before, after)
os.access("/end", 0)
"""
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)", re.MULTILINE)


class Traced:
    """The script that replaces file.py, under strace."""

    def __init__(self, folder: pathlib.Path) -> None:
        strace = shutil.which("strace")
        if strace is None:
            pytest.skip("there is no strace here")
        self._strace = strace
        self.folder = folder
        (folder / "old").write_bytes(OLD)
        (folder / "new").write_bytes(NEW)

    def run(self, *options: str) -> str:
        (self.folder / "file.py").write_bytes(OLD)
        command = [self._strace, "-o", str(self.folder.parent / "log"), *options]
        environ = {"PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [*command, sys.executable, "-S", "-c", SCRIPT],
            cwd=self.folder,
            env=environ,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if "Operation not permitted" in done.stderr and "ptrace" in done.stderr:
            pytest.skip(f"strace may not trace here: {done.stderr}")
        return (self.folder.parent / "log").read_text(errors="replace")

    def calls(self) -> list[tuple[str, int]]:
        """The system calls of the write: the name, and which one of that name it is."""
        counts: dict[str, int] = {}
        found: list[tuple[str, int]] = []
        inside = False
        for name, rest in CALL.findall(self.run()):
            counts[name] = counts.get(name, 0) + 1
            if '"/begin"' in rest or '"/end"' in rest:
                inside = '"/begin"' in rest
            elif inside:
                found.append((name, counts[name]))
        return found


def test_a_signal_or_a_failure_at_any_system_call_leaves_a_whole_file(
    tmp_path: pathlib.Path,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    traced = Traced(folder)
    calls = traced.calls()
    assert {"write", "fsync"} <= {name for name, _ in calls}
    seen: set[bytes] = set()
    for name, number in calls:
        for kind in ("signal=SIGINT", "signal=SIGKILL", "error=ENOSPC"):
            where = f"{kind} at {name} number {number}"
            if name.startswith("rt_sig") and kind.startswith("error"):
                continue
            traced.run("-e", f"trace={name}", "-e", f"inject={name}:{kind}:when={number}")
            content = (folder / "file.py").read_bytes()
            assert content in (OLD, NEW), where
            seen.add(content)
            left = [path for path in folder.iterdir() if path.name.startswith(writing.TEMPORARY)]
            # A process that is killed cannot clear up, and neither can one that may not unlink.
            assert not left or kind == "signal=SIGKILL" or name.startswith("unlink"), where
            for path in left:
                path.unlink()
    assert seen == {OLD, NEW}


def test_signals_wait_until_the_file_is_written(file: pathlib.Path) -> None:
    """A handler that raises is called after the write, whatever becomes of that."""

    def interrupt(frame: Any, event: str, argument: Any) -> None:
        if event == "c_call" and argument is os.write:
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            edit_file(str(file), OLD, NEW)
    finally:
        sys.setprofile(None)
    assert file.read_bytes() == NEW
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert names(file.parent) == ["file.py"]
