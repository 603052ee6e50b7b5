"""The catalogue: one file per cause, found by walking this package."""

from __future__ import annotations

import pkgutil
from functools import lru_cache
from importlib import import_module

from whygpu.model.cause import Cause

UNSEEN_ON_MACHINES = frozenset(("noise", "programs"))
"""Families that only logs and source can show: whoever asks about a machine need not load them."""

NO_FAMILY = "evidence"
"""The package of what several causes share."""


@lru_cache(maxsize=1)
def catalogue() -> tuple[Cause, ...]:
    """Every cause, by code. A file that does not import or declares no CAUSE is a loud error."""
    return _load(frozenset())


@lru_cache(maxsize=1)
def machine_catalogue() -> tuple[Cause, ...]:
    """The causes of the families that can be seen on a machine."""
    return _load(UNSEEN_ON_MACHINES)


def _load(left_out: frozenset[str]) -> tuple[Cause, ...]:
    found: list[Cause] = []
    for family in pkgutil.iter_modules(__path__):
        if not family.ispkg or family.name in left_out or family.name == NO_FAMILY:
            continue
        package = import_module(f"{__name__}.{family.name}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            found.append(import_module(module.name).CAUSE)
    return tuple(sorted(found, key=lambda cause: cause.code))


def find_cause(name: str) -> Cause | None:
    """The cause with this code or slug, in any case."""
    wanted = name.strip().lower()
    for entry in catalogue():
        if wanted in (entry.code.lower(), entry.slug):
            return entry
    return None
