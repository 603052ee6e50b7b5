"""How the program of a log ended, and whether it got any work done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.model.log import Failure, FailureKind, Line, Raised

_ENDS: tuple[tuple[FailureKind, re.Pattern[str]], ...] = (
    (
        "killed",
        re.compile(
            r"^(?:\S{0,200}: line \d+: +\d+ )?Killed\b|[Kk]illed by signal|Out of memory: Kill"
        ),
    ),
    (
        "signal",
        re.compile(
            r"Segmentation fault|\bSIGSEGV\b|\bSIGILL\b|Illegal instruction|\bSIGFPE\b|Floating point exception"
            r"|Bus error|\bSIGBUS\b|^\W{0,3}Aborted\b|\(core dumped\)|\bSIGABRT\b|EXC_BAD_(?:ACCESS|INSTRUCTION)"
        ),
    ),
    (
        "fatal",
        re.compile(
            r"^terminate called|^Inconsistency detected by ld\.so|Fatal Python error|libprotobuf FATAL"
            r"|^(?:FATAL|Fatal error)\b"
        ),
    ),
    (
        "exit",
        re.compile(
            r"(?:exited with|[Ee]xit) (?:code|status):? (?!0\b)-?\d+|Process finished with exit code (?!0\b)"
        ),
    ),
)
_WARNING = re.compile(r"Warning$")

_PROGRESS = re.compile(
    r"\b(?:[Ee]poch|EPOCH)[ :=\[(]{0,3}\d+|\bstep[ s:=\[(]{1,3}\d+|\b(?:train|val|test)?_?(?:[Ll]oss|accuracy|acc)"
    r"[ :=]{1,3}\d|\d+(?:\.\d+)? ?(?:it/s|s/it|ms/step|s/step|samples/s|img/s|FPS|fps)\b|\bFPS for\b|global_step/sec"
    r"|Serving (?:Flask|on)|Running on https?://|Uvicorn running|Application startup complete"
    r"|[Ff]inished training|[Tt]raining (?:finished|complete|done)|\b[Ii]nference time\b|Successfully (?:saved|trained)"
    r"|Saving (?:checkpoint|model)|[Tt]ime taken\b|Test (?:loss|accuracy|score)"
    r"|Num GPUs Available: +[1-9]|\[PhysicalDevice\(|\[(?:Cuda|Gpu)Device\(|is_available\(\)\W{0,8}True"
)


def failures(lines: Sequence[Line], raised: Sequence[Raised]) -> tuple[Failure, ...]:
    """What ended it, first things first. Exceptions that were handled, and warnings, did not."""
    found = [*_of_exceptions(raised), *_of_lines(lines)]
    return tuple(sorted(found, key=lambda failure: failure.line))


def _of_exceptions(raised: Sequence[Raised]) -> Iterator[Failure]:
    for exception in raised:
        if not exception.handled and not _WARNING.search(exception.type):
            last = exception.line + exception.message.count("\n")
            text = f"{exception.type}: {exception.message}".rstrip(": ")
            yield Failure(exception.line, last, "exception", text)


def _of_lines(lines: Sequence[Line]) -> Iterator[Failure]:
    for line in lines:
        if line.level == "fatal":
            yield Failure(line.number, line.number, "fatal", line.text)
            continue
        for kind, pattern in _ENDS:
            if pattern.search(line.text):
                yield Failure(line.number, line.number, kind, line.text)
                break


def progress(lines: Sequence[Line]) -> tuple[int, ...]:
    return tuple(line.number for line in lines if _PROGRESS.search(line.text))
