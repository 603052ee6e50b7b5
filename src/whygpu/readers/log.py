"""From the bytes of a log to what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from whygpu.model.log import Log
from whygpu.readers.allocations import allocations
from whygpu.readers.cleaning import clean
from whygpu.readers.devices import devices
from whygpu.readers.failures import failures, progress
from whygpu.readers.libraries import events
from whygpu.readers.records import records
from whygpu.readers.sieve import Sieve, Sifted
from whygpu.readers.statuses import statuses
from whygpu.readers.tracebacks import raised
from whygpu.readers.versions import versions

_PLATFORMS: tuple[tuple[Literal["linux", "windows", "macos"], re.Pattern[str]], ...] = (
    ("windows", re.compile(r"\b[A-Za-z]:\\\\?\w|\.dll\b|\[WinError|win_amd64|\.pyd\b")),
    ("macos", re.compile(r"\.dylib\b|/Users/|macosx_\d|Darwin|\bMPS\b|arm64-apple")),
    ("linux", re.compile(r"\.so\b|/home/|/usr/|/opt/|/proc/|manylinux|\bld\.so|NVRM:")),
)
_FRAMEWORKS = (
    ("jax", re.compile(r"\bjax(?:lib)?\b|xla_bridge|XlaRuntimeError|JaxRuntimeError")),
    ("torch", re.compile(r"\btorch\b|[Pp]y[Tt]orch|THC\w|c10::|aten/|ATen|libtorch")),
    ("tensorflow", re.compile(r"tensorflow|\btf\.|stream_executor|gpu_device\.cc|cuda_dnn\.cc")),
    ("onnxruntime", re.compile(r"onnxruntime")),
    ("cupy", re.compile(r"\bcupy\b|CuPy")),
    ("numba", re.compile(r"\bnumba\b")),
    ("keras", re.compile(r"\bkeras\b")),
)


def read_text(text: str | bytes, name: str = "") -> Log:
    """A log that is there as a whole."""
    return read_pieces(
        [text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text], name
    )


def read_pieces(pieces: Iterable[bytes], name: str = "") -> Log:
    """A log of any size, as it comes."""
    sieve = Sieve()
    for piece in pieces:
        sieve.feed(piece)
    return read(sieve.finish(), name)


def read(sifted: Sifted, name: str = "") -> Log:
    lines = [line for number, raw in sifted.lines for line in records(number, clean(raw))]
    lines = [line for line in lines if line.text.strip() or line.level != "none"]
    exceptions = raised(lines)
    starts: list[int] = []
    at = 0
    for line in lines:
        starts.append(at)
        at += len(line.text) + 1
    text = "\n".join(line.text for line in lines)
    return Log(
        lines=tuple(lines),
        raised=exceptions,
        libraries=events(lines, exceptions),
        statuses=statuses(lines),
        allocations=allocations(lines),
        devices=devices(lines),
        versions=versions(lines),
        failures=failures(lines, exceptions),
        progress=progress(lines),
        platform=_platform(text),
        framework=_framework(text),
        name=name,
        lines_read=sifted.lines_read,
        lines_left_out=sifted.lines_read - sifted.lines_kept,
        text=text,
        starts=tuple(starts),
    )


def _platform(text: str) -> Literal["linux", "windows", "macos", "unknown"]:
    return next((name for name, pattern in _PLATFORMS if pattern.search(text)), "unknown")


def _framework(text: str) -> str:
    """The one that is mentioned most; others are often only passing by."""
    counts = {name: sum(1 for _ in pattern.finditer(text)) for name, pattern in _FRAMEWORKS}
    name = max(counts, key=lambda each: counts[each])
    return name if counts[name] else ""
