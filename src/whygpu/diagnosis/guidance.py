"""What to tell where a log names no cause: what was understood, what would decide, what to do."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.causes.evidence.log_cuda_start import story_of
from whygpu.causes.evidence.log_subjects import excerpt, framework_title
from whygpu.model.explanation import Guidance
from whygpu.model.finding import Remedy
from whygpu.model.log import DeviceReport, Failure, Log
from whygpu.model.remedy import command_line, shell_script
from whygpu.tables.failures_elsewhere import elsewhere
from whygpu.tables.failures_without_reason import unexplained

_WHOLE_OUTPUT = Remedy(
    "Explain the whole output, with standard error in it.",
    shell_script("python PROGRAM.py 2>&1 | whygpu explain"),
)
_WHERE_IT_CRASHES = Remedy(
    "Have Python say where it crashes, and explain that.",
    shell_script("python -X faulthandler PROGRAM.py 2>&1 | whygpu explain"),
)
_CHECK = Remedy(
    "Look at the machine, in the environment that the program runs in.",
    command_line("whygpu check"),
)


_WHY_NONE_IS_SEEN = (
    "no driver or no GPU on that machine",
    "a build without GPU support",
    "a container that was started without GPUs",
    "CUDA_VISIBLE_DEVICES",
)


def for_work_without_gpu(log: Log, reports: Sequence[DeviceReport]) -> Guidance:
    """Where the program works and says itself that it has no GPU, or uses none."""
    sees_none = next((report for report in reports if report.says == "no-gpu"), None)
    report = sees_none or reports[0]
    quoted = f"line {report.line}: {excerpt(log.line(report.line).text.strip())}"
    if sees_none is not None:
        return Guidance(
            f"the program did its work without a GPU, because {framework_title(log)} sees none "
            f"({quoted}); the log does not say why",
            candidates=_WHY_NONE_IS_SEEN,
            ask="Is there an NVIDIA GPU in that machine? Then what does `nvidia-smi` print there?",
            steps=(_CHECK, _WHOLE_OUTPUT),
        )
    return Guidance(
        f"the program says that it works on the CPU ({quoted}), and the log does not say why",
        candidates=("the program was told to use the CPU", *_WHY_NONE_IS_SEEN),
        ask="Does the program or its configuration ask for the CPU?",
        steps=(_CHECK, _WHOLE_OUTPUT),
    )


def for_lost_numbers(line: int) -> Guidance:
    """Where a loss has become nan or inf."""
    return Guidance(
        f"the loss is no number at line {line}; nothing in the log says why",
        candidates=(
            "a learning rate that is too high",
            "float16 without loss scaling",
            "data with missing or infinite values",
            "a GPU that computes wrongly",
        ),
        ask="Does the loss stay a number on the CPU, with the same data and float32?",
        steps=(_CHECK,),
    )


def for_incomplete(what: str) -> Guidance:
    """Where the part of the log that would tell is missing; `what` says which."""
    return Guidance(what, ask="Is there more of the output?", steps=(_WHOLE_OUTPUT, _CHECK))


def for_unknown(log: Log, failures: Sequence[Failure], *, suspicious: bool) -> Guidance:
    """Where nobody can tell the cause. `failures` are those that no finding accounts for."""
    if not log.lines:
        return Guidance(
            "there is nothing in it",
            ask="Did the output go elsewhere, to standard error or to a file?",
            steps=(_WHOLE_OUTPUT,),
        )
    told = next((row for line in log.lines if (row := elsewhere(line.text))), None)
    if not failures and told is not None:
        return Guidance(
            told.happened,
            ask="Did the program end after that? Then this is why, and the GPU is not.",
            steps=(Remedy(told.advice, told.action), _WHOLE_OUTPUT),
        )
    if not failures:
        return Guidance(
            "it has lines that look like trouble, and no known cause fits them"
            if suspicious
            else "nothing in it reports a failure, a GPU or work being done",
            ask="What did the program do that it should not have done?",
            steps=(_WHOLE_OUTPUT, _CHECK),
        )
    failure = failures[-1]
    if not failure.says_why:
        return _without_reason(failure)
    if failure.kind == "killed":
        return Guidance(
            f"line {failure.line} says that the program was ended from outside, and not why",
            candidates=(
                "memory of the computer that ran out",
                "a limit of time or memory that a scheduler or container enforces",
                "somebody who ended it",
            ),
            ask="Does `sudo dmesg | grep -i 'out of memory'` name the process?",
            steps=(_WHOLE_OUTPUT,),
        )
    if failure.kind == "signal":
        return Guidance(
            f"the program crashed at line {failure.line}, and nothing says in which code",
            ask="Which function is it in when it crashes?",
            steps=(_WHERE_IT_CRASHES, _CHECK),
        )
    if any(failure.line <= line <= failure.last for line in story_of(log).wanted):
        return Guidance(
            f"the program wants a GPU, and {framework_title(log)} saw none; the log does not say "
            "why",
            candidates=_WHY_NONE_IS_SEEN,
            ask="Does `nvidia-smi` list the GPU where the program runs?",
            steps=(_CHECK, _WHOLE_OUTPUT),
        )
    return Guidance(
        f"line {failure.line} ended the program ({excerpt(failure.text)}); it may have to do "
        "with the GPU, and no known cause fits",
        ask="Which error comes first in the whole output, and does the same step work on the CPU?",
        steps=(_WHOLE_OUTPUT, _CHECK),
    )


def _without_reason(failure: Failure) -> Guidance:
    row = unexplained(failure.text)
    assert row is not None, failure.text
    return Guidance(
        f"{row.happened}; the reason {row.reason_stands}, and this log does not have it",
        candidates=row.candidates,
        ask="What is the first error above it in the whole output?",
        steps=(_WHOLE_OUTPUT, _CHECK),
    )


def for_other_failure(failure: Failure) -> Guidance | None:
    """For a failure that is not the GPU's; None where all that is known of it is its own words."""
    row = elsewhere(failure.text)
    if row is None:
        return None
    return Guidance(row.happened, steps=(Remedy(row.advice, row.action),))
