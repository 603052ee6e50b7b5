"""What was seen of a program's memory while it ran and when it ended, and what that comes to."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.finding import Confidence
from whygpu.model.shortage import MemoryPlace


class Point(NamedTuple):
    """One moment of a curve, or several that were joined to keep it short."""

    seconds: float
    """Since the first."""
    low: int
    high: int
    """The least and the most bytes that were seen there."""


class Curve(NamedTuple):
    """Memory in use over time."""

    of: str
    """Who counted: torch, jax, tensorflow, or the kernel."""
    device: str
    """gpu:0, or host."""
    began: float
    """When the first point was seen, as time.time() has it."""
    points: tuple[Point, ...]


class Allocator(NamedTuple):
    """What a framework's allocator says of one GPU at the end. None for what it does not say."""

    of: str
    device: str
    live: int
    peak: int | None = None
    reserved: int | None = None
    """What it has taken from the driver, live tensors included."""
    limit: int | None = None
    largest_free: int | None = None
    """The largest piece of what is reserved and not in use."""
    pieces: int | None = None
    pieces_ever: int | None = None
    """How many pieces are in use, and how many it has ever given out."""
    free: int | None = None
    """What the driver had left on this GPU."""
    total: int | None = None


class Kept(NamedTuple):
    """One thing of the program's that holds many arrays, or a long graph, at the end."""

    name: str
    arrays: int
    bytes: int | None
    """None where a graph holds them, whose size nobody tells."""
    of: str
    """The library that most of them are of: torch, jax, tensorflow, numpy."""


class Rounds(NamedTuple):
    """A loop that was under way when the program ended."""

    where: str
    """train.py:12."""
    begun: int
    """Rounds before the one that failed."""


class ProcessLimit(NamedTuple):
    """What setrlimit allows a process, and how much of that it has."""

    name: str
    """RLIMIT_AS or RLIMIT_DATA."""
    limit: int
    in_use: int


class ProcessMemory(NamedTuple):
    """What one process told of its memory at its end."""

    error: str = ""
    """The exception that ended it for want of memory, perhaps: its type and words."""
    curves: tuple[Curve, ...] = ()
    allocators: tuple[Allocator, ...] = ()
    steps: int | None = None
    """Training steps that were completed; None where nothing shows it."""
    rounds: tuple[Rounds, ...] = ()
    in_loop: bool = True
    """Whether a loop was under way, or may have been, counted or not."""
    kept: tuple[Kept, ...] = ()
    batch: int | None = None
    """The batch size, by a variable or a data loader of the program."""
    limit: ProcessLimit | None = None


class HostMemory(NamedTuple):
    """The computer's memory while the program ran, watched from outside."""

    curve: Curve
    """Of the program and all that it started."""
    limit: int | None
    limit_is: str
    """What sets it: a control group's file, or the computer's memory."""
    least_available: int | None
    """The least that the computer had left at any look."""
    kills: int | None
    """Processes that the kernel ended for want of memory meanwhile; None where it does not say."""
    process_limit: ProcessLimit | None = None
    """The smallest that was seen on one of its processes."""


Reason = Literal["leak", "too-big", "fragmentation", "other-process", "unknown"]


class MemoryEnd(NamedTuple):
    """How memory ended a run: the numbers, and what its course says of the reason."""

    place: MemoryPlace
    device: str
    """gpu:0 where it is known, or host."""
    of: str
    asked: int | None
    free: int | None
    limit: int | None
    limit_is: str
    held: int | None
    """By live tensors of the process on a GPU; by the whole program on the computer."""
    unused: int | None
    """Reserved by its allocator and not in use."""
    others: int | None
    holders: tuple[str, ...]
    """Who the others are: python (pid 4711, 40.1 GiB)."""
    reason: Reason
    confidence: Confidence
    because: str
    steps: int | None = None
    kept: tuple[Kept, ...] = ()
    batch: int | None = None
    fits_below: int | None = None
    """No batch of this size or more fits, if memory goes with the batch: at least what was in use
    and asked for in the end is needed for `batch`."""
    curve: Curve | None = None
