"""What of a requirements file cannot use the GPU, for people."""

from __future__ import annotations

from collections.abc import Mapping

from whygpu.model.requirement_file import Ability, FileAnswer, RequirementVerdict
from whygpu.model.standing import Standing
from whygpu.render.marks import MARKS, headline
from whygpu.render.plan_text import describe_machine, describe_table
from whygpu.render.text_page import BOLD, DIM, GREEN, RED, YELLOW, Page

TITLES: dict[Ability, tuple[str, str]] = {
    "cannot": ("Cannot use the GPU", RED),
    "unknown": ("Cannot tell", YELLOW),
    "can": ("Can use the GPU", GREEN),
}


def render(
    answer: FileAnswer, *, width: int, color: bool, marks: Mapping[Standing, str] = MARKS
) -> str:
    page = Page(width, color)
    headline(page, answer.standing, summary(answer), marks)
    describe_machine(page, answer.machine)
    for ability, (title, style) in TITLES.items():
        verdicts = answer.having(ability)
        if verdicts:
            page.section(title)
        for verdict in verdicts:
            _verdict(page, verdict, style)
    alternatives = [verdict for verdict in answer.verdicts if verdict.is_alternative]
    if alternatives:
        page.section("Optional parts without GPU support, beside others that have it")
        for verdict in alternatives:
            page.item(f"{place_of(verdict)}, {verdict.requirement.group}: {sentence(verdict)}")
    if answer.unchecked or answer.file.unread:
        page.section("Not checked")
        for text in answer.unchecked:
            page.item(text)
        for line in answer.file.unread:
            page.item(f"{line.place.file}:{line.place.line}: {line.place.text}: {line.reason}")
    describe_table(page, answer.table)
    return page.text()


def summary(answer: FileAnswer) -> str:
    path = answer.file.path
    cannot, unknown = answer.having("cannot"), answer.having("unknown")
    if cannot:
        names = ", ".join(dict.fromkeys(verdict.requirement.name for verdict in cannot))
        return f"{path}: {names} cannot use the GPU of this machine."
    if unknown:
        names = ", ".join(dict.fromkeys(verdict.requirement.name for verdict in unknown))
        return f"{path}: cannot tell whether {names} can use the GPU of this machine."
    if answer.standing == "unknown":
        return f"{path}: nothing was found, but not everything was checked."
    if not answer.verdicts:
        return f"{path} names no framework that whygpu knows."
    return f"{path}: everything in it that uses a GPU can use that of this machine."


def place_of(verdict: RequirementVerdict) -> str:
    place = verdict.requirement.place
    return f"{place.file}:{place.line}"


def sentence(verdict: RequirementVerdict) -> str:
    return f"{verdict.requirement.name} {verdict.reason}"


def _verdict(page: Page, verdict: RequirementVerdict, style: str) -> None:
    page.line(f"   {place_of(verdict)}  {verdict.requirement.place.text}", style)
    page.hanging("     ", f"{sentence(verdict)}.", 5)
    for edit in verdict.edits:
        is_here = edit.place == verdict.requirement.place
        line = "this line" if is_here else f"{edit.place.file}:{edit.place.line}"
        if not edit.replacement:
            page.line(f"     remove {line}", BOLD)
            continue
        page.line(f"     instead of {line}, write:", DIM)
        for text in edit.replacement.split("\n"):
            page.line(f"       {text}", BOLD)
    if verdict.advice:
        page.hanging("     ", verdict.advice, 5)
