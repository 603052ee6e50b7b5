"""What `fix` found out and did, for people: the verdict before and after, the steps, the proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from whygpu.model.commands import remedy_text, shell_text
from whygpu.model.derived import display_name, installer_of
from whygpu.model.finding import MACHINE
from whygpu.model.fix import Attempt, CopyFacts, FixAnswer, FixStep, Result, Undone
from whygpu.model.report import FrameworkReport, Report
from whygpu.model.shell import quoted
from whygpu.model.standing import Standing
from whygpu.model.target import Installer
from whygpu.model.units import size_text
from whygpu.render.examined import examined
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import BOLD, DIM, Page, cells, sentence

RESULTS: dict[Result, str] = {
    "works": "works",
    "no-effect": "does not help",
    "other-fault": "removes this fault and leads to another",
    "failed": "fails",
    "prevented": "could not be proven",
}


def render(
    answer: FixAnswer, *, width: int, color: bool, marks: Mapping[Standing, str] = MARKS
) -> str:
    page = Page(width, color)
    headline(page, answer.standing, sentence(headline_text(answer)), marks)
    page.hanging("", examined(answer.before.snapshot), 2)
    installer = installer_of(answer.before.snapshot)
    if answer.refused:
        page.line()
        page.paragraph(f"{what_was_refused(answer)}: {answer.refused}.")
    if answer.after is not None:
        _comparison(page, answer)
    if answer.steps:
        page.section(steps_title(answer))
        _steps(page, answer.steps, installer)
    failed = [item for item in answer.attempts if item.step not in answer.steps]
    if failed:
        page.section("Tried in the copy, without success")
        _attempts(page, failed, installer)
    if answer.by_hand:
        page.section("For a person")
        _steps(page, answer.by_hand, installer)
    _footer(page, answer)
    return page.text()


def headline_text(answer: FixAnswer) -> str:
    if answer.applied is not None and answer.after is not None:
        done = "Fixed" if _mends_everything(answer.after) else "Partly fixed"
        return f"{done}: {answer.after.headline}"
    if answer.standing == "fine" and "nothing to fix" not in answer.before.headline:
        return f"Nothing to fix: {answer.before.headline}"
    return answer.before.headline


def what_was_refused(answer: FixAnswer) -> str:
    return "Nothing was tried" if answer.after is None else "Not applied"


def steps_title(answer: FixAnswer) -> str:
    if answer.applied is not None:
        return "What was done"
    if answer.after is None:
        return "What would be tried; not proven"
    if _mends_everything(answer.after):
        return "What fixes it, proven in a copy of the environment"
    return "What removes a part of it, proven in a copy of the environment"


def _mends_everything(after: Report) -> bool:
    return after.standing in ("fine", "answered")


def _comparison(page: Page, answer: FixAnswer) -> None:
    assert answer.after is not None
    where = "Before and after" if answer.applied is not None else "Before, and in the repaired copy"
    page.section(where)
    before = {item.name: item for item in answer.before.frameworks}
    after = {item.name: item for item in answer.after.frameworks}
    for name in dict.fromkeys((*before, *after)):
        page.line(f"   {display_name(name)}", BOLD)
        page.hanging("     before", _state(before.get(name)), 14)
        page.hanging("     after", _state(after.get(name)), 14)


def _state(item: FrameworkReport | None) -> str:
    if item is None:
        return "not installed"
    because = f" [{', '.join(item.because)}]" if item.because else ""
    return f"{item.version}  {item.verdict}  {item.summary}{because}"


def _steps(page: Page, steps: Iterable[FixStep], installer: Installer) -> None:
    for number, step in enumerate(steps, 1):
        page.hanging(f"{number}.", step_text(step, installer), 3)
        command = shell_text(step.remedy.action, installer)
        if command is not None:
            page.line(f"       {command}", BOLD)
        if step.by_hand:
            page.hanging("", f"By hand, because {step.by_hand}.", 3, DIM)


def step_text(step: FixStep, installer: Installer) -> str:
    about = "" if step.subject == MACHINE else f", {display_name(step.subject)}"
    words = remedy_text(step.remedy, installer)
    # In a list of remedies it may begin with "Or"; here it stands alone.
    words = words[3:4].upper() + words[4:] if words.startswith("Or ") else words
    return f"{step.code} {step.cause}{about}: {words}"


def _attempts(page: Page, attempts: Iterable[Attempt], installer: Installer) -> None:
    for attempt in attempts:
        step = attempt.step
        command = shell_text(step.remedy.action, installer) or step.remedy.text
        reason = f": {attempt.detail}" if attempt.detail else ""
        page.item(f"{step.code}: {RESULTS[attempt.result]}{reason} ({attempt.seconds:.0f} s)")
        page.line(f"       {command}", DIM)


def _footer(page: Page, answer: FixAnswer) -> None:
    page.line()
    if answer.copy is not None:
        page.paragraph(cost(answer.copy), DIM)
    for closing in closing_lines(answer):
        whole = f"{closing.text} {closing.command}".rstrip()
        if not closing.command or cells(whole) <= page.width:
            page.paragraph(whole)
            continue
        page.paragraph(closing.text)
        page.line(f"    {closing.command}")


class Closing(NamedTuple):
    text: str
    command: str = ""
    """The command that the text ends with; a line break in it would break it."""


def closing_lines(answer: FixAnswer) -> Iterator[Closing]:
    """What was changed, and the next command."""
    if answer.applied is not None:
        if answer.applied.activation:
            yield Closing(
                f"Variables are set in {answer.environment}/{answer.applied.activation}: activate "
                "the environment again. A program that is started without it does not get them."
            )
        yield Closing(
            "Programs that are running from this environment should be restarted. The environment "
            f"as it was is in {answer.applied.saved_in}; if you delete that folder, there is no "
            "way back."
        )
        yield Closing("To go back:", _command(answer, "--undo"))
    elif answer.after is not None and answer.steps and not answer.refused:
        if not _mends_everything(answer.after):
            yield Closing(f"This would not fix everything: {answer.after.headline}.")
        yield Closing("Nothing was changed. To apply it:", _command(answer, "--apply"))
    elif answer.after is not None and not answer.steps:
        yield Closing(f"Nothing was changed: {_why_nothing_helps(answer)}.")
    elif answer.steps and not answer.refused:
        yield Closing("Nothing was changed. To prove it in a copy:", _command(answer))


def _why_nothing_helps(answer: FixAnswer) -> str:
    if any(item.result == "prevented" for item in answer.attempts):
        return "not every remedy could be proven here"
    return "no remedy that whygpu can carry out helps here"


def _command(answer: FixAnswer, *more: str) -> str:
    """The next command, for the same environment."""
    words = ("whygpu", "fix", *answer.options, *more)
    return " ".join(quoted(word) for word in words)


def cost(copy: CopyFacts) -> str:
    return (
        f"The copy had {copy.files:,} files ({size_text(copy.size_bytes)}), of which "
        f"{size_text(copy.copied_bytes)} took space on the disk, for {copy.seconds:.0f} s; "
        f"{size_text(copy.free_bytes)} were free."
    )


def render_undone(undone: Undone) -> str:
    lines = [f"{undone.environment} is again as it was before the fix of {undone.applied_at}."]
    lines += [f"  taken back: {text}" for text in undone.undone]
    if undone.changed_since:
        lines.append(f"  lost with it: {', '.join(undone.changed_since)}")
    if undone.not_restored:
        files = ", ".join(undone.not_restored)
        lines.append(f"  not as they were, because something wrote into them in place: {files}")
    return "\n".join(lines) + "\n"
