"""Which remedies whygpu can carry out in an environment, and which are for a person, and why."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from whygpu.model.commands import shell_text
from whygpu.model.finding import Finding, Remedy
from whygpu.model.fix import FixStep
from whygpu.model.remedy import (
    Command,
    DropPath,
    Install,
    LinkFile,
    Pip,
    PrependPath,
    Script,
    SetVariable,
    Step,
    Steps,
    UnsetVariable,
    steps_of,
)
from whygpu.model.report import Report
from whygpu.model.target import Installer
from whygpu.model.texts import with_texts

T = TypeVar("T")

_CHANGES = (SetVariable, UnsetVariable, PrependPath, DropPath, Install, LinkFile)
"""Steps that change something; the others ask or explain."""


class Environment(NamedTuple):
    """Where remedies are carried out."""

    prefix: str
    installer: Installer
    environ: Mapping[str, str]


def moved(value: T, old: str, new: str) -> T:
    """The same value with paths in another folder."""
    return with_texts(value, lambda text, _: text.replace(old, new))


def is_fault(finding: Finding) -> bool:
    return finding.severity != "info"


def faults(report: Report) -> frozenset[tuple[str, str]]:
    """What is wrong: causes with their subjects."""
    return frozenset((f.cause, f.subject) for f in report.findings if is_fault(f))


def steps_for(finding: Finding, place: Environment) -> tuple[FixStep, ...]:
    """The remedies that whygpu can carry out, in the order in which to try them.

    A link comes before a variable: it serves every program that uses the environment, a variable
    only those that are started from a shell which has activated it.
    """
    steps = [step for step in _steps(finding, place) if not step.by_hand]
    return tuple(sorted(steps, key=lambda step: not _links(step.remedy)))


def by_hand(findings: Iterable[Finding], place: Environment) -> tuple[FixStep, ...]:
    """The remedies of these findings for a person."""
    return tuple(
        step
        for finding in findings
        for step in _steps(finding, place)
        if step.by_hand and not _only_helps_now(step.remedy)
    )


def _steps(finding: Finding, place: Environment) -> Iterator[FixStep]:
    for remedy in map(_without_queries, finding.remedies):
        yield FixStep(
            finding.code, finding.cause, finding.subject, remedy, _for_a_person(remedy, place)
        )


def _without_queries(remedy: Remedy) -> Remedy:
    """A change without the `pip check` that follows it: the examination checks requirements, too,
    and a conflict that was there before must not make the change look as if it had failed.
    """
    steps = steps_of(remedy.action)
    changes = tuple(step for step in steps if not isinstance(step, Pip))
    if not changes or changes == steps:
        return remedy
    return remedy._replace(action=changes[0] if len(changes) == 1 else Steps(changes))


def _for_a_person(remedy: Remedy, place: Environment) -> str:
    """Why whygpu does not carry this out; empty if it can."""
    steps = steps_of(remedy.action)
    if not steps:
        return "there is no command for it"
    for step in steps:
        reason = _reason(step, place)
        if reason:
            return reason
    if shell_text(remedy.action, place.installer) is None:
        return "a value in it is not safe in a command"
    return ""


def _reason(step: Step, place: Environment) -> str:
    if isinstance(step, Command) and step.needs_root:
        return "it needs root"
    if isinstance(step, Script) and any(
        "sudo " in part for part in step.parts if str is type(part)
    ):
        return "it needs root"
    if not isinstance(step, _CHANGES):
        return "it changes something outside the environment, or changes nothing"
    if isinstance(step, LinkFile) and not _inside(step.into, place.prefix):
        return f"{step.into} is outside the environment"
    if isinstance(step, UnsetVariable):
        return f"somebody has set {' and '.join(step.names)}: only they know why"
    if isinstance(step, SetVariable) and step.name in place.environ:
        # Also to nothing: an empty CUDA_VISIBLE_DEVICES hides every GPU.
        return f"somebody has set {step.name} to another value: only they know why"
    return ""


def _links(remedy: Remedy) -> bool:
    return any(isinstance(step, LinkFile) for step in steps_of(remedy.action))


def _only_helps_now(remedy: Remedy) -> bool:
    """`whygpu run` repairs one run and changes nothing."""
    return any(
        isinstance(step, Command) and step.argv[:2] == ("whygpu", "run")
        for step in steps_of(remedy.action)
    )


def _inside(path: str, folder: str) -> bool:
    path, folder = (os.path.realpath(os.path.expanduser(item)) for item in (path, folder))
    return os.path.commonpath((path, folder)) == folder
