"""Runs one task in the target, in a process with a limit on time and on memory.

A crash, an abort and the kernel's out-of-memory killer are results like any other: however the
process ends, what it has sent is kept, and its memory is free again.
"""

from __future__ import annotations

import json
import os
import selectors
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from whygpu.collectors import memory
from whygpu.host.local import LocalHost
from whygpu.host.processes import LOOK_SECONDS
from whygpu.model.codec import DecodeError, decode, encode
from whygpu.model.shortage import HopelessRequest
from whygpu.model.task_end import TaskEnd, TaskEnding
from whygpu.model.task_wire import (
    ExceptionMessage,
    FinishedMessage,
    MessageLine,
    ProgressMessage,
    TaskMessage,
    TaskRequest,
    TriedMessage,
)
from whygpu.model.units import size_text
from whygpu.probes.child import ChildProcess, Words, signal_name
from whygpu.readers.allocator_state import Refusals

MAIN = (Path(__file__).parent / "inside" / "whygpu_work" / "main.py").resolve()
TEARDOWN_SECONDS = 20.0
"""How long a process may take to exit when its task is done: CUDA can be slow to shut down."""
HOPELESS_SECONDS = 3.0
"""How long a process may go on after a request that can never be met: an allocator that does not
wait raises its exception by then."""
CLEAN_UP_SECONDS = 5.0

OnProgress = Callable[[str], None]


def too_much_memory(end: TaskEnd) -> str:
    """The message for a task that ended as over-limit, and what the user can do about it."""
    return (
        f"its process took more than {end.how} of main memory and was stopped, to leave the rest "
        "to other programs. Build the model without its data (PyTorch: with "
        'torch.device("meta"); JAX: shapes from jax.eval_shape), end other programs, or allow '
        "more with --host-memory"
    )


def run_task(
    request: TaskRequest,
    *,
    python: str,
    environ: Mapping[str, str],
    timeout: float,
    host_limit: int | None = None,
    folder: str | None = None,
    on_progress: OnProgress | None = None,
    stop: Event | None = None,
    refusals: Refusals | None = None,
) -> TaskEnd:
    """Run the task to its end. A KeyboardInterrupt, or any other exception here, kills it first.

    `host_limit` is the main memory in bytes that it and its descendants may hold; None for what
    this machine can spare now. If it takes more, it is ended as over-limit. Another thread can set
    `stop`: the task is then killed. With `refusals`, which reads what the task prints, it is ended
    when it asks for more GPU memory than it may ever have.
    """
    if host_limit is None:
        host_limit = memory.spare_bytes(LocalHost())
    with request_file(request, timeout) as path:
        try:
            process = TaskProcess(
                python,
                path,
                timeout=timeout,
                environ=environ,
                folder=folder,
                on_progress=on_progress or (lambda text: None),
                host_limit=host_limit,
                stop=stop,
                refusals=refusals,
            )
        except (OSError, ValueError) as error:
            how = f"{python}: {getattr(error, 'strerror', None) or error}"
            return TaskEnd("not-started", how)
        try:
            process.watch()
            return process.end()
        finally:
            process.close(CLEAN_UP_SECONDS)


@contextmanager
def request_file(request: TaskRequest, timeout: float) -> Iterator[str]:
    """The request as a file for the task's process, which has so many seconds for it."""
    descriptor, path = tempfile.mkstemp(prefix="whygpu-task-", suffix=".json")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"seconds": timeout, **encode(request)}, file)
        yield path
    finally:
        os.unlink(path)


class TaskProcess(ChildProcess):
    """The process of one task: reads its messages, and knows how it ended."""

    def __init__(
        self,
        python: str,
        request: str,
        *,
        timeout: float,
        environ: Mapping[str, str],
        folder: str | None,
        on_progress: OnProgress,
        host_limit: int | None,
        stop: Event | None,
        refusals: Refusals | None,
        inherited: tuple[int, ...] = (),
    ) -> None:
        self._on_progress = on_progress
        self._refusals = refusals
        self._hopeless: HopelessRequest | None = None
        self._stop = stop or Event()
        self._messages: list[TaskMessage] = []
        self._exception: ExceptionMessage | None = None
        self._finished = False
        self._unreadable = ""
        """What is wrong with the first message that could not be decoded."""

        def words(descriptor: int) -> Words:
            return [python, "-u", MAIN, request, str(descriptor)]

        super().__init__(
            words,
            timeout=timeout,
            environ=environ,
            memory_limit=host_limit,
            folder=folder,
            inherited=inherited,
        )

    def take(self, line: bytes) -> None:
        """One message. Lines that are not ours, or were cut off when the process ended, are
        ignored."""
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
            return
        try:
            message = decode(MessageLine, {"message": data}).message
        except (DecodeError, RecursionError) as error:
            self._unreadable = self._unreadable or str(error)
            return
        if isinstance(message, FinishedMessage | TriedMessage):
            self._finished = True
        elif isinstance(message, ExceptionMessage):
            self._exception = message
        else:
            self._messages.append(message)
            if isinstance(message, ProgressMessage):
                self._on_progress(message.text)

    def hear(self, data: bytes) -> None:
        if self._refusals is not None and self._hopeless is None:
            self._hopeless = self._refusals.feed(data)
            if self._hopeless is not None and not self._finished:
                self._deadline = min(self._deadline, time.monotonic() + HOPELESS_SECONDS)

    def rest(self) -> float | None:
        return TEARDOWN_SECONDS if self._finished or self._exception else None

    def is_done(self) -> bool:
        """Whether there is nothing to wait for, although the process has not ended."""
        return False

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
                if self.tend() or self.is_done():
                    return
                if not selector.get_map():
                    # Nothing left to read: select() would return at once.
                    time.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - began)))

    def end(self) -> TaskEnd:
        seconds = time.monotonic() - self._started
        self.read_rest()
        ended, how = self._ending(self._process.returncode)
        return TaskEnd(
            ended=ended,
            how=how,
            messages=tuple(self._messages),
            error_text="\n".join(self._log.lines()),
            exception=self._exception,
            seconds=round(seconds, 3),
            peak_host_bytes=self._memory.peak,
        )

    def _ending(self, code: int | None) -> tuple[TaskEnding, str]:
        if self._memory.exceeded and not self._finished:
            return "over-limit", size_text(self._memory.limit or 0)
        if self._unreadable:
            # An answer without that message would rest on a part of what the task found.
            return "exception", f"what the task sent cannot be read: {self._unreadable}"
        if self._finished and self._exception is None:
            return "finished", ""
        if self._exception is not None:
            return "exception", str(self._exception)
        if self._hopeless is not None:
            asked, limit = size_text(self._hopeless.asked), size_text(self._hopeless.limit)
            return "hopeless-request", f"asked for {asked} at once, and the limit is {limit}"
        if self._timed_out:
            stuck = "" if code is not None else f"; process {self._process.pid} cannot be killed"
            return "timed-out", f"{self._timeout:g} s{stuck}"
        if code is not None and code < 0:
            return "signal", signal_name(-code)
        return "exit", f"exit code {code}"
