"""What a program did with its time: what its process recorded, and what follows from that."""

from __future__ import annotations

from typing import Literal, NamedTuple

from whygpu.model.device_recording import DeviceRecording, GpuReadings, ProfilerRun
from whygpu.model.short_repr import shows_itself

Origin = Literal["program", "library", "standard", "generated", "whygpu"]


class CodePlace(NamedTuple):
    """Where a frame of a sampled stack was."""

    origin: Origin
    file: str
    """Below site-packages for a library, else the whole path."""
    function: str
    line: int
    text: str = ""
    """The source of the expression that was executing; before Python 3.11, of the whole line."""
    calls: str = ""
    """For the innermost frame: the function of C that it calls, "?" if nothing shows which."""
    generator: bool = False
    """The function is a generator."""
    mode: Literal["", "training", "evaluation"] = ""
    """For a call of a module of PyTorch: the mode that the module is in."""


class ProgramFunction(NamedTuple):
    """A function of the program."""

    file: str
    function: str


class StepMarks(NamedTuple):
    """When the steps of one kind ended, in seconds after the sampling began."""

    key: str
    seen: int
    stride: int
    """Each time stands for that many steps."""
    times: tuple[float, ...]
    busy: float = 0.0
    """Seconds inside the calls that made these steps, if they were timed."""
    around: tuple[tuple[ProgramFunction, ...], ...] = ()
    """The program's functions that were being executed when some of these steps ended."""


class WorkerUse(NamedTuple):
    """The processor time of a child process, as a curve."""

    pid: int
    times: tuple[float, ...]
    seconds: tuple[float, ...]
    waited: tuple[float, ...] = ()
    """For how long it was ready and waited for a core, if that was recorded."""

    @property
    def waiting(self) -> WorkerUse:
        """The same as a curve of its own."""
        return WorkerUse(self.pid, self.times, self.waited)


class CompiledArgument(NamedTuple):
    """An argument, or a part of one, that a function was compiled for."""

    name: str
    type: str
    """Of the elements, for an array."""
    shape: tuple[int, ...] | None = None
    """Of an array; -1 for a length that is not fixed."""
    value: str = ""
    """A plain Python value that is a part of what was compiled."""
    identity: int = 0
    """Tells apart other Python objects that are a part of what was compiled."""


class Compilation(NamedTuple):
    """Something that a framework compiled."""

    what: str
    end: float
    seconds: float
    file: str = ""
    """Where the function is defined, if it is known."""
    line: int = 0
    made: int = 0
    """How many functions had been made from that definition."""
    arguments: tuple[CompiledArgument, ...] = ()
    reason: str = ""
    """Why what was compiled before did not fit, in the framework's own words."""


class StageTime(NamedTuple):
    """A stage of a tf.data pipeline, and the seconds that it took itself."""

    name: str
    seconds: float


class PythonCalls(NamedTuple):
    """A Python function that TensorFlow called (numpy_function, py_function, from_generator)."""

    name: str
    seconds: float
    """Of all its calls, also those that ran at the same time or waited for Python's lock."""


class FrameworkProfile(NamedTuple):
    """What a framework's own profiler saw in a few steps."""

    seconds: float
    """The time that it covers inside compiled functions."""
    input_seconds: float
    """The part of it that waited for the input pipeline."""
    stages: tuple[StageTime, ...] = ()


class ProcessProfile(NamedTuple):
    """The profile that one process recorded. All times are seconds after the sampling began."""

    began: float = 0.0
    """The time.time() of that moment."""
    seconds: float = 0.0
    cores: int = 1
    places: tuple[CodePlace, ...] = ()
    stacks: tuple[tuple[int, ...], ...] = ()
    """Numbers of places, the innermost first."""
    times: tuple[float, ...] = ()
    """One for each sample, as are the next three."""
    stack_of: tuple[int, ...] = ()
    thread_seconds: tuple[float, ...] = ()
    """Processor time of the sampled thread so far; 0 if Python cannot tell."""
    process_seconds: tuple[float, ...] = ()
    marks: tuple[StepMarks, ...] = ()
    workers: tuple[WorkerUse, ...] = ()
    waited: WorkerUse | None = None
    """For how long the main thread was ready and waited for a core, by the scheduler."""
    threads_waited: WorkerUse | None = None
    """The same of the framework's threads: of the one that waited longest at each moment."""
    idle: WorkerUse | None = None
    """For how long the cores of the machine had nothing to do, all of them together."""
    compilations: tuple[Compilation, ...] = ()
    data_adapters: tuple[str, ...] = ()
    """Types of the adapters through which Keras 3 took batches, in training and evaluation."""
    python_calls: tuple[PythonCalls, ...] = ()
    recording: ProfilerRun = ProfilerRun()
    """Of the framework's own profiler."""
    gpus: tuple[GpuReadings, ...] = ()
    cost_seconds: float = 0.0
    framework: FrameworkProfile | None = None
    """What its file says about compiled functions."""
    device: DeviceRecording | None = None
    """What its file says about the GPU."""


Category = Literal[
    "computing",
    "input",
    "copies",
    "synchronisation",
    "launches",
    "cpu-operations",
    "compilation",
    "evaluation",
    "checkpointing",
    "logging",
    "program",
    "unknown",
]
"""What the time of a step is spent on. `program` is the program's own code beside the step.

If the GPU's own work was recorded, everything but computing and copies is time in which it was
idle: `launches` while the program launched work for it, `cpu-operations` while the framework
computed on the CPU."""


class SourceLine(NamedTuple):
    """A place in the program, to be shown."""

    file: str
    line: int
    text: str


class TimeShare(NamedTuple):
    """A part of the time of the profiled steps."""

    category: Category
    share: float
    """Of 1; all shares of an answer add up to 1."""
    where: SourceLine | None = None
    """The line of the training loop, or of the program, that most of it belongs to."""
    inside: SourceLine | None = None
    """The line of the program that was really executing, if it is another one."""
    detail: str = ""


class StepWindow(NamedTuple):
    """The steps that were profiled."""

    made_by: str
    """What makes a step: "an optimizer's step", "a batch of fit"."""
    first: int
    last: int
    seconds: float
    """From the first to the last, without what is not counted."""
    left_out: int = 0
    """Steps between them that are not counted, because a profiler made them slower."""

    @property
    def steps(self) -> int:
        return max(self.last - self.first - self.left_out, 1)

    @property
    def step_seconds(self) -> float:
        return self.seconds / self.steps


class Gain(NamedTuple):
    """A change that would make the steps faster, with what it would give."""

    change: str
    assuming: str
    from_seconds: float
    to_low: float
    to_high: float
    """A step then takes between these; they are equal to what cannot be beaten for `at_most`."""
    at_most: bool = False
    """Only the limit is known: no step can become faster than that by this change."""
    or_more: bool = False
    """`to_low` is no limit: the rest of a step becomes faster as well, nobody knows by how much.
    With `at_most`, it is the limit of what the change gives by itself."""


ProfileVerdict = Literal["waiting", "computing", "unclear", "no-steps", "nothing-recorded"]
"""`waiting`: something other than computing takes a share worth removing. `unclear`: too few
samples, or too much of unknown kind."""


class ProfileOptions(NamedTuple):
    """Which steps are profiled; the default is all of them after the first few."""

    first: int | None = None
    last: int | None = None


@shows_itself
class ProfileAnswer(NamedTuple):
    """Why the steps of a program take as long as they do."""

    verdict: ProfileVerdict
    on_gpu: bool
    gpu_timed: bool = False
    """The GPU's own work was recorded for a part of the steps."""
    doubt: str = ""
    """Why the shares do not say what to change: other programs on the machine, or computing that
    belongs to no training step. Empty if they do."""
    window: StepWindow | None = None
    shares: tuple[TimeShare, ...] = ()
    """The largest first, computing included."""
    gains: tuple[Gain, ...] = ()
    samples: int = 0
    margin: float = 0.0
    """By how much the largest share may be wrong because it was sampled: two standard errors."""
    cost: float = 0.0
    """The share of the time that the sampling itself took."""
    crowded: float = 0.0
    """The share of the time in which the main thread was ready and waited for a core."""
    before_seconds: float = 0.0
    """From the import of the framework to the first profiled step."""
    compiling_before: float = 0.0
    """Seconds of that in which a framework compiled."""
    after_seconds: float = 0.0
    """From the last profiled step to the end of the program."""
    after_mainly: Category | None = None
    """What most of that was spent on, if one thing took most of it."""
    notes: tuple[str, ...] = ()

    def total(self, category: Category) -> float:
        return sum(each.share for each in self.shares if each.category == category)

    @property
    def headline(self) -> str:
        """The answer in one sentence or two."""
        if self.verdict == "nothing-recorded":
            return (
                "Nothing was recorded: no process imported a framework, or it ended too soon after "
                "that, or a signal killed it in its first seconds. Ctrl-C leaves time to record."
            )
        if self.verdict == "no-steps":
            return "Why the program takes its time cannot be told: no training steps were found."
        if self.verdict == "unclear":
            return f"What takes the time is not clear: {self._why_unclear}."
        if self.gpu_timed:
            return self._gpu_headline
        largest = next((each for each in self.shares if each.category not in _WORK), None)
        computed = f"computed for {percent_text(self.total('computing'))} of the time"
        if self.on_gpu:
            on_gpu = self.total("computing") + self.total("synchronisation")
            computed = (
                f"launched work for the GPU, or waited for it, for {percent_text(on_gpu)} of the "
                "time"
            )
        if self.verdict == "computing" or largest is None:
            if self.crowded >= _CROWDED and not self.on_gpu:
                crowded = percent_text(self.crowded)
                return (
                    f"The program {computed}, and its main thread waited for a free core for "
                    f"{crowded} of the time."
                )
            return f"The program {computed}: {self._about_the_rest}."
        share = percent_text(self.total(largest.category))
        return f"The program {computed}. {_HEADLINES[largest.category].format(share)}"

    @property
    def _gpu_headline(self) -> str:
        computed = f"The GPU computed for {percent_text(self.total('computing'))} of the time"
        idle = ("computing", "unknown")
        largest = next((each for each in self.shares if each.category not in idle), None)
        if self.verdict == "computing" or largest is None:
            return f"{computed}: {self._about_the_rest}."
        share = percent_text(self.total(largest.category))
        return f"{computed}. {_GPU_HEADLINES[largest.category].format(share)}"

    @property
    def _about_the_rest(self) -> str:
        """Several small shares may add up to one that is not small."""
        work = self.total("computing") + self.total("synchronisation")
        if 1 - work < _NOTICEABLE:
            return "nothing else takes a noticeable share"
        return f"the other {percent_text(1 - work)} have no main reason"

    @property
    def _why_unclear(self) -> str:
        unknown = self.total("unknown")
        if self.samples >= FEWEST_SAMPLES and unknown > 0.25:
            return f"{percent_text(unknown)} of it is of unknown kind"
        largest = next((each for each in self.shares if each.category not in _WORK), None)
        if self.doubt and (largest is None or largest.share < _NOTICEABLE):
            return self.doubt
        if largest is not None and (self.doubt or (self.on_gpu and largest.share >= 0.15)):
            title = _HEADLINES[largest.category].format(percent_text(largest.share)).rstrip(".")
            but = self.doubt or "whether the GPU computed meanwhile was not measured"
            return f"{title[0].lower()}{title[1:]}, but {but}"
        few = "is only 1 sample" if self.samples == 1 else f"are only {self.samples} samples"
        return f"there {few} of the steps; let it run for longer"


FEWEST_SAMPLES = 40
"""With fewer, a share of 10 % would be two to six samples."""
_NOTICEABLE = 0.15
_CROWDED = 0.25
"""Of the time: if the main thread waited for a core for longer, that is the news."""
_WORK = ("computing", "synchronisation", "unknown")
_HEADLINES: dict[Category, str] = {
    "input": "It waited for input for {}.",
    "copies": "It copied or converted data for {}.",
    "launches": "It launched work for {}.",
    "cpu-operations": "Operations on the CPU took {}.",
    "compilation": "It compiled for {}, although the first steps are not counted.",
    "evaluation": "It evaluated for {}.",
    "checkpointing": "It saved checkpoints for {}.",
    "logging": "It logged and printed for {}.",
    "program": "Its own Python code beside the step took {}.",
}
_GPU_HEADLINES: dict[Category, str] = {
    "input": "It waited for the input pipeline for {}.",
    "copies": "Copies took {}.",
    "synchronisation": "It was idle for {} because the program waits for its results.",
    "launches": "It waited for the program to launch work for {}.",
    "cpu-operations": "It waited for operations on the CPU for {}.",
    "compilation": "It waited for compilation for {}, although the first steps are not counted.",
    "evaluation": "Evaluation took {}.",
    "checkpointing": "It waited until checkpoints were saved for {}.",
    "logging": "It waited for logging and printing for {}.",
    "program": "It waited for the program's own Python code for {}.",
}


def percent_text(share: float) -> str:
    """Rounded, but 0 and 100 only if they are exact."""
    if share in (0.0, 1.0):
        return f"{share * 100:.0f} %"
    return "<1 %" if share < 0.01 else f"{min(share * 100, 99):.0f} %"
