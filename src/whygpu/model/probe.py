"""What happened when a framework was really run, in a process of its own."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.observed import Observed

DeviceKind = Literal["cpu", "gpu", "other"]
ProbeName = Literal["cuda", "tensorflow", "keras", "jax", "torch"]
ProbeEnd = Literal[
    "finished",
    "exception",
    "exit",
    "signal",
    "timed-out",
    "cut-short",
    "over-limit",
    "not-started",
]
"""`timed-out`: it stood still until its time was up, or ran for longer than it can need;
`cut-short`: its time was up while it was at work, or while the machine was too busy to run it;
`over-limit`: it took more memory than it may have."""


class ProbeDevice(NamedTuple):
    name: str
    """As the framework spells it: GPU:0, cuda:0."""
    kind: DeviceKind
    description: str


class ProbeOperation(NamedTuple):
    """One piece of real work: a matrix product, a convolution, a training step."""

    operation: Literal["matmul", "convolution", "training-step"]
    requested: str
    """The device asked for."""
    ran_on: Observed[str]
    """The device the result is on; unknown when the work failed, with its error as the reason."""
    kind: DeviceKind
    """The kind of the device it ran on; of the one asked for when it failed."""
    correct: Observed[bool]
    """Whether the result agrees with the CPU's, up to rounding."""


class Probe(NamedTuple):
    name: ProbeName
    ended: ProbeEnd
    how: str
    """SIGILL, exit code 3, 60 s, more than 5 GiB of main memory, the exception's last line; empty
    when it finished."""
    stage: str
    """What it was doing last: start, import, devices, matmul GPU:0, ..."""
    seconds: float
    version: Observed[str]
    devices: Observed[tuple[ProbeDevice, ...]]
    operations: tuple[ProbeOperation, ...]
    traceback: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    """What only this framework can tell (cuInit's code, the backend Keras chose), name to text."""
    log: tuple[str, ...]
    """Lines written to file descriptors 1 and 2, native code's included, bounded."""
    log_cut: bool
    """More was written than is kept."""

    def fact(self, name: str) -> str | None:
        return next((text for key, text in self.facts if key == name), None)

    @property
    def illegal_instruction(self) -> bool:
        """Whether the processor refused an instruction, and that ended it."""
        return self.ended == "signal" and self.how == "SIGILL"
