"""Changes that have nothing to do with GPUs: what a week of ordinary updates does to a machine."""

from __future__ import annotations

import random
from typing import Any

from whygpu.model.environment import Variable
from whygpu.model.observed import Known
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Package
from whygpu.tables.distributions import matters

_WORDS = (
    "requests",
    "pandas",
    "rich",
    "attrs",
    "boto3",
    "click",
    "django",
    "flask",
    "lxml",
    "yarl",
)


def noisy(machine: Snapshot, seed: int, packages: int = 40) -> Snapshot:
    """The same machine after updates that do not matter."""
    chance = random.Random(seed)
    system = machine.system
    memory = system.memory
    if isinstance(memory.available_bytes, Known):
        free = memory.available_bytes.value - chance.randrange(1 << 28)
        memory = memory._replace(available_bytes=Known(free, "noise"))
    kernel = f"6.{chance.randrange(1, 20)}.0-{chance.randrange(10, 99)}-generic"
    return machine._replace(
        taken="2026-11-30",
        system=system._replace(kernel=kernel, memory=memory),
        environment=machine.environment._replace(
            variables=(
                *machine.environment.variables,
                Variable("OMP_NUM_THREADS", str(chance.randrange(1, 64)), "threads"),
                Variable("TF_CPP_MIN_LOG_LEVEL", "1", "hides messages"),
            )
        ),
        target=machine.target._replace(
            packages=_updated(machine.target.packages, chance, packages)
        ),
    )


def _updated(packages: Any, chance: random.Random, count: int) -> Any:
    """Some other packages have another version, some are new, some are gone."""
    if not isinstance(packages, Known):
        return packages
    plain = [
        package
        for package in packages.value
        if not matters(package.name) and "torch" not in package.name
    ]
    touched = {package.name for package in chance.sample(plain, min(len(plain), count // 2))}
    kept = tuple(
        package._replace(version=f"{chance.randrange(50, 99)}.0")
        if package.name in touched
        else package
        for package in packages.value
    )
    folder = packages.value[0].location if packages.value else "~/venv"
    new = tuple(
        Package(f"{chance.choice(_WORDS)}-{number}", "1.0", folder, False, (), ("py3-none-any",))
        for number in range(count - len(touched))
    )
    return Known((*kept, *new), packages.source)
