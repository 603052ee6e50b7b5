"""The contents of a log as typed evidence, which log detectors judge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from whygpu.model.finding import Evidence
from whygpu.model.lazy_regex import may_match
from whygpu.model.outside_text import telling_excerpt
from whygpu.model.shortage import MemoryPlace
from whygpu.model.system import Cpu

if TYPE_CHECKING:
    from whygpu.model.memory_use import MemoryEnd
    from whygpu.model.program import Program

Level = Literal["fatal", "error", "warning", "info", "none"]
_WORST_FIRST: tuple[Level, ...] = ("fatal", "error", "warning", "none", "info")
"""A line without a level may say anything; an information is never a failure."""
"""The severity that the writer gave it; "none" for lines that are not log records."""


class Line(NamedTuple):
    number: int
    text: str
    """Without colours, overwritten progress bars, and prefixes of shells and loggers."""
    level: Level = "none"
    source: str = ""
    """The file that wrote a record (cuda_driver.cc); empty for other lines."""


class Raised(NamedTuple):
    """A Python exception: the last line of a traceback, or such a line on its own."""

    line: int
    type: str
    """The last part of its name: ImportError, ResourceExhaustedError."""
    message: str
    """Includes continuation lines."""
    frames: tuple[str, ...] = ()
    """The files of its traceback, outermost first."""
    handled: bool = False
    """Another exception was raised while this one was handled, or because of it."""
    program: Program | None = None
    """The statement that raised it, as its traceback shows it; None if that says nothing."""


LibraryOutcome = Literal["opened", "not-found", "broken", "wrong-symbols"]


class LibraryEvent(NamedTuple):
    """A shared library was opened, or could not be."""

    line: int
    library: str
    """As the log names it: libcudnn.so.8, cudart64_110.dll."""
    component: str
    """Its name on any platform: cudnn, cudart, cublas, cuda (the driver's), nccl."""
    version: str
    """The version in the name: 8, 11.0; empty if it has none."""
    outcome: LibraryOutcome
    detail: str
    """The loader's own message."""
    stops: bool
    """It ended an import or the program. If false, the program continued without the library."""


class Status(NamedTuple):
    """An error of a CUDA library, by name: CUDA_ERROR_NO_DEVICE, CUDNN_STATUS_ALLOC_FAILED."""

    line: int
    api: Literal[
        "driver",
        "runtime",
        "cudnn",
        "cublas",
        "cusolver",
        "cufft",
        "curand",
        "nccl",
        "nvml",
        "nvrtc",
    ]
    name: str
    """The name in the driver's headers, even if the log has only the number or the message."""
    call: str
    """The called function: cuInit, cudaGetDevice; empty if the log does not say."""


class Allocation(NamedTuple):
    """A failed request for memory. Sizes are in bytes, None if the log does not say."""

    line: int
    place: MemoryPlace
    final: bool
    """The request failed for good. If false, the program tried again with less, or continued
    without the memory."""
    requested: int | None = None
    free: int | None = None
    total: int | None = None
    held: int | None = None
    """Used by live tensors of this process."""
    reserved: int | None = None
    """Reserved by this process's allocator, including live tensors."""
    shape: str = ""
    of: str = ""
    """The source of the message: torch, tensorflow, xla, cuda, system, ..."""


class Device(NamedTuple):
    """A GPU that the log describes."""

    line: int
    event: Literal["found", "ignored", "ready"]
    name: str
    capability: str
    memory: int | None
    """Bytes that the framework may use there, or that are free."""
    total: int | None


LOGS_OF_TENSORFLOW = ("tensorflow", "keras")
"""The frameworks whose logs are TensorFlow's: Keras runs on it unless the log names another."""

DeviceWord = Literal["no-gpu", "gpu", "gpu-unused", "on-cpu", "on-gpu"]
"""There is no GPU, there is one, there is one that is not used, or where the work is done."""


class DeviceReport(NamedTuple):
    """A program's own statement about the devices that it has or uses."""

    line: int
    says: DeviceWord


ShownOf = Literal[
    "torch-version",
    "torch-cuda",
    "torch-hip",
    "torch-built",
    "tensorflow-version",
    "tensorflow-built",
    "gpu-there",
    "other-gpu-there",
    "gpu-count",
    "gpu-list",
    "devices",
    "jax-backend",
    "keras-backend",
]
"""What an expression asks for: the release of a framework, the CUDA or HIP that PyTorch was built
for (None: for none), whether a build has GPU code, whether there is a GPU (of NVIDIA or AMD, or of
another maker), and on what JAX and Keras work."""


class Shown(NamedTuple):
    """The value of an expression about devices, as a session or a program printed it."""

    line: int
    """The line with the value."""
    asked: int
    """The line with the expression; 0 if the log has only the value."""
    of: ShownOf
    value: str


class Version(NamedTuple):
    line: int
    of: str
    """tensorflow, keras, torch, jax, jaxlib, numpy, protobuf, python, cuda, driver (libcuda's),
    kernel-module, cudnn (the loaded one), cudnn-built (what the framework was compiled with)."""
    version: str


FailureKind = Literal["exception", "fatal", "signal", "killed", "exit"]


class Failure(NamedTuple):
    """Something ended the program, or a process of it."""

    line: int
    last: int
    """The last of its lines."""
    kind: FailureKind
    text: str
    says_why: bool = True
    """Whether the message gives a reason. Some only say that a call or another process failed."""
    about_gpu: bool = False
    """Decided by the message, by the source file that wrote it, or by the failed statement."""


class Match(NamedTuple):
    """Where a phrase was found."""

    line: int
    text: str
    """The whole line."""
    groups: dict[str, str | None]


_NO_WORDS = re.compile(r"\W{0,80}")
NO_FAILURE_AFTER = re.compile(
    r"\b[Ii]f you (?:see|get|encounter|face|hit|run into)\b|\bPlan failed with an? \w"
)
"""The rest of the line describes an error that did not end anything: advice for an error that did
not happen, or an algorithm that PyTorch tried before it chose another."""
_LONGEST_ADVICE = 40
"""No text that it finds is longer."""


def _first_word(match: re.Match[str]) -> int:
    """The offset of the first word; punctuation of the match may be on the line before."""
    lead = _NO_WORDS.match(match.group())
    ended = lead.group().rfind("\n") if lead else -1
    return match.start() + ended + 1


class Log(NamedTuple):
    """A log that has been read."""

    lines: tuple[Line, ...]
    raised: tuple[Raised, ...] = ()
    libraries: tuple[LibraryEvent, ...] = ()
    statuses: tuple[Status, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    devices: tuple[Device, ...] = ()
    reports: tuple[DeviceReport, ...] = ()
    shown: tuple[Shown, ...] = ()
    versions: tuple[Version, ...] = ()
    failures: tuple[Failure, ...] = ()
    """In the order of the log; exceptions that were handled are not among them."""
    progress: tuple[int, ...] = ()
    """Lines that show work in progress: steps, losses, results, a running server."""
    platform: Literal["linux", "windows", "macos", "unknown"] = "unknown"
    framework: str = ""
    """The framework that most of the log is about (tensorflow, torch, jax, ...); empty if that is
    unclear."""
    name: str = ""
    """The path of the file; empty for standard input and text."""
    lines_read: int = 0
    unread: str = ""
    """Why a part could not be read, such as a damaged archive; empty if all was read."""
    text: str = ""
    """The kept lines, joined by newlines. Phrases are searched in this text."""
    outline: str = ""
    """The same text in short, in which the words of phrases are searched (`outline_of`)."""
    starts: tuple[int, ...] = ()
    """Where each kept line begins in `text`."""
    earlier_runs: int = 0
    """How many earlier runs of the same program the log has. Their lines are left out."""
    other_readings: tuple[Log, ...] = ()
    """The same log with lines joined that may have been wrapped, or with messages corrected that
    somebody typed."""
    is_source: bool = False
    """Whether all of it is the source of a program, which then is not read as a log."""
    corrected: bool = False
    """Whether this is a reading with corrected messages."""
    memory: MemoryEnd | None = None
    """What monitoring showed about how memory ended the run; None if it was not monitored."""
    processor: Cpu | None = None
    """The interpreter that wrote the log; None if it is not known."""

    def find(self, pattern: re.Pattern[str]) -> Iterator[Match]:
        """Every match in the log, except in advice. A pattern may match across lines."""
        return self._matches(pattern) if self._can_say(pattern) else iter(())

    def _matches(self, pattern: re.Pattern[str]) -> Iterator[Match]:
        from bisect import bisect_right

        # Matches come in order. Of a long line with many, each part is looked at once.
        last, looked_at, is_advice = -1, 0, False
        for match in pattern.finditer(self.text):
            place = bisect_right(self.starts, _first_word(match)) - 1
            if place != last:
                last, looked_at, is_advice = place, self.starts[place], False
            if not is_advice and match.start() > looked_at:
                begin = max(self.starts[place], looked_at - _LONGEST_ADVICE)
                found = NO_FAILURE_AFTER.search(self.text, begin, match.start())
                looked_at, is_advice = match.start(), found is not None
            if is_advice:
                continue
            line = self.lines[place]
            yield Match(line.number, line.text, match.groupdict())

    def first(self, pattern: re.Pattern[str]) -> Match | None:
        return next(self.find(pattern), None)

    def says(self, pattern: re.Pattern[str]) -> bool:
        return self._can_say(pattern) and pattern.search(self.text) is not None

    def _can_say(self, pattern: re.Pattern[str]) -> bool:
        """Whether the log contains one of the words that every match contains.

        The catalogue has some two hundred phrases, and a log contains one or two of them. Checking
        for words first avoids nearly all searches, and compiling their patterns.
        """
        return may_match(pattern, self.outline)

    def line(self, number: int) -> Line:
        from bisect import bisect_left

        place = bisect_left(self.lines, number, key=lambda line: line.number)
        return self.lines[place]

    def evidence(self, *numbers: int) -> tuple[Evidence, ...]:
        """These lines as evidence, in order, each once."""
        return tuple(self._quoted(number) for number in sorted(set(numbers)))

    def _quoted(self, number: int) -> Evidence:
        where = f"{self.name}:{number}" if self.name else f"line {number}"
        text = telling_excerpt(self._telling(number).text.strip())
        return Evidence("log", where, text, number)

    def _telling(self, number: int) -> Line:
        """The record of this line that reports most; a progress bar or a paste may join several."""
        from bisect import bisect_left, bisect_right

        first = bisect_left(self.lines, number, key=lambda line: line.number)
        end = bisect_right(self.lines, number, key=lambda line: line.number)
        if first == end:
            return self.line(number)
        return min(self.lines[first:end], key=lambda line: _WORST_FIRST.index(line.level))

    def reports_gpu(self) -> bool:
        """Whether a program says that it has a GPU, or works on one."""
        return any(report.says in ("gpu", "on-gpu") for report in self.reports)

    def reports_gpu_at_work(self) -> bool:
        """Whether it is shown that a GPU is used, or ready for use."""
        ready = any(device.event == "ready" for device in self.devices)
        return ready or any(report.says == "on-gpu" for report in self.reports)

    def failed_lines(self) -> frozenset[int]:
        """The lines of all failures."""
        return frozenset(n for end in self.failures for n in range(end.line, end.last + 1))

    def without_gpu(self) -> tuple[DeviceReport, ...]:
        """Reports of no GPU, or of work on the CPU, that nothing else in the log contradicts."""
        statements = {report.says for report in self.reports}
        if "on-gpu" in statements:
            return ()
        seen = "gpu" in statements or any(device.event == "ready" for device in self.devices)
        counts = {"gpu-unused", "on-cpu"} if seen else {"gpu-unused", "on-cpu", "no-gpu"}
        return tuple(report for report in self.reports if report.says in counts)

    def shown_of(self, *names: ShownOf) -> tuple[Shown, ...]:
        return tuple(value for value in self.shown if value.of in names)

    def version_of(self, name: str) -> str | None:
        """The first version of this package that the log mentions."""
        return next((seen.version for seen in self.versions if seen.of == name), None)

    def status_named(self, *names: str) -> tuple[Status, ...]:
        return tuple(status for status in self.statuses if status.name in names)

    def library_events(
        self, outcome: LibraryOutcome, components: Iterable[str] | None = None
    ) -> tuple[LibraryEvent, ...]:
        wanted = None if components is None else frozenset(components)
        return tuple(
            event
            for event in self.libraries
            if event.outcome == outcome and (wanted is None or event.component in wanted)
        )
