"""What was seen of a program's memory while it ran and when it ended, and what that comes to."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from whygpu.model.estimate import Mode
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


class NotedWork(NamedTuple):
    """The model that a process was at when memory ran out, without its weights.

    A process of its own can load it from this, and estimate what would have fitted.
    """

    why: str = ""
    """Why it could not be noted; empty where it was, and all of the rest has a meaning."""
    of: str = ""
    """keras or torch."""
    name: str = ""
    """Of the model's class."""
    mode: Mode = "train"
    batch: int = 0
    optimizer: str | None = None
    """Of a PyTorch program; that of a Keras model is part of it."""
    options: dict[str, Any] | None = None
    """The optimiser's, as far as its memory depends on them."""
    mixed: bool = False
    backend: str | None = None
    """Keras's."""
    input: str | None = None
    """What the model takes, where it does not say so itself, in the words of `--input`."""
    data: str = ""
    """The model, as the bootstrap's memory/work_*.py write and whygpu_work.noted reads it."""
    python: str = ""
    program: str | None = None
    """The program's own file, where it has one."""
    package: str = ""
    """The one that it is part of, where it was started as such: python -m package.train."""
    search_path: tuple[str, ...] = ()
    """Where the program finds its modules."""
    begun: bool = False
    """Noted when it began: the process ended without telling, and may have been at something
    else by then."""


class Footprint(NamedTuple):
    """What a process has of the computer's memory, in bytes."""

    size: int
    """Of its address space."""
    resident: int
    """What it has to itself, without files and libraries that give way when needed."""
    data: int
    """Data and stack, as RLIMIT_DATA counts them."""


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
    work: NotedWork | None = None
    """None where no framework was at work that could tell."""
    imported: Footprint | None = None
    """When it had imported its frameworks, and had computed nothing yet."""


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
    peak: int | None = None
    """The most that one of its processes had, files and libraries included."""
    limit_kind: LimitKind = "unknown"


FitAnswer = Literal["too-big", "close", "would-have-fitted", "no-room-known", "cannot-tell"]


class FitEstimate(NamedTuple):
    """What an estimate says of the work that memory ran out on. Sizes are in bytes."""

    answer: FitAnswer
    why: str = ""
    """Why it cannot be told; empty where it can."""
    model: str = ""
    """The name of its class."""
    mode: Mode = "train"
    optimizer: str | None = None
    """Where the estimate had to be told."""
    begun: bool = False
    """It is what the process had begun last; it ended without telling what it was at."""
    batch: int | None = None
    """The one that failed."""
    needs: int | None = None
    """What that batch takes, with what the process has beside its arrays."""
    least: bool = False
    """`needs` is the least that it takes: of the computer's memory, arrays are counted, and not
    the gaps between them."""
    beside: int | None = None
    """The latter: CUDA and its libraries on a GPU, the frameworks on the computer."""
    room: int | None = None
    """What there was for it: the limit, less what others held."""
    largest: int | None = None
    """The largest batch that should fit, with a part of the room spared for the estimate's error;
    where it is of the least, the batch beyond which none fits. 0 where none does, None where that
    is unknown."""
    largest_needs: int | None = None
    notes: tuple[str, ...] = ()
    source: str = ""
    seconds: float = 0.0


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
    estimate: FitEstimate | None = None
    """None where none was asked for."""
    limit_kind: LimitKind = "unknown"
    """What `limit_is` says in words."""
