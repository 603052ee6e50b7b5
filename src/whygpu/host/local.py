"""The Host for the machine that whygpu runs on."""

from __future__ import annotations

import atexit
import mmap
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from whygpu.host import elf as elf_reader
from whygpu.host import fatbin, files, hip_code, limits
from whygpu.host.base import Completed, FileFacts, FileKind, Platform
from whygpu.host.command_output import output_of
from whygpu.host.orphans import Orphans
from whygpu.host.processes import LOOK_SECONDS, MemoryWatch, first_to_be_killed
from whygpu.host.processor_time import Watch
from whygpu.host.systems import KILLED, cores, kill_group
from whygpu.model.libraries import ElfFacts
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.units import size_text

T = TypeVar("T")

_MOST_OUTPUT = size_text(limits.COMMAND_OUTPUT)
_MOST_MEMORY = size_text(limits.COMMAND_MEMORY)
_DYING_SECONDS = 0.5
"""Seconds until a killed command that has not ended counts as stuck in the kernel."""

_running: set[subprocess.Popen[bytes]] = set()
_starting = Lock()
"""Held from the start of a command until it is in the set, so that no command is missed."""


@atexit.register
def _leave_nothing_running() -> None:
    """When whygpu exits, a thread may still be waiting for a command that does not answer."""
    _starting.acquire(timeout=1)
    for process in tuple(_running):
        kill_group(process)


class LocalHost:
    """Queries the operating system. Caches only what cannot change during a run.

    `environ`: this machine as a program with other variables sees it.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.environ: Mapping[str, str] = dict(os.environ if environ is None else environ)

    @cached_property
    def platform(self) -> Platform:
        facts = _uname()
        return Platform(
            system=facts.sysname,
            kernel=facts.release,
            machine=facts.machine,
            cores=cores(),
            python=sys.executable,
            libc=_libc(),
            home=os.path.expanduser("~"),
            user=_user_name(),
            host_name=facts.nodename,
        )

    def read(
        self, path: str, limit: int = limits.TEXT_FILE, *, whole: bool = True
    ) -> Observed[str]:
        content = self.read_bytes(path, limit, whole=whole)
        if isinstance(content, Known):
            return Known(content.value.decode("utf-8", "replace"), path)
        return content

    def read_bytes(
        self, path: str, limit: int = limits.BINARY_FILE, *, whole: bool = True
    ) -> Observed[bytes]:
        read = files.read_whole if whole else files.read_start
        return _ask(path, lambda: read(path, limit))

    def list(self, path: str) -> Observed[tuple[str, ...]]:
        return _ask(path, lambda: tuple(files.names_in(path)))

    def stat(self, path: str) -> Observed[FileFacts]:
        return _ask(path, lambda: _facts(path))

    def disk(self, path: str) -> Observed[int]:
        def size() -> int:
            if sys.platform == "win32":
                import shutil

                return shutil.disk_usage(path).total
            facts = os.statvfs(path)
            return facts.f_frsize * facts.f_blocks

        return _ask(path, size)

    def elf(self, path: str) -> Observed[ElfFacts]:
        return _ask(path, lambda: _mapped(path, elf_reader.facts))

    def symbols(self, path: str) -> Observed[tuple[tuple[str, ...], tuple[str, ...]]]:
        return _ask(path, lambda: _mapped(path, elf_reader.symbols))

    def gpu_code(self, path: str) -> Observed[tuple[str, ...]]:
        return _ask(path, lambda: _mapped(path, _gpu_code))

    def run(
        self, command: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
    ) -> Observed[Completed]:
        orphans = Orphans()
        try:
            return self._run(
                command, timeout, orphans.marked(self.environ if env is None else env), orphans
            )
        finally:
            orphans.end(thorough=False)

    def _run(
        self, command: Sequence[str], timeout: float, env: Mapping[str, str], orphans: Orphans
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
        orphans.parent = process.pid
        watch = Watch(process.pid, timeout)
        try:
            return _completed(process, name, watch)
        except BaseException:
            kill_group(process)
            raise
        finally:
            _running.discard(process)


def _ask(path: str, question: Callable[[], T]) -> Observed[T]:
    """Convert errors of file access to Absent or Unknown."""
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


def _mapped(path: str, read: Callable[[Any], T]) -> T:
    """Read a file through a memory map, which reads only a few pages of a 1 GB library."""
    with open(path, "rb", opener=files.open_regular) as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise elf_reader.BadElf("file too short")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
            return read(buffer)


def _gpu_code(buffer: Any) -> tuple[str, ...]:
    return (*fatbin.architectures(buffer), *hip_code.targets(buffer))


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


class _Uname(NamedTuple):
    """What os.uname() says, and Windows in other words."""

    sysname: str
    release: str
    machine: str
    nodename: str


def _uname() -> _Uname:
    if sys.platform != "win32":
        facts = os.uname()
        return _Uname(facts.sysname, facts.release, facts.machine, facts.nodename)
    import platform

    version = sys.getwindowsversion()
    release = f"{version.major}.{version.minor}.{version.build}"
    return _Uname("Windows", release, platform.machine(), platform.node())


def _group_name(number: int) -> str:
    if sys.platform == "win32":
        return str(number)
    try:
        import grp

        return grp.getgrgid(number).gr_name
    except (ImportError, KeyError):
        return str(number)


def _user_name() -> str:
    if sys.platform == "win32":
        return os.environ.get("USERNAME", "")
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        # A Python in a browser has no users.
        return os.environ.get("USER", "")


def _libc() -> str:
    if sys.platform == "win32":
        return ""
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):
        # musl does not have this name. platform.libc_ver would read the interpreter's binary.
        import platform

        return " ".join(platform.libc_ver()).strip()


def _completed(
    process: subprocess.Popen[bytes], name: str, time_used: Watch
) -> Observed[Completed]:
    """The output of a short command and how it ended."""
    first_to_be_killed(process.pid)
    memory = MemoryWatch(process.pid, limits.COMMAND_MEMORY)
    last_part = time.monotonic() + time_used.seconds_before_last_part
    deadline = last_part + time_used.seconds_of_last_part
    with output_of(process) as output:
        while not output.ended and time.monotonic() < deadline:
            if output.is_too_long:
                _end(process)
                return Unknown(f"{name} was stopped: it printed more than {_MOST_OUTPUT}")
            if memory.look():
                _end(process)
                return Unknown(f"{name} was stopped: it used more than {_MOST_MEMORY} of memory")
            now = time.monotonic()
            if now > last_part:
                time_used.begin_last_part()
            output.read(min(LOOK_SECONDS, max(0.0, deadline - now)))
        if output.ended:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(max(0.0, deadline - time.monotonic()))
                return Known(Completed(code, output.stdout, output.stderr, False), name)
        at_work = time_used.at_work()
        _end(process)
        output.read(0)
        if at_work:
            return Unknown(f"{name} did not answer within {at_work}")
        return Known(Completed(KILLED, output.stdout, output.stderr, True), name)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole group. Do not wait for a child that is stuck in the kernel."""
    kill_group(process)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_DYING_SECONDS)
