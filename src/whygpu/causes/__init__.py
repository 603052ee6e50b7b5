"""The catalogue: one file per cause, found by walking this package."""

from __future__ import annotations

import pkgutil
from functools import lru_cache
from importlib import import_module

from whygpu.model.cause import Cause


@lru_cache(maxsize=1)
def catalogue() -> tuple[Cause, ...]:
    """Every cause, by code. A file that does not import or declares no CAUSE is a loud error."""
    found: list[Cause] = []
    for family in pkgutil.iter_modules(__path__, f"{__name__}."):
        if not family.ispkg:
            continue
        package = import_module(family.name)
        for module in pkgutil.iter_modules(package.__path__, f"{family.name}."):
            found.append(import_module(module.name).CAUSE)
    return tuple(sorted(found, key=lambda cause: cause.code))


def find_cause(name: str) -> Cause | None:
    """The cause with this code or slug, in any case."""
    wanted = name.strip().lower()
    for entry in catalogue():
        if wanted in (entry.code.lower(), entry.slug):
            return entry
    return None
