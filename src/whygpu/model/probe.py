"""What happened when a framework was run in a separate process."""

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
"""`timed-out`: it made no progress until the time limit, or ran for longer than it can need.
`cut-short`: it reached the time limit while it was working, or while the machine was too busy to
run it. `over-limit`: it used more memory than its limit."""


class ProbeDevice(NamedTuple):
    name: str
    """As the framework spells it: GPU:0, cuda:0."""
    kind: DeviceKind
    description: str


class ProbeOperation(NamedTuple):
    """One operation that was run, with a result that was known before."""

    operation: Literal["matmul", "convolution", "training-step", "forward-pass"]
    requested: str
    """The device asked for."""
    ran_on: Observed[str]
    """The device of the result; unknown if the operation failed, with its error as the reason."""
    kind: DeviceKind
    """The kind of the device that it ran on; if it failed, of the requested device."""
    correct: Observed[bool]
    """Whether the result agrees with the CPU's, up to rounding."""


class Probe(NamedTuple):
    name: ProbeName
    ended: ProbeEnd
    how: str
    """SIGILL, exit code 3, 60 s, more than 5 GiB of main memory, the exception's last line; empty
    if it finished."""
    stage: str
    """The last step that it began: start, import, devices, matmul GPU:0, ..."""
    seconds: float
    version: Observed[str]
    devices: Observed[tuple[ProbeDevice, ...]]
    operations: tuple[ProbeOperation, ...]
    traceback: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    """Facts that only this framework knows (cuInit's code, the backend of Keras), name to text."""
    log: tuple[str, ...]
    """Lines written to file descriptors 1 and 2, also by native code. Their number is limited."""
    log_cut: bool
    """More was written than is kept."""

    def fact(self, name: str) -> str | None:
        return next((text for key, text in self.facts if key == name), None)

    @property
    def illegal_instruction(self) -> bool:
        """Whether an illegal instruction ended it."""
        return self.ended == "signal" and self.how == "SIGILL"
