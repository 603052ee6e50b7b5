"""Many machines at once: what each node is like, and what their reports have in common."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.finding import Finding, Severity
from whygpu.model.observed import Observed
from whygpu.model.report import MachineVerdict
from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing
from whygpu.model.stress import RateName
from whygpu.model.target import Installer

FactName = Literal[
    "GPUs",
    "driver",
    "CUDA of the driver",
    "kernel module",
    "VBIOS",
    "ECC",
    "MIG",
    "MIG layout",
    "GPU memory",
    "compute mode",
    "persistence mode",
    "power limit",
    "maximum clocks",
    "PCIe link",
    "NVLinks",
    "NVSwitch fabric",
    "GPU topology",
    "peer access",
    "Xids",
    "processor cores",
    "main memory",
    "kernel",
    "distribution",
    "Python",
    "cuDNN",
    "NCCL",
    "variables",
    "tensorflow",
    "keras",
    "jax",
    "torch",
    "cupy",
    "onnxruntime",
    "numba",
]
"""Facts that machines of one kind have in common unless somebody made one of them different. What
varies by itself (used memory, temperatures, present clocks) is not among them."""

LossKind = Literal["died", "hung", "unreachable", "missing", "unreadable", "crashed"]
"""Why there is no snapshot of a node. `died`: the node or its task ended before it answered.
`hung`: no answer within the time limit. `unreachable`: the task could not be started there.
`missing`: a node that was expected and is not among the snapshots. `unreadable`: what came is not
a snapshot that can be read. `crashed`: judging it failed, which is a bug in whygpu."""


class NodeLoss(NamedTuple):
    """A node that could not be judged."""

    node: str
    kind: LossKind
    reason: str


class NodeFact(NamedTuple):
    name: FactName
    value: Observed[str]


class NodeCause(NamedTuple):
    """A root cause on one node, by its name: the whole finding is in the diagnosis of the node."""

    code: str
    cause: str
    severity: Severity


class GpuSpeed(NamedTuple):
    """How fast one GPU of a node was under load."""

    gpu: int
    model: str
    rate: RateName
    per_second: float
    """Bytes or operations."""


class NodeReport(NamedTuple):
    """The judgement on one node. The snapshot itself is not kept: it is a thousand times larger."""

    node: str
    taken: str
    """The date of its snapshot."""
    chassis: str
    """The processor and its cores: machines that should have the same GPUs."""
    gpus: Observed[str]
    """Models and numbers, such as "8 x NVIDIA H100 80GB HBM3"."""
    verdict: MachineVerdict
    standing: Standing
    roots: tuple[NodeCause, ...]
    """Root causes that are more than a remark."""
    unjudged: tuple[str, ...]
    """What could not be checked on it."""
    facts: tuple[NodeFact, ...]
    speeds: tuple[GpuSpeed, ...] = ()
    """Under load; empty without --stress."""


class UnreadFolder(NamedTuple):
    """A folder that could not be read: whatever is in it is not part of the answer."""

    folder: str
    reason: str


class VerdictCount(NamedTuple):
    verdict: MachineVerdict
    nodes: int
    names: tuple[str, ...]
    """The nodes themselves."""


class Shared(NamedTuple):
    """A fact that all nodes of a group have in common, and no other node whose value is known."""

    fact: FactName
    value: str
    unknown: int
    """Other nodes whose value is not known."""


class Example(NamedTuple):
    """What was found on the first node of a group."""

    node: str
    finding: Finding
    installer: Installer
    """Of that node, for the commands of the remedies."""


class CauseGroup(NamedTuple):
    """The nodes with one root cause."""

    code: str
    cause: str
    severity: Severity
    nodes: tuple[str, ...]
    example: Example | None
    """None if the snapshot of the first node could not be read a second time."""
    shared: tuple[Shared, ...]


class OddValue(NamedTuple):
    """A value that differs from what most comparable nodes have, or one of several."""

    value: str
    nodes: tuple[str, ...]


class Drift(NamedTuple):
    """A fact that is not the same on nodes that should be alike."""

    fact: FactName
    among: str
    """What makes the nodes comparable: their GPUs, or their processor."""
    compared: int
    """Nodes whose value is known."""
    usual: str | None
    """The value of two thirds of them; None if no value has that many."""
    usual_nodes: int
    others: tuple[OddValue, ...]
    """Rarest first. Without a usual value: all values."""
    unknown: int
    """Comparable nodes whose value is not known."""


class Uncheckable(NamedTuple):
    """Something that could not be checked, on these nodes."""

    reason: str
    nodes: tuple[str, ...]


class UnknownFacts(NamedTuple):
    """Facts that could not be compared on some nodes, for one reason. They decide no verdict."""

    reason: str
    facts: tuple[FactName, ...]
    nodes: tuple[str, ...]


class HardwareGroup(NamedTuple):
    gpus: str
    nodes: int


class ModelSpeed(NamedTuple):
    """How fast the GPUs of one model were under load, on all nodes."""

    model: str
    rate: RateName
    gpus: int
    lowest: float
    median: float
    highest: float
    """Bytes or operations per second."""


class SlowGpu(NamedTuple):
    """A GPU that is slower than most of its model on the other nodes."""

    node: str
    gpu: int
    model: str
    rate: RateName
    per_second: float
    median: float
    """Of all GPUs of the model."""
    compared: int

    @property
    def share(self) -> float:
        return self.per_second / self.median


@shows_itself
class FleetReport(NamedTuple):
    nodes: int
    """All of them, with those that could not be judged."""
    verdicts: tuple[VerdictCount, ...]
    hardware: tuple[HardwareGroup, ...]
    causes: tuple[CauseGroup, ...]
    """Errors before warnings, and then the one with the most nodes first."""
    drift: tuple[Drift, ...]
    lost: tuple[NodeLoss, ...]
    uncheckable: tuple[Uncheckable, ...]
    oldest: str
    """The dates of the oldest and the newest snapshot; empty without any."""
    newest: str
    speeds: tuple[ModelSpeed, ...] = ()
    """Of the nodes that were put under load."""
    slow: tuple[SlowGpu, ...] = ()
    """The slowest first."""
    other_files: int = 0
    """Files in the folders whose names are not those of snapshots; they were not read."""
    unread_folders: tuple[UnreadFolder, ...] = ()
    unknown_facts: tuple[UnknownFacts, ...] = ()
    """What was not compared everywhere; the most nodes first."""
    unexpected: tuple[str, ...] = ()
    """Nodes with a file that the list of expected nodes does not name; empty without a list."""

    @property
    def judged(self) -> int:
        return self.nodes - len(self.lost)

    @property
    def affected(self) -> tuple[str, ...]:
        """Nodes with a root cause, each once."""
        return tuple(sorted({node for group in self.causes for node in group.nodes}))

    @property
    def odd(self) -> tuple[str, ...]:
        """Nodes that differ in some fact from most comparable ones, each once."""
        drifts = (drift for drift in self.drift if drift.usual is not None)
        return tuple(
            sorted({node for drift in drifts for other in drift.others for node in other.nodes})
        )

    @property
    def standing(self) -> Standing:
        counts = {count.verdict: count.nodes for count in self.verdicts}
        if counts.get("cpu") or counts.get("broken"):
            return "wrong"
        if self.causes or self.slow or self.odd:
            return "attention"
        if self.lost or self.unread_folders or not self.nodes:
            return "unknown"
        if self.uncheckable or counts.get("unknown"):
            return "unknown"
        return "fine"

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
