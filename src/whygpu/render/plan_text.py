"""Plans for people: what to install, and why nothing newer.

Written without rich, which takes longer to import than a plan takes to make.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from whygpu.model.derived import and_list, display_name
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.standing import Standing
from whygpu.planner.advice import Advice
from whygpu.planner.candidates import Candidate
from whygpu.planner.changes import Change
from whygpu.planner.constraints import Outcome, Step, standing
from whygpu.planner.machine import PLATFORMS, MachineSpec
from whygpu.planner.planning import Answer, Plan, Verdict
from whygpu.render.layout import BOLD, DIM, GREEN, RED, YELLOW, Page
from whygpu.render.marks import MARKS
from whygpu.tables.driver_floors import driver_floors
from whygpu.tables.versions import release_numbers

_STYLES: dict[Standing, str] = {
    "fine": GREEN,
    "told": "",
    "attention": YELLOW,
    "wrong": RED,
    "unknown": YELLOW,
}
_STEPS: dict[Outcome, Standing] = {
    "holds": "fine",
    "note": "fine",
    "unchecked": "unknown",
    "breaks": "wrong",
}
_PLURALS = {
    "needs": "need",
    "has": "have",
    "is": "are",
    "was": "were",
    "does": "do",
    "its": "their",
}


def render(
    answer: Answer,
    advice: Advice | None,
    changes: Sequence[Change],
    verified: str,
    *,
    width: int,
    color: bool,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    page = Page(width, color)
    _headline(page, answer, marks)
    _machine(page, answer.machine)
    if advice is not None:
        _advice(page, advice)
    if verified:
        page.section("Verified")
        page.hanging("", verified, 3)
    if changes:
        page.section("Possible with")
        for change in changes:
            names = and_list([f"{item.package} {item.version}" for item in change.chosen])
            page.item(f"{change.what}: {names}")
    _candidates(page, answer)
    return page.text()


def _headline(page: Page, answer: Answer, marks: Mapping[Standing, str]) -> None:
    if answer.plan is None:
        wanted = and_list([str(wish) for wish in answer.wishes])
        why = f": {answer.conflict}" if answer.conflict else ""
        trouble = "do not go together" if answer.conflict else "cannot use the GPU"
        if answer.gave_up:
            trouble = f"may or may not go together: {answer.gave_up}"
            _verdict(page, answer.standing, f"{wanted} {trouble}.", marks)
            return
        _verdict(page, answer.standing, f"{wanted} {trouble} on this machine{why}.", marks)
        return
    names = and_list([f"{display_name(c.framework)} {c.version}" for c in answer.plan.chosen])
    fit = "fits" if len(answer.plan.chosen) == 1 else "go together and fit"
    known = "as far as this machine is known" if answer.unchecked else "this machine"
    refuted = ", but the package index refuses the plan (see below)" if answer.refuted else ""
    remedy = ", but only with the remedy shown after the commands" if answer.needs_remedy else ""
    _verdict(page, answer.standing, f"{names} {fit} {known}{remedy}{refuted}.", marks)


def _verdict(page: Page, standing: Standing, text: str, marks: Mapping[Standing, str]) -> None:
    page.hanging(marks[standing], text, 2, f"{BOLD};{_STYLES[standing]}")


def _machine(page: Page, machine: MachineSpec) -> None:
    platform = machine.platform
    name = PLATFORMS[platform.value] if isinstance(platform, Known) else "unknown platform"
    gpus = machine.gpus
    shown = ", ".join(map(str, gpus.value)) if isinstance(gpus, Known) else _fact("GPU", gpus)
    parts = [
        _fact("Python", machine.python),
        name,
        *([_fact("glibc", machine.glibc)] if "linux" in name.lower() else []),
        _fact("driver", machine.driver),
        shown,
    ]
    page.hanging("", ", ".join(parts), 2)


def _fact(name: str, fact: Observed[Any]) -> str:
    if isinstance(fact, Known):
        return f"{name} {fact.value}"
    return f"no {name}" if isinstance(fact, Absent) else f"{name} unknown"


def _advice(page: Page, advice: Advice) -> None:
    if advice.preparations:
        _commands(page, "First", advice.preparations)
    _commands(page, "Install, with pip or with uv", advice.commands)
    if advice.remedies:
        _commands(page, "Then, in every shell", advice.remedies)
    _commands(page, "Check", (advice.verify,))
    if advice.notes:
        page.section("To know")
        for note in advice.notes:
            page.item(note)


def _commands(page: Page, title: str, commands: Sequence[str]) -> None:
    page.section(title)
    for command in commands:
        page.line(f"   {command}", BOLD)


def _candidates(page: Page, answer: Answer) -> None:
    flavours = dict.fromkeys(_flavour(verdict) for verdict in answer.candidates)
    for framework, build in flavours:
        title = f"Releases of {display_name(framework)}" + (f" with {build}" if build else "")
        page.section(title)
        verdicts = [v for v in answer.candidates if _flavour(v) == (framework, build)]
        groups = list(_groups(verdicts, answer.plan))
        indent = 5 + max(len(versions) for versions, _, _ in groups)
        for versions, text, fits in groups:
            page.hanging(f"   {versions}", text, indent, GREEN if fits else "")


def _groups(verdicts: list[Verdict], plan: Plan | None) -> Iterator[tuple[str, str, bool]]:
    """Adjacent releases with the same fate in one line."""
    chosen = plan.chosen if plan else ()

    def fate(verdict: Verdict) -> tuple[str, bool]:
        if verdict.candidate in chosen:
            return "the newest that fits" if len(chosen) == 1 else "chosen", True
        if verdict.fits:
            alone = "fits by itself" if len(chosen) > 1 else "fits"
            return "; ".join((*verdict.notes, *verdict.unchecked)) or alone, True
        return "" if verdict.breaks == "python" else verdict.reason, False

    for (text, fits), group in groupby(verdicts, fate):
        members = list(group)
        versions = list(dict.fromkeys(member.candidate.version for member in members))
        said = text or _python_reason(members)
        if len(versions) == 1:
            yield versions[0], said, fits
        else:
            yield f"{versions[-1]} to {versions[0]}", _plural(said), fits


def _python_reason(members: list[Verdict]) -> str:
    """One reason for all that have no wheel for this Python: the range of all their wheels."""
    pythons = [python for m in members for part in m.candidate.parts for python in part.pythons]
    if len(members) == 1 or not pythons:
        return members[0].reason
    first, last = (f(pythons, key=release_numbers) for f in (min, max))
    you = members[0].reason.rpartition(", ")[2]
    return f"has wheels for Python {first} to {last}, {you}"


def _flavour(verdict: Verdict) -> tuple[str, str]:
    """The framework, and which of its GPU builds, where a release has several."""
    candidate = verdict.candidate
    if candidate.framework == "cupy":
        return candidate.framework, candidate.package
    return candidate.framework, candidate.extra if candidate.framework == "jax" else ""


def _plural(reason: str) -> str:
    first, space, rest = reason.partition(" ")
    if first == "fits":
        return "fit by themselves" if rest else "fit"
    return f"{_PLURALS.get(first, first)}{space}{rest}"


def render_chain(
    candidate: Candidate,
    chain: Sequence[Step],
    machine: MachineSpec,
    *,
    width: int,
    color: bool,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    """One release against every constraint."""
    page = Page(width, color)
    broken = sum(step.outcome == "breaks" for step in chain)
    name = f"{candidate.package} {candidate.version}"
    stands = standing(chain)
    text = f"{name} fits this machine."
    if stands == "wrong":
        count = "one thing stands" if broken == 1 else f"{broken} things stand"
        text = f"{name} does not fit this machine: {count} in its way."
    elif stands == "unknown":
        text = f"{name} fits as far as this machine is known."
    _verdict(page, stands, text, marks)
    _machine(page, machine)
    page.line()
    indent = 7 + max(len(step.constraint) for step in chain)
    for step in chain:
        label = f"  {marks[_STEPS[step.outcome]]}  {step.constraint}"
        page.hanging(label, step.reason, indent, mark=_STYLES[_STEPS[step.outcome]])
    page.line()
    for part in candidate.parts:
        page.line(f"Read from {part.file}", DIM)
    return page.text()


_HEADS = ("release", "fits", "Python", "glibc", "CUDA", "cuDNN", "driver", "GPU code")


def render_matrix(answer: Answer, *, color: bool) -> str:
    """Every release as a row, as wide as it has to be: for a pager or a file."""
    page = Page(0, color)
    rows = [_HEADS, *(_matrix_row(verdict) for verdict in answer.candidates)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADS))]
    for number, row in enumerate(rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        page.line("  ".join(cells), BOLD if number == 0 else "")
    return page.text()


def _matrix_row(verdict: Verdict) -> tuple[str, ...]:
    candidate = verdict.candidate
    binary = next((part for part in candidate.parts if part.pythons), candidate.parts[0])
    floors = driver_floors(candidate.cuda)
    pythons = binary.pythons
    return (
        candidate.requirement,
        verdict.breaks or "yes",
        f"{pythons[0]}-{pythons[-1]}" if pythons else binary.requires_python or "any",
        binary.glibc,
        candidate.cuda,
        candidate.cudnn,
        f">={floors[-1].driver}" if floors else "",
        " ".join(candidate.architectures),
    )
