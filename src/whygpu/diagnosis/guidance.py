"""The answer if a log shows no cause: what it does say, what would decide, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.causes.evidence.log_cuda_start import story_of
from whygpu.causes.evidence.log_subjects import excerpt, framework_title
from whygpu.causes.evidence.log_utilisation import Utilisation
from whygpu.diagnosis.for_people import (
    for_description,
    for_own_words,
    is_about_more,
)
from whygpu.diagnosis.fragments import causes_with_words_of
from whygpu.diagnosis.health import health
from whygpu.diagnosis.unseen_gpu import (
    IS_IT_LISTED,
    IS_IT_THERE,
    next_steps,
    what_to_ask,
    why_none_is_seen,
)
from whygpu.model.cause import Cause
from whygpu.model.explanation import NOTHING_REPORTED, Guidance
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import DeviceReport, Failure, Log
from whygpu.model.remedy import command_line, shell_script
from whygpu.readers.markdown import around_output
from whygpu.tables.advice import CHECK, PROFILE, WHOLE_OUTPUT
from whygpu.tables.failures_elsewhere import TIME_IS_OVER, elsewhere
from whygpu.tables.failures_without_reason import Unexplained, unexplained
from whygpu.tables.sentences import FEW_LINES, reports_trouble

_WHERE_IT_CRASHES = Remedy(
    "Let Python print where it crashes, and explain that.",
    shell_script("python -X faulthandler PROGRAM.py 2>&1 | whygpu explain"),
)


_MOST_CAUSES = 4


def for_work_without_gpu(log: Log, reports: Sequence[DeviceReport]) -> Guidance:
    """For a program that says that it has no GPU, or uses none, and does not fail."""
    told = for_own_words(log) if len(log.lines) <= FEW_LINES and is_about_more(log) else None
    if told is not None:
        return told
    sees_none = next((report for report in reports if report.says == "no-gpu"), None)
    report = sees_none or reports[0]
    quoted = f"line {report.line}: {excerpt(log.line(report.line).text.strip())}"
    if sees_none is not None:
        sees = (
            f"the program did its work without a GPU, because {framework_title(log)} sees none"
            if log.progress
            else f"{framework_title(log)} sees no GPU"
        )
        return Guidance(
            f"{sees} ({quoted}); the log does not say why",
            candidates=why_none_is_seen(log),
            ask=what_to_ask(log, IS_IT_THERE),
            steps=next_steps(log),
        )
    return Guidance(
        f"the program says that it works on the CPU ({quoted}); the log does not say why",
        candidates=("the program was told to use the CPU", *why_none_is_seen(log)),
        ask="Does the program or its configuration ask for the CPU?",
        steps=next_steps(log),
    )


def for_idle_gpu(idle: Utilisation) -> Guidance:
    """For a GPU that is hardly used, in too few samples to be sure that a program waits."""
    busy = f"GPU was busy for only {idle.most} % of the time at line {idle.lines[0]}"
    return Guidance(
        f"the program works, but its {busy}; the log does not say what it waits for"
        if idle.working
        else f"the {busy}; the log does not show whether a program was working then",
        candidates=(
            "input that is read or decoded too slowly",
            "a batch that is too small for this GPU",
            "a sample between two steps",
            "work that is done on the CPU",
        ),
        ask="How busy is the GPU over a minute of training?",
        steps=(
            Remedy("Sample it every second.", command_line("nvidia-smi dmon -s u")),
            PROFILE,
        ),
    )


def for_slow_steps(guess: Finding) -> Guidance:
    """For a program that works, and whose library warns that its steps may be slow."""
    return Guidance(
        f"the program works, but {guess.message}; the log does not show for how long",
        ask=guess.ask,
        steps=guess.remedies,
    )


def for_lost_numbers(line: int) -> Guidance:
    """For a loss that has become nan or inf."""
    return Guidance(
        f"the loss is not a number at line {line}; nothing in the log says why",
        candidates=(
            "a learning rate that is too high",
            "float16 without loss scaling",
            "data with missing or infinite values",
            "a GPU that computes wrongly",
        ),
        ask="Does the loss stay finite on the CPU, with the same data and float32?",
        steps=(CHECK,),
    )


def for_incomplete(what: str) -> Guidance:
    """For a log whose decisive part is missing; `what` says which part."""
    return Guidance(what, ask="Is there more of the output?", steps=(WHOLE_OUTPUT, CHECK))


def for_unknown(
    log: Log, failures: Sequence[Failure], causes: Sequence[Cause], *, suspicious: bool
) -> Guidance:
    """For a log without a known cause. `failures` are those that no finding explains."""
    if failures:
        return _for_failure(log, failures[-1])
    if log.is_source:
        return Guidance(
            "it is the source of a program, and not what the program printed",
            ask="What does it print, with its errors?",
            steps=(
                Remedy(
                    "Look in the source for mistakes about the GPU.",
                    command_line("whygpu lint PROGRAM.py"),
                ),
                WHOLE_OUTPUT,
            ),
        )
    if not log.lines:
        return Guidance(
            "it has no message of a program" if log.lines_read else "it is empty",
            ask="Did the output go elsewhere, to standard error or to a file?",
            steps=(WHOLE_OUTPUT,),
        )
    return (
        _for_known_words(log)
        or for_own_words(log, amid_output=len(log.lines) > FEW_LINES)
        or _for_fragment(causes_with_words_of(log, causes))
        or for_description(log)
        or Guidance(
            "it has lines that look like a problem, but no known cause matches them"
            if suspicious
            else NOTHING_REPORTED,
            ask="What did the program do that it should not have done?",
            steps=(WHOLE_OUTPUT, CHECK),
        )
    )


def _for_known_words(log: Log) -> Guidance | None:
    """For a message of a failure without the exception that it belongs to."""
    for line in log.lines:
        known, bare = elsewhere(line.text), unexplained(line.text)
        if known is not None:
            return Guidance(
                known.happened,
                ask="Did the program end after that? Then this is the reason, and not the GPU.",
                steps=(Remedy(known.advice, known.action), WHOLE_OUTPUT),
            )
        if bare is not None:
            return _without_reason(bare)
    return None


def _for_failure(log: Log, failure: Failure) -> Guidance:
    row = unexplained(failure.text)
    if not failure.says_why and row is not None:
        return _without_reason(row)
    if is_time_limit(failure):
        return _for_time_limit(failure)
    if failure.kind == "killed":
        return Guidance(
            f"line {failure.line} says that the program was ended from outside, but not why",
            candidates=(
                "the computer ran out of memory",
                "a limit of time or memory that a scheduler or container enforces",
                "somebody ended it",
            ),
            ask="Does `sudo dmesg | grep -i 'out of memory'` name the process?",
            steps=(WHOLE_OUTPUT,),
        )
    if failure.kind == "signal":
        inside = crashed_in(log)
        if inside:
            return Guidance(
                f"the program crashed in {inside}; the log does not say why",
                candidates=(
                    "a GPU that this build of the library does not support",
                    "a library of another release than the rest",
                    "a bug of the library",
                ),
                ask="Which GPU is it, and does a small program of the framework work on it?",
                steps=(CHECK, _WHERE_IT_CRASHES),
            )
        return Guidance(
            f"the program crashed at line {failure.line}, but nothing says in which code",
            ask="Which function is it in when it crashes?",
            steps=(_WHERE_IT_CRASHES, CHECK),
        )
    if any(failure.line <= line <= failure.last for line in story_of(log).wanted):
        return Guidance(
            f"the program needs a GPU, and {framework_title(log)} saw none; the log does not say "
            "why",
            candidates=why_none_is_seen(log),
            ask=what_to_ask(log, IS_IT_LISTED),
            steps=next_steps(log),
        )
    return Guidance(
        f"line {failure.line} ended the program ({excerpt(failure.text)}); it may be related to "
        "the GPU, but no known cause matches",
        ask="Which error comes first in the whole output, and does the same step work on the CPU?",
        steps=(WHOLE_OUTPUT, CHECK),
    )


def is_time_limit(failure: Failure) -> bool:
    """Whether the scheduler ended a job because its time was over."""
    return failure.kind == "fatal" and TIME_IS_OVER.search(failure.text) is not None


def _for_time_limit(failure: Failure) -> Guidance:
    return Guidance(
        f"the scheduler ended the job at line {failure.line}, because its time was over; the log "
        "does not show whether it worked on the GPU",
        candidates=(
            "more work than fits into that time",
            "work that is done on the CPU",
            "a GPU that waits for its input",
        ),
        ask="On which device did it work, and how long did a step take?",
        steps=(
            Remedy(
                "Ask for more time (#SBATCH --time), and save checkpoints from which the next job "
                "goes on."
            ),
            CHECK,
            PROFILE,
        ),
    )


_NATIVE_FRAME = late(
    r"^\W{0,4}#\d{1,3}\s{1,4}0x[0-9a-f]{4,16} in [^\n]{1,400}?"
    r"(?:\n\s{1,8})?\sfrom (?P<library>/\S{3,300})$",
    re.MULTILINE,
)
_OF_THE_SYSTEM = re.compile(r"/(?:libc|libpthread|libgcc_s|libstdc\+\+|ld-linux)[^/]*$")


def crashed_in(log: Log) -> str:
    """The library at the top of the stack that a debugger printed; empty if there is none."""
    for match in log.find(_NATIVE_FRAME):
        library = match.groups["library"] or ""
        if not _OF_THE_SYSTEM.search(library):
            return library.rpartition("/")[2]
    return ""


def for_report(log: Log) -> Guidance | None:
    """For output that a person shows and writes about, and in which nothing is wrong. Nobody
    reports a program that does what it should."""
    written = around_output(log.lines)
    if not written:
        return None
    told = next((line for line in written if reports_trouble(line.text)), written[0])
    works = health(log)
    return Guidance(
        f"line {told.number} is of a person who reports something "
        f"({excerpt(told.text.strip(), 80)}), and no message shows a fault"
        f"{'; ' + works if works else ''}",
        ask="What did the program do that it should not have done?",
        steps=(WHOLE_OUTPUT, CHECK),
    )


def for_two_answers(log: Log) -> Guidance | None:
    """For a log in which the same question was answered with no and with yes, and in which nothing
    was done with the GPU: which of the two holds now is not known."""
    if log.progress:
        return None
    for question in ("gpu-there", "other-gpu-there"):
        values = {shown.value: shown.line for shown in log.shown_of(question)}
        if question == "gpu-there" and "False" in values:
            # The report of an environment has the same answer in other words.
            seen = [report.line for report in log.reports if report.says == "gpu"]
            values |= {"True": seen[-1]} if seen else {}
        if {"True", "False"} <= values.keys():
            return Guidance(
                f"line {values['False']} says that there is no GPU, and line {values['True']} "
                "that there is one; what differs between the two is not known",
                candidates=(
                    "two environments, or two releases of the framework",
                    "two machines, containers or users",
                    "something that was changed in between, and has helped or not",
                ),
                ask="Which of the two is the program's environment?",
                steps=(CHECK,),
            )
    return None


def _for_fragment(causes: Sequence[Cause]) -> Guidance | None:
    """For a part of a message that these causes write."""
    if not causes:
        return None
    first, *others = causes
    return Guidance(
        "its words are part of a message that has several possible causes"
        if others
        else f"its words are part of a message of {first.code}, and not enough to be sure",
        candidates=tuple(f"{cause.title} ({cause.code})" for cause in causes[:_MOST_CAUSES]),
        ask="What does the whole message say, and what comes before it?",
        steps=(
            WHOLE_OUTPUT,
            Remedy("Read about the first.", command_line(f"whygpu rule {first.code}")),
        ),
    )


def _without_reason(row: Unexplained) -> Guidance:
    return Guidance(
        f"{row.happened}; the reason {row.where_the_reason_is}, and this log does not have it",
        candidates=row.candidates,
        ask="What is the first error above it in the whole output?",
        steps=(WHOLE_OUTPUT, CHECK),
    )


def for_other_failure(failure: Failure) -> Guidance | None:
    """For a failure unrelated to the GPU; None if nothing is known except its message."""
    row = elsewhere(failure.text)
    if row is None:
        return None
    return Guidance(row.happened, steps=(Remedy(row.advice, row.action),))
