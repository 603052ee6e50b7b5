"""Runs whygpu in a fork of a process that has imported it: thousands of starts in minutes.

Reads one request a line (JSON) and answers each with one line. Started by `sandbox.py`:

    python -m tests.faults.zygote
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pathlib
import pkgutil
import resource
import signal
import sys
import tempfile
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any

CRASHED = 99
"""The exit code of a start that raised out of main(); no verb has it."""
MOST_MEMORY = 4 << 30
"""Bytes of address space: an attack that works must not take the machine down."""
GRACE = 1.0
"""Seconds in which what was killed may disappear."""
_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    _import_everything()
    _use_everything_once()
    # A collection in a fork would write to, and so copy, every page that it shares with us.
    gc.freeze()
    # What a start leaves behind becomes our child, and is seen.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for line in sys.stdin:
        print(json.dumps(_answer(json.loads(line))), flush=True)


def _import_everything() -> None:
    """So that a fork pays for none of it."""
    import whygpu
    from whygpu.causes import catalogue

    for module in pkgutil.walk_packages(whygpu.__path__, "whygpu."):
        parts = module.name.split(".")
        if not {"inside", "bootstrap", "scripts", "__main__"} & set(parts):
            importlib.import_module(module.name)
    catalogue()


def _use_everything_once() -> None:
    """So that a fork compiles no pattern and fills no cache again: most of a start's time."""
    from tests.machines.healthy import healthy
    from whygpu.cli.main import main as whygpu_main
    from whygpu.model.codec import encode
    from whygpu.model.lazy_regex import compiled, late

    for found in gc.get_objects():
        if isinstance(found, type(late(""))):
            compiled(found)
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        files = {
            "a.log": "Could not load dynamic library 'libcudart.so.11.0' on /home/somebody\n",
            "a.json": json.dumps(encode(healthy())),
            "a.py": "import tensorflow as tf\ntf.Session()\n",
        }
        for name, content in files.items():
            pathlib.Path(folder, name).write_text(content)
        for words in (("explain", "a.log"), ("check", "--snapshot", "a.json"), ("lint", "a.py")):
            sys.argv = ["whygpu", *words[:-1], os.path.join(folder, words[-1]), "--json"]
            with redirect_stdout(nowhere), redirect_stderr(nowhere), suppress(SystemExit):
                whygpu_main()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _start(request, theirs)
    os.close(theirs)
    status, timed_out = _wait(child, request["seconds"])
    with open(ours, encoding="ascii") as stream:
        peak = stream.read()
    return {
        "code": os.waitstatus_to_exitcode(status),
        "timed_out": timed_out,
        "peak_kib": int(peak or 0),
        "left": _left_behind(),
    }


def _start(request: dict[str, Any], report: int) -> None:
    """Become a whygpu that was started with these words."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environ"])
    for number, (path, flags) in enumerate(
        (
            (request["stdin"], os.O_RDONLY),
            (request["stdout"], os.O_WRONLY | os.O_CREAT),
            (request["stderr"], os.O_WRONLY | os.O_CREAT),
        )
    ):
        os.dup2(os.open(path, flags), number)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    sys.argv = ["whygpu", *request["argv"]]
    code = _exit_code()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os.write(report, str(_peak_kib()).encode())
    os._exit(code)


def _exit_code() -> int:
    from whygpu.cli.main import main as whygpu_main

    try:
        return whygpu_main() & 255
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return CRASHED


def _peak_kib() -> int:
    """Of this process alone: a program that it ran may be as large as it likes."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _wait(child: int, seconds: float) -> tuple[int, bool]:
    deadline = time.monotonic() + seconds
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status, False
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            return os.waitpid(child, 0)[1], True
        time.sleep(0.002)


def _left_behind() -> list[str]:
    """The command lines of processes that outlived the start; they are ended."""
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return []
        if not pid:
            time.sleep(0.01)
    return [_end(pid) for pid in _children()]


def _children() -> list[int]:
    mine = []
    for entry in pathlib.Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            status = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(status[1]) == os.getpid():
                mine.append(int(entry.name))
    return mine


def _end(pid: int) -> str:
    name = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    with suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return name.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
