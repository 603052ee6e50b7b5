"""How the program of a log ended."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from whygpu.model.log import Failure, FailureKind, Line, Raised
from whygpu.readers.words_in import words_in
from whygpu.tables.failures_elsewhere import ENDED_BY_SCHEDULER, elsewhere, reason_elsewhere
from whygpu.tables.failures_without_reason import unexplained
from whygpu.tables.gpu_vocabulary import (
    code_is_about_gpu,
    is_of_the_mathematics,
    message_is_about_gpu,
)

_SHELL = r"^(?:\S{0,200}: line \d+: +\d+ |\[\d+\][ +-]+\d* *|\W{0,3})"
_ENDS: tuple[tuple[FailureKind, re.Pattern[str]], ...] = (
    (
        "killed",
        re.compile(
            rf"{_SHELL}[Kk]illed\b(?! (?:by user|my|the|it)\b)|[Kk]illed by signal"
            r"|Out of memory: Kill"
            r"|\bOOMKilled\b|\b[Kk]illed process \d|oom-kill|[Ss]ignal 9\b|\bSIGKILL\b"
            r"|exit(?:ed with)? code:? 137\b|exitcode:? -9\b|exits with return code = -9\b"
            r"|\berror code -9$"
            r"|\*\*\* (?:JOB|STEP) \S{1,40} ON \S{1,80} CANCELLED AT \S{8,30} \*\*\*"
            rf"|{_SHELL}Terminated$|[Tt]erminated by signal 15\b|exit(?:ed with)? code:? 143\b"
            r"|crashed after using all (?:the )?available RAM"
        ),
    ),
    (
        "signal",
        re.compile(
            rf"{_SHELL}(?:[Ss]egmentation fault|[Ii]llegal (?:hardware )?instruction|[Bb]us error"
            r"|[Ff]loating point exception|Aborted\b(?![!:])|abort\b(?=  ))"
            r"|Segmentation fault|\bSIG(?:SEGV|ILL|FPE|BUS|ABRT)\b|\(core dumped\)"
            r"|EXC_BAD_(?:ACCESS|INSTRUCTION)|Windows fatal exception|STATUS_ACCESS_VIOLATION"
            r"|[Tt]erminated by signal (?:4|6|7|8|11)\b"
            r"|exit(?:ed with)? code:? (?:139|134|132|-11|-6|-4)\b"
            r"|exits with return code = -(?:4|6|7|8|11)\b"
            # Windows gives the status of the crash as the exit code; 0xC000013A is Ctrl-C.
            r"|exit(?:ed with)? code:? (?!-1073741510|3221225786|0xC000013A)"
            r"(?:-?1073[67]\d{5}|322122\d{4}|0x[Cc]0000[0-9A-Fa-f]{3})\b"
        ),
    ),
    (
        "fatal",
        re.compile(
            r"^terminate called|^Inconsistency detected by ld\.so|^Fatal Python error"
            r"|libprotobuf FATAL|^(?:FATAL|Fatal error)\b|^Error response from daemon"
            r"|^docker: Error response|[Cc]ould not (?:find or )?load the Qt platform plugin"
            r"|no Qt platform plugin could be initialized|^qt\.qpa\.xcb: could not connect"
            r"|[Kk]ernel (?:for \S{1,120} )?(?:appears to have )?died|\bDead kernel\b"
            r"|[Ww]orker died"
            r"|^\s{0,8}thread '[^'\n]{1,80}' panicked|^panic: |^Exception in thread \"main\""
            r"|\bOMP: (?:System )?[Ee]rror #\d|^LLVM ERROR: "
            # ComfyUI
            r"|^!!! Exception during processing ?!!! \S"
            r"|^Error occurred when executing [^\n:]{1,80}:"
            r"|^(?:An )?[Ee]rror (?:has )?oc{1,2}ur{1,2}ed\W{0,3}$"
            rf"|{ENDED_BY_SCHEDULER}"
        ),
    ),
    (
        "fatal",
        re.compile(
            # Tools other than Python: compilers, builders, package managers, shells.
            r"^CMake Error|^make(?:\[\d+\])?: \*\*\* |^ninja: build stopped|^nvcc fatal|^npm ERR!"
            r"|^[^\s:]{1,200}:\d{1,7}(?::\d{1,5})?: (?:fatal )?error: "
            r"|: fatal error [A-Z]{1,4}\d{3,5}:"
            # nvcc and Microsoft's compiler
            r"|^(?:[A-Za-z]:)?[^\s:(]{1,200}\(\d{1,7}(?:,\d{1,5})?\): (?:fatal )?error\b"
            r"|^(?:g\+\+|gcc|clang|collect2|ld|nvcc): (?:fatal )?error: |undefined reference to "
            r"|^error: (?:command|subprocess-exited|metadata-generation|legacy-install|could not)"
            r"|^ERROR: (?!pip's dependency resolver|After October|Cannot create report)\S"
            r"|^E: (?:Unable|Package|Failed|The)|^[\w./: -]{1,120}: command not found$"
            r"|^/bin/sh: (?:line )?\d+: [\w./-]{1,80}: not found$"
            r"|^(?:\S{0,200}/)?python[\d.]{0,5}: (?:can't open file|No module named) "
            r"|: error: (?:unrecognized|the following) arguments|: error: argument \S"
            r"|^fatal: [a-z]{3}|^docker: (?!Error response)\S|\b(?:ImagePullBackOff|ErrImagePull)\b"
            r"|^mpirun was unable to|^Cannot connect to GPU backend"
            # ComfyUI
            r"|^Failed to validate prompt for output"
            r"|^PackagesNotFoundError|^ResolvePackageNotFound|^UnsatisfiableError"
        ),
    ),
    (
        "exit",
        re.compile(
            r"(?:exited with|[Ee]xit) (?:code|status):? (?!0\b)-?\d|exit code (?!0\b)-?\d"
            r"|exitcode ?: (?!0\b)-?\d|[Pp]rocess completed with exit code (?!0\b)"
            r"|returned (?:a )?non-zero"
        ),
    ),
)
_ABOUT_ENDS = (
    *("kill", "signal", "sig", "exit", "terminat", "crash", "fault", "illegal", "exception"),
    *("abort", "core dumped", "exc_bad", "error", "atal", "violation", "inconsistency", "qt"),
    *("kernel", "died", "panic", "unable", "cannot", "fail", "not found", "no module named"),
    *("can't open", "stopped", "undefined reference", "npm err", "docker: ", "imagepull", "e: "),
    *("non-zero", "make", "notfound", "cancelled", "instruction", "runlimit"),
)
"""Every match contains one of these, in lower case; most lines of a log contain none."""
_WARNING = re.compile(r"Warning$")
_OPERATION = re.compile(
    r"^(?:0x[\da-f]{1,16} Compute status: |OP_REQUIRES failed at [^\s]{1,120} : )?"
    r"(?:Invalid argument|INVALID_ARGUMENT|Not found|NOT_FOUND|Internal|INTERNAL|Unknown|UNKNOWN"
    r"|Data loss|DATA_LOSS|Failed precondition|FAILED_PRECONDITION): "
)

_PACKAGE_MANAGER = re.compile(r"E: |dpkg: |error: failed to commit transaction")
_CUDA_ERROR = re.compile(r"\bCUDA_ERROR_[A-Z]|\bCU(?:DNN|BLAS)_STATUS_[A-Z]")

_WITH_PARAGRAPH = ("CMake Error",)
_REASONS_BELOW = ("what():", "nvidia-container-cli: ")
_ANNOUNCES = ("because:", "following reason:")
_ONLY_ANNOUNCES = re.compile(
    r"Error occurred when executing [^\n:]{1,80}:|(?:An )?[Ee]rror (?:has )?oc{1,2}ur{1,2}ed\W{0,3}"
)
"""A line that says no more than that there is an error, which the next one names."""
_ENOUGH_PROGRESS = 2
"""After an exception, a progress bar is often drawn once more."""
_CLOSE = 6
"""The most lines between what ended a program and the shell's message about it."""


def failures(
    lines: Sequence[Line], raised: Sequence[Raised], worked: Sequence[int] = ()
) -> tuple[Failure, ...]:
    """What ended the program, in order.

    Without what it survived: handled exceptions, and those after which it continued to work.
    """
    found = [*_of_exceptions(lines, raised), *_of_lines(lines)]
    if not raised:
        found += [*_of_operations(lines), *_of_tests(lines)]
    if not found:
        found += _of_calls(lines) or _of_plain_errors(lines, worked)
    found.sort(key=lambda failure: (failure.line, failure.kind))
    ends = _without_echoes([f for f in found if not _survived(f, worked)])
    shown = {exception.line: exception for exception in raised}
    return tuple(
        failure._replace(
            about_gpu=failure.about_gpu or _about_gpu(lines, failure, shown.get(failure.line))
        )
        for failure in _with_reasons(lines, tuple(ends))
    )


_XLA_ERRORS = ("XlaRuntimeError", "JaxRuntimeError")
_NATIVE_ERRORS = ("RuntimeError", "InternalError", "UnknownError", "UnimplementedError")
_OF_A_FRAMEWORK = re.compile(r"[/\\](?:torch|tensorflow(?:_core)?|jax|jaxlib|cupy|triton)[/\\]")


def _of_native_code(exception: Raised) -> bool:
    """The native code of a framework failed, which may be its code for the GPU."""
    if exception.type in _XLA_ERRORS:
        return not exception.message.startswith("INVALID_ARGUMENT")
    inside = bool(exception.frames) and _OF_A_FRAMEWORK.search(exception.frames[-1]) is not None
    return exception.type in _NATIVE_ERRORS and inside


_RAISES = re.compile(r"raise [\w.]{1,80}Error\( ?(?:[fr]{0,2}[\"']|$)")
"""A statement that raises an exception with a text of its own. TensorFlow and JAX pass errors of
their native code on with `raise type(e)(...)` and the like."""


def _raised_in_python(lines: Sequence[Line], place: int) -> bool:
    """Whether the statement that the traceback ends with raised the exception itself."""
    return any(_RAISES.match(line.text.strip()) for line in lines[max(place - 2, 0) : place])


_OF_THE_LANGUAGE = re.compile(
    r"(?:KeyError|NameError|UnboundLocalError|SyntaxError|IndentationError|ZeroDivisionError"
    r"|RecursionError|Unicode(?:De|En)codeError|JSONDecodeError|NotADirectoryError|FileExistsError"
    r"|Config(?:Attribute|Key|Value|Type)Error|MissingMandatoryValue|ScannerError|ParserError"
    r"|AttributeError: '[\w.]{1,60}' object has no attribute"
    r"|TypeError: [\w.]{1,80}\(\) (?:got an unexpected keyword|got multiple values|missing \d"
    r"|takes ))"
)
"""Mistakes in the text or the data of a program, even if its message names a GPU."""
_NAMES_CUDA = re.compile(r"\bsm_\d|\bcompute_\d|\bCUDA_[A-Z]|\bgfx\d")
"""A table without the GPU's architecture, or an environment without a variable of CUDA."""


_OF_ARGUMENTS = re.compile(r"(?:Value|Type|Assertion|Attribute)Error: ")
_PARAMETER = re.compile(r"\b[a-z]{1,30}(?:_[a-z]{1,30}){1,6}\b")
"""The name of an argument or a setting (micro_batch_per_gpu), whose value is wrong."""
_WARNS_OF = re.compile(
    r"\b(?:may|might|can|could) (?:also )?(?:lead to|cause|result in)\b[^.\n]{0,120}"
)
"""What a message says may follow, and has not happened."""
_OF_FILES = ("OSError", "FileNotFoundError", "EOFError", "UnpicklingError", "TypeError")
"""Raised by a statement that also names the GPU, such as load(path).to("cuda")."""


def _about_gpu(lines: Sequence[Line], failure: Failure, raised: Raised | None) -> bool:
    if elsewhere(failure.text):
        return False
    if _OF_THE_LANGUAGE.match(failure.text) and not _NAMES_CUDA.search(failure.text):
        return False
    failure = failure._replace(text=_WARNS_OF.sub("", failure.text))
    if _OF_ARGUMENTS.match(failure.text):
        failure = failure._replace(text=_PARAMETER.sub("", failure.text))
    place = bisect_left(lines, failure.line, key=lambda line: line.number)
    if is_of_the_mathematics(failure.text):
        return False
    if message_is_about_gpu(failure.text) or message_is_about_gpu(lines[place].source):
        return True
    if _PACKAGE_MANAGER.match(failure.text):
        # It names the packages above its error.
        return any(message_is_about_gpu(line.text) for line in lines[max(place - 4, 0) : place])
    if raised is not None and _of_native_code(raised) and not _raised_in_python(lines, place):
        return True
    # The statement is the last line of a traceback. Newer Pythons add a line that underlines it.
    code = [line for line in lines[max(place - 2, 0) : place] if line.number >= failure.line - 2]
    follows_code = raised is not None and bool(raised.frames) and raised.type not in _OF_FILES
    return follows_code and any(code_is_about_gpu(line.text) for line in code)


_NAMES_NO_PACKAGE = re.compile(r"ImportError: cannot import name '?\w{1,80}'?")
"""As Python before 3.7 writes it."""
_HEADER_ENDS = "Traceback (most recent call last)"


def _of_exceptions(lines: Sequence[Line], raised: Sequence[Raised]) -> Iterator[Failure]:
    for exception in raised:
        if not exception.handled and not _WARNING.search(exception.type):
            place = bisect_left(lines, exception.line, key=lambda line: line.number)
            further = sum(1 for part in exception.message.split("\n")[1:] if part)
            last = min(place + further, len(lines) - 1)
            text = f"{exception.type}: {exception.message}".rstrip(": ")
            # The header of IPython's traceback names the exception; its message was cut off.
            whole = not lines[place].text.endswith(_HEADER_ENDS)
            # Nor does an import say of which package it speaks, without its frames.
            whole = whole and (bool(exception.frames) or not _NAMES_NO_PACKAGE.fullmatch(text))
            yield Failure(exception.line, lines[last].number, "exception", text, says_why=whole)


def _of_lines(lines: Sequence[Line]) -> Iterator[Failure]:
    about_ends = words_in(lines, _ABOUT_ENDS)
    for place, line in enumerate(lines):
        if line.level == "fatal":
            text = line.text.strip() or f"{line.source} ended the program and did not say why"
            yield Failure(line.number, line.number, "fatal", text)
            continue
        if line.level in ("info", "warning"):
            continue
        folded = line.text.lower()
        if not any(word in folded for word in about_ends):
            continue
        for kind, pattern in _ENDS:
            if pattern.search(line.text):
                yield _with_reason(lines, place, kind)
                break


def _of_operations(lines: Sequence[Line]) -> Iterator[Failure]:
    """Errors of TensorFlow's kernels whose exception is not in the log.

    If CUDA fails after that, the error did not end the program, and is often only a symptom.
    """
    last = max((line.number for line in lines if _of_cuda(line)), default=0)
    for line in lines:
        if line.number < last:
            continue
        if line.source in ("executor.cc", "op_kernel.cc") and _OPERATION.match(line.text):
            yield Failure(line.number, line.number, "exception", line.text)


_TEST = re.compile(r"FAILED \S{1,300}::\S|\S{1,300}\.py:\d{1,6}: [A-Z]\w{1,60}Error$")


def _of_tests(lines: Sequence[Line]) -> Iterator[Failure]:
    """Tests that failed, in a log that does not show their exceptions as tracebacks."""
    for line in lines:
        if _TEST.match(line.text):
            yield Failure(line.number, line.number, "exception", line.text)


_CALL = re.compile(
    r"\W{0,3}(?:CUDA|HIP|ROCm|SYCL|cuBLAS|cuDNN) (?:[Ee]rror|ERROR|[Ff]ailure)(?: ?\(|:| \d)"
)


def _of_calls(lines: Sequence[Line]) -> list[Failure]:
    """Programs in C and C++ print the error of a call and end; the log may not show how."""
    return [
        Failure(line.number, line.number, "fatal", line.text)
        for line in lines
        if line.level not in ("info", "warning") and _CALL.match(line.text)
    ]


_PLAIN_ERROR = re.compile(
    r"(?:[\w.-]{1,40}: ){0,2}(?:[Ee]rror|ERROR|fatal|FATAL)(?: [\w-]{1,30}){0,4}: \S"
)


def _of_plain_errors(lines: Sequence[Line], worked: Sequence[int]) -> list[Failure]:
    """Errors of programs in any language, if the log shows no other failure and no later work.

    They count if they are about the GPU, or give a reason that is not.
    """
    last = max(worked, default=0)
    return [
        Failure(line.number, line.number, "fatal", line.text)
        for line in lines
        if line.number > last
        and line.level == "none"
        and _PLAIN_ERROR.match(line.text)
        and (message_is_about_gpu(line.text) or reason_elsewhere(line.text) or elsewhere(line.text))
    ]


def _of_cuda(line: Line) -> bool:
    return line.level in ("error", "fatal") and _CUDA_ERROR.search(line.text) is not None


def _with_reason(lines: Sequence[Line], place: int, kind: FailureKind) -> Failure:
    """C++ prints the thrown exception on the next line, and Docker what a hook has printed."""
    line = lines[place]
    if line.text.startswith(_WITH_PARAGRAPH):
        return _with_paragraph(lines, place, kind)
    below = lines[place + 1] if place + 1 < len(lines) else None
    continues = line.text.endswith(_ANNOUNCES) or _ONLY_ANNOUNCES.fullmatch(line.text)
    if below is None or _far(line, below):
        return Failure(line.number, line.number, kind, line.text)
    if not continues and not below.text.lstrip().startswith(_REASONS_BELOW):
        return Failure(line.number, line.number, kind, line.text)
    return Failure(line.number, below.number, kind, f"{line.text}\n{below.text.strip()}")


def _with_paragraph(lines: Sequence[Line], place: int, kind: FailureKind) -> Failure:
    """CMake prints where it failed, and below that, indented, why."""
    end = place + 1
    while end < len(lines) and lines[end].text.startswith("  ") and end - place <= _CLOSE:
        end += 1
    text = "\n".join(line.text.strip() for line in lines[place:end])
    return Failure(lines[place].number, lines[end - 1].number, kind, text)


def _far(line: Line, other: Line) -> bool:
    return other.number - line.number > _CLOSE


def _survived(failure: Failure, worked: Sequence[int]) -> bool:
    if failure.kind in ("killed", "signal"):
        return False
    return len(worked) - bisect_right(worked, failure.last) >= _ENOUGH_PROGRESS


def _without_echoes(found: Sequence[Failure]) -> Iterator[Failure]:
    """Drop a shell's or a launcher's message about a failure that is already in the log."""
    kept: Failure | None = None
    for failure in found:
        if kept is not None and failure.line <= kept.last:
            continue
        if kept is not None and failure.kind == "exit":
            continue
        is_echo = failure.kind == "signal" and kept is not None and kept.kind in ("fatal", "signal")
        if kept is not None and is_echo and failure.line - kept.last <= _CLOSE:
            kept = kept._replace(last=failure.last)
            continue
        if kept is not None:
            yield kept
        kept = failure
    if kept is not None:
        yield kept


def _with_reasons(lines: Sequence[Line], found: Sequence[Failure]) -> Iterator[Failure]:
    """Join failures without a reason with the message that gives it.

    That is the error record of the native code that failed, if the log has it. Both are one
    failure, from the record to the exception. Otherwise it is an earlier failure, which is already
    reported.
    """
    last = 0
    for failure in found:
        row = None
        if failure.kind in ("exception", "fatal") and not elsewhere(failure.text):
            shown = _shows_statement(lines, failure)
            row = unexplained(failure.text, statement_shown=shown)
        if row is None:
            yield failure
        else:
            record = _last_error(lines, row.written_by, last, failure.line)
            record = record or _reason_elsewhere_above(lines, last, failure.line)
            if record is not None:
                text = f"{record.text.strip()}\n{failure.text}"
                yield failure._replace(line=record.number, text=text)
            elif not last:
                yield failure._replace(says_why=False, about_gpu=row.of_missing_gpu)
        last = failure.last


_FRAME = re.compile(r"\s{0,16}File \"[^\"\n]{1,400}\", line \d")


_ASSERTS = re.compile(r"\b(?:assert|raise|fail)")


def _shows_statement(lines: Sequence[Line], failure: Failure) -> bool:
    """Whether the code that failed stands between the innermost frame and its exception.

    Python leaves it out if it cannot read the file, as for `python -c`. An assertion of native code
    has only the call that led there.
    """
    place = bisect_left(lines, failure.line, key=lambda line: line.number)
    # Newer Pythons underline a part of the statement.
    code = [line.text for line in lines[max(place - 2, 0) : place]]
    if not code or not code[-1].startswith(" ") or _FRAME.match(code[-1]) is not None:
        return False
    if not failure.text.startswith("AssertionError"):
        return True
    return any(_ASSERTS.search(text) for text in code if _FRAME.match(text) is None)


def _reason_elsewhere_above(lines: Sequence[Line], after: int, before: int) -> Line | None:
    """A plain error just above a failure without a reason, if it gives one unrelated to the GPU."""
    start = bisect_right(lines, max(after, before - _CLOSE - 1), key=lambda line: line.number)
    end = bisect_left(lines, before, key=lambda line: line.number)
    return next(
        (
            line
            for line in reversed(lines[start:end])
            if _PLAIN_ERROR.match(line.text)
            and reason_elsewhere(line.text)
            and not message_is_about_gpu(line.text)
        ),
        None,
    )


def _last_error(
    lines: Sequence[Line], written_by: frozenset[str], after: int, before: int
) -> Line | None:
    """The last error record of these source files between two lines."""
    start = bisect_right(lines, after, key=lambda line: line.number)
    end = bisect_left(lines, before, key=lambda line: line.number)
    return next(
        (
            line
            for line in reversed(lines[start:end])
            if line.level in ("error", "fatal") and line.source in written_by
        ),
        None,
    )
