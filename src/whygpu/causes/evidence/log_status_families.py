"""Error codes that ended a program and that say by themselves what kind of fault it was."""

from __future__ import annotations

from functools import lru_cache

from whygpu.model.log import Log, Status
from whygpu.tables.status_families import FAMILIES

_CLOSE = 6
"""The most lines between an error and the abort that follows from it."""


def decided_by_code(log: Log, slug: str) -> tuple[Status, ...]:
    """The statuses that suggest this cause, if the program ended with one of them and the log has
    no status that says something else."""
    found = _family_at_the_end(log)
    return found[1] if found is not None and found[0] == slug else ()


@lru_cache(maxsize=1)
def _family_at_the_end(log: Log) -> tuple[str, tuple[Status, ...]] | None:
    for slug, names in FAMILIES.items():
        known = tuple(status for status in log.statuses if status.name in names)
        if known:
            alone = len(known) == len(log.statuses)
            return (slug, known) if alone and _ended_with(log, known) else None
    return None


def _ended_with(log: Log, statuses: tuple[Status, ...]) -> bool:
    return any(
        failure.line - _CLOSE <= status.line <= failure.last
        for failure in log.failures
        for status in statuses
        if failure.line <= status.line or failure.kind != "exception"
    )
