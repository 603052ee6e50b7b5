"""Reads the bytes of a log into a Log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from whygpu.model.lazy_regex import late, may_match, outline_of
from whygpu.model.log import Log
from whygpu.readers.allocations import ABOUT_MEMORY, allocations, by_status
from whygpu.readers.cleaning import cleaned
from whygpu.readers.device_reports import device_reports
from whygpu.readers.devices import devices
from whygpu.readers.failures import failures
from whygpu.readers.layout import (
    FEW_LINES,
    Numbered,
    joined,
    possible_wrappings,
    unprefixed,
    unrelayed,
    without_margin,
    wrapping_of,
)
from whygpu.readers.libraries import events
from whygpu.readers.listings import (
    is_whole_program,
    without_listings,
    without_own_answers,
    without_programs,
)
from whygpu.readers.records import records
from whygpu.readers.repetition import without_repetition
from whygpu.readers.runs import lines_of_earlier_runs
from whygpu.readers.shown_values import shown_values
from whygpu.readers.sieve import Sieve, Sifted
from whygpu.readers.statuses import statuses
from whygpu.readers.traceback_code import with_programs
from whygpu.readers.tracebacks import raised
from whygpu.readers.typed_messages import corrected
from whygpu.readers.unpacking import Unpacked
from whygpu.readers.versions import versions
from whygpu.readers.work_progress import progress

_PLATFORMS: tuple[tuple[Literal["linux", "windows", "macos"], re.Pattern[str]], ...] = (
    (
        "windows",
        late(
            r"\b[A-Za-z]:\\\\?\w|(?<![\w/])[A-Za-z]:/\w|(?<![\w/])/c/Users/|\.dll\b|\[WinError"
            r"|win_amd64|\.pyd\b|\b[A-Z]:\\>|\bon win32\b|\bMSC v\.\d{4}|\btensorflow[-_]intel\b"
            # platform.platform() of Python, and collect_env of PyTorch
            r"|\bWindows-\w{1,12}-\d|\bOS: Microsoft Windows \d"
        ),
    ),
    (
        "macos",
        late(
            r"\.dylib\b|(?<![\w:])/Users/|macosx_\d|Darwin|arm64-apple|\bmacOS-\d"
            r"|\bMPS\b(?! (?:client|server|control))"
        ),
    ),
    (
        "linux",
        late(
            r"\.so\b|/home/|/usr/|/opt/|/proc/|/mnt/[a-z]/|manylinux|\bld\.so|NVRM:|\bLinux-\d\S{1,80}-with-"
        ),
    ),
)
_NAMED_PLATFORMS: tuple[tuple[Literal["windows", "macos"], re.Pattern[str]], ...] = (
    ("windows", late(r"\b[Ww]in(?:dows)? ?(?:7|8(?:\.1)?|1[01])(?![0-9A-Za-z])")),
    (
        "macos",
        late(
            r"\bmacOS \d{2}(?![\d.]{0,6}(?:\+| or ))|\b[Mm]ac ?(?:[Bb]ook|[Mm]ini|[Ss]tudio)\b"
            r"|\bApple M\d\b|\b(?:a|my|the|this|on) Mac\b|\biMac\b"
        ),
    ),
)
"""Words of a person about the computer. What a program prints decides before them."""
_RUNS_ELSEWHERE = late(
    r"(?i)\bWSL ?2?\b|\bUbuntu|\bdocker\b|\bcontainer\b|\bcolab\b|\bkaggle\b|\bssh\b"
)
"""The program may run in another system than that of the computer that a person names."""
_FRAMEWORKS = (
    (
        "jax",
        late(
            r"\bjax(?:lib)?\b|xla_bridge|(?:Xla|Jax)RuntimeError|\bjit_\w"
            r"|external/(?:xla\+?|org_tensorflow)/|Unable to initialize backend '|JAX_PLATFORM"
            r"|RESOURCE_EXHAUSTED: Out of memory while trying to allocate"
        ),
    ),
    (
        "torch",
        late(
            r"\btorch\b|[Pp]y[Tt]orch|THC\w|c10::|aten/|ATen|libtorch|ProcessGroupNCCL"
            r"|CUDA out of memory\. Tried to allocate|when calling `?cu[a-z]{2,8}[A-Z]"
            r"|cuDNN error: CUDNN_"
            r"|Expected all tensors to be on the same device"
        ),
    ),
    (
        "tensorflow",
        late(
            r"(?<!external/org_)tensorflow|\btf\.|gpu_device\.cc|(?<![\w.])(?:tf|TF) ?=? ?[12]\.\d"
            r"|OOM when allocating tensor|Dst tensor is not initialized"
            r"|Failed to get convolution algorithm"
        ),
    ),
    ("onnxruntime", late(r"onnxruntime")),
    ("cupy", late(r"\bcupy\b|CuPy")),
    ("numba", late(r"\bnumba\b")),
    ("keras", late(r"\bkeras\b")),
)


_MOST_LINES_OF_SOURCE = 2_000
_SHARED_WITH_XLA = late(r"\bcuda_dnn\.cc")
"""A source file that JAX also uses: it counts for TensorFlow if nothing else names a framework."""
_IN_SENTENCES = (("jax", late(r"\bJAX\b")), ("tensorflow", late(r"\bTensorFlow\b")))
"""Names as sentences have them. Other programs write them too, so code and paths decide first."""


def read_text(text: str | bytes) -> Log:
    """A complete log in memory."""
    return read_pieces([text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text])


def read_pieces(pieces: Iterable[bytes], name: str = "") -> Log:
    """A log of any size in pieces, compressed or not."""
    sieve = Sieve()
    unpacked = Unpacked(pieces, name)
    for piece in unpacked:
        sieve.feed(piece)
    return read(sieve.finish(), name)._replace(unread=unpacked.unread)


def read(sifted: Sifted, name: str = "") -> Log:
    """Read the lines that a sieve has kept.

    A short log may not show whether its lines were wrapped, or that somebody has typed it. Then
    the other readings are kept too.
    """
    if sifted.lines_read <= _MOST_LINES_OF_SOURCE and is_whole_program(sifted.lines):
        return Log((), name=name, lines_read=sifted.lines_read, is_source=True)
    own = without_own_answers(without_programs(sifted.lines))
    kept = without_repetition(without_listings(own))
    shown = without_margin([(number, text) for number, raw in kept for text in cleaned(raw)])
    texts = [text for _, text in shown]
    wrapping = wrapping_of(texts)
    if wrapping is not None:
        return _of_last_run(joined(shown, wrapping), sifted, name)
    others: list[Log] = []
    if len(sifted.lines) <= FEW_LINES:
        wrappings = possible_wrappings(texts)
        others += [_of_last_run(joined(shown, other), sifted, name) for other in wrappings]
        spelt = corrected(shown)
        if spelt is not None:
            others.append(_of_last_run(spelt, sifted, name)._replace(corrected=True))
    return _of_last_run(shown, sifted, name)._replace(other_readings=tuple(others))


def _of_last_run(shown: Sequence[Numbered], sifted: Sifted, name: str) -> Log:
    log = _of_lines(shown, sifted, name)
    dropped, runs = lines_of_earlier_runs(log)
    if not runs:
        return log
    rest = [(number, text) for number, text in shown if number not in dropped]
    return _of_lines(rest, sifted, name)._replace(earlier_runs=runs)


def _of_lines(shown: Sequence[Numbered], sifted: Sifted, name: str) -> Log:
    numbered = unprefixed(unrelayed(shown))
    every = [record for number, text in numbered for record in records(number, text)]
    # Empty lines only end a message.
    exceptions = with_programs(every, raised(every))
    lines = [line for line in every if line.text.strip() or line.level != "none"]
    worked = progress(lines)
    starts: list[int] = []
    at = 0
    for line in lines:
        starts.append(at)
        at += len(line.text) + 1
    text = "\n".join(line.text for line in lines)
    outline = outline_of(text)
    codes = statuses(lines)
    values = shown_values(lines)
    # Include the paths of the files that wrote records, which say more than their names.
    framework = _framework("\n".join(text for _, text in numbered))
    refused = allocations(lines) if may_match(ABOUT_MEMORY, outline) else ()
    refused = tuple(sorted((*refused, *by_status(codes, refused)), key=lambda each: each.line))
    return Log(
        lines=tuple(lines),
        raised=exceptions,
        libraries=events(lines, exceptions),
        statuses=codes,
        allocations=refused,
        devices=devices(lines),
        reports=device_reports(lines, values, framework),
        shown=values,
        versions=versions(lines),
        failures=failures(lines, exceptions, worked),
        progress=worked,
        platform=_platform(text),
        framework=framework,
        name=name,
        lines_read=sifted.lines_read,
        text=text,
        outline=outline,
        starts=tuple(starts),
    )


def _platform(text: str) -> Literal["linux", "windows", "macos", "unknown"]:
    shown = next((name for name, pattern in _PLATFORMS if pattern.search(text)), None)
    if shown is not None or _RUNS_ELSEWHERE.search(text):
        return shown or "unknown"
    named = [name for name, pattern in _NAMED_PLATFORMS if pattern.search(text)]
    return named[0] if len(named) == 1 else "unknown"


def _framework(text: str) -> str:
    """The framework that is mentioned most."""
    outline = outline_of(text)
    counts = {
        name: sum(1 for _ in pattern.finditer(text)) if may_match(pattern, outline) else 0
        for name, pattern in _FRAMEWORKS
    }
    name = max(counts, key=lambda each: counts[each])
    if not counts[name]:
        named = [name for name, pattern in _IN_SENTENCES if pattern.search(text)]
        if len(named) == 1:
            return named[0]
        return "tensorflow" if _SHARED_WITH_XLA.search(text) else ""
    return name
