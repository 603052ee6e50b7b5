"""Runs one task in the target: its own process, with limits of time and of memory.

A crash, an abort and the kernel's out-of-memory killer are answers like any other: however the
process ends, what it has sent until then is kept, and its memory is really free again.
"""

from __future__ import annotations

import json
import os
import selectors
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event
from typing import Any

from whygpu.collectors import memory
from whygpu.host.local import LocalHost
from whygpu.host.processes import LOOK_SECONDS
from whygpu.model.codec import DecodeError
from whygpu.model.units import size_text
from whygpu.model.wire import check_message
from whygpu.model.work import TaskEnd, TaskEnding
from whygpu.probes.child import ChildProcess, Words, signal_name

MAIN = (Path(__file__).parent / "inside" / "whygpu_work" / "main.py").resolve()
TEARDOWN_SECONDS = 20.0
"""How long a process whose task is done may take to exit: CUDA's own end can be slow."""

_CLEAN_UP_SECONDS = 5.0

OnMessage = Callable[[dict[str, Any]], None]


def too_much_memory(end: TaskEnd) -> str:
    """What to say about a task that ended as over-limit, and how to get past it."""
    return (
        f"its process took more than {end.how} of main memory and was ended, so that other "
        "programs keep theirs. Build the model without its data (PyTorch: with "
        'torch.device("meta"); JAX: shapes from jax.eval_shape), end other programs, or allow '
        "more with --host-memory"
    )


def run_task(
    task: str,
    request: Mapping[str, Any],
    *,
    python: str,
    environ: Mapping[str, str],
    timeout: float,
    host_limit: int | None = None,
    folder: str | None = None,
    on_message: OnMessage | None = None,
    stop: Event | None = None,
) -> TaskEnd:
    """Do the task to its end. On KeyboardInterrupt, and whatever else ends us, it is killed first.

    `host_limit` is the main memory in bytes that it and its descendants may hold; None for what
    this machine can spare now. With more it is ended as over-limit. `stop` is for somebody who
    waits in another thread: once it is set, the task is killed.
    """
    if host_limit is None:
        host_limit = memory.spare_bytes(LocalHost())
    descriptor, path = tempfile.mkstemp(prefix="whygpu-task-", suffix=".json")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"task": task, "seconds": timeout, **request}, file)
        try:
            process = _TaskProcess(
                python,
                path,
                timeout=timeout,
                environ=environ,
                folder=folder,
                on_message=on_message or (lambda message: None),
                host_limit=host_limit,
                stop=stop,
            )
        except (OSError, ValueError) as error:
            how = f"{python}: {getattr(error, 'strerror', None) or error}"
            return TaskEnd("not-started", how, (), "", "", 0.0, 0)
        try:
            process.watch()
            return process.end()
        finally:
            process.close(_CLEAN_UP_SECONDS)
    finally:
        os.unlink(path)


class _TaskProcess(ChildProcess):
    def __init__(
        self,
        python: str,
        request: str,
        *,
        timeout: float,
        environ: Mapping[str, str],
        folder: str | None,
        on_message: OnMessage,
        host_limit: int | None,
        stop: Event | None,
    ) -> None:
        self._on_message = on_message
        self._stop = stop or Event()
        self._messages: list[dict[str, Any]] = []
        self._exception: dict[str, Any] | None = None
        self._finished = False
        self._unreadable = ""
        """What is wrong with a message that could not be taken."""

        def words(descriptor: int) -> Words:
            return [python, "-u", MAIN, request, str(descriptor)]

        super().__init__(
            words, timeout=timeout, environ=environ, memory_limit=host_limit, folder=folder
        )

    def take(self, line: bytes) -> None:
        """One message; what is none of ours, or cut short by the process's end, is left out."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
            return
        try:
            check_message(message)
        except (DecodeError, RecursionError) as error:
            self._unreadable = self._unreadable or str(error)
            return
        if message["kind"] == "finished":
            self._finished = True
        elif message["kind"] == "exception":
            self._exception = message
        else:
            self._messages.append(message)
            self._on_message(message)

    def rest(self) -> float | None:
        return TEARDOWN_SECONDS if self._finished or self._exception else None

    def watch(self) -> None:
        with selectors.DefaultSelector() as selector:
            for descriptor in (self.result_fd, self.log_fd):
                selector.register(descriptor, selectors.EVENT_READ)
            while True:
                began = time.monotonic()
                for key, _ in selector.select(LOOK_SECONDS):
                    if not self.read(key.fd):
                        selector.unregister(key.fd)
                if self._stop.is_set() and self._killed_at is None:
                    self.kill()
                if self.tend():
                    return
                if not selector.get_map():
                    # Nothing left to read: select() would return at once.
                    time.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - began)))

    def end(self) -> TaskEnd:
        seconds = time.monotonic() - self._started
        self.read_rest()
        ended, how = self._ending(self._process.returncode)
        exception = self._exception or {}
        return TaskEnd(
            ended,
            how,
            tuple(self._messages),
            "\n".join(self._log.lines()),
            str(exception.get("traceback", "")),
            round(seconds, 3),
            self._memory.peak,
        )

    def _ending(self, code: int | None) -> tuple[TaskEnding, str]:
        if self._memory.exceeded and not self._finished:
            return "over-limit", size_text(self._memory.limit or 0)
        if self._unreadable:
            # Whatever follows would rest on less than the task has told.
            return "exception", f"what the task has sent cannot be read: {self._unreadable}"
        if self._finished:
            return "finished", ""
        if self._exception is not None:
            return "exception", str(self._exception.get("words", ""))
        if self._timed_out:
            stuck = "" if code is not None else f"; process {self._process.pid} cannot be killed"
            return "timed-out", f"{self._timeout:g} s{stuck}"
        if code is not None and code < 0:
            return "signal", signal_name(-code)
        return "exit", f"exit code {code}"
