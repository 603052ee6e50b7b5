"""Runs the trials of a search, in one process for several of them where that is safe.

On a GPU, the framework's allocator raises an exception if memory runs out, and the process can go
on. So the trials share a process, which saves the start of the framework, as long as each trial
gives back what it held, and the free memory is in one piece as in a new process. On the CPU each
trial has a process of its own: what is resident depends on what the process did before, and the
limit may end it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType

from whygpu.errors import UsageError
from whygpu.host.files import TooLarge, read_whole
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import DeviceReading, MemoryMessage, ProgramMessage, TrialRequest
from whygpu.readers import limits
from whygpu.readers.allocator_state import Refusals
from whygpu.work.trial_process import TrialProcess

_KEPT = 0.01
"""Part of the limit. If a trial keeps more than this, the next one gets a new process."""
_SMALLEST_KEPT = 16 << 20
"""Bytes that a trial may keep, whatever the limit is: workspaces of libraries."""
_SETS_VARIABLES = (b"environ", b"putenv")
"""Words of a program that may set variables before it imports a framework."""


class TrialRunner:
    """`run` tries a batch. Close it at the end, by `with`."""

    def __init__(
        self,
        request: TrialRequest,
        *,
        python: str,
        environ: Mapping[str, str],
        timeout: float,
        on_program: Callable[[ProgramMessage], None],
    ) -> None:
        """`on_program` is called when a trial on a GPU reports what it has imported."""
        self._request = request
        self._on_program = on_program
        self._python = python
        self._environ = environ
        self._timeout = timeout
        self._shared: TrialProcess | None = None
        self._held_at_first: int | None = None
        """By the shared process, after its first trial."""
        self._spare: TrialProcess | None = None
        """Started ahead: it has imported the frameworks, and touched no GPU."""

    def __enter__(self) -> TrialRunner:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in (self._shared, self._spare):
            if process is not None:
                process.close()

    def run(
        self,
        batch: int,
        *,
        alone: bool,
        confirms: bool,
        host_limit: int | None,
        gpu_limit: int | None,
        on_progress: Callable[[str], None],
    ) -> tuple[TaskEnd, bool]:
        """How the trial ended, and whether its process was new. `alone`: it must be new.
        `confirms`: it repeats one, so that it is probably the last."""
        process, self._shared = self._shared, None
        if process is not None and alone:
            # It has to be gone before the next one starts: both would share the GPU's memory.
            process.close()
            process = None
        if process is None:
            process, self._spare = self._spare or self._start((), host_limit, gpu_limit), None
            self._held_at_first = None
        new = process.is_new

        def prepare_spare(program: ProgramMessage) -> None:
            """For the next trial, or for the last one, which confirms the answer."""
            self._on_program(program)
            if not confirms and self._spare is None and program.frameworks:
                self._spare = self._start(_to_preload(program), host_limit, gpu_limit)

        try:
            on_program = prepare_spare if gpu_limit is not None else _ignore
            end = process.try_batch(batch, on_progress, on_program)
        except BaseException:
            process.close()
            raise
        if self._can_share(process, end, gpu_limit):
            self._shared = process
        else:
            process.close()
        for program in end.sent(ProgramMessage) if _released(end) is not None else ():
            prepare_spare(program)
        return end, new

    def _start(
        self, preload: tuple[str, ...], host_limit: int | None, gpu_limit: int | None
    ) -> TrialProcess:
        try:
            return TrialProcess(
                self._request._replace(preload=preload),
                python=self._python,
                environ=self._environ,
                timeout=self._timeout,
                host_limit=host_limit,
                refusals=Refusals(gpu_limit),
            )
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{self._python}: {getattr(error, 'strerror', None) or error}"
            ) from error

    def _can_share(self, process: TrialProcess, end: TaskEnd, gpu_limit: int | None) -> bool:
        """Whether the next trial finds in this process what it would find in a new one."""
        held = _released(end)
        if not process.can_go_on or held is None or held.in_one_piece is False:
            return False
        if held.in_one_piece is None and end.ended != "finished":
            return False
        if self._held_at_first is None:
            self._held_at_first = held.now
        allowed = max(_KEPT * (held.limit or gpu_limit or 0), _SMALLEST_KEPT)
        return held.now <= self._held_at_first + allowed


def _released(end: TaskEnd) -> DeviceReading | None:
    """What the process still holds of the GPU after the trial; None if it does not use one."""
    readings = [each.device for each in end.sent(MemoryMessage) if each.kind == "released"]
    return readings[-1] if readings else None


def _to_preload(program: ProgramMessage) -> tuple[str, ...]:
    """The frameworks that a new process may import before the program does. None if the program
    may set variables, which count only if they are set before the import."""
    if not program.sources or any(map(_sets_variables, program.sources)):
        return ()
    return tuple(sorted(program.frameworks))


def _ignore(program: ProgramMessage) -> None:
    """Where there is no GPU, no process is started ahead."""


def _sets_variables(path: str) -> bool:
    try:
        content = read_whole(path, limits.SOURCE_FILE)
    except (OSError, TooLarge):
        return True
    return any(word in content for word in _SETS_VARIABLES)
