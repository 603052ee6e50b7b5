"""The answer of `whygpu fix`: before and after, the steps, and what was tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.model.commands import shell_text
from whygpu.model.derived import display_name, installer_of
from whygpu.model.fix import Attempt, FixAnswer, FixStep, Undone
from whygpu.model.layers import layers_of
from whygpu.model.report import FrameworkReport
from whygpu.model.target import Installer
from whygpu.render.examined import machine_parts
from whygpu.render.fix_text import (
    RESULTS,
    closing_lines,
    cost,
    headline_text,
    step_text,
    steps_title,
    what_was_refused,
)
from whygpu.render.html.markup import Child, Html, b, join, li, ol, p
from whygpu.render.html.parts import (
    Sheet,
    badge,
    cells_table,
    command,
    items,
    note,
    sections,
)
from whygpu.render.html.stack import stack
from whygpu.render.text_page import sentence

_RESULT_KINDS = {"works": "works", "prevented": "unknown"}


def sheet(answer: FixAnswer | Undone) -> Sheet:
    return _undone(answer) if isinstance(answer, Undone) else _fix(answer)


def _undone(undone: Undone) -> Sheet:
    return Sheet(
        "fix --undo",
        "answered",
        f"{undone.environment} is again as it was before the fix of {undone.applied_at}",
        sections=sections(
            ("Taken back", items(undone.undone)),
            ("Lost with it", items(undone.changed_since)),
            ("Not as they were, because something wrote into them", items(undone.not_restored)),
        ),
    )


def _fix(answer: FixAnswer) -> Sheet:
    installer = installer_of(answer.before.snapshot)
    shown = answer.before
    if answer.applied is not None and answer.after is not None:
        shown = answer.after
    failed = [item for item in answer.attempts if item.step not in answer.steps]
    return Sheet(
        "fix",
        answer.standing,
        sentence(headline_text(answer)),
        (answer.environment, *machine_parts(answer.before.snapshot)[1:]),
        stack(layers_of(shown)),
        sections(
            (what_was_refused(answer), p(f"{answer.refused}.") if answer.refused else None),
            (steps_title(answer), _steps(answer.steps, installer)),
            ("Before and after", _comparison(answer)),
            ("What now", list(_closing(answer))),
            ("Tried in the copy, without success", _attempts(failed, installer)),
            ("For a person", _steps(answer.by_hand, installer)),
        ),
    )


def _steps(steps: Sequence[FixStep], installer: Installer) -> Html | None:
    if not steps:
        return None
    found = [
        li(
            step_text(step, installer),
            _command(step, installer),
            note(f"By hand, because {step.by_hand}.") if step.by_hand else None,
        )
        for step in steps
    ]
    return ol(found, kind="steps")


def _command(step: FixStep, installer: Installer) -> Html | None:
    text = shell_text(step.remedy.action, installer)
    return command(text) if text is not None else None


def _comparison(answer: FixAnswer) -> Html | None:
    if answer.after is None:
        return None
    before = {item.name: item for item in answer.before.frameworks}
    after = {item.name: item for item in answer.after.frameworks}
    then = "after" if answer.applied is not None else "in the repaired copy"
    rows: list[Sequence[Child]] = [
        (display_name(name), _state(before.get(name)), _state(after.get(name)))
        for name in dict.fromkeys((*before, *after))
    ]
    columns = ("framework", "before", then)
    return cells_table("Before and after", columns, rows, names=columns[1:])


def _state(item: FrameworkReport | None) -> Html:
    if item is None:
        return badge("not installed", "")
    because = f" [{', '.join(item.because)}]" if item.because else ""
    return join(
        badge(item.verdict, item.verdict), " ", b(item.version), f" {item.summary}{because}"
    )


def _attempts(attempts: Sequence[Attempt], installer: Installer) -> Html | None:
    return items(_attempt(each, installer) for each in attempts)


def _attempt(attempt: Attempt, installer: Installer) -> Html:
    step = attempt.step
    reason = f": {attempt.detail}" if attempt.detail else ""
    kind = _RESULT_KINDS.get(attempt.result, "wrong")
    return join(
        f"{step_text(step, installer)} ",
        badge(RESULTS[attempt.result], kind),
        f"{reason} ({attempt.seconds:.0f} s)",
        _command(step, installer),
    )


def _closing(answer: FixAnswer) -> Iterator[Html]:
    for closing in closing_lines(answer):
        yield p(f"{closing.text} {closing.command}".rstrip())
    if answer.copy is not None:
        yield note(cost(answer.copy))
