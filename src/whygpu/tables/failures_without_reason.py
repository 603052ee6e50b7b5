"""Failures whose own words do not say why, and where the reason stands instead.

Some exceptions only report that a call failed or that another process has ended. What they leave
out was written before them: by native code to standard error, or by the process that ended.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from whygpu.model.lazy_regex import late

_NO_FILES: frozenset[str] = frozenset()
_OF_A_SESSION = frozenset({"direct_session.cc", "session.cc", "c_api.cc"})
"""They write an error for the status that ends the call; files of devices complain of other things
as well, such as a NUMA node that cannot be read."""


class Unexplained(NamedTuple):
    """One such failure."""

    words: re.Pattern[str]
    """In the exception's type and message."""
    happened: str
    """What it does say, as a sentence without its end."""
    reason_stands: str
    """Where the reason stands, as the rest of a sentence that begins with "the reason"."""
    candidates: tuple[str, ...]
    """The usual reasons, most common first."""
    written_by: frozenset[str] = _NO_FILES
    """Native source files whose error records give the reason."""


_LAUNCHED = (
    "an exception in the program that was started",
    "memory that ran out, which ends a process without a word",
)

FAILURES: tuple[Unexplained, ...] = (
    Unexplained(
        late(
            r"\A[^\n]{0,80}\b(?:[Kk]ernel (?:appears to have )?died|Dead kernel|[Ww]orker died)\b"
        ),
        "the process that runs the code has died",
        "stands in the output of the server that started it (a terminal, Jupyter's log), or in the "
        "log of the operating system",
        (
            "memory of the computer that ran out",
            "a crash in native code, such as a CUDA or cuDNN library",
        ),
    ),
    Unexplained(
        # TensorFlow 1.0 to 1.15; TensorFlow 2 passes the reason on.
        late(r"\b[Ff]ailed to create session\.?[ \t]{0,9}$", re.MULTILINE),
        "TensorFlow could not create a session",
        "stands in an error line that TensorFlow wrote to standard error before the traceback",
        (
            "another process holds the GPU's memory",
            "the driver is too old for the CUDA of this TensorFlow",
            "the GPU is in an exclusive compute mode and taken",
            "a GPU was asked for that does not exist",
        ),
        _OF_A_SESSION,
    ),
    Unexplained(
        late(
            r"Engine core initialization failed\b|Engine process failed to start\b"
            r"|WorkerProc initialization failed\b|Engine(?:Core| loop| core) (?:has )?"
            r"(?:encountered an issue|is not running|died unexpectedly)"
            r"|^(?:EngineDeadError|MQEngineDeadError|AsyncEngineDeadError)\b"
            r"|Background loop (?:has errored already|is stopped)"
        ),
        "vLLM's engine process ended",
        "stands in the first error of the engine process, above this one",
        (
            "GPU memory that ran out or is held by others",
            "an error in loading the model",
            "processes that cannot reach each other",
        ),
    ),
    Unexplained(
        late(
            r"^CalledProcessError: Command [^\n]{0,4000}"
            r"(?:returned non-zero exit status [1-9]|died with <Signals\.)"
            r"|^ChildFailedError\b"
            r"|^ProcessExitedException: process \d{1,6} terminated with exit code"
        ),
        "a launcher reports that the program it started has failed",
        "stands in the output of that program, above this error",
        _LAUNCHED,
    ),
    Unexplained(
        late(
            r"^BrokenProcessPool\b"
            r"|DataLoader worker \(pid(?:\(s\))? [\d, ]{1,200}\) exited unexpectedly"
            r"|^(?:RayActorError|ActorDiedError|WorkerCrashedError)\b[^\n]{0,200}"
            r"(?:died|crashed) unexpectedly"
        ),
        "a worker process ended without telling its parent why",
        "stands in the output of the worker, or in the kernel's log",
        ("memory of the computer that ran out", "a crash in native code"),
    ),
    Unexplained(
        late(
            r"^(?:Internal|Unknown|ResourceExhausted|(?:Xla|Jax)?Runtime|Accelerator)Error:?\s*\Z"
        ),
        "an exception was raised whose message is not shown",
        "stands in that message",
        ("anything that a framework reports: memory, the driver, a kernel, its input",),
    ),
    Unexplained(
        late(r"^(?:\w{1,40}Error): Graph execution error:?\s*\Z"),
        "TensorFlow stopped while it ran a graph",
        "stands in the lines below this one, which are not in the log",
        ("GPU memory that ran out", "data that does not fit the model", "cuDNN that cannot start"),
    ),
)


def unexplained(text: str) -> Unexplained | None:
    """The row of a failure that does not say why; None for one that does."""
    return next((row for row in FAILURES if row.words.search(text)), None)
