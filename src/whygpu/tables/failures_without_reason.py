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
"""These files write an error for the status that ends the call. Files of devices also report other
problems, such as a NUMA node that cannot be read."""

WHY_NO_SESSION = (
    "another process holds the GPU's memory",
    "the driver is too old for the CUDA of this TensorFlow",
    "the GPU is in an exclusive compute mode and in use",
    "the program requested a GPU that does not exist",
)


class Unexplained(NamedTuple):
    """One such failure."""

    words: re.Pattern[str]
    """A pattern for the exception's type and message."""
    happened: str
    """What it does say, as a sentence without a full stop."""
    where_the_reason_is: str
    """Where the reason is, as the rest of a sentence that begins with "the reason"."""
    candidates: tuple[str, ...]
    """The usual reasons, most common first."""
    written_by: frozenset[str] = _NO_FILES
    """Native source files whose error records give the reason."""
    unless_shown: bool = False
    """The statement that failed gives the reason, if the traceback shows it."""
    of_missing_gpu: bool = False
    """If the log shows that the framework has no GPU, that is the likely reason."""


_LAUNCHED = (
    "an exception in the program that was started",
    "lack of memory, which ends a process without a message",
)

FAILURES: tuple[Unexplained, ...] = (
    Unexplained(
        late(
            r"\A[^\n]{0,80}\b(?:[Kk]ernel (?:for \S{1,120} )?(?:appears to have )?died|Dead kernel"
            r"|[Ww]orker died)\b"
        ),
        "the process that runs the code has died",
        "is in the output of the server that started it (a terminal, Jupyter's log), or in the "
        "log of the operating system",
        (
            "the computer ran out of memory",
            "a crash in native code, such as a CUDA or cuDNN library",
        ),
    ),
    Unexplained(
        # TensorFlow 1.0 to 1.15; TensorFlow 2 passes the reason on.
        late(r"\b[Ff]ailed to create session\.?[ \t]{0,9}$", re.MULTILINE),
        "TensorFlow could not create a session",
        "is in an error line that TensorFlow wrote to standard error before the traceback",
        WHY_NO_SESSION,
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
        "is in the first error of the engine process, above this one",
        (
            "GPU memory ran out or is held by other processes",
            "an error in loading the model",
            "processes that cannot connect to each other",
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
        "is in the output of that program, above this error",
        _LAUNCHED,
    ),
    Unexplained(
        late(
            r"^BrokenProcessPool\b|is killed by signal: (?:Segmentation fault|Aborted)"
            r"|^ERROR: error code -?\d{1,3}$"
            r"|DataLoader worker \(pid(?:\(s\))? [\d, ]{1,200}\) exited unexpectedly"
            r"|^(?:RayActorError|ActorDiedError|WorkerCrashedError)\b[^\n]{0,200}"
            r"(?:died|crashed) unexpectedly"
        ),
        "a worker process ended without giving a reason",
        "is in the output of the worker, or in the kernel's log",
        ("the computer ran out of memory", "a crash in native code"),
    ),
    Unexplained(
        late(
            r"^(?:(?:Internal|Unknown|ResourceExhausted|(?:Xla|Jax)?Runtime|Accelerator)Error"
            r"|UnfilteredStackTrace|JaxStackTraceBeforeTransformation|Exception):?\s*\Z"
        ),
        "an exception was raised whose message is not shown",
        "is in that message",
        ("anything that a framework reports: memory, the driver, a kernel, its input",),
    ),
    Unexplained(
        late(r"^(?:Import|OS)Error:? ?(?:undefined symbol|DLL load failed)?\W{0,12}\Z"),
        "a compiled module could not be loaded",
        "is in the rest of that message, which names the file and what it lacks",
        (
            "an extension that was compiled for another PyTorch",
            "a library of CUDA that is missing or of another release",
            "a package for another Python",
        ),
    ),
    Unexplained(
        late(
            r"\A(?:\w{1,60}(?:Error|Exception): |[Ee]rror: )?"
            r"(?:Failed|Unable|Could not|Cannot|Can't)(?: to)? "
            r"(?:load|initiali[sz]e|init|start|create|run|execute|launch|open)"
            r"(?: (?!from|with|because)[\w'\"-]{1,30}){0,4}[.!]?\Z",
            re.IGNORECASE,
        ),
        "an operation failed",
        "is in the lines above it",
        ("a library that could not be loaded", "lack of memory", "a file that is missing"),
    ),
    Unexplained(
        late(
            r"\Aerror: (?:subprocess-exited-with-error|metadata-generation-failed"
            r"|legacy-install-failure)\b"
        ),
        "pip could not build a package",
        "is in the output of the build, below this line",
        (
            "a compiler or a CUDA toolkit that is missing or does not fit",
            "a package that the build needs, such as PyTorch",
        ),
    ),
    Unexplained(
        late(r"\bgloo/transport/[^\n]{0,120}(?:Timed out waiting|Connection closed by peer)"),
        "a process waited for another one of the same training, which did not answer or had ended",
        "is in the output of the other process",
        (
            "an exception or a lack of memory in the other process",
            "work that takes longer than the time limit, such as saving a large checkpoint",
        ),
    ),
    Unexplained(
        late(
            r"\bfailed to solve: (?:process|executor failed)|^The command '/bin/sh -c [^\n]{0,2000}"
            r"returned a non-zero code"
        ),
        "a step of an image build failed",
        "is in the output of that step, above this error",
        _LAUNCHED,
    ),
    Unexplained(
        late(r"CUDA Setup failed despite (?:GPU|CUDA) being available"),
        "bitsandbytes could not load its library for CUDA",
        "is in its lines CUDA SETUP above this one, or in the output of `python -m bitsandbytes`",
        (
            "a release of bitsandbytes without code for the CUDA of PyTorch",
            "libcudart, which its old releases looked for, or another CUDA release on the path",
            "a PyTorch without CUDA",
        ),
    ),
    Unexplained(
        late(r"^BackendCompilerFailed\b[^\n]{0,60}\Z"),
        "torch.compile could not compile a part of the program",
        "is in the exception above or below this one",
        ("Triton or its compiler does not know the GPU", "no C compiler", "a bug of the compiler"),
    ),
    Unexplained(
        late(
            r"factory function returned nullptr"
            r"|returned NULL without setting an (?:error|exception)"
        ),
        "native code returned nothing and gave no reason",
        "is in a line that the native code wrote before",
        ("the driver or a GPU that the library cannot use", "a file that does not fit"),
    ),
    Unexplained(
        late(r"^(?:\w{1,40}Error): Graph execution error:?\s*\Z"),
        "TensorFlow stopped while it ran a graph",
        "is in the lines below this one, which are not in the log",
        ("GPU memory ran out", "the data do not match the model", "cuDNN cannot start"),
    ),
    Unexplained(
        # JAX writes below it that it has left out frames.
        late(r"^AssertionError:?[\s-]{0,80}(?:For simplicity, JAX has removed [^\n]{0,300})?\s*\Z"),
        "an assertion of the program does not hold",
        "is in the statement that failed, which the traceback does not show",
        ("the program requires a GPU and sees none", "its data or its settings"),
        unless_shown=True,
        of_missing_gpu=True,
    ),
    Unexplained(
        late(
            r"^(?:IndexError: (?:list index out of range|pop from empty list"
            r"|Cannot choose from an empty sequence)"
            r"|ValueError: not enough values to unpack \(expected \d{1,4}, got 0\))\Z"
        ),
        "the program took an element from a list that is too short",
        "is in the statement that failed, which the traceback does not show",
        (
            "the list of GPUs is empty, as in list_physical_devices('GPU')[0]",
            "a list of the program's own data",
        ),
        unless_shown=True,
        of_missing_gpu=True,
    ),
)


def unexplained(text: str, *, statement_shown: bool = False) -> Unexplained | None:
    """The row of a failure that does not say why; None for one that does."""
    return next(
        (
            row
            for row in FAILURES
            if row.words.search(text) and not (row.unless_shown and statement_shown)
        ),
        None,
    )
