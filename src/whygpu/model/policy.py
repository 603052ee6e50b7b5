"""What a program is to run under, what is done about it, and what came of the run."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from whygpu.model.explanation import Explanation
from whygpu.model.lack import Lack
from whygpu.model.memory_use import MemoryEnd, ProcessMemory
from whygpu.model.observed import Observed
from whygpu.model.short_repr import short_repr

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


ActionKind = Literal["set", "unset", "keep", "prepend", "remove", "add-flag"]
"""`prepend` and `remove` treat a variable as a list of folders, `add-flag` as a list of words."""


class Action(NamedTuple):
    """A change to a variable of the program."""

    kind: ActionKind
    name: str
    value: str
    reason: str


PolicyPart = Literal["memory", "cudnn", "deterministic", "tf32", "xla", "log-level"]
"""The options of a policy that frameworks put into effect."""


class Call(NamedTuple):
    """A call inside the program, made when it has imported the framework.

    The name is a row of the table in the bootstrap's policy/calls.py.
    """

    framework: str
    name: str
    arguments: dict[str, Any]
    part: PolicyPart
    reason: str


Rule = Literal["equal", "at-most", "contains", "always", "never"]
"""How a reading is compared with what is wanted. `always` and `never` need no reading: the
framework does so without a switch, or has no switch for it."""


class Expectation(NamedTuple):
    """What a framework reports if a part of the policy is in force in it.

    The reading is a row of the table in the bootstrap's policy/readings.py.
    """

    part: PolicyPart
    framework: str
    rule: Rule
    reading: str = ""
    wanted: Any = None
    reason: str = ""
    """For `always` and `never`: why."""
    on_gpu_only: bool = False
    """For `never`: it makes no difference to a framework that used no GPU."""


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
    calls: tuple[Call, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    repairs: tuple[Repair, ...] = ()
    notes: tuple[str, ...] = ()
    """What the policy cannot do, and what else the user should know before the program starts."""
    lack: Lack | None = None
    """Why `--device auto` means the CPU here; None where it does not."""
    trace: bool = False
    gpu_seen: bool = False
    """The machine has an NVIDIA GPU, as far as it was looked at."""

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def remarks(self) -> tuple[str, ...]:
        """All that is said before the program starts."""
        if self.lack is None:
            return self.notes
        return (f"--device auto: on the CPU, because {self.lack}", *self.notes)

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


class CallOutcome(NamedTuple):
    """What became of a call in one process."""

    framework: str
    name: str
    outcome: Literal["executed", "failed", "not-reached"]
    reason: str = ""


Scalar = bool | int | float | str | None
Reported = bool | int | float | str | tuple[Scalar, ...] | None


class Reading(NamedTuple):
    """What a framework reported of the policy at the end of one process."""

    framework: str
    name: str
    status: Literal["reported", "not-reached", "unknown"]
    """`not-reached`: the framework had not started what the reading is about."""
    value: Reported = None
    reason: str = ""


class ComparedReading(NamedTuple):
    name: str
    wanted: Any
    reported: Any
    fits: bool | None
    """None where it is not known what to compare with."""


class PartState(NamedTuple):
    """Whether a part of the policy was in force in a framework, over all processes of the run."""

    part: PolicyPart
    framework: str
    state: Literal["in-force", "not-in-force", "cannot-tell"]
    readings: tuple[ComparedReading, ...]
    """What the framework reported, each value once."""
    calls: tuple[CallOutcome, ...]
    """The calls that were to put it into force, each outcome once."""
    reason: str
    """Why it was not in force although nothing was reported, or why nobody can tell."""


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
    calls: tuple[CallOutcome, ...] = ()
    readings: tuple[Reading, ...] = ()


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
    in_force: tuple[PartState, ...] = ()
    """Which parts of the policy were in force, by framework."""
    explanation: Explanation | None = None
    """What `whygpu explain` says about a failure."""
    out_of_memory: MemoryEnd | None = None
    """How memory ended the run, if it did."""
    signal: int = 0
    """The signal that ended the program; 0 for none."""
    trace: dict[str, Any] | None = None
    """Where each operation ran, over all processes; None if that was not traced."""

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What failed in whygpu's part, or in reading what it left; each said once."""
        return tuple(dict.fromkeys(note for record in self.records for note in record.notes))
