"""A process of the target that tries batches, one after the other, until it is closed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress

from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import ProgramMessage, TrialRequest
from whygpu.probes.excerpt import Excerpt
from whygpu.readers.allocator_state import Refusals
from whygpu.work.task_process import (
    CLEAN_UP_SECONDS,
    OnProgress,
    TaskProcess,
    request_file,
)

OnProgram = Callable[[ProgramMessage], None]


class TrialProcess(TaskProcess):
    """It imports what the request says, and then waits for batches."""

    def __init__(
        self,
        request: TrialRequest,
        *,
        python: str,
        environ: Mapping[str, str],
        timeout: float,
        host_limit: int | None,
        refusals: Refusals,
    ) -> None:
        """Raises OSError or ValueError if it cannot be started. `timeout` is for each batch."""
        self._tried = 0
        self._on_program: OnProgram = lambda program: None
        theirs, self._orders = os.pipe()
        with ExitStack() as stack:
            stack.callback(os.close, self._orders)
            try:
                path = stack.enter_context(request_file(request._replace(orders=theirs), timeout))
                super().__init__(
                    python,
                    path,
                    timeout=timeout,
                    environ=environ,
                    folder=None,
                    on_progress=lambda text: None,
                    host_limit=host_limit,
                    stop=None,
                    refusals=refusals,
                    inherited=(theirs,),
                )
            finally:
                os.close(theirs)
            self._held = stack.pop_all()

    @property
    def is_new(self) -> bool:
        """Whether it has tried nothing yet."""
        return self._tried == 0

    def try_batch(self, batch: int, on_progress: OnProgress, on_program: OnProgram) -> TaskEnd:
        """Try one batch. A process that has ended by then, or ends of it, cannot try another.

        `on_program` is called when the process reports what it has imported.
        """
        self.read_rest()
        self._tried += 1
        self._on_progress = on_progress
        self._on_program = on_program
        self._log = Excerpt()
        self._messages = []
        self._exception = None
        self._hopeless = None
        self._finished = False
        self._memory.peak = 0
        self._begin(self._timeout)
        with suppress(BrokenPipeError):
            # If it has ended, that is the result.
            os.write(self._orders, b"%d\n" % batch)
        self.watch()
        return self.end()

    def take(self, line: bytes) -> None:
        known = len(self._messages)
        super().take(line)
        for message in self._messages[known:]:
            if isinstance(message, ProgramMessage):
                self._on_program(message)

    def is_done(self) -> bool:
        return self._finished

    @property
    def can_go_on(self) -> bool:
        """Whether it waits for the next batch."""
        return self._finished and self._killed_at is None and self._process.poll() is None

    def close(self, seconds: float = CLEAN_UP_SECONDS) -> None:
        """End it, wait until its memory is free, and remove what it was started with."""
        super().close(seconds)
        self._held.close()
