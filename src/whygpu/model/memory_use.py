"""A program's memory use while it ran and when it ended, and the conclusions from that."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from whygpu.model.estimate import Mode
from whygpu.model.finding import Confidence
from whygpu.model.shortage import MemoryPlace


class Point(NamedTuple):
    """One point of a curve, or several merged into one to keep the curve short."""

    seconds: float
    """Time since the first point."""
    low: int
    high: int
    """The fewest and the most bytes that were seen there."""


class Curve(NamedTuple):
    """Memory in use over time."""

    of: str
    """The source of the figures: torch, jax, tensorflow, or the kernel."""
    device: str
    """gpu:0, or host."""
    began: float
    """The time.time() of the first point."""
    points: tuple[Point, ...]


class Allocator(NamedTuple):
    """What a framework's allocator reports about one GPU at the end; None if it does not report."""

    of: str
    device: str
    live: int
    peak: int | None = None
    reserved: int | None = None
    """Memory taken from the driver, including live tensors."""
    limit: int | None = None
    largest_free: int | None = None
    """The largest block that is reserved but not in use."""
    pieces: int | None = None
    pieces_ever: int | None = None
    """How many blocks are in use, and how many were ever allocated."""
    free: int | None = None
    """Memory that the driver had left on this GPU."""
    total: int | None = None


class Kept(NamedTuple):
    """A variable of the program that holds many arrays, or a long graph, at the end."""

    name: str
    arrays: int
    bytes: int | None
    """None if a graph holds them: the size of a graph is not reported."""
    of: str
    """The library of most of the arrays: torch, jax, tensorflow, numpy."""


class Rounds(NamedTuple):
    """A loop that was running when the program ended."""

    where: str
    """train.py:12."""
    begun: int
    """Completed iterations before the one that failed."""


class ProcessLimit(NamedTuple):
    """A limit set by setrlimit, and how much of it the process uses."""

    name: str
    """RLIMIT_AS or RLIMIT_DATA."""
    limit: int
    in_use: int


class NotedWork(NamedTuple):
    """The model that a process was working on when memory ran out, without its weights.

    A separate process can load it from this, and estimate what would have fitted.
    """

    why: str = ""
    """Why it could not be recorded; empty if it was. The other fields count only if it was."""
    of: str = ""
    """keras or torch."""
    name: str = ""
    """The name of the model's class."""
    mode: Mode = "train"
    batch: int = 0
    optimizer: str | None = None
    """Only for a PyTorch program; in Keras, the optimizer is part of the model."""
    options: dict[str, Any] | None = None
    """The optimizer's options that affect its memory."""
    mixed: bool = False
    backend: str | None = None
    """Keras's."""
    input: str | None = None
    """The model's input, if the model does not declare it, in the syntax of `--input`."""
    data: str = ""
    """The model, as memory/work_*.py of the bootstrap writes it and whygpu_work.noted reads it."""
    python: str = ""
    program: str | None = None
    """The program's own file, if it has one."""
    package: str = ""
    """The package of the program, if it was started as a module: python -m package.train."""
    search_path: tuple[str, ...] = ()
    """The folders in which the program finds its modules."""
    begun: bool = False
    """Recorded when the work began. The process ended without a report, and may have been doing
    something else by then."""


class Footprint(NamedTuple):
    """The main memory of a process, in bytes."""

    size: int
    """The size of its address space."""
    resident: int
    """Private memory, without files and libraries that the kernel can drop."""
    data: int
    """Data and stack, as RLIMIT_DATA counts them."""


class ProcessMemory(NamedTuple):
    """What one process reported about its memory at its end."""

    error: str = ""
    """The exception that ended it, perhaps for lack of memory: its type and message."""
    curves: tuple[Curve, ...] = ()
    allocators: tuple[Allocator, ...] = ()
    steps: int | None = None
    """Completed training steps; None if nothing shows them."""
    rounds: tuple[Rounds, ...] = ()
    in_loop: bool = True
    """Whether a loop was running, or may have been, whether it was counted or not."""
    kept: tuple[Kept, ...] = ()
    batch: int | None = None
    """The batch size, from a variable or a data loader of the program."""
    limit: ProcessLimit | None = None
    work: NotedWork | None = None
    """None if no framework was in use that reports it."""
    imported: Footprint | None = None
    """After it had imported its frameworks, before it computed anything."""


LimitKind = Literal[
    "gpu",
    "policy",
    "framework-share",
    "address-space",
    "data",
    "control-group",
    "computer",
    "shared-memory",
    "unknown",
]
"""What sets a limit of memory: the GPU's size, --memory, the framework's share of the GPU,
ulimit -v or -d, a control group, the computer's size, or the size of /dev/shm."""


class HostMemory(NamedTuple):
    """Main memory while the program ran, monitored from outside."""

    curve: Curve
    """Memory of the program and all processes that it started."""
    limit: int | None
    limit_is: str
    """What sets the limit: a control group's file, or the computer's memory."""
    least_available: int | None
    """The least available main memory in any sample."""
    kills: int | None
    """Processes that the kernel killed for lack of memory meanwhile; None if it does not say."""
    process_limit: ProcessLimit | None = None
    """The smallest limit that was seen on one of its processes."""
    peak: int | None = None
    """The most memory that one of its processes had, including files and libraries."""
    limit_kind: LimitKind = "unknown"


FitAnswer = Literal["too-big", "close", "would-have-fitted", "no-room-known", "cannot-tell"]


class FitEstimate(NamedTuple):
    """An estimate for the work during which memory ran out. Sizes are in bytes."""

    answer: FitAnswer
    why: str = ""
    """Why there is no estimate; empty if there is one."""
    model: str = ""
    """The name of the model's class."""
    mode: Mode = "train"
    optimizer: str | None = None
    """Set if the estimate could not find out the input by itself."""
    begun: bool = False
    """It is the work that the process began last. The process ended without a report."""
    batch: int | None = None
    """The batch that failed."""
    needs: int | None = None
    """What that batch needs, including memory of the process other than arrays."""
    least: bool = False
    """`needs` is a lower bound: in main memory, arrays are counted, but not the gaps between
    them."""
    beside: int | None = None
    """Memory other than arrays: CUDA and its libraries on a GPU, the frameworks in main memory."""
    room: int | None = None
    """The available memory: the limit minus what others held."""
    largest: int | None = None
    """The largest batch that should fit, with a margin for the error of the estimate. If `needs` is
    a lower bound, no batch above this one fits. 0 if none fits, None if that is unknown."""
    largest_needs: int | None = None
    notes: tuple[str, ...] = ()
    source: str = ""
    seconds: float = 0.0


Reason = Literal["leak", "too-big", "fragmentation", "other-process", "unknown"]


class MemoryEnd(NamedTuple):
    """How lack of memory ended a run: the figures, and what they say about the reason."""

    place: MemoryPlace
    device: str
    """gpu:0 if it is known, or host."""
    of: str
    asked: int | None
    free: int | None
    limit: int | None
    limit_is: str
    held: int | None
    """On a GPU, used by live tensors of the process; in main memory, by the whole program."""
    unused: int | None
    """Reserved by its allocator but not in use."""
    others: int | None
    holders: tuple[str, ...]
    """The other processes: python (pid 4711, 40.1 GiB)."""
    reason: Reason
    confidence: Confidence
    because: str
    steps: int | None = None
    kept: tuple[Kept, ...] = ()
    batch: int | None = None
    fits_below: int | None = None
    """No batch of this size or more fits, if memory is proportional to the batch: `batch` needs at
    least the memory that was in use plus the last request."""
    curve: Curve | None = None
    estimate: FitEstimate | None = None
    """None if no estimate was requested."""
    limit_kind: LimitKind = "unknown"
    """What `limit_is` says in words."""
