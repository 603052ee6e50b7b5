"""The policy for a run, the plan that puts it into effect, and the report of the run."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from whygpu.model.explanation import Explanation
from whygpu.model.lack import Lack
from whygpu.model.memory_use import HostMemory, MemoryEnd, ProcessMemory
from whygpu.model.observed import Observed
from whygpu.model.profile import ProcessProfile, ProfileAnswer
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import Standing

LogLevel = Literal["debug", "info", "warning", "error", "quiet"]
DeviceKind = Literal["cpu", "gpu", "auto"]


class DeviceChoice(NamedTuple):
    kind: DeviceKind
    gpus: tuple[str, ...] = ()
    """Numbers in PCI bus order, prefixes of UUIDs, or names; empty means all."""


class MemoryLimit(NamedTuple):
    """How much of each GPU's memory a process may take."""

    kind: Literal["growth", "bytes", "fraction"]
    amount: float = 0.0
    """Bytes, or a fraction of 1; None for growth."""


class DevicePolicy(NamedTuple):
    """What the user requests, in the same terms for all frameworks."""

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
    """A change to an environment variable of the program."""

    kind: ActionKind
    name: str
    value: str
    reason: str


PolicyPart = Literal["memory", "cudnn", "deterministic", "tf32", "xla", "log-level"]
"""The options of a policy that frameworks put into effect."""


class Call(NamedTuple):
    """A call inside the program, made after it has imported the framework.

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
    """A problem of the machine that can be worked around for this process."""

    code: str
    subject: str
    """The framework that needs it, or the machine."""
    what: str
    why: str
    actions: tuple[Action, ...]


@shows_itself
class LaunchPlan(NamedTuple):
    """Everything that a run changes compared with the plain command. It is computed before the
    program starts."""

    argv: tuple[str, ...]
    policy: DevicePolicy
    actions: tuple[Action, ...]
    calls: tuple[Call, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    repairs: tuple[Repair, ...] = ()
    notes: tuple[str, ...] = ()
    """What the policy cannot do, and other facts to show before the program starts."""
    lack: Lack | None = None
    """Why `--device auto` means the CPU here; None if it does not."""
    trace: bool = False
    profile: bool = False
    profile_from: int = 0
    """The first step whose work on the GPU is recorded; 0 for the default."""
    gpu_seen: bool = False
    """The machine has an NVIDIA GPU, as far as it was checked."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """All messages before the program starts."""
        if self.lack is None:
            return self.notes
        return (f"--device auto: on the CPU, because {self.lack}", *self.notes)

    @property
    def all_actions(self) -> tuple[Action, ...]:
        """In execution order: the actions of the policy, then those of the repairs."""
        return (*self.actions, *(action for repair in self.repairs for action in repair.actions))


DeviceUsed = Literal["gpu", "cpu", "none"]


class FrameworkUse(NamedTuple):
    """What one framework did in one process."""

    name: str
    version: str
    devices: tuple[str, ...]
    """gpu:0, cpu; empty if it started none, or could not be queried."""
    peak_memory_bytes: int | None


class CallOutcome(NamedTuple):
    """The result of a call in one process."""

    framework: str
    name: str
    outcome: Literal["executed", "failed", "not-reached"]
    reason: str = ""


Scalar = bool | int | float | str | None
Reported = bool | int | float | str | tuple[Scalar, ...] | None


class Reading(NamedTuple):
    """What a framework reported about the policy at the end of one process."""

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
    """None if it is not known what to compare with."""


class PartState(NamedTuple):
    """Whether a part of the policy was in force in a framework, over all processes of the run."""

    part: PolicyPart
    framework: str
    """Empty if no process reported a framework."""
    state: Literal["in-force", "not-in-force", "cannot-tell"]
    readings: tuple[ComparedReading, ...]
    """What the framework reported, each value once."""
    calls: tuple[CallOutcome, ...]
    """The outcomes of the calls that should put it into force, each once."""
    reason: str
    """Why it was not in force although nothing was reported, or why that is unknown."""


class ProcessRecord(NamedTuple):
    """The record that one process of the run left."""

    pid: int
    complete: bool
    """Whether it could write its record at its end; false if it was killed."""
    frameworks: tuple[FrameworkUse, ...]
    notes: tuple[str, ...]
    trace: dict[str, Any]
    """What the tracer of each framework returned."""
    imported: float | None = None
    """The time.time() after its last framework was imported."""
    ended: float | None = None
    """The time.time() when it began to shut down; None if it was killed."""
    memory: ProcessMemory = ProcessMemory()
    profile: ProcessProfile | None = None
    calls: tuple[CallOutcome, ...] = ()
    readings: tuple[Reading, ...] = ()


@shows_itself
class RunReport(NamedTuple):
    exit_code: int
    device: DeviceUsed
    fallback: bool
    """The GPU was requested, or exists, but the work was done on the CPU."""
    policy: DevicePolicy
    repairs: tuple[Repair, ...]
    peak_memory_bytes: Observed[int]
    """Peak GPU memory if the GPU was used, else the main memory of the largest process."""
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
    host_memory: HostMemory | None = None
    """The memory of the computer while it ran."""
    profile: ProfileAnswer | None = None
    """Why its steps take as long as they do; None if that was not asked."""

    @property
    def standing(self) -> Standing:
        states = {part.state for part in self.in_force}
        if self.exit_code:
            return "wrong"
        if self.fallback or "not-in-force" in states:
            return "attention"
        complete = all(record.complete for record in self.records)
        if self.device == "none" or "cannot-tell" in states or not complete:
            return "unknown"
        return "fine" if self.device == "gpu" else "answered"

    @property
    def notes(self) -> tuple[str, ...]:
        """Errors in whygpu's own part of the run, or in reading its records, each once."""
        return tuple(dict.fromkeys(note for record in self.records for note in record.notes))
