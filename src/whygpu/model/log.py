"""What a log says, as typed evidence: the things that log detectors judge."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from whygpu.model.finding import Evidence
from whygpu.model.lazy_regex import words_of
from whygpu.model.memory_use import MemoryEnd
from whygpu.model.shortage import MemoryPlace
from whygpu.model.system import Cpu

if TYPE_CHECKING:
    from whygpu.model.program import Program

Level = Literal["fatal", "error", "warning", "info", "none"]
"""How loudly the writer said it; "none" for lines that are no log records."""

LONGEST_QUOTE = 300


class Line(NamedTuple):
    number: int
    text: str
    """Without colours, overwritten progress bars, and what shells and loggers put before it."""
    level: Level = "none"
    source: str = ""
    """The file that wrote a record (cuda_driver.cc); empty for other lines."""


class Raised(NamedTuple):
    """A Python exception: a traceback's last line, or such a line by itself."""

    line: int
    type: str
    """The last part of its name: ImportError, ResourceExhaustedError."""
    message: str
    """Continuation lines included."""
    frames: tuple[str, ...] = ()
    """The files of its traceback, outermost first."""
    handled: bool = False
    """Another exception was raised while this one was handled, or because of it."""
    program: Program | None = None
    """The statement that raised it, as its traceback shows it; None where that is not telling."""


LibraryOutcome = Literal["opened", "not-found", "broken", "wrong-symbols"]


class LibraryEvent(NamedTuple):
    """A shared library was opened, or could not be."""

    line: int
    library: str
    """As the log names it: libcudnn.so.8, cudart64_110.dll."""
    component: str
    """Which one it is, whatever the platform: cudnn, cudart, cublas, cuda (the driver's), nccl."""
    version: str
    """What the name asks for: 8, 11.0; empty where it does not say."""
    outcome: LibraryOutcome
    detail: str
    """The loader's own words."""
    stops: bool
    """It ended an import or the program; otherwise the program went on without it."""


class Status(NamedTuple):
    """An error of a CUDA library, by name: CUDA_ERROR_NO_DEVICE, CUDNN_STATUS_ALLOC_FAILED."""

    line: int
    api: Literal["driver", "runtime", "cudnn", "cublas", "cusolver", "cufft", "nccl", "nvml"]
    name: str
    """As the driver's headers have it, also where the log has only the number or the sentence."""
    call: str
    """What was called: cuInit, cudaGetDevice; empty where the log does not say."""


class Allocation(NamedTuple):
    """Memory was asked for and not given. Sizes are in bytes, None where the log does not say."""

    line: int
    place: MemoryPlace
    final: bool
    """The program was refused; otherwise it tried again with less, or did without."""
    requested: int | None = None
    free: int | None = None
    total: int | None = None
    held: int | None = None
    """By live tensors of this process."""
    reserved: int | None = None
    """By this process's allocator, live tensors included."""
    shape: str = ""
    of: str = ""
    """Who says it: torch, tensorflow, xla, cuda, system, ..."""


class Device(NamedTuple):
    """A GPU that the log tells about."""

    line: int
    event: Literal["found", "ignored", "ready"]
    name: str
    capability: str
    memory: int | None
    """Bytes that the framework may use there, or that are free."""
    total: int | None


DeviceWord = Literal["no-gpu", "gpu", "gpu-unused", "on-cpu", "on-gpu"]
"""That there is none, that there is one, that there is one which is left alone, and where the work
is done."""


class DeviceReport(NamedTuple):
    """A program's own word on the devices it has or uses."""

    line: int
    says: DeviceWord


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
    """Whether its words give a reason; a few only tell that a call or another process failed."""
    about_gpu: bool = False
    """By its words, by the source file that wrote them, or by the statement that failed."""


class Match(NamedTuple):
    """Where a phrase was found."""

    line: int
    text: str
    """The whole line."""
    groups: dict[str, str | None]


_NO_WORDS = re.compile(r"\W{0,80}")


def _first_word(match: re.Match[str]) -> int:
    """Where what was found begins to say something; marks may stand on the line before."""
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
    versions: tuple[Version, ...] = ()
    failures: tuple[Failure, ...] = ()
    """In the order of the log; exceptions that were handled are not among them."""
    progress: tuple[int, ...] = ()
    """Lines that show work being done: steps, losses, results, a server that serves."""
    platform: Literal["linux", "windows", "macos", "unknown"] = "unknown"
    framework: str = ""
    """tensorflow, torch, jax, ...: the one that most of it is about; empty if that is unclear."""
    name: str = ""
    """Of the file; empty for standard input and text."""
    lines_read: int = 0
    lines_left_out: int = 0
    """Ordinary lines of a long log that were looked at and not kept."""
    unread: str = ""
    """Why a part of it could not be read, such as a damaged archive; empty where all was read."""
    text: str = ""
    """The kept lines, joined by newlines: what phrases are searched in."""
    lowered: str = ""
    """The same in lower case: what is asked for the words of phrases."""
    starts: tuple[int, ...] = ()
    """Where each kept line begins in `text`."""
    memory: MemoryEnd | None = None
    """What watching the run has shown of how memory ended it; None where nobody watched."""
    processor: Cpu | None = None
    """The one that wrote it; None where that is not known."""

    def find(self, pattern: re.Pattern[str]) -> Iterator[Match]:
        """Every place where the log says this. A phrase may run over a line's end if it allows."""
        from bisect import bisect_right

        for match in pattern.finditer(self.text) if self._can_say(pattern) else ():
            line = self.lines[bisect_right(self.starts, _first_word(match)) - 1]
            yield Match(line.number, line.text, match.groupdict())

    def first(self, pattern: re.Pattern[str]) -> Match | None:
        return next(self.find(pattern), None)

    def says(self, pattern: re.Pattern[str]) -> bool:
        return self._can_say(pattern) and pattern.search(self.text) is not None

    def _can_say(self, pattern: re.Pattern[str]) -> bool:
        """Whether one of the words is here that any match contains.

        The catalogue has some two hundred phrases, and a log is about one or two of them. Asking
        for words first spares nearly all searches, and compiling the patterns for them.
        """
        words = words_of(pattern)
        return not words or any(word in self.lowered for word in words)

    def line(self, number: int) -> Line:
        from bisect import bisect_left

        place = bisect_left(self.lines, number, key=lambda line: line.number)
        return self.lines[place]

    def evidence(self, *numbers: int) -> tuple[Evidence, ...]:
        """These lines as evidence, in order, each once."""
        return tuple(self._quoted(number) for number in sorted(set(numbers)))

    def _quoted(self, number: int) -> Evidence:
        where = f"{self.name}:{number}" if self.name else f"line {number}"
        text = self.line(number).text.strip()
        if len(text) > LONGEST_QUOTE:
            text = f"{text[:LONGEST_QUOTE]} ..."
        return Evidence("log", where, text, number)

    def without_gpu(self) -> tuple[DeviceReport, ...]:
        """Reports of no GPU, or of work on the CPU, that nothing else in the log takes back."""
        said = {report.says for report in self.reports}
        if "on-gpu" in said:
            return ()
        seen = "gpu" in said or any(device.event == "ready" for device in self.devices)
        counts = {"gpu-unused", "on-cpu"} if seen else {"gpu-unused", "on-cpu", "no-gpu"}
        return tuple(report for report in self.reports if report.says in counts)

    def version_of(self, name: str) -> str | None:
        """The first version of this that the log mentions."""
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
