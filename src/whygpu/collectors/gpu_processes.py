"""The processes on the GPUs, as /proc shows them: whose, what they run, which frameworks they have.

NVML knows a number, a name and an amount. The number may be that of another pid namespace: then no
process here has it, or a stranger does, and such a one is known by having nothing of the driver's
in its memory.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from typing import TypeVar

from whygpu.host.base import Host
from whygpu.model.driver import Gpu, GpuProcess
from whygpu.model.observed import Absent, Known, Observed, Unknown, transform
from whygpu.tables.loaded_libraries import DRIVER_LIBRARY, GPU_LIBRARIES
from whygpu.tables.memory_defaults import VARIABLES

T = TypeVar("T")

_LARGEST_MAPS = 1 << 24
_LONGEST_COMMAND = 60
_PYTHON = re.compile(r"(?:python|pypy)(?:\d+(?:\.\d+)*)?[td]?")
_VALUED = ("-W", "-X", "-Q", "--check-hash-based-pycs")
"""Options of Python whose value is the next word."""
_GIVEN = re.compile(r"-[a-zA-Z]*?([cm])(.*)", re.DOTALL)
_UID = re.compile(r"^Uid:\s+(\d+)", re.MULTILINE)


def described(host: Host, gpus: Observed[tuple[Gpu, ...]]) -> Observed[tuple[Gpu, ...]]:
    """The GPUs with all that can be seen of their processes from here."""
    return transform(gpus, lambda found: tuple(_with_processes(host, gpu) for gpu in found))


def _with_processes(host: Host, gpu: Gpu) -> Gpu:
    found = transform(gpu.processes, lambda rows: tuple(_described(host, row) for row in rows))
    return gpu._replace(processes=found)


def _described(host: Host, process: GpuProcess) -> GpuProcess:
    folder = f"/proc/{process.pid}"
    owner = _owner(host, folder)
    if isinstance(owner, Absent):
        return _elsewhere(process, folder)
    maps = _maps(host, folder)
    if isinstance(maps, Known) and not DRIVER_LIBRARY.search(maps.value):
        return _elsewhere(process, f"the driver's libraries in {folder}/maps")
    yours = _yours(host, owner)
    environ = host.read_bytes(f"{folder}/environ")
    return process._replace(
        yours=yours,
        command=_command(host, process, yours),
        frameworks=transform(_reasoned(maps, yours), _frameworks),
        settings=transform(_reasoned(environ, yours), _settings),
    )


def _elsewhere(process: GpuProcess, where: str) -> GpuProcess:
    absent = Absent(where)
    return process._replace(yours=absent, command=absent, frameworks=absent, settings=absent)


def _owner(host: Host, folder: str) -> Observed[str]:
    status = host.read(f"{folder}/status")
    if not isinstance(status, Known):
        return status
    line = _UID.search(status.value)
    return Known(line[1], status.source) if line else Unknown(f"{status.source} names no user")


def _yours(host: Host, owner: Known[str] | Unknown) -> Observed[bool]:
    mine = _owner(host, "/proc/self")
    if isinstance(owner, Known) and isinstance(mine, Known):
        return Known(owner.value == mine.value, owner.source)
    return Unknown("/proc does not tell the owners of processes here")


def _maps(host: Host, folder: str) -> Observed[str]:
    maps = host.read(f"{folder}/maps", _LARGEST_MAPS)
    if isinstance(maps, Known) and not maps.value:
        return Unknown("the process is ending")
    return maps


def _reasoned(content: Observed[T], yours: Observed[bool]) -> Observed[T]:
    """Who may not read it is told why in plain words."""
    if not isinstance(content, Known) and isinstance(yours, Known) and not yours.value:
        return Unknown("the process is another user's")
    return Unknown(f"there is no {content.source}") if isinstance(content, Absent) else content


def _frameworks(maps: str) -> tuple[str, ...]:
    return tuple(name for name, files in GPU_LIBRARIES if files.search(maps))


def _settings(environ: bytes) -> tuple[tuple[str, str], ...]:
    pairs = (entry.partition("=") for entry in _entries(environ))
    return tuple(sorted((name, value) for name, _, value in pairs if name in VARIABLES))


def _entries(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").split("\0")


def _command(host: Host, process: GpuProcess, yours: Observed[bool]) -> Observed[str]:
    """Of somebody else's process the program is told, and not what it runs."""
    if not isinstance(yours, Known) or not yours.value:
        return process.name
    line = host.read_bytes(f"/proc/{process.pid}/cmdline")
    if not isinstance(line, Known):
        return process.name
    words = [word for word in _entries(line.value) if word.strip()]
    return Known(short_command(words), line.source) if words else process.name


def short_command(words: Sequence[str]) -> str:
    """The program, and for Python what it runs; no arguments, which may hold anything."""
    # A program that names itself ("ray::train step 7") writes over its whole command line.
    program = os.path.basename(words[0].split()[0])
    if _PYTHON.fullmatch(program):
        program = f"{program} {_run_by_python(words[1:])}".strip()
    return program[:_LONGEST_COMMAND]


def _run_by_python(words: Sequence[str]) -> str:
    rest = iter(words)
    for word in rest:
        if word in _VALUED:
            next(rest, None)
        elif word.startswith(("-W", "-X", "--")):
            continue
        elif (given := _GIVEN.match(word)) is not None:
            return "-c ..." if given[1] == "c" else f"-m {given[2] or next(rest, '')}"
        elif not word.startswith("-"):
            return os.path.basename(word)
    return ""
