"""An estimate, made without a GPU, of the GPU memory that a piece of work needs."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.short_repr import shows_itself
from whygpu.model.standing import EXIT_CODES, Standing

Mode = Literal["train", "infer", "call"]
"""`call`: a function of the user is called, and its purpose is not known."""
How = Literal["compiled", "measured", "modelled"]
"""`compiled`: the compiler reports it. `measured`: counted while the framework itself did the step
without data. `modelled`: computed from what is known about the libraries."""
PartName = Literal[
    "weights", "gradients", "optimizer", "activations", "inputs", "results", "workspace"
]
FitVerdict = Literal["fits", "does-not-fit", "not-asked", "unknown"]
"""`not-asked`: neither a GPU nor a limit is known to compare with."""


class MemoryPart(NamedTuple):
    """The memory of one kind of data at the peak."""

    name: PartName
    bytes: int
    how: How
    note: str


class BatchMemory(NamedTuple):
    """The memory that a step with one batch size needs."""

    batch: int
    peak_bytes: int
    """The peak of all arrays and workspaces together, as the framework counts them."""
    needs_bytes: int
    """The memory that the framework's allocator must reserve; at least the peak."""
    least_bytes: int
    """With less than this, the step fails."""
    most_bytes: int
    """With this much, the step runs. `needs_bytes` is between the two, or equal to both where the
    estimate is close to all measurements."""
    phase: str
    """When the peak occurs: forward, backward, update; empty if the step is one program."""
    parts: tuple[MemoryPart, ...]

    @property
    def is_range(self) -> bool:
        return self.least_bytes < self.most_bytes


class MemoryRoom(NamedTuple):
    """The available memory that an estimate is compared with."""

    where: str
    """Text that follows an amount: on the RTX 4090, within the limit."""
    bytes: int
    capability: tuple[int, int] | None
    note: str


class OtherWay(NamedTuple):
    """The same work done with less memory."""

    name: str
    batch: int
    total_bytes: int
    """Includes the memory of CUDA and its libraries."""
    fits: bool


@shows_itself
class MemoryEstimate(NamedTuple):
    what: str
    framework: str
    """torch, jax or tensorflow; empty if the estimate failed before that was known."""
    mode: Mode
    mixed: bool
    verdict: FitVerdict
    why: str
    """Why there is no estimate, or no answer to whether it fits; empty if there is."""
    at: BatchMemory | None
    """The estimate for the requested batch."""
    overhead_bytes: int
    """Additional memory of CUDA and its libraries."""
    room: MemoryRoom | None
    largest: BatchMemory | None
    """The largest batch that fits; None if none fits, or if no search was made."""
    next_batch: int | None
    """The smallest estimated batch above `largest`, which does not fit or may not fit."""
    others: tuple[OtherWay, ...]
    notes: tuple[str, ...]
    source: str
    """The source of the estimate, with its version."""
    traceback: str
    """The traceback of an error in the user's own code; empty if there was none."""
    seconds: float

    @property
    def total_bytes(self) -> int | None:
        """The memory that the process needs on the GPU, including CUDA's own part."""
        return None if self.at is None else self.at.needs_bytes + self.overhead_bytes

    @property
    def standing(self) -> Standing:
        standings: dict[str, Standing] = {
            "fits": "fine",
            "not-asked": "answered",
            "does-not-fit": "wrong",
            "unknown": "unknown",
        }
        return standings[self.verdict]

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.standing]
