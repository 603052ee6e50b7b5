"""What passes between whygpu and the process of a task: requests, messages, and differences.

work/inside reads and writes plain JSON and does not know these types. In whygpu's own process,
work/task_process.py and comparer/measures.py decode the messages strictly. (model/wire.py has the
records of a run. It is a separate module because every `whygpu run` imports it.)
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from whygpu.model.comparison import (
    KerasBackend,
    LaneDevice,
    LaneOption,
    LayerDifference,
    LayerError,
    Precision,
    TensorDifference,
    Timing,
    WholeOutput,
)
from whygpu.model.estimate import How, PartName
from whygpu.model.stress import RateName
from whygpu.model.work import What

# Requests to a task: `task` names the module of work/inside/whygpu_work/tasks that does it.


class TrialRequest(NamedTuple):
    """Do a few steps with one batch size, or with several, one after the other."""

    what: What | None
    """None if the step is pickled."""
    pickled: str | None
    """The file with the pickle."""
    batch: int | None = None
    """None if the batches come over `orders`."""
    infer: bool = False
    optimizer: str | None = None
    input: str | None = None
    """The user's --input."""
    search_path: tuple[str, ...] = ()
    """Folders in which the calling program looks for its modules."""
    orders: int | None = None
    """The descriptor that batches are read from, one per line, until it is closed."""
    preload: tuple[str, ...] = ()
    """Modules to import before the first batch comes. None of them may start a GPU."""
    task: Literal["trial"] = "trial"


class EstimateRequest(NamedTuple):
    """Estimate the memory of a step on a GPU."""

    what: What
    batch: int
    train: bool
    optimizer: str | None = None
    options: dict[str, Any] | None = None
    """Options of the optimizer, if they are not its defaults."""
    mixed: bool = False
    input: str | None = None
    """The user's --input."""
    capability: tuple[int, int] | None = None
    """The compute capability of the GPU."""
    host: bool = False
    """Estimate for the CPU, if the compiler distinguishes devices."""
    rooms: dict[str, int] | None = None
    """Bytes for arrays, by framework; None to estimate only the given batch."""
    ways: bool = False
    """Estimate other ways to fit, if the batch does not."""
    search_seconds: float | None = None
    task: Literal["estimate"] = "estimate"


class Subject(NamedTuple):
    """The work that is compared, in one lane."""

    what: What
    package: str
    """The folder of whygpu, for scripts that import it."""
    seed: int
    batch: int | None
    shapes: str | None
    """The user's --input."""
    inputs: str | None
    """The user's file of numpy.savez."""
    train: int
    """Training steps."""
    shared: str
    """The folder with the weights and inputs of all lanes."""
    lane: str
    device: LaneDevice
    backend: KerasBackend | None
    options: tuple[LaneOption, ...]
    take_weights: bool = False
    """Use the weights of the first lane, even if the program creates others here."""


class Measure(NamedTuple):
    seconds: float
    repeat: int | None
    """Calls to measure; None for as many as fit in the seconds."""


class LaneRequest(NamedTuple):
    """Do the work once: record its results, measure its speed."""

    subject: Subject
    record: str
    """The folder for its results."""
    measure: Measure | None = None
    built: str | None = None
    """The folder that keeps what is compiled while a model is built."""
    task: Literal["lane"] = "lane"


class RecordedLane(NamedTuple):
    name: str
    runs: tuple[str, ...]
    """Folders with its results."""
    local: str | None
    """The folder with its layers against float64."""


class ReferenceRequest(NamedTuple):
    """Do the work in float64 on the CPU, and each layer of each lane from the lane's own input."""

    subject: Subject
    reference: str
    """The folder for its results."""
    lanes: tuple[RecordedLane, ...]
    task: Literal["reference"] = "reference"


class DifferencesRequest(NamedTuple):
    """Compare what was recorded."""

    lanes: tuple[RecordedLane, ...]
    reference: str | None
    found: str
    """The file for the differences: one FoundEntry per line. A model with hundreds of layers has
    more of them than a message may hold."""
    task: Literal["differences"] = "differences"


LoadFramework = Literal["torch", "jax", "tensorflow", "cupy"]
"""What can put a GPU under load, the quickest to start first."""


class StressGpu(NamedTuple):
    """A GPU to put under load."""

    address: str
    """On the PCI bus, as NVML writes it: 0000:3b:00.0."""
    bytes: int
    """How much of its memory the test may take."""


class StressRequest(NamedTuple):
    """Put GPUs under load, one after the other, and measure what they do."""

    framework: LoadFramework
    gpus: tuple[StressGpu, ...]
    gpu_seconds: float
    """How long each of them may take."""
    even_if_busy: bool
    """Measure a GPU that is already at work."""
    task: Literal["stress"] = "stress"


TaskRequest = (
    TrialRequest
    | EstimateRequest
    | LaneRequest
    | ReferenceRequest
    | DifferencesRequest
    | StressRequest
)


# Messages from a task: one JSON object per line, of the kind that `kind` names.


class ProgressMessage(NamedTuple):
    text: str
    kind: Literal["progress"] = "progress"


TaskFailure = Literal["error", "unusable", "cannot-tell", "cannot-run"]
"""`unusable`: what the user named cannot be used like this. `cannot-tell`: it can, but the question
has no answer for it. `cannot-run`: this program or machine lacks something that the lane needs.
`error`: any other exception."""


class ExceptionMessage(NamedTuple):
    """The exception that ended the task."""

    failure: TaskFailure
    type: str
    text: str
    traceback: str
    kind: Literal["exception"] = "exception"

    def __str__(self) -> str:
        return f"{self.type}: {self.text}"


class FinishedMessage(NamedTuple):
    kind: Literal["finished"] = "finished"


class TriedMessage(NamedTuple):
    """One of several trials is over, with or without an exception; the next batch may come."""

    kind: Literal["tried"] = "tried"


class PartMessage(NamedTuple):
    name: PartName
    bytes: int
    how: How
    note: str


class EstimateMessage(NamedTuple):
    batch: int
    framework: str
    is_function: bool
    parts: tuple[PartMessage, ...]
    peak_bytes: int
    needs_bytes: int
    least_bytes: int
    most_bytes: int
    phase: str
    notes: tuple[str, ...]
    source: str
    depends_on: str = ""
    """Where the program reads a value on which the memory depends; empty if it does not."""
    kind: Literal["estimate"] = "estimate"


class LargestMessage(NamedTuple):
    batch: int
    next_batch: int | None
    kind: Literal["largest"] = "largest"


class WayMessage(NamedTuple):
    name: str
    batch: int
    needs_bytes: int
    most_bytes: int
    kind: Literal["way"] = "way"


class HostReading(NamedTuple):
    """Main memory of the task's process, in bytes; None if the system does not report it."""

    now: int
    peak: int
    address_space: int | None = None
    anonymous: int | None = None
    """Resident memory without files."""
    in_use: int | None = None
    """Memory that malloc has allocated and that was not freed."""


class DeviceReading(NamedTuple):
    """GPU memory as the framework counts it, in bytes; None if it does not report it."""

    now: int
    peak: int
    name: str
    limit: int | None = None
    need: int | None = None
    """The memory of the largest program, according to the compiler."""
    gradients: int | None = None
    """The peak before the weights were updated."""
    in_one_piece: bool | None = None
    """Whether one request could get all that is not in use, after a trial has freed its memory."""


class MemoryMessage(NamedTuple):
    """`start`: before the user's code was loaded. `named`: after that. `broken`: a step failed.
    `released`: the trial is over, and what it held was freed."""

    host: HostReading | None
    device: DeviceReading | None
    kind: Literal["start", "named", "broken", "released"]


class LoadedMessage(NamedTuple):
    """Memory in use when the step was ready, before it ran for the first time."""

    host: HostReading | None
    device: DeviceReading | None
    one_program: bool
    """The whole step is compiled as one program, so that the compiler knows its memory."""
    kind: Literal["loaded"] = "loaded"


class ProgramMessage(NamedTuple):
    frameworks: dict[str, str]
    """Those that were imported, with their versions."""
    sources: tuple[str, ...]
    """The user's own files that were imported."""
    kind: Literal["program"] = "program"


class StepMessage(NamedTuple):
    number: int
    step_seconds: float
    host: HostReading | None
    device: DeviceReading | None
    kind: Literal["step"] = "step"


WorkKind = Literal["keras", "torch", "call", "pair", "script"]


class LaneMessage(NamedTuple):
    """What a lane computed with, once its results are on disk."""

    work: WorkKind
    backend: str | None
    first_seconds: float
    framework: str
    arrays_on: tuple[str, ...]
    """cpu, gpu: where its weights or results are."""
    gpus: tuple[str, ...]
    products: Precision | None
    weights_set: bool
    rows: int | None
    """Examples that layers were recorded for."""
    items: int | None
    """Examples of one call."""
    notes: tuple[str, ...]
    kind: Literal["lane"] = "lane"


class TimingMessage(NamedTuple):
    timing: Timing
    kind: Literal["timing"] = "timing"


class ReferenceMessage(NamedTuple):
    ran: bool
    backend: str | None
    reason: str
    kind: Literal["reference"] = "reference"


class StressTryMessage(NamedTuple):
    """The framework will now open this GPU, which may hang or end the process."""

    address: str
    kind: Literal["stress-try"] = "stress-try"


class StressBeginMessage(NamedTuple):
    """The load on one GPU begins."""

    address: str
    version: str
    """Of the framework."""
    busy: bool | None = None
    """Something already kept the GPU busy, and it is tested all the same; None if NVML does not
    say."""
    kind: Literal["stress-begin"] = "stress-begin"


class StressRefusedMessage(NamedTuple):
    """A GPU is not put under load."""

    address: str
    reason: str
    kind: Literal["stress-refused"] = "stress-refused"


class StressRateMessage(NamedTuple):
    """Bytes or operations in a second, for each repetition; or why there are none."""

    address: str
    name: RateName
    per_second: tuple[float, ...]
    reason: str
    """Empty if it was measured."""
    applies: bool
    """False if this GPU or this framework has no such operation."""
    kind: Literal["stress-rate"] = "stress-rate"


class StressResultMessage(NamedTuple):
    address: str
    name: RateName
    right: bool | None
    """None if it could not be checked."""
    detail: str
    kind: Literal["stress-result"] = "stress-result"


class StressStateMessage(NamedTuple):
    """What NVML reported during one measurement; None where it reported nothing."""

    address: str
    name: RateName
    clock_mhz: int | None
    milliwatts: int | None
    celsius: int | None
    slowdowns: int | None
    """The bits of the reasons."""
    pcie_generation: int | None
    pcie_width: int | None
    processes: int | None = None
    """How many processes compute on the GPU, this one among them."""
    kind: Literal["stress-state"] = "stress-state"


class StressEndMessage(NamedTuple):
    address: str
    seconds: float
    kind: Literal["stress-end"] = "stress-end"


TaskMessage = (
    ProgressMessage
    | ExceptionMessage
    | FinishedMessage
    | TriedMessage
    | EstimateMessage
    | LargestMessage
    | WayMessage
    | MemoryMessage
    | LoadedMessage
    | ProgramMessage
    | StepMessage
    | LaneMessage
    | TimingMessage
    | ReferenceMessage
    | StressTryMessage
    | StressBeginMessage
    | StressRefusedMessage
    | StressRateMessage
    | StressResultMessage
    | StressStateMessage
    | StressEndMessage
)


class MessageLine(NamedTuple):
    message: TaskMessage


# Results of the task "differences": one JSON object per line of its file.


class OwnFound(NamedTuple):
    """Differences between the two runs of a lane."""

    lane: str
    tensors: tuple[TensorDifference, ...]
    kind: Literal["own"] = "own"


class ReferenceFound(NamedTuple):
    """A lane's outputs compared with those of the float64 reference."""

    lane: str
    tensors: tuple[TensorDifference, ...]
    kind: Literal["reference"] = "reference"


class LayerErrorsFound(NamedTuple):
    lane: str
    errors: tuple[LayerError, ...]
    kind: Literal["layer-errors"] = "layer-errors"


class WholeFound(NamedTuple):
    """A lane's outputs compared with the outputs of its own layers."""

    lane: str
    outputs: tuple[WholeOutput, ...]
    kind: Literal["whole"] = "whole"


class PairFound(NamedTuple):
    a: str
    b: str
    outputs: tuple[TensorDifference, ...]
    layers: tuple[LayerDifference, ...]
    kind: Literal["pair"] = "pair"


FoundEntry = OwnFound | ReferenceFound | LayerErrorsFound | WholeFound | PairFound


class FoundLine(NamedTuple):
    entry: FoundEntry
