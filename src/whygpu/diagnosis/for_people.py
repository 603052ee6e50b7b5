"""The answer to what a person writes: a symptom, a question, a report of trouble."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.log_machines import gpus_in
from whygpu.causes.evidence.log_subjects import excerpt
from whygpu.causes.evidence.stated_releases import fits, misfits
from whygpu.diagnosis.health import health
from whygpu.diagnosis.unseen_gpu import (
    IS_IT_LISTED,
    framework_to_ask,
    next_steps,
    what_to_ask,
    why_none_is_seen,
)
from whygpu.model.explanation import Guidance
from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Line, Log
from whygpu.model.remedy import Command, command_line
from whygpu.readers.markdown import above_output
from whygpu.tables.advice import CHECK, PLAN, WHOLE_OUTPUT
from whygpu.tables.concepts import concepts_of
from whygpu.tables.sentences import (
    FAULT_HEADING,
    FEW_LINES,
    POINTS_BELOW,
    WANTS_GPU,
    asks_something,
    describes_option,
    goes_on_after,
    has_label,
    is_of_a_person,
    labels_of_samples,
    reports_trouble,
)
from whygpu.tables.topics import Topic, most_telling, topic_in, topics_in
from whygpu.tables.topics_told import FAILS, NOT_USED, SEES_NONE

_MOST_OWN_LINES = 40
"""People describe what they see before anything else, and not at length."""
_MOST_FORM_LINES = 80
"""The form of an issue tracker begins with many fields."""
_MOST_LAST_WORDS = 8
"""Some ask below what they paste."""


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
    line, topics = told[most_telling([topics[0] for _, topics in told])]
    said = " or ".join(topic.says for topic in topics if topic.is_question == topics[0].is_question)
    answer = _answer_to(topics, log, line.text)
    works = health(log) if amid_output else ""
    if topics[0].is_question:
        shown = _shown_of_devices(log) if amid_output else _fits_named(log)
        return answer._replace(
            understood=f"line {line.number} asks {said}{shown}", to_question=True
        )
    return answer._replace(
        understood=f"line {line.number} says that {said}"
        + (f"; {works}, and nothing says why" if works else ", and nothing else in it says why")
    )


def _answer_to(topics: Sequence[Topic], log: Log, sentence: str) -> Guidance:
    """The reasons, question and steps for a topic; of a second, its first step is added."""
    topic, *others = topics
    if topic.says == SEES_NONE.says:
        reasons, ask, steps = why_none_is_seen(log), what_to_ask(log, IS_IT_LISTED), next_steps(log)
    else:
        reasons = (*misfits(log), *topic.candidates)
        ask, steps = topic.ask, topic.steps
    more = tuple(other.steps[0] for other in others if other.steps[0] not in steps)
    return Guidance(
        topic.says,
        candidates=() if topic.is_question else reasons,
        ask=ask,
        steps=_filled_in((*steps, *more), log, sentence),
    )


_GPU_NUMBER = late(
    r"(?i)\b(?:gpus?|cuda|device|card)s? ?[:#]? ?([0-9](?:(?: ?, ?| ?and ?| ?& ?)[0-9])*)\b"
)
_DIGIT = late(r"[0-9]")
_SIZE = late(r"(?i)(?<![\d.])(\d{1,3}(?:\.\d)?) ?G(?:i?B)?\b")
_ORDINAL = late(r"(?i)\b(?:(first)|(third|3rd)|(fourth|4th)) (?:gpu|card|graphics)")


def _filled_in(steps: Sequence[Remedy], log: Log, sentence: str) -> tuple[Remedy, ...]:
    """The steps, with what the person says in their commands: framework, GPU, number, size."""
    gpus = gpus_in(log)
    framework = framework_to_ask(log)
    known = {"FRAMEWORK": framework}
    if framework and log.version_of(framework):
        known["FRAMEWORK"] += f"=={log.version_of(framework)}"
    if len(gpus) == 1 and gpus[0].capability is not None:
        known["NAME"] = ".".join(map(str, gpus[0].capability))
    on_windows = log.platform == "windows" or "windows" in concepts_of(sentence)
    number, ordinal = _GPU_NUMBER.search(sentence), _ORDINAL.search(sentence)
    if number is not None:
        known["gpu:1"] = "gpu:" + ",".join(_DIGIT.findall(number[1]))
    elif ordinal is not None:
        known["gpu:1"] = f"gpu:{(0, 2, 3)[(ordinal.lastindex or 1) - 1]}"
    size = _SIZE.search(sentence)
    if size is not None:
        known["growth"] = f"{size[1]}GiB"
    return tuple(
        step._replace(action=_completed(step.action, known, on_windows))
        if isinstance(step.action, Command)
        else step
        for step in steps
    )


def _completed(command: Command, known: dict[str, str], on_windows: bool) -> Command:
    argv = tuple(known.get(str(word)) or word for word in command.argv)
    if argv[:2] == ("whygpu", "plan"):
        # Whoever names a GPU or a system may ask on another machine.
        if "--gpu" not in argv and "NAME" in known:
            argv += ("--gpu", known["NAME"])
        if on_windows:
            argv += ("--platform", "win_amd64")
    return command._replace(argv=argv)


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
    labels = _labels_of_samples(log, head)
    asked = next(
        (
            line
            for line in head
            if _is_open_question(log, line) and not has_label(line.text, labels)
        ),
        None,
    )
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


_MOST_ABOVE_WORK = 2


def for_told_trouble(log: Log) -> Guidance | None:
    """For a text that begins with a person's report of trouble, above output that shows none; None
    if it does not. Above work that is done, only what few programs say is such a report."""
    above_work = bool(log.progress)
    told = next(
        (
            line
            for line in above_output(log.lines[:_MOST_ABOVE_WORK] if above_work else log.lines)
            if reports_trouble(line.text, above_work=above_work)
        ),
        None,
    )
    if told is None:
        return None
    topics = topics_in(told.text)
    answer = _answer_to(topics, log, told.text) if topics else Guidance("")
    works = health(log)
    shown = "; the rest shows no error"
    if works:
        shown = (
            f"; {works}, and no error" if log.progress else f"; {works}, but no work and no error"
        )
    return answer._replace(
        understood=f"line {told.number} reports trouble ({excerpt(told.text.strip(), 80)}){shown}",
        ask=answer.ask
        or "What does the program print when it fails, or when it should use the GPU?",
        steps=answer.steps or (WHOLE_OUTPUT, CHECK),
    )


def _is_open_question(log: Log, line: Line) -> bool:
    if line.level != "none" or not asks_something(line.text):
        return False
    said = topic_in(line.text)
    return said is None or not (said.asks_for_use and log.reports_gpu_at_work())


_NEAR = 4
"""The most lines between a sentence and the output that it speaks of."""


def _is_of(line: Line, topics: Sequence[Topic], harmless: frozenset[int]) -> bool:
    """Whether the errors that somebody speaks of are harmless lines."""
    follow = any(0 < number - line.number <= _NEAR for number in harmless)
    return topics[0] is FAILS and follow and POINTS_BELOW.search(line.text) is not None


def _shown_of_devices(log: Log) -> str:
    """What the rest says of what somebody asks."""
    works = health(log)
    return f"; {works}" if works else "; the rest of the log does not show a device at work"


def _fits_named(log: Log) -> str:
    """Whether the releases that somebody names fit together, as the end of a sentence."""
    return "".join(f"; {fit.says}" for fit in fits(log))


def _labels_of_samples(log: Log, lines: Sequence[Line]) -> frozenset[str]:
    """Those of texts that a program works on, which may speak of a GPU."""
    return labels_of_samples([line.text for line in lines]) if log.progress else frozenset()


def _own_words(log: Log, amid_output: bool) -> Iterator[tuple[Line, tuple[Topic, ...]]]:
    answered = amid_output and log.reports_gpu_at_work()
    # A value in a sentence is a person's statement, too.
    stated = {shown.line for shown in log.shown if shown.asked == shown.line}
    looked_at = (*log.lines[:_MOST_OWN_LINES], *log.lines[_MOST_OWN_LINES:][-_MOST_LAST_WORDS:])
    labels = _labels_of_samples(log, looked_at)
    before = ""
    for line in looked_at:
        if has_label(line.text, labels) or describes_option(line.text):
            continue
        person = (
            is_of_a_person(line.text) or line.number in stated or goes_on_after(before, line.text)
        )
        before = line.text if person else ""
        if line.level == "none" and (person or not amid_output):
            topics = topics_in(line.text)
            if topics and not (answered and topics[0].asks_for_use):
                yield line, topics


_WHAT_EACH_VERB_ANSWERS = (
    Remedy("If a framework does not see or use the GPU:", command_line("whygpu check")),
    Remedy(
        "If the GPU is idle, or the program slow:",
        command_line("whygpu run --profile -- python PROGRAM.py"),
    ),
    Remedy("If it is about GPU memory:", command_line("whygpu memory")),
    Remedy("If it is about what to install:", command_line("whygpu plan")),
)


_OF_NO_GPU = frozenset((SEES_NONE.says, NOT_USED.says))


def is_about_more(log: Log) -> bool:
    """Whether a few lines are about something else than a GPU that is not seen or not used."""
    topics = topics_in(log.lines[0].text)
    return bool(topics) and topics[0].weight >= 0 and topics[0].says not in _OF_NO_GPU


def for_description(log: Log) -> Guidance | None:
    """For a sentence about a GPU or a framework that is about none of the known subjects."""
    line = log.lines[0]
    about = concepts_of(line.text).intersection(("gpu", "framework", "memory"))
    if len(log.lines) > FEW_LINES or line.level != "none" or not about:
        return None
    named = _fits_named(log)
    if named:
        return Guidance(
            f"line {line.number} names releases{named}",
            ask="What goes wrong with them?",
            steps=_filled_in((PLAN, CHECK), log, line.text),
        )
    return Guidance(
        f"line {line.number} describes something, and no output of a program shows it",
        ask="What does the program print, or what would you like to know?",
        steps=(WHOLE_OUTPUT, *_WHAT_EACH_VERB_ANSWERS),
    )
