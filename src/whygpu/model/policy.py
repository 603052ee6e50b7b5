"""What a program is to run under, what is done about it, and what came of the run."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from whygpu.model.explanation import Explanation
from whygpu.model.memory_use import MemoryEnd, ProcessMemory
from whygpu.model.observed import Observed

LogLevel = Literal["debug", "info", "warning", "error", "quiet"]
DeviceKind = Literal["cpu", "gpu", "auto"]


class DeviceChoice(NamedTuple):
    kind: DeviceKind
    gpus: tuple[str, ...] = ()
    """Which ones: numbers in PCI bus order, beginnings of UUIDs, or names; empty means all."""


class MemoryLimit(NamedTuple):
    """How much of each GPU's memory a process may take."""

    kind: Literal["growth", "bytes", "fraction"]
    amount: float = 0.0
    """Bytes, or a part of one; nothing for growth."""


class DevicePolicy(NamedTuple):
    """What the user asks for, in one vocabulary for all frameworks."""

    device: DeviceChoice | None = None
    require_gpu: bool = False
    memory: MemoryLimit | None = None
    cudnn_off: bool = False
    deterministic: bool = False
    tf32_off: bool = False
    xla_off: bool = False
    log_level: LogLevel | None = None
    isolate: bool = False
    tf1: bool = False


ActionKind = Literal["set", "unset", "keep", "prepend", "remove", "add-flag", "call"]
"""`prepend` and `remove` treat a variable as a list of folders, `add-flag` as a list of words;
`call` is made inside the program, when it has imported the framework named."""


class Action(NamedTuple):
    kind: ActionKind
    name: str
    """A variable, or for a call the framework."""
    value: str
    reason: str


class Repair(NamedTuple):
    """Something that is wrong with the machine and need not be wrong for this process."""

    code: str
    subject: str
    """The framework that it is for, or the machine."""
    what: str
    why: str
    actions: tuple[Action, ...]


class LaunchPlan(NamedTuple):
    """All that a run does differently from the bare command. Computed first, then carried out."""

    argv: tuple[str, ...]
    policy: DevicePolicy
    actions: tuple[Action, ...]
    repairs: tuple[Repair, ...] = ()
    notes: tuple[str, ...] = ()
    """What the policy cannot do, and what the user should hear before the program starts."""
    settings: tuple[tuple[str, Any], ...] = ()
    """What the part inside the program is told, as names and JSON values."""
    gpu_seen: bool = False
    """The machine has an NVIDIA GPU, as far as it was looked at."""

    @property
    def all_actions(self) -> tuple[Action, ...]:
        """In the order in which they are carried out: the policy's, then the repairs'."""
        return (*self.actions, *(action for repair in self.repairs for action in repair.actions))


DeviceUsed = Literal["gpu", "cpu", "none"]


class FrameworkUse(NamedTuple):
    """What one framework did in one process."""

    name: str
    version: str
    devices: tuple[str, ...]
    """gpu:0, cpu; empty when it has started none, or could not be asked."""
    peak_memory_bytes: int | None


class ProcessRecord(NamedTuple):
    """What one process below the run left behind."""

    pid: int
    complete: bool
    """It could speak at its end; false where it was killed."""
    frameworks: tuple[FrameworkUse, ...]
    notes: tuple[str, ...]
    trace: dict[str, Any]
    """By framework: what its tracer returned."""
    imported: float | None = None
    """When its last framework had been imported, as time.time() has it."""
    ended: float | None = None
    """When it came to its end, and began to take things down; None where it was killed."""
    memory: ProcessMemory = ProcessMemory()


class RunReport(NamedTuple):
    exit_code: int
    device: DeviceUsed
    fallback: bool
    """The GPU was wanted, or is there, and the work was done on the CPU all the same."""
    policy: DevicePolicy
    repairs: tuple[Repair, ...]
    peak_memory_bytes: Observed[int]
    """Of the GPU where it was used, else the largest process's main memory."""
    records: tuple[ProcessRecord, ...]
    traced: bool
    explanation: Explanation | None = None
    """What `whygpu explain` says about a failure."""
    out_of_memory: MemoryEnd | None = None
    """How memory ended the run, if it did."""
    signal: int = 0
    """The signal that ended the program; 0 for none."""
    trace: dict[str, Any] | None = None
    """Where each operation ran, over all processes; None if that was not traced."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What failed in whygpu's part, or in reading what it left; each said once."""
        return tuple(dict.fromkeys(note for record in self.records for note in record.notes))
