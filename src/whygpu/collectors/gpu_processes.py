"""The processes on the GPUs, as /proc shows them: their user, program and frameworks.

NVML reports a process number, a name and an amount of memory. The number may belong to another pid
namespace. Then no process here has it, or an unrelated process does; an unrelated process has no
library of the driver in its memory.
"""

from __future__ import annotations

import json
import os.path
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from whygpu.collectors.proc_worker import Fact
from whygpu.host.base import Host
from whygpu.host.own_process import own_command, own_environ
from whygpu.model.driver import Gpu, GpuProcess
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Absent, Known, Observed, Unknown, transform
from whygpu.tables.loaded_libraries import DRIVER_LIBRARY, GPU_LIBRARIES
from whygpu.tables.memory_defaults import VARIABLES

WORKER = "whygpu.collectors.proc_worker"
TIME_LIMIT = 3.0
"""Seconds for all processes together, and then for each one."""

UNDER_RUN = "WHYGPU_BOOTSTRAP_SETTINGS"
"""Names the settings of a program under `whygpu run`; its reports are below their folder."""
_IN_USE = "reports/{pid}.in-use"

_SEVERAL_GPUS = Unknown("the program uses several GPUs and numbers them in its own way")
_STUCK = "/proc/{pid} does not answer: the process hangs in the kernel"
_LONGEST_COMMAND = 60
_PYTHON = late(r"(?:python|pypy)(?:\d+(?:\.\d+)*)?[td]?")
_VALUED = ("-W", "-X", "-Q", "--check-hash-based-pycs")
"""Options of Python whose value is the next word."""
_GIVEN = late(r"-[a-zA-Z]*?([cm])(.*)", re.DOTALL)

Answers = dict[int, dict[str, Fact] | Unknown]
"""By process number."""


def described(host: Host, gpus: Observed[tuple[Gpu, ...]]) -> Observed[tuple[Gpu, ...]]:
    """The GPUs with everything that is visible about their processes."""
    if not isinstance(gpus, Known):
        return gpus
    counts = Counter(process.pid for gpu in gpus.value for process in _processes(gpu))
    if not counts:
        return gpus
    answers = _ask(host, sorted(counts))

    def seen(process: GpuProcess) -> GpuProcess:
        found = _described(host, process, answers[process.pid])
        if counts[process.pid] > 1 and isinstance(found.in_use_bytes, Known):
            return found._replace(in_use_bytes=_SEVERAL_GPUS)
        return found

    found = (
        gpu._replace(processes=transform(gpu.processes, lambda rows: tuple(map(seen, rows))))
        for gpu in gpus.value
    )
    return Known(tuple(found), gpus.source)


def _processes(gpu: Gpu) -> tuple[GpuProcess, ...]:
    return gpu.processes.value if isinstance(gpu.processes, Known) else ()


def command(host: Host, pids: Sequence[int]) -> tuple[str, ...]:
    """The command that reads /proc for these processes."""
    names = ",".join(sorted({*VARIABLES, UNDER_RUN}))
    return own_command(host.platform.python, WORKER, (names, *map(str, pids)))


def _ask(host: Host, pids: Sequence[int]) -> Answers:
    if host.platform.system != "Linux":
        unread = Unknown(f"processes are read on Linux only; this is {host.platform.system}")
        return dict.fromkeys(pids, unread)
    env = own_environ(host.environ)
    done = host.run(command(host, pids), timeout=TIME_LIMIT, env=env)
    if not isinstance(done, Known):
        return dict.fromkeys(pids, Unknown("the process that reads /proc could not be started"))
    if done.value.timed_out:
        if len(pids) == 1:
            return {pids[0]: Unknown(_STUCK.format(pid=pids[0]))}
        # Read each process on its own, so that one that hangs does not hide the others.
        return {pid: answer for each in pids for pid, answer in _ask(host, [each]).items()}
    answers = _parsed(done.value.stdout, pids)
    return answers or dict.fromkeys(
        pids, Unknown("the answer of the process that reads /proc is incomplete")
    )


def _parsed(text: str, pids: Sequence[int]) -> Answers | None:
    """The worker's line. Start-up files of Python may print other lines."""
    for line in reversed(text.splitlines()):
        try:
            answers = json.loads(line)
            return {pid: answers[str(pid)] for pid in pids}
        except (ValueError, TypeError, LookupError, RecursionError):
            continue
    return None


def _described(host: Host, process: GpuProcess, answer: dict[str, Fact] | Unknown) -> GpuProcess:
    if isinstance(answer, Unknown):
        return _all(process, answer)
    yours: Observed[bool] = _observed(answer["yours"])
    if isinstance(yours, Absent):
        return _all(process, Absent(f"/proc/{process.pid}"))
    files = _readable(_observed(answer["files"]), yours)
    if isinstance(files, Known) and not any(map(DRIVER_LIBRARY.search, files.value)):
        return _all(process, Absent(f"the driver's libraries in {files.source}"))
    environ = _readable(_observed(answer["environ"]), yours)
    return process._replace(
        yours=yours,
        command=_command(process, yours, _observed(answer["words"])),
        frameworks=transform(files, _frameworks),
        settings=transform(environ, _settings),
        is_asking=_observed(answer["asking"]),
        in_use_bytes=_in_use(host, process.pid, environ),
    )


def _all(process: GpuProcess, missing: Absent | Unknown) -> GpuProcess:
    return process._replace(
        yours=missing,
        command=process.name if isinstance(missing, Unknown) else missing,
        frameworks=missing,
        settings=missing,
        is_asking=missing,
        in_use_bytes=missing,
    )


def _observed(fact: Fact) -> Observed[Any]:
    if "value" in fact:
        return Known(fact["value"], "/proc")
    return Absent(fact["absent"]) if "absent" in fact else Unknown(fact["unknown"])


def _readable(content: Observed[Any], yours: Observed[bool]) -> Observed[Any]:
    """Replaces a permission error with a plain reason."""
    if not isinstance(content, Known) and isinstance(yours, Known) and not yours.value:
        return Unknown("the process belongs to another user")
    return Unknown(f"there is no {content.source}") if isinstance(content, Absent) else content


def _frameworks(files: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name, marks in GPU_LIBRARIES if any(map(marks.search, files)))


def _settings(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, environ[name]) for name in VARIABLES & environ.keys()))


def _in_use(host: Host, pid: int, environ: Observed[dict[str, str]]) -> Observed[int]:
    """What the part of whygpu inside the program has reported."""
    if not isinstance(environ, Known):
        return environ
    settings = environ.value.get(UNDER_RUN)
    if settings is None:
        return Absent(f"{UNDER_RUN}: the process was not started by whygpu run")
    text = host.read(f"{os.path.dirname(settings)}/{_IN_USE.format(pid=pid)}")
    if not isinstance(text, Known):
        return Unknown("the program has not reported it yet")
    try:
        report = json.loads(text.value)
        age = max(time.time() - float(report["time"]), 0)
        devices = {device for _, device, _ in report["in_use"]}
        total = sum(int(count) for _, _, count in report["in_use"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return Unknown("the program's report cannot be read")
    if len(devices) != 1:
        return _SEVERAL_GPUS
    return Known(total, f"reported by the program {age:.0f} s ago")


def _command(
    process: GpuProcess, yours: Observed[bool], words: Observed[list[str]]
) -> Observed[str]:
    """For another user's process, the program only and not what it runs."""
    if not isinstance(yours, Known) or not yours.value:
        return process.name
    if not isinstance(words, Known) or not words.value or not words.value[0].split():
        return process.name
    return Known(short_command(words.value), words.source)


def short_command(words: Sequence[str]) -> str:
    """The program and, for Python, what it runs; no arguments, which may be private."""
    # A program that renames itself ("ray::train step 7") overwrites its whole command line.
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
