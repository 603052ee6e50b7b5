"""The machine whygpu runs on."""

from __future__ import annotations

import atexit
import grp
import mmap
import os
import pwd
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar

from whygpu.host import elf as elf_reader
from whygpu.host import fatbin
from whygpu.host.base import Completed, FileFacts, FileKind, Platform
from whygpu.host.processor_time import Watch
from whygpu.model.libraries import ElfFacts
from whygpu.model.observed import Absent, Known, Observed, Unknown

T = TypeVar("T")

OUTPUT_LIMIT = 1 << 20
"""A short command that prints more than this is not one we can use."""

_running: set[subprocess.Popen[bytes]] = set()
_starting = Lock()
"""Held from the start of a command until it is in the set: it must not slip through between."""


@atexit.register
def _leave_nothing_running() -> None:
    """When we are stopped, a thread may still be waiting for a command that does not answer."""
    _starting.acquire(timeout=1)
    for process in tuple(_running):
        _kill(process)


class LocalHost:
    """Asks the operating system. Holds no state but what cannot change during a run."""

    @cached_property
    def platform(self) -> Platform:
        facts = os.uname()
        return Platform(
            system=facts.sysname,
            kernel=facts.release,
            machine=facts.machine,
            cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1,
            python=sys.executable,
            libc=_libc(),
            home=os.path.expanduser("~"),
            user=_user_name(),
            host_name=facts.nodename,
        )

    @cached_property
    def environ(self) -> Mapping[str, str]:
        return dict(os.environ)

    def read(self, path: str, limit: int = 1 << 20) -> Observed[str]:
        content = self.read_bytes(path, limit)
        if isinstance(content, Known):
            return Known(content.value.decode("utf-8", "replace"), path)
        return content

    def read_bytes(self, path: str, limit: int = 1 << 24) -> Observed[bytes]:
        def read() -> bytes:
            with open(path, "rb", opener=_open_file) as file:
                return file.read(limit)

        return _ask(path, read)

    def list(self, path: str) -> Observed[tuple[str, ...]]:
        return _ask(path, lambda: tuple(sorted(os.listdir(path))))

    def stat(self, path: str) -> Observed[FileFacts]:
        return _ask(path, lambda: _facts(path))

    def disk(self, path: str) -> Observed[int]:
        def size() -> int:
            facts = os.statvfs(path)
            return facts.f_frsize * facts.f_blocks

        return _ask(path, size)

    def elf(self, path: str) -> Observed[ElfFacts]:
        return _ask(path, lambda: _mapped(path, elf_reader.facts))

    def symbols(self, path: str) -> Observed[tuple[tuple[str, ...], tuple[str, ...]]]:
        return _ask(path, lambda: _mapped(path, elf_reader.symbols))

    def gpu_code(self, path: str) -> Observed[tuple[str, ...]]:
        return _ask(path, lambda: _mapped(path, fatbin.architectures))

    def run(
        self, command: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
    ) -> Observed[Completed]:
        name = command[0]
        try:
            with _starting:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=env,
                    start_new_session=True,
                )
                _running.add(process)
        except FileNotFoundError:
            return Absent(name)
        except OSError as error:
            return Unknown(f"{name} cannot be started: {error.strerror}")
        watch = Watch(process.pid, timeout)
        try:
            stdout, stderr = _watched(process, watch)
        except subprocess.TimeoutExpired:
            at_work = watch.at_work()
            given_up = _give_up(process)
            if at_work:
                return Unknown(f"{name} did not answer within {at_work}")
            return Known(given_up, name)
        except BaseException:
            _give_up(process)
            raise
        finally:
            _running.discard(process)
        return Known(Completed(process.returncode, _text(stdout), _text(stderr), False), name)


def _ask(path: str, question: Callable[[], T]) -> Observed[T]:
    """Turn the ways in which a file can refuse into what we then know."""
    try:
        return Known(question(), path)
    except (FileNotFoundError, NotADirectoryError):
        return Absent(path)
    except PermissionError:
        return Unknown(f"{path}: permission denied")
    except elf_reader.BadElf as error:
        return Unknown(f"{path}: {error}")
    except (OSError, ValueError) as error:
        # ValueError: a path with a NUL byte, or an empty file that cannot be mapped.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Unknown(f"{path}: {reason}")


def _open_file(path: str, flags: int) -> int:
    """Open a file, and nothing else: a pipe would make us wait for a writer for ever."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        os.close(descriptor)
        raise OSError("not a regular file")
    return descriptor


def _mapped(path: str, read: Callable[[Any], T]) -> T:
    """Read a file through a memory map: of a 1 GB library only a few pages are touched."""
    with open(path, "rb", opener=_open_file) as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise elf_reader.BadElf("file too short")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
            return read(buffer)


_KINDS: tuple[tuple[Callable[[int], bool], FileKind], ...] = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISCHR, "character-device"),
)


def _facts(path: str) -> FileFacts:
    facts = os.stat(path)
    return FileFacts(
        kind=next((kind for test, kind in _KINDS if test(facts.st_mode)), "other"),
        mode=stat.filemode(facts.st_mode),
        size=facts.st_size,
        group=_group_name(facts.st_gid),
        usable=os.access(path, os.R_OK | os.W_OK),
        real_path=os.path.realpath(path),
        identity=f"{facts.st_dev}:{facts.st_ino}",
    )


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return os.environ.get("USER", "")


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, OSError, ValueError):
        # musl has no such name; platform.libc_ver reads the interpreter's binary instead.
        import platform

        return " ".join(platform.libc_ver()).strip()


def _watched(process: subprocess.Popen[bytes], watch: Watch) -> tuple[bytes, bytes]:
    try:
        return process.communicate(timeout=watch.seconds_before_last_part)
    except subprocess.TimeoutExpired:
        watch.begin_last_part()
        return process.communicate(timeout=watch.seconds_of_last_part)


def _give_up(process: subprocess.Popen[bytes]) -> Completed:
    """Kill the whole group. A child stuck in the kernel is left behind, not waited for."""
    _kill(process)
    stdout = stderr = b""
    with suppress(subprocess.TimeoutExpired):
        stdout, stderr = process.communicate(timeout=0.5)
    return Completed(-signal.SIGKILL, _text(stdout), _text(stderr), True)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _text(output: bytes) -> str:
    return output[:OUTPUT_LIMIT].decode("utf-8", "replace")
