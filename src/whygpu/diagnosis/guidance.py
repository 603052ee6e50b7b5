"""The answer if a log shows no cause: what it does say, what would decide, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.log_cpu_builds import shown_with_gpu
from whygpu.causes.evidence.log_cuda_start import story_of
from whygpu.causes.evidence.log_driver_works import driver_works
from whygpu.causes.evidence.log_machines import gpus_in
from whygpu.causes.evidence.log_subjects import excerpt, framework_title
from whygpu.causes.evidence.log_utilisation import Utilisation
from whygpu.causes.evidence.mac_gpus import advice_for_a_mac, question_for_a_mac
from whygpu.diagnosis.fragments import causes_with_words_of
from whygpu.model.cause import Cause
from whygpu.model.explanation import NOTHING_REPORTED, Guidance
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import DeviceReport, Failure, Line, Log
from whygpu.model.remedy import Command, command_line, shell_script
from whygpu.tables.complaints import (
    FAILS,
    FAULT_HEADING,
    POINTS_BELOW,
    SAY_MOST,
    SEES_NONE,
    WANTS_GPU,
    asks_something,
    complaint_in,
    goes_on_after,
    is_of_a_person,
    reports_trouble,
)
from whygpu.tables.failures_elsewhere import TIME_IS_OVER, elsewhere
from whygpu.tables.failures_without_reason import Unexplained, unexplained
from whygpu.tables.own_words import CHECK, FRAMEWORK, GPU, PROFILE, WHOLE_OUTPUT, Complaint
from whygpu.tables.versions import release_numbers

_WHERE_IT_CRASHES = Remedy(
    "Let Python print where it crashes, and explain that.",
    shell_script("python -X faulthandler PROGRAM.py 2>&1 | whygpu explain"),
)


_SAYS_WHY = {
    "tensorflow": shell_script(
        "TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=dso_loader=1 python -c 'import tensorflow as tf; "
        'tf.config.list_physical_devices("GPU")\' 2>&1 | whygpu explain'
    ),
    "torch": shell_script(
        "python -c 'import torch; torch.zeros(1).cuda()' 2>&1 | whygpu explain",
    ),
    "jax": shell_script(
        "JAX_PLATFORMS=cuda python -c 'import jax; jax.devices()' 2>&1 | whygpu explain"
    ),
}
"""How a framework is made to say why it sees no GPU."""


def _next_steps(log: Log) -> tuple[Remedy, ...]:
    """For a framework that sees no GPU."""
    if log.platform == "macos":
        return (advice_for_a_mac(log),)
    action = _SAYS_WHY.get("tensorflow" if log.framework == "keras" else log.framework)
    if action is None or (log.version_of("tensorflow") or "").startswith("1."):
        return (CHECK, WHOLE_OUTPUT)
    return (CHECK, Remedy(f"Let {framework_title(log)} say why it sees none.", action))


_MOST_CAUSES = 4
_MOST_OWN_LINES = 40
"""People describe what they see before anything else, and not at length."""
_MOST_FORM_LINES = 80
"""The form of an issue tracker begins with many fields."""
_MOST_LAST_WORDS = 8
"""Some ask below what they paste."""
_NO_DRIVER = "no driver or no GPU on that machine"
_NO_GPU_CODE = "a build without GPU support"
_LIBRARIES = "CUDA libraries that are missing or of another release"
_WHY_NONE_IS_SEEN = (
    _NO_DRIVER,
    _NO_GPU_CODE,
    _LIBRARIES,
    "a container that was started without GPUs",
    "CUDA_VISIBLE_DEVICES",
)
_OF_PIP = {
    "tensorflow": (
        _LIBRARIES,
        "CUDA libraries that are missing, as after `pip install tensorflow` without the extra "
        "[and-cuda], or of another release",
    ),
    "torch": (_NO_GPU_CODE, "a build without GPU support (its version ends in +cpu)"),
    "jax": (
        _NO_GPU_CODE,
        "a build without GPU support, as after `pip install jax` without the extra [cuda13]",
    ),
}
"""What pip's packages of a framework often lack, and how that comes about."""
_IS_IT_LISTED = "Does `nvidia-smi` list the GPU where the program runs?"
_IS_IT_THERE = "Does that machine have an NVIDIA GPU? If so, what does `nvidia-smi` print there?"
_WHICH_BUILD = (
    "Which build is it, and does it run in a container? `pip list | grep -i -E "
    "'torch|tensorflow|jax|cuda'`"
)
"""For a machine whose driver works."""
_WHY_NONE_ON_A_MAC = (
    "a program that asks for CUDA, which a Mac does not have",
    "a framework without its plug-in for the GPU of a Mac, or with one of another release",
    "a Mac with an Intel processor",
)
_WHY_NONE_ON_A_JETSON = (
    "a build that was not made for a Jetson: the packages of PyPI for Arm are for the CPU, or for "
    "servers with another CUDA",
    "a build for another JetPack",
    "CUDA libraries of JetPack that are not installed",
    "a container that was started without GPUs",
)
_WHICH_JETPACK = (
    "Which JetPack is it (`cat /etc/nv_tegra_release`), and from where was the framework installed?"
)


def _why_none_is_seen(log: Log) -> tuple[str, ...]:
    if log.platform == "macos":
        return _WHY_NONE_ON_A_MAC
    if _is_jetson(log):
        return _WHY_NONE_ON_A_JETSON
    excluded = {
        _NO_DRIVER: driver_works(log),
        _NO_GPU_CODE: bool(shown_with_gpu(log)),
    }
    reasons = [reason for reason in _WHY_NONE_IS_SEEN if not excluded.get(reason)]
    of_pip = _OF_PIP.get("tensorflow" if log.framework == "keras" else log.framework)
    if of_pip is None or log.platform == "windows" or _is_before_extras(log):
        return tuple(reasons)
    reason, in_other_words = of_pip
    # After the driver: without one, the rest does not matter.
    first = [each for each in reasons if each == _NO_DRIVER]
    rest = [each for each in reasons if each not in (_NO_DRIVER, reason)]
    return (*first, *((in_other_words,) if reason in reasons else ()), *rest)


def _is_before_extras(log: Log) -> bool:
    """Whether it is a TensorFlow that takes the CUDA libraries of the machine."""
    release = release_numbers(log.version_of("tensorflow") or "")
    return bool(release) and release < (2, 14)


def _question(log: Log, usual: str) -> str | None:
    """What to ask where the framework sees no GPU; `usual` is for a machine of any kind."""
    if log.platform == "macos":
        return question_for_a_mac(log)
    if _is_jetson(log):
        return _WHICH_JETPACK
    if driver_works(log):
        return _WHICH_BUILD
    # A person who names the card need not be asked whether there is one.
    return _IS_IT_LISTED if gpus_in(log) else usual


def _is_jetson(log: Log) -> bool:
    return any(gpu.kind == "jetson" for gpu in gpus_in(log))


def for_work_without_gpu(log: Log, reports: Sequence[DeviceReport]) -> Guidance:
    """For a program that says that it has no GPU, or uses none, and does not fail."""
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
            candidates=_why_none_is_seen(log),
            ask=_question(log, _IS_IT_THERE),
            steps=_next_steps(log),
        )
    return Guidance(
        f"the program says that it works on the CPU ({quoted}); the log does not say why",
        candidates=("the program was told to use the CPU", *_why_none_is_seen(log)),
        ask="Does the program or its configuration ask for the CPU?",
        steps=_next_steps(log),
    )


def health(log: Log) -> str:
    """What a log shows to work: a sentence without a full stop, or nothing."""
    ready = next((device for device in log.devices if device.event == "ready"), None)
    found = next((device for device in log.devices if device.event == "found"), None)
    on_gpu = next((report for report in log.reports if report.says == "on-gpu"), None)
    has_gpu = next((report for report in log.reports if report.says == "gpu"), None)
    if ready is not None:
        name = f" ({ready.name})" if ready.name else ""
        return f"{framework_title(log)} can use the GPU{name}, line {ready.line}"
    if on_gpu is not None:
        quoted = excerpt(log.line(on_gpu.line).text.strip(), 60)
        return f"the program says that it works on the GPU, line {on_gpu.line} ({quoted})"
    if found is not None:
        return f"it shows a GPU ({found.name}), line {found.line}"
    if has_gpu is not None:
        quoted = excerpt(log.line(has_gpu.line).text.strip(), 60)
        return f"{framework_title(log)} sees a GPU, line {has_gpu.line} ({quoted})"
    if log.progress:
        return (
            f"the program does its work, line {log.progress[0]}, and does not say on which device"
        )
    return ""


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
        or for_own_words(log)
        or _for_fragment(causes_with_words_of(log, causes))
        or _for_description(log)
        or Guidance(
            "it has lines that look like a problem, but no known cause matches them"
            if suspicious
            else NOTHING_REPORTED,
            ask="What did the program do that it should not have done?",
            steps=(WHOLE_OUTPUT, CHECK),
        )
    )


_FEW_LINES = 2
_WHAT_EACH_VERB_ANSWERS = (
    Remedy("If a framework does not see or use the GPU:", command_line("whygpu check")),
    Remedy(
        "If the GPU is idle, or the program slow:",
        command_line("whygpu run --profile -- python PROGRAM.py"),
    ),
    Remedy("If it is about GPU memory:", command_line("whygpu memory")),
    Remedy("If it is about what to install:", command_line("whygpu plan")),
)


def _for_description(log: Log) -> Guidance | None:
    """For a sentence about a GPU or a framework that is about none of the known subjects."""
    line = log.lines[0]
    about = GPU.search(line.text) or FRAMEWORK.search(line.text)
    if len(log.lines) > _FEW_LINES or line.level != "none" or about is None:
        return None
    return Guidance(
        f"line {line.number} describes something, and no output of a program shows it",
        ask="What does the program print, or what would you like to know?",
        steps=(WHOLE_OUTPUT, *_WHAT_EACH_VERB_ANSWERS),
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
            candidates=_why_none_is_seen(log),
            ask=_question(log, _IS_IT_LISTED),
            steps=_next_steps(log),
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


def for_own_words(
    log: Log, *, amid_output: bool = False, harmless: frozenset[int] = frozenset()
) -> Guidance | None:
    """For a text in which a person describes a symptom, or asks; None if nobody does.

    `amid_output`: the rest is the output of a program, whose lines may look like such a sentence.
    `harmless`: lines of it that are known to mean nothing.
    """
    told = [found for found in _own_words(log, amid_output) if not _is_of(*found, harmless)]
    if not told:
        return None
    # That a program fails says less than what does not work.
    says_most = {symptom.says for symptom in SAY_MOST}
    line, said = next((found for found in told if found[1].says in says_most), told[0])
    if said.is_question:
        shown = _shown_of_devices(log) if amid_output else ""
        return Guidance(
            f"line {line.number} asks {said.says}{shown}",
            ask=said.ask,
            steps=_filled_in(said.steps, log),
            to_question=True,
        )
    sees_none = said.says == SEES_NONE.says
    return Guidance(
        f"line {line.number} says that {said.says}, and nothing else in it says why",
        candidates=_why_none_is_seen(log) if sees_none else said.candidates,
        ask=_question(log, _IS_IT_LISTED) if sees_none else said.ask,
        steps=_next_steps(log) if sees_none else _filled_in(said.steps, log),
    )


_PLACEHOLDERS = ("FRAMEWORK", "NAME")
"""What a command of the table leaves open: the framework, and the GPU."""


def _filled_in(steps: Sequence[Remedy], log: Log) -> tuple[Remedy, ...]:
    """The steps, with what the text says of the framework and the GPU in their commands."""
    gpus = gpus_in(log)
    known = dict.fromkeys(_PLACEHOLDERS, "")
    known["FRAMEWORK"] = "tensorflow" if log.framework == "keras" else log.framework
    if len(gpus) == 1 and gpus[0].capability is not None:
        known["NAME"] = ".".join(map(str, gpus[0].capability))
    return tuple(
        step._replace(
            action=step.action._replace(
                argv=tuple(known.get(str(word)) or word for word in step.action.argv)
            )
        )
        if isinstance(step.action, Command)
        else step
        for step in steps
    )


def wants_gpu(log: Log) -> bool:
    """Whether a person says that there is a GPU, or that the work should be done on one."""
    return any(
        line.level == "none" and WANTS_GPU.search(line.text) is not None
        for line in log.lines[:_MOST_FORM_LINES]
    )


def for_reported_fault(log: Log) -> Guidance | None:
    """For the form of an issue tracker, which somebody filled in because something is wrong, and
    for a question that no message answers."""
    head = log.lines[:_MOST_FORM_LINES]
    form = next((line for line in head if FAULT_HEADING.match(line.text)), None)
    asked = next((line for line in head if _is_open_question(log, line)), None)
    if form is None and asked is None:
        return None
    works = health(log)
    shown = f"; {works}" if works else ""
    return Guidance(
        f"line {form.number} begins a person's report of a fault, and no message shows one{shown}"
        if form is not None
        else f"line {asked.number if asked else 0} asks something that no message answers{shown}",
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


_MOST_TOLD = 6
"""So many lines at the start may tell what is wrong; output follows them."""


def for_told_trouble(log: Log) -> Guidance | None:
    """For a text that begins with a person's report of trouble, above output that shows a GPU and
    no work; None if it does not."""
    told = next(
        (
            line
            for line in log.lines[:_MOST_TOLD]
            if line.level == "none" and reports_trouble(line.text)
        ),
        None,
    )
    if told is None:
        return None
    said = complaint_in(told.text)
    works = health(log)
    shown = f"; {works}, but no work and no error" if works else "; the rest shows no error"
    return Guidance(
        f"line {told.number} reports trouble ({excerpt(told.text.strip(), 80)}){shown}",
        candidates=said.candidates if said is not None else (),
        ask=(said.ask if said is not None else None)
        or "What does the program print when it fails, or when it should use the GPU?",
        steps=(said.steps if said is not None else ()) or (WHOLE_OUTPUT, CHECK),
    )


def _is_open_question(log: Log, line: Line) -> bool:
    if line.level != "none" or not asks_something(line.text):
        return False
    said = complaint_in(line.text)
    return said is None or not (said.asks_for_use and log.reports_gpu_at_work())


_NEAR = 4
"""The most lines between a sentence and the output that it speaks of."""


def _is_of(line: Line, said: Complaint, harmless: frozenset[int]) -> bool:
    """Whether the errors that somebody speaks of are harmless lines."""
    follow = any(0 < number - line.number <= _NEAR for number in harmless)
    return said is FAILS and follow and POINTS_BELOW.search(line.text) is not None


def _shown_of_devices(log: Log) -> str:
    """What the rest says of what somebody asks."""
    works = health(log)
    return f"; {works}" if works else "; the rest of the log does not show a device at work"


def _own_words(log: Log, amid_output: bool) -> Iterator[tuple[Line, Complaint]]:
    answered = amid_output and log.reports_gpu_at_work()
    # A value in a sentence is a person's statement, too.
    stated = {shown.line for shown in log.shown if shown.asked == shown.line}
    before = ""
    for line in (*log.lines[:_MOST_OWN_LINES], *log.lines[_MOST_OWN_LINES:][-_MOST_LAST_WORDS:]):
        person = (
            is_of_a_person(line.text) or line.number in stated or goes_on_after(before, line.text)
        )
        before = line.text if person else ""
        if line.level == "none" and (person or not amid_output):
            said = complaint_in(line.text)
            if said is not None and not (answered and said.asks_for_use):
                yield line, said


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
