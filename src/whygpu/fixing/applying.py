"""Applies a proven fix to the real environment, and takes a fix back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from whygpu.fixing import activation
from whygpu.fixing.copying import (
    different_files,
    keep_owners,
    move_links,
    replace_in_text_files,
    written_since,
)
from whygpu.fixing.proof import Proof
from whygpu.fixing.remedies import faults, moved
from whygpu.fixing.workshop import (
    NotApplied,
    Record,
    Workshop,
    alone,
    fingerprint,
    last_fix,
    packages_in,
    remove_workshop,
)
from whygpu.model.commands import shell_text
from whygpu.model.derived import and_list, installer_of
from whygpu.model.fix import Applied, FixStep, Undone
from whygpu.model.report import Report

Examine = Callable[[Mapping[str, str]], Report]
"""Examine the real environment with these variables."""
_MOST_NAMED = 5


class Result(NamedTuple):
    applied: Applied
    after: Report


def apply(
    shop: Workshop,
    proof: Proof,
    seen: str,
    environ: Mapping[str, str],
    examine: Examine,
) -> Result:
    """Make the proven copy the environment. `seen` is the environment's fingerprint when it was
    copied. NotApplied: it is as it was before.
    """
    if proof.copy.outside:
        raise NotApplied(
            f"{and_list(proof.copy.outside[:_MOST_NAMED])} in the environment is a link to a "
            "folder outside of it, which a fix would replace by a copy"
        )
    try:
        script = _write_variables(shop, proof)
        _name_the_real_place(shop)
        keep_owners(shop.copy, shop.environment)
    except PermissionError as error:
        raise NotApplied(f"{shop.environment} belongs to another user: let them do it") from error
    except OSError as error:
        raise NotApplied(f"{error.filename or shop.copy}: {error.strerror}") from error
    record = Record(
        applied_at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        steps=tuple(_words(step, shop, proof) for step in proof.steps),
        fingerprint=fingerprint(shop.copy),
        packages=packages_in(shop.copy),
    )
    try:
        with alone(shop.environment):
            if fingerprint(shop.environment) != seen:
                raise NotApplied("somebody has changed the environment in the meantime; try again")
            shop.install(record)
        if script:
            environ = activation.activated(shop.environment, script, environ)
        after = examine(environ)
        new = faults(after) - faults(proof.after)
        if new:
            causes = and_list(sorted(cause for cause, _ in new))
            raise NotApplied(f"the environment showed {causes}, which the copy did not")
    except BaseException:
        # Ask the environment: a signal may have come just before the exchange, or just after it.
        if shop.is_installed:
            shop.take_back()
        raise
    return Result(Applied(shop.folder, script), after)


def _write_variables(shop: Workshop, proof: Proof) -> str:
    """Put the variables into the copy's activation script. Returns its name, or nothing."""
    steps = activation.variable_steps(step.remedy.action for step in proof.steps)
    if not steps:
        return ""
    script = activation.script_of(shop.copy)
    if script is None:
        raise NotApplied(
            "the fix sets variables, and the environment has no activation script to keep them in"
        )
    activation.add_block(shop.copy, script, steps, installer_of(proof.after.snapshot))
    return script


def _name_the_real_place(shop: Workshop) -> None:
    """Files that were installed into the copy, such as commands in bin, name its folder, and so
    do links. Later that folder holds the old environment, which the user may delete.
    """
    move_links(shop.copy, shop.copy, shop.environment)
    changed = different_files(shop.copy, shop.environment)
    binary = replace_in_text_files(shop.copy, changed, shop.copy, shop.environment)
    if binary:
        raise NotApplied(
            f"{and_list(binary[:_MOST_NAMED])} holds the path of the copy and cannot be moved"
        )


def _words(step: FixStep, shop: Workshop, proof: Proof) -> str:
    installer = moved(installer_of(proof.after.snapshot), shop.copy, shop.environment)
    command = shell_text(step.remedy.action, installer)
    return f"{step.code}: {step.remedy.text if command is None else command}"


def undo(environment: str, *, force: bool) -> Undone:
    """Go back to the environment before the last fix.

    NothingToUndo if there is none; NotApplied if something has changed since, unless forced.
    """
    shop, record = last_fix(environment)
    changed = _changed_since(environment, record)
    if changed and not force:
        raise NotApplied(f"since the fix, {and_list(changed)} changed, which would be lost")
    written = written_since(environment, shop.copy, shop.applied_ns)
    shop.take_back()
    with suppress(KeyboardInterrupt):
        # It is undone. If this is interrupted, the next fix removes the rest.
        remove_workshop(shop.folder)
    return Undone(environment, record.steps, record.applied_at, tuple(changed), written)


def _changed_since(environment: str, record: Record) -> list[str]:
    if fingerprint(environment) == record.fingerprint:
        return []
    now, then = packages_in(environment), record.packages
    names = sorted(name for name in now.keys() | then if now.get(name) != then.get(name))
    if not names:
        return ["files of the environment"]
    more = len(names) - _MOST_NAMED
    return names[:_MOST_NAMED] + ([f"{more} other packages"] if more > 0 else [])
