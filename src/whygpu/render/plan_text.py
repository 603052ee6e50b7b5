"""Plans for people: what to install, and why nothing newer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from whygpu.model.commands import shell_texts
from whygpu.model.derived import and_list, display_name
from whygpu.model.install_plan import (
    Advice,
    FitOutcome,
    Plan,
    PlanAnswer,
    ReleaseAnswer,
    ReleaseNeeds,
    ReleaseVerdict,
    TableEdition,
    TableUpdate,
    no_wheel_for,
    version_range,
)
from whygpu.model.machine_spec import PLATFORMS, MachineSpec
from whygpu.model.observed import Absent, Known, Observed
from whygpu.model.remedy import Action
from whygpu.model.standing import Standing
from whygpu.render.marks import COLOURS, MARKS, headline
from whygpu.render.text_page import BOLD, DIM, GREEN, YELLOW, Page, column_widths, padded

AFTERWARDS = "whygpu check"
"""The command that shows whether the plan works."""
CHECKS: dict[FitOutcome, Standing] = {
    "holds": "fine",
    "note": "fine",
    "unchecked": "unknown",
    "breaks": "wrong",
}


def render(
    answer: PlanAnswer, *, width: int, color: bool, marks: Mapping[Standing, str] = MARKS
) -> str:
    page = Page(width, color)
    headline(page, answer.standing, summary(answer), marks)
    describe_machine(page, answer.machine)
    if answer.plan is not None:
        # What is likely to work comes before the commands of a plan that is not.
        _changes(page, answer)
    if answer.advice is not None:
        _advice(page, answer.advice)
    if answer.verified:
        page.section("Verified")
        page.hanging("", answer.verified, 3)
    if answer.plan is None:
        _changes(page, answer)
    _candidates(page, answer)
    describe_table(page, answer.table)
    return page.text()


def title_of_changes(answer: PlanAnswer) -> str:
    return "Possible with" if answer.plan is None else "No such reports with"


def _changes(page: Page, answer: PlanAnswer) -> None:
    if answer.changes:
        page.section(title_of_changes(answer))
        for change in answer.changes:
            names = and_list([f"{item.package} {item.version}" for item in change.chosen])
            doubt = f", which {change.doubt}" if change.doubt else ""
            page.item(f"{change.what}: {names}{doubt}")


def describe_table(page: Page, edition: TableEdition | None) -> None:
    """Which table the answer comes from."""
    if edition is None:
        return
    page.line()
    page.hanging("", f"{edition_text(edition)}.", 0, DIM)
    if edition.unused:
        page.hanging("", f"The updated table was not used: {edition.unused}.", 0, YELLOW)


def edition_text(edition: TableEdition) -> str:
    origin = {"shipped": "shipped with whygpu", "updated": "updated from the package index"}
    return f"Release table of {edition.date}, {origin[edition.origin]}"


_MOST_NAMES = 8


def update_lines(update: TableUpdate) -> Iterator[str]:
    """What an update has changed, one sentence on each line."""
    yield (
        f"the release table is now of {update.edition.date} (before: {update.before.date}), read "
        f"from {update.index_url}"
    )
    for names, what in (
        (update.new, "new"),
        (update.gone, "no longer on the index"),
        (update.unread, "not known for which CUDA release and GPUs they are built"),
    ):
        if names:
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            yield f"{what}: {', '.join(names[-_MOST_NAMES:])}{more}"


def summary(answer: PlanAnswer) -> str:
    wanted = and_list([str(wish) for wish in answer.wishes])
    if answer.gave_up:
        return f"Cannot tell whether {wanted} work together: {answer.gave_up}."
    if answer.plan is None:
        if answer.conflict:
            return f"{wanted} do not work together on this machine: {answer.conflict}."
        gpus = answer.machine.gpus
        several = isinstance(gpus, Known) and len({gpu.capability for gpu in gpus.value}) > 1
        return f"{wanted} cannot use {'every' if several else 'the'} GPU on this machine."
    names = and_list([f"{display_name(c.framework)} {c.version}" for c in answer.plan.chosen])
    fit = "fits" if len(answer.plan.chosen) == 1 else "work together and fit"
    if answer.plan.likely_failure:
        return f"{names} can be installed here, but reports say that it may not work (see below)."
    known = "what is known about this machine" if answer.unchecked else "this machine"
    remedy = ", but only with the remedy shown after the commands" if answer.needs_remedy else ""
    refuted = ", but the package index refuses the plan (see below)" if answer.refuted else ""
    return f"{names} {fit} {known}{remedy}{refuted}."


def describe_machine(page: Page, machine: MachineSpec) -> None:
    page.hanging("", ", ".join(machine_parts(machine)), 2)


def machine_parts(machine: MachineSpec) -> list[str]:
    """What the plan is for: Python, platform, driver and GPUs."""
    platform = machine.platform
    name = PLATFORMS[platform.value] if isinstance(platform, Known) else "unknown platform"
    on_linux = isinstance(platform, Known) and platform.value.startswith("linux")
    on_mac = machine.platform_name.startswith("macosx")
    free_threaded = " (free-threaded)" if machine.free_threaded else ""
    parts = [_fact("Python", machine.python) + free_threaded, name]
    if on_linux:
        parts.append(_fact("glibc", machine.glibc))
    if not on_mac:
        parts.append(_fact("driver", machine.driver))
    if isinstance(machine.gpus, Known):
        parts += map(str, machine.gpus.value)
    elif not on_mac:
        parts.append(_fact("GPU", machine.gpus))
    return parts


def _fact(name: str, fact: Observed[Any]) -> str:
    if isinstance(fact, Known):
        return f"{name} {fact.value}"
    return f"no {name}" if isinstance(fact, Absent) else f"{name} unknown"


def _advice(page: Page, advice: Advice) -> None:
    def commands(title: str, actions: Sequence[Action]) -> None:
        if actions:
            page.section(title)
        for command in shell_texts(actions, advice.installer, advice.shell):
            page.line(f"   {command}", BOLD)

    commands("First", advice.preparations)
    either = ", with pip or with uv" if len(advice.installs) > 1 else ""
    commands(f"Install{either}", advice.installs)
    commands("Then, in every shell, with the environment active", advice.remedies)
    page.section("Check")
    page.line(f"   {AFTERWARDS}", BOLD)
    if advice.notes:
        page.section("Good to know")
        for note in advice.notes:
            page.item(note)


class ReleaseGroup(NamedTuple):
    """Adjacent releases with the same result."""

    versions: str
    result: str
    fits: bool


def _candidates(page: Page, answer: PlanAnswer) -> None:
    for title, groups in releases_by_build(answer):
        page.section(title)
        indent = 5 + max(len(group.versions) for group in groups)
        for group in groups:
            style = GREEN if group.fits else ""
            page.hanging(f"   {group.versions}", group.result, indent, style)


def releases_by_build(answer: PlanAnswer) -> Iterator[tuple[str, list[ReleaseGroup]]]:
    """Every release that was judged, under a title for each build of each framework."""
    for framework, build in dict.fromkeys(map(_build, answer.candidates)):
        title = f"Releases of {display_name(framework)}" + (f" with {build}" if build else "")
        verdicts = [v for v in answer.candidates if _build(v) == (framework, build)]
        releases = list(_one_per_release(verdicts, answer.plan))
        yield title, list(_groups(releases, answer.plan, answer.machine))


def _build(verdict: ReleaseVerdict) -> tuple[str, str]:
    """The framework, and which of its GPU builds, where a release has several."""
    candidate = verdict.candidate
    if candidate.framework == "cupy":
        return candidate.framework, candidate.package
    return candidate.framework, candidate.extra if candidate.framework == "jax" else ""


def _one_per_release(
    verdicts: Sequence[ReleaseVerdict], plan: Plan | None
) -> Iterator[ReleaseVerdict]:
    """One verdict for each release: on the build that fits best, or why no build fits."""
    chosen = plan.chosen if plan else ()
    for _, group in groupby(verdicts, lambda verdict: verdict.candidate.version):
        builds = list(group)
        fitting = [build for build in builds if build.fits]
        best = [build for build in builds if build.candidate in chosen] or fitting
        yield best[0] if best else builds[0]._replace(reason=_reasons(builds))


def _reasons(builds: Sequence[ReleaseVerdict]) -> str:
    """The reasons against all builds of a release, each with the indexes of its builds."""
    by_reason: dict[str, list[str]] = {}
    for build in builds:
        by_reason.setdefault(build.reason, []).append(build.candidate.torch_index)
    if len(by_reason) == 1:
        return builds[0].reason
    return "; ".join(
        f"{', '.join(index or 'default index' for index in indexes)}: {reason}"
        for reason, indexes in by_reason.items()
    )


def _groups(
    verdicts: Sequence[ReleaseVerdict], plan: Plan | None, machine: MachineSpec
) -> Iterator[ReleaseGroup]:
    chosen = plan.chosen if plan else ()

    def result(verdict: ReleaseVerdict) -> str | None:
        index = f" (index {verdict.candidate.torch_index})" if verdict.candidate.torch_index else ""
        if verdict.candidate in chosen:
            if verdict.likely_failure:
                return f"may not work, but nothing newer is better{index}"
            return f"the newest that fits{index}" if len(chosen) == 1 else f"chosen{index}"
        if verdict.fits:
            alone = f"fits by itself{index}" if len(chosen) > 1 else f"fits{index}"
            return "; ".join((*verdict.notes, *verdict.unchecked)) or alone
        # Releases have wheels for different Pythons; together they have one reason.
        return None if verdict.breaks == "python" else verdict.reason

    for text, group in groupby(verdicts, result):
        members = list(group)
        versions = [member.candidate.version for member in reversed(members)]
        fits = members[0].fits or members[0].candidate in chosen
        yield ReleaseGroup(version_range(versions), text or _python_reason(members, machine), fits)


def _python_reason(members: Sequence[ReleaseVerdict], machine: MachineSpec) -> str:
    """Why none of these has a wheel for this Python: the range of all their wheels."""
    pythons = {
        tuple(map(int, python.removesuffix("t").split("."))): python
        for member in members
        for part in member.candidate.parts
        for python in part.pythons_with_wheels(free_threaded=machine.free_threaded)
    }
    if len(members) == 1 or not pythons:
        return members[0].reason
    return no_wheel_for(machine, [python for _, python in sorted(pythons.items())])


def render_chain(
    answer: ReleaseAnswer, *, width: int, color: bool, marks: Mapping[Standing, str] = MARKS
) -> str:
    """One release against every constraint."""
    page = Page(width, color)
    headline(page, answer.standing, chain_summary(answer), marks)
    describe_machine(page, answer.machine)
    page.line()
    indent = 7 + max(len(check.constraint) for check in answer.chain)
    for check in answer.chain:
        standing = CHECKS[check.outcome]
        label = f"  {marks[standing]}  {check.constraint}"
        page.hanging(label, check.reason, indent, mark=COLOURS[standing])
    page.line()
    for part in answer.candidate.parts:
        page.line(f"Read from {part.file}", DIM)
    if answer.table is not None:
        page.line(f"{edition_text(answer.table)}.", DIM)
    return page.text()


def chain_summary(answer: ReleaseAnswer) -> str:
    name = f"{answer.candidate.package} {answer.candidate.version}"
    if answer.broken:
        count = len(answer.broken)
        constraints = "one constraint" if count == 1 else f"{count} constraints"
        return f"{name} does not fit this machine: it breaks {constraints}."
    known = "what is known about this machine" if answer.standing == "unknown" else "this machine"
    return f"{name} fits {known}."


_HEADS = ("release", "fits", "Python", "glibc", "CUDA", "cuDNN", "driver", "GPU code")


def render_matrix(rows: Sequence[ReleaseNeeds], *, color: bool) -> str:
    """Every release as a row, as wide as it has to be: for a pager or a file."""
    page = Page(0, color)
    cells = [_HEADS, *map(_matrix_row, rows)]
    widths = column_widths(cells)
    for number, row in enumerate(cells):
        page.line("  ".join(map(padded, row, widths)), BOLD if number == 0 else "")
    return page.text()


def _matrix_row(row: ReleaseNeeds) -> tuple[str, ...]:
    return (
        row.requirement,
        row.breaks or "yes",
        row.python or "any",
        row.glibc,
        row.cuda,
        row.cudnn,
        f">={row.driver}" if row.driver else "",
        " ".join(row.architectures),
    )
