"""Verbs that change an environment: fix, undo_fix."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from whygpu.api.arguments import THIS_PYTHON, checked
from whygpu.api.machine import examine
from whygpu.errors import Option, UsageError
from whygpu.fixing.remedies import Environment, by_hand, is_fault, moved, steps_for
from whygpu.host.systems import require_linux
from whygpu.model.derived import and_list, installer_of
from whygpu.model.finding import Finding
from whygpu.model.fix import FixAnswer, FixStep, Undone
from whygpu.model.observed import Known
from whygpu.model.remedy import Install, steps_of
from whygpu.model.report import Report
from whygpu.model.target import Interpreter
from whygpu.probes import DEFAULT_TIMEOUT

if TYPE_CHECKING:
    from whygpu.fixing.proof import Proof
    from whygpu.probes.runner import Progress

Tell = Callable[[str], None]
Wanted = Callable[[Finding], bool]
"""Whether to fix a finding."""

_OF_AN_ENVIRONMENT = frozenset(
    ("bin", "lib", "lib64", "include", "share", "etc", "man", "src", "pyvenv.cfg", "local")
)
"""What a virtual environment has at its top. More is somebody's work, and not to be exchanged."""


@checked
def fix(
    python: str | None = THIS_PYTHON,
    *,
    apply: bool = False,
    prove: bool = True,
    only: tuple[str, ...] = (),
    timeout: float = DEFAULT_TIMEOUT,
    on_step: Tell | None = None,
    on_progress: Progress | None = None,
) -> FixAnswer:
    """Repair an environment: find what helps, prove it in a copy and, with `apply`, do it.

    Nothing is changed without `apply`. `prove=False` only lists the steps. `only` limits what is
    repaired to these codes. `on_step` is called with what is being done.

    Example:
        answer = whygpu.fix()
        answer.steps              # what repairs the environment
        answer.after.verdict      # the verdict on the copy that was repaired
    """
    require_linux("fix")
    tell = on_step or (lambda text: None)
    environ = dict(os.environ)
    tell("examining the environment")
    before = examine(python, environ, timeout=timeout, on_progress=on_progress)
    interpreter = _interpreter(before)
    prefix = os.path.realpath(interpreter.prefix)

    def wanted(finding: Finding) -> bool:
        return is_fault(finding) and (not only or finding.code in only)

    findings = [finding for finding in before.root_causes if wanted(finding)]
    place = Environment(prefix, installer_of(before.snapshot), environ)
    steps = _first_steps(findings, place)
    named = ("--python", python) if python else ()
    answer = FixAnswer(
        prefix,
        before,
        steps,
        by_hand(_without(findings, steps), place),
        options=(*named, *(word for code in only for word in ("--only", code))),
    )
    if not steps or not prove:
        return answer
    refused = _refusal(interpreter, prefix)
    if refused:
        return answer._replace(refused=refused)
    return _proven(answer, interpreter, environ, timeout, on_progress, tell, apply, wanted)


def _proven(
    answer: FixAnswer,
    interpreter: Interpreter,
    environ: Mapping[str, str],
    timeout: float,
    on_progress: Progress | None,
    tell: Tell,
    apply: bool,
    wanted: Wanted,
) -> FixAnswer:
    from whygpu.fixing.applying import apply as apply_fix
    from whygpu.fixing.proof import NotProven, OriginalChanged, prove
    from whygpu.fixing.workshop import NotApplied, fingerprint, workshop

    inside = os.path.relpath(interpreter.path, interpreter.prefix)

    def look(prefix: str, variables: Mapping[str, str]) -> Report:
        python = os.path.join(prefix, inside)
        return examine(python, variables, timeout=timeout, on_progress=on_progress)

    with workshop(answer.environment) as shop:
        seen = fingerprint(answer.environment) if apply else ""
        try:
            proof = prove(shop, answer.before, environ, look, tell, wanted)
        except NotProven as reason:
            return answer._replace(refused=str(reason))
        except OriginalChanged as files:
            raise UsageError(
                "a command that ran in the copy wrote into files that the copy shares with "
                f"{answer.environment}, and so changed them there: {files}. Install the packages "
                "that own them again (pip install --force-reinstall --no-deps NAME==VERSION)"
            ) from files
        answer = _with_proof(answer, proof, shop.copy, wanted)
        if not apply or not proof.steps:
            return answer
        owner = _managed_by(answer)
        if owner:
            return answer._replace(refused=owner)
        tell("applying the fix")
        try:
            applied, after = apply_fix(
                shop, proof, seen, environ, lambda variables: look(answer.environment, variables)
            )
        except NotApplied as reason:
            return answer._replace(refused=f"{reason}; nothing was changed")
        return answer._replace(applied=applied, after=after)


@checked
def undo_fix(python: str | None = THIS_PYTHON, *, force: bool = False) -> Undone:
    """Go back to the environment as it was before the last fix.

    If something else has changed since then, that would be lost: `force` accepts it.

    Example:
        whygpu.undo_fix()
    """
    require_linux("fix")
    from whygpu.collectors import interpreter
    from whygpu.fixing.applying import undo
    from whygpu.fixing.workshop import NotApplied, NothingToUndo
    from whygpu.host.local import LocalHost

    host = LocalHost()
    found = interpreter.collect(host, interpreter.find(host, python))
    if not isinstance(found, Known):
        raise UsageError(f"the environment cannot be examined: {found}")
    environment = os.path.realpath(found.value.prefix)
    try:
        return undo(environment, force=force)
    except NothingToUndo as reason:
        raise UsageError(f"nothing to undo in {environment}: {reason}") from reason
    except NotApplied as reason:
        raise UsageError(
            f"not undone: {reason}; ", Option("force"), " goes back anyway"
        ) from reason


def _interpreter(report: Report) -> Interpreter:
    found = report.snapshot.target.interpreter
    if not isinstance(found, Known):
        raise UsageError(f"the environment cannot be examined: {found}")
    return found.value


def _first_steps(findings: Iterable[Finding], place: Environment) -> tuple[FixStep, ...]:
    """The first remedy of each finding that whygpu can carry out."""
    return tuple(steps[0] for finding in findings if (steps := steps_for(finding, place)))


def _without(findings: Iterable[Finding], steps: Iterable[FixStep]) -> list[Finding]:
    mended = {(step.code, step.subject) for step in steps}
    return [f for f in findings if (f.code, f.subject) not in mended]


def _with_proof(answer: FixAnswer, proof: Proof, copy: str, wanted: Wanted) -> FixAnswer:
    """What the copy showed, in terms of the real environment."""
    after = moved(proof.after, copy, answer.environment)
    place = Environment(answer.environment, installer_of(after.snapshot), {})
    return answer._replace(
        steps=proof.steps,
        attempts=proof.attempts,
        copy=proof.copy,
        after=after,
        by_hand=by_hand([f for f in after.root_causes if wanted(f)], place),
    )


def _managed_by(answer: FixAnswer) -> str:
    """Why packages that a tool keeps a list of are not replaced behind its back."""
    manager = installer_of(answer.before.snapshot).manager
    if not isinstance(manager, Known) or not manager.value.certain or manager.value.name == "conda":
        return ""
    if not any(
        isinstance(part, Install) for step in answer.steps for part in steps_of(step.remedy.action)
    ):
        return ""
    return (
        f"{manager.value.name} keeps the list of packages of this environment and would undo the "
        "fix with its next command; the commands below change its list as well"
    )


def _refusal(interpreter: Interpreter, prefix: str) -> str:
    """Why a copy of this environment would prove nothing, or could not replace it."""
    if not interpreter.isolated:
        return (
            f"{interpreter.path} is not in an environment of its own, so there is nothing to copy "
            "and nothing that could be put back: create one (python3 -m venv .venv) and install "
            "what `whygpu plan` prints"
        )
    from whygpu.fixing.elsewhere import user_packages

    outside = user_packages(interpreter)
    if outside:
        return (
            f"this environment also uses the packages in {outside}, which a copy of it does not "
            "hold, and pip would change them there: set PYTHONNOUSERSITE=1 to examine and repair "
            "the environment without them"
        )
    names = set(os.listdir(prefix))
    if "condabin" in names:
        return (
            f"{prefix} is conda's base environment, which holds conda itself: create another one "
            "(conda create -n gpu python) and work there"
        )
    others = {
        name
        for name in names - _OF_AN_ENVIRONMENT
        if name == ".git" or (not name.startswith(".") and os.path.isdir(f"{prefix}/{name}"))
    }
    if "conda-meta" not in names and others:
        return (
            f"{prefix} holds more than an environment ({and_list(sorted(others)[:3])}), and a fix "
            "would copy and exchange all of it: create the environment in a folder of its own"
        )
    return ""
