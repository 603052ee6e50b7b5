"""Differences that could have to do with a fault, where no trial can decide."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.differences.bench import FactDifference
from whygpu.differences.facts import Fact
from whygpu.model.differences import FactKind
from whygpu.model.observed import Known
from whygpu.model.snapshot import Snapshot
from whygpu.tables.distributions import matters, normalised

MOST_SUSPECTS = 10

_ORDER: tuple[FactKind, ...] = (
    "package",
    "driver",
    "gpu",
    "device-node",
    "library",
    "variable",
    "container",
    "python",
    "keras",
    "toolkit",
    "system",
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


def suspects_of(
    differences: Sequence[FactDifference], framework: str, machine: Snapshot, text: str
) -> tuple[int, ...]:
    """Positions, the most likely first: a damaged file, what the text about the fault mentions, the
    framework, what it requires, then the machine."""
    required = _required_by(framework, machine)
    mentioned = frozenset(_NAME.findall(text.lower()))

    def rank(place: int) -> tuple[bool, bool, bool, bool, int, int]:
        fact = differences[place].fact
        return (
            not _is_damage(differences[place]),
            fact.name.lower() not in mentioned,
            fact != Fact("package", framework),
            fact.name not in required,
            _ORDER.index(fact.kind),
            place,
        )

    possible = (
        place
        for place, difference in enumerate(differences)
        if difference.fact.kind in _ORDER
        and (
            difference.fact.kind != "package"
            or difference.fact.name in required
            or difference.fact.name in mentioned
            or matters(difference.fact.name)
        )
    )
    return tuple(sorted(possible, key=rank)[:MOST_SUSPECTS])


def _is_damage(difference: FactDifference) -> bool:
    """Whether one side has a library whose file is damaged: no update and no setting does that."""
    return any(
        "broken-file" in (value, getattr(value, "outcome", ""))
        for leaf in difference.leaves
        for value in (leaf.before, leaf.after)
    )


def _required_by(framework: str, machine: Snapshot) -> frozenset[str]:
    """The packages that the framework's own package asks for."""
    packages = machine.target.packages
    lines = (
        line
        for package in (packages.value if isinstance(packages, Known) else ())
        if package.name == framework
        for line in package.requires
    )
    names = (match[0] for match in map(_NAME.match, lines) if match is not None)
    return frozenset(map(normalised, names))
