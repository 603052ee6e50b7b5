"""Which processes hold a GPU's memory, and how much a new process would get of the rest."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.driver import NOT_LOOKED
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing

HeldAs = Literal["reserved", "as-needed", "unknown", "nobody"]
"""`reserved`: most likely reserved by a framework when it started. `as-needed`: held by a framework
that allocates on demand and keeps freed memory for reuse. `unknown`: nothing is known about it.
`nobody`: no process that is visible from here accounts for it."""

Start = Literal["reserves", "grows", "nothing", "fails", "unknown"]
"""What a framework does with a GPU's memory when it starts."""


class Holder(NamedTuple):
    """One holder of a GPU's memory."""

    pid: int | None
    """None for memory that no process accounts for."""
    command: str
    yours: Observed[bool]
    frameworks: Observed[tuple[str, ...]]
    held_bytes: Observed[int]
    in_use_bytes: Observed[int]
    """The part that its tensors use. This cannot be seen from outside; the frameworks of a program
    under `whygpu run` report it."""
    held_as: HeldAs
    what: str
    """What is known about it, in a sentence."""
    is_asking: Observed[bool] = NOT_LOOKED
    """Whether it is the program that calls whygpu, such as the kernel of a notebook."""


class NewProcess(NamedTuple):
    """What a new process of one framework would do with a GPU's memory in its current state."""

    framework: str
    version: str
    """Empty if it is not installed: the answer is then about its newest releases."""
    start: Start
    asks_bytes: int | None
    """How much it will reserve; None if it reserves nothing, or if that is unknown."""
    gets_bytes: int | None
    """About how much it would get, or could grow to, with the memory that is free now."""
    why: str
    changed_by: tuple[str, ...]
    """The framework's own settings that change this."""

    @property
    def falls_short(self) -> bool:
        """It will try to reserve more than there is."""
        return (
            self.asks_bytes is not None
            and self.gets_bytes is not None
            and self.gets_bytes < self.asks_bytes
        )


class GpuMemory(NamedTuple):
    number: int
    name: str
    total_bytes: Observed[int]
    used_bytes: Observed[int]
    reserved_bytes: Observed[int]
    """Memory that the driver reserves for itself."""
    free_bytes: Observed[int]
    holders: tuple[Holder, ...]
    """Largest first."""
    processes_unknown: str
    """Why the processes are not known; empty if they are."""
    new_processes: tuple[NewProcess, ...]

    @property
    def standing(self) -> Standing:
        """Whether the main question has an answer."""
        is_known = isinstance(self.free_bytes, Known) and not self.processes_unknown
        return "answered" if is_known else "unknown"


class Default(NamedTuple):
    """How much memory a framework takes by default on any GPU."""

    framework: str
    says: str
    changed_by: tuple[str, ...]
    source: str


@shows_itself
class HoldersReport(NamedTuple):
    gpus: Observed[tuple[GpuMemory, ...]]
    """Absent if nothing shows an NVIDIA GPU."""
    settings: tuple[tuple[str, str], ...]
    """Environment variables that influenced the answer."""
    defaults: tuple[Default, ...]
    causes: tuple[str, ...] = ()
    """What prevents the driver from answering, as `whygpu check` finds it."""

    @property
    def standing(self) -> Standing:
        """Whether the question has an answer; "there is no GPU" is one."""
        if isinstance(self.gpus, Known):
            is_known = all(gpu.standing == "answered" for gpu in self.gpus.value)
            return "answered" if is_known else "unknown"
        return "answered" if isinstance(self.gpus, Absent) else "unknown"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
