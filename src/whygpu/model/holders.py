"""Who holds a GPU's memory, and what a new process would take of what is left."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.short_repr import short_repr

HeldAs = Literal["reserved", "as-needed", "unknown", "nobody"]
"""`reserved`: most likely a framework's reservation at its start; `as-needed`: by a framework that
takes what it needs and keeps what is freed; `unknown`: nothing can be said of it; `nobody`: no
process that is seen from here accounts for it."""

Start = Literal["reserves", "grows", "nothing", "fails", "unknown"]
"""What a framework does with a GPU's memory when it starts."""


class Holder(NamedTuple):
    """One holder of a GPU's memory."""

    pid: int | None
    """None for what no process accounts for."""
    command: str
    yours: Observed[bool]
    frameworks: Observed[tuple[str, ...]]
    held_bytes: Observed[int]
    in_use_bytes: Observed[int]
    """What its tensors take of it. Nobody sees that from outside: a program under `whygpu run` has
    its frameworks tell it."""
    held_as: HeldAs
    what: str
    """What is known of it, in a sentence."""


class NewProcess(NamedTuple):
    """What a new process of one framework would do with a GPU's memory, as things are now."""

    framework: str
    version: str
    """Empty where it is not installed: then its newest releases are spoken of."""
    start: Start
    asks_bytes: int | None
    """What it wants to reserve; None where it reserves nothing, or that cannot be told."""
    gets_bytes: int | None
    """About what it would have of it, or could grow to, with what is free now."""
    why: str
    changed_by: tuple[str, ...]
    """The framework's own settings that make it do otherwise."""

    @property
    def falls_short(self) -> bool:
        """It wants to reserve more than there is."""
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
    """What the driver keeps for itself."""
    free_bytes: Observed[int]
    holders: tuple[Holder, ...]
    """The largest first."""
    processes_unknown: str
    """Why the processes are not known; empty where they are."""
    new_processes: tuple[NewProcess, ...]

    @property
    def told(self) -> bool:
        """Whether the main question has an answer."""
        return isinstance(self.free_bytes, Known) and not self.processes_unknown


class Default(NamedTuple):
    """What a framework takes by itself on any GPU."""

    framework: str
    says: str
    changed_by: tuple[str, ...]
    source: str


class HoldersReport(NamedTuple):
    gpus: Observed[tuple[GpuMemory, ...]]
    """Absent where nothing shows an NVIDIA GPU."""
    settings: tuple[tuple[str, str], ...]
    """Variables of the environment that had a part in the answer."""
    defaults: tuple[Default, ...]
    causes: tuple[str, ...] = ()
    """What keeps the driver from answering, as `whygpu check` finds it."""

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def exit_code(self) -> int:
        """0 where the question has an answer, and "there is no GPU" is one; else 4."""
        if isinstance(self.gpus, Known):
            return 0 if all(gpu.told for gpu in self.gpus.value) else 4
        return 0 if isinstance(self.gpus, Absent) else 4
