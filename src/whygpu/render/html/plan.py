"""The answers of `whygpu plan`: what to install, one release by itself, or a requirements file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from whygpu.model.commands import shell_texts
from whygpu.model.derived import and_list
from whygpu.model.install_plan import Advice, FitOutcome, PlanAnswer, ReleaseAnswer, TableEdition
from whygpu.model.remedy import Action
from whygpu.model.requirement_file import Ability, FileAnswer, RequirementVerdict
from whygpu.render import plan_text, requirements_text
from whygpu.render.html.markup import Child, Html, article, code, h3, join, p
from whygpu.render.html.parts import (
    Sheet,
    badge,
    cells_table,
    command,
    folded,
    items,
    lines,
    note,
    sections,
)

_OUTCOMES: dict[FitOutcome, tuple[str, str]] = {
    "holds": ("holds", "works"),
    "note": ("holds", "works"),
    "unchecked": ("cannot tell", "unknown"),
    "breaks": ("breaks", "wrong"),
}
_ABILITIES: dict[Ability, str] = {"cannot": "error", "unknown": "unknown", "can": "info"}


def sheet(answer: Any) -> Sheet:
    if isinstance(answer, PlanAnswer):
        return _plan(answer)
    return _release(answer) if isinstance(answer, ReleaseAnswer) else _file(answer)


def _plan(answer: PlanAnswer) -> Sheet:
    changes = [
        f"{change.what}: {and_list([f'{item.package} {item.version}' for item in change.chosen])}"
        + (f", which {change.doubt}" if change.doubt else "")
        for change in answer.changes
    ]
    return Sheet(
        "plan",
        answer.standing,
        plan_text.summary(answer),
        tuple(plan_text.machine_parts(answer.machine)),
        None,
        sections(
            *(_advice(answer.advice) if answer.advice is not None else ()),
            ("Could not be checked", items(answer.unchecked)),
            ("Verified", p(answer.verified) if answer.verified else None),
            (plan_text.title_of_changes(answer), items(changes)),
            ("Releases that were judged", list(_releases(answer))),
            ("Where this comes from", _edition(answer.table)),
        ),
    )


def _advice(advice: Advice) -> Iterator[tuple[str, Child]]:
    def commands(actions: Sequence[Action]) -> list[Html]:
        return [command(text) for text in shell_texts(actions, advice.installer, advice.shell)]

    yield "First", commands(advice.preparations)
    either = ", with pip or with uv" if len(advice.installs) > 1 else ""
    yield f"Install{either}", commands(advice.installs)
    yield "Then, in every shell, with the environment active", commands(advice.remedies)
    yield "Check", command(plan_text.AFTERWARDS)
    yield "Good to know", items(advice.notes)


def _releases(answer: PlanAnswer) -> Iterator[Html]:
    for title, groups in plan_text.releases_by_build(answer):
        fitting = sum(group.fits for group in groups)
        table = cells_table(
            title,
            ("releases", "fits", "why"),
            [
                (
                    group.versions,
                    badge("fits", "works") if group.fits else badge("does not", ""),
                    group.result,
                )
                for group in groups
            ],
            names=("why",),
        )
        found = "some fit" if fitting else "none fits"
        yield folded(f"{title}: {found}", table, is_open=answer.plan is None)


def _release(answer: ReleaseAnswer) -> Sheet:
    rows: list[Sequence[Child]] = [
        (check.constraint, badge(*_OUTCOMES[check.outcome]), check.reason) for check in answer.chain
    ]
    table = cells_table("Every constraint", ("constraint", "outcome", "why"), rows, names=("why",))
    sources = [f"Read from {part.file}" for part in answer.candidate.parts]
    return Sheet(
        "plan",
        answer.standing,
        plan_text.chain_summary(answer),
        tuple(plan_text.machine_parts(answer.machine)),
        None,
        sections(
            ("Every constraint", table),
            ("Where this comes from", join(items(sources), _edition(answer.table))),
        ),
    )


def _file(answer: FileAnswer) -> Sheet:
    titled: list[tuple[str, Child]] = [
        (title, [_requirement(verdict, ability) for verdict in answer.having(ability)])
        for ability, (title, _) in requirements_text.TITLES.items()
    ]
    alternatives = [
        f"{requirements_text.place_of(each)}, {each.requirement.group}: "
        f"{requirements_text.sentence(each)}"
        for each in answer.verdicts
        if each.is_alternative
    ]
    unread = [
        f"{line.place.file}:{line.place.line}: {line.place.text}: {line.reason}"
        for line in answer.file.unread
    ]
    return Sheet(
        "plan",
        answer.standing,
        requirements_text.summary(answer),
        tuple(plan_text.machine_parts(answer.machine)),
        None,
        sections(
            *titled,
            ("Optional parts without GPU support, beside others that have it", items(alternatives)),
            ("Not checked", items([*answer.unchecked, *unread])),
            ("Where this comes from", _edition(answer.table)),
        ),
    )


def _requirement(verdict: RequirementVerdict, ability: Ability) -> Html:
    return article(
        h3(requirements_text.place_of(verdict), code(verdict.requirement.place.text)),
        p(f"{requirements_text.sentence(verdict)}."),
        [_edit(verdict, number) for number in range(len(verdict.edits))],
        p(verdict.advice) if verdict.advice else None,
        kind=f"finding {_ABILITIES[ability]}",
    )


def _edit(verdict: RequirementVerdict, number: int) -> Html:
    edit = verdict.edits[number]
    is_here = edit.place == verdict.requirement.place
    line = "this line" if is_here else f"{edit.place.file}:{edit.place.line}"
    if not edit.replacement:
        return p(f"Remove {line}.")
    return join(p(f"Instead of {line}, write:"), lines(edit.replacement.split("\n")))


def _edition(edition: TableEdition | None) -> Html | None:
    if edition is None:
        return None
    unused = f" The updated table was not used: {edition.unused}." if edition.unused else ""
    return note(f"{plan_text.edition_text(edition)}.{unused}")
