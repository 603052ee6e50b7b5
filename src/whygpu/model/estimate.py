"""How much memory a piece of work takes on a GPU, estimated without one, and whether it fits."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.short_repr import short_repr
from whygpu.model.standing import EXIT_CODES, Standing

Mode = Literal["train", "infer", "call"]
"""`call`: a function is called, and only its author knows what for."""
How = Literal["compiled", "measured", "modelled"]
"""`compiled` the compiler says so; `measured` counted while the framework itself did the step,
without data; `modelled` by our knowledge of the libraries."""
PartName = Literal[
    "weights", "gradients", "optimizer", "activations", "inputs", "results", "workspace"
]
FitVerdict = Literal["fits", "does-not-fit", "not-asked", "unknown"]
"""`not-asked`: neither a GPU nor a limit is known to hold it against."""


class MemoryPart(NamedTuple):
    """What one kind of thing takes at the moment when most is taken."""

    name: PartName
    bytes: int
    how: How
    note: str


class BatchMemory(NamedTuple):
    """What a step with one batch size takes."""

    batch: int
    peak_bytes: int
    """Of all arrays and workspaces together, as the framework counts them."""
    needs_bytes: int
    """What the framework's allocator has to hold for it; not less than the peak."""
    phase: str
    """When the peak is: forward, backward, update; empty where it is one program."""
    parts: tuple[MemoryPart, ...]


class MemoryRoom(NamedTuple):
    """What an estimate is held against."""

    where: str
    """In words that follow an amount: on the RTX 4090, within the limit."""
    bytes: int
    capability: tuple[int, int] | None
    note: str


class OtherWay(NamedTuple):
    """The same work with less to hold."""

    name: str
    batch: int
    total_bytes: int
    """With what CUDA and its libraries take."""
    fits: bool


class MemoryEstimate(NamedTuple):
    what: str
    framework: str
    """torch, jax or tensorflow; empty where it did not come so far."""
    mode: Mode
    mixed: bool
    verdict: FitVerdict
    why: str
    """Why it cannot be told, or not whether it fits; empty where it can."""
    at: BatchMemory | None
    """For the batch that was asked for."""
    overhead_bytes: int
    """What CUDA and its libraries take beside it."""
    room: MemoryRoom | None
    largest: BatchMemory | None
    """The largest batch that fits; None where none does, or that was not looked for."""
    next_batch: int | None
    """The smallest batch beyond it that was estimated, and does not fit."""
    others: tuple[OtherWay, ...]
    notes: tuple[str, ...]
    source: str
    """Who says so, with its version."""
    traceback: str
    """Of what went wrong in the user's own code; empty where nothing did."""
    seconds: float

    def __repr__(self) -> str:
        return short_repr(self)

    @property
    def total_bytes(self) -> int | None:
        """What the process takes on the GPU, CUDA's own part included."""
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
