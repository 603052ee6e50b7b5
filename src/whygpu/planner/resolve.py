"""Finds compatible releases: runs resolvelib, pip's own resolver, on the release table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from resolvelib import (
    AbstractProvider,
    BaseReporter,
    ResolutionImpossible,
    ResolutionTooDeep,
    Resolver,
)

from whygpu.model.install_plan import Candidate, PlannedPackage, Solution
from whygpu.model.machine_spec import dotted
from whygpu.model.release import Release
from whygpu.planner.candidate_cache import CandidateCache, Need
from whygpu.planner.wishes import contains
from whygpu.tables.cudnn_support import cudnn_support
from whygpu.tables.undeclared_limits import undeclared_limits

MOST_ROUNDS = 2000
_ALWAYS_IN_TABLE = ("nvidia-", "cuda-", "tensorrt")
"""The table has every package of the index with these prefixes; others cannot be installed."""
_VERSION = re.compile(r"\d+(?:\.\d+)*")


class Choice(NamedTuple):
    """One release that satisfies a need."""

    name: str
    version: str
    row: Release | None = None
    candidate: Candidate | None = None


class Conflict(NamedTuple):
    needs: tuple[Need, ...]
    """The resolver's own causes: needs that cannot be satisfied together."""
    end: str
    """The end of the sentence that starts with the causes."""

    @property
    def about_files(self) -> bool:
        """Whether two packages install the same files, which no metadata declare."""
        return any(need.name.startswith("folder:") for need in self.needs)

    def reason(self, candidate: Candidate | None = None) -> str:
        """The causes as a sentence. With a candidate, its own requirements come first."""
        own = _names_of_parts(candidate) if candidate else {}
        needs = sorted(self.needs, key=lambda need: need.owner not in own)
        wants = (f"{own.get(need.owner, need.owner)} {_wants(need)}".strip() for need in needs)
        return "; ".join(dict.fromkeys(wants)) + self.end


def _names_of_parts(candidate: Candidate) -> dict[str, str]:
    """What a sentence that starts with the candidate calls its parts, by their owners."""
    return {
        f"{part.package} {part.version}": (
            "" if part.package == candidate.package else f"its {part.package}"
        )
        for part in candidate.parts
    }


class TooDeep(NamedTuple):
    """The resolver has given up. That does not mean that there is no solution."""


def resolve(
    wishes: Sequence[tuple[str, Sequence[Candidate]]], cache: CandidateCache
) -> Solution | Conflict | TooDeep:
    """The newest compatible candidates of the wishes; earlier wishes have priority."""
    provider = _Provider(dict(wishes), cache)
    roots = [Need(f"wish:{framework}", "") for framework, _ in wishes]
    try:
        result = Resolver(provider, BaseReporter()).resolve(roots, max_rounds=MOST_ROUNDS)
    except ResolutionImpossible as error:
        return _conflict(error.causes, cache)
    except ResolutionTooDeep:
        return TooDeep()
    choices = tuple(result.mapping.values())
    chosen = [result.mapping[root.name].candidate for root in roots]
    packages = [c.row for c in choices if c.row is not None and "[" not in c.name]
    return Solution(
        chosen=tuple(candidate for candidate in chosen if candidate is not None),
        packages=tuple(sorted(PlannedPackage(row.package, row.version) for row in packages)),
        pins=tuple(_pins(choices, packages, cache)),
    )


class _Provider(AbstractProvider[Need, Choice, str]):
    """Adapts the cache to the interface of the resolver."""

    def __init__(self, wishes: Mapping[str, Sequence[Candidate]], cache: CandidateCache) -> None:
        self._wishes = wishes
        self._order = {f"wish:{framework}": place for place, framework in enumerate(wishes)}
        self._cache = cache

    def identify(self, requirement_or_candidate: Need | Choice) -> str:
        return requirement_or_candidate.name

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Choice],
        candidates: Mapping[str, Iterator[Choice]],
        information: Mapping[str, Iterator[Any]],
        backtrack_causes: Sequence[Any],
    ) -> tuple[int, str]:
        """Wishes first, then exact pins, because they leave no choice."""
        if identifier in self._order:
            return (self._order[identifier] - len(self._order), "")
        pinned = any("==" in item.requirement.specifier for item in information[identifier])
        return (not pinned, identifier)

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Need]],
        incompatibilities: Mapping[str, Iterator[Choice]],
    ) -> Callable[[], Iterator[Choice]]:
        specifiers = {need.specifier for need in requirements[identifier]}
        refused = {choice.version for choice in incompatibilities[identifier]}

        def matches() -> Iterator[Choice]:
            for choice in self._choices(identifier, specifiers):
                if choice.version not in refused and all(_meets(s, choice) for s in specifiers):
                    yield choice

        return matches

    def is_satisfied_by(self, requirement: Need, candidate: Choice) -> bool:
        return _meets(requirement.specifier, candidate)

    def get_dependencies(self, candidate: Choice) -> Iterable[Need]:
        if candidate.candidate is not None:
            return self._cache.closure(candidate.candidate)
        if candidate.row is None:
            return []
        return self._cache.needs_of(candidate.name, candidate.row)

    def _choices(self, identifier: str, specifiers: set[str]) -> Iterator[Choice]:
        kind, _, name = identifier.partition(":")
        if kind == "wish":
            for candidate in self._wishes[name]:
                yield Choice(identifier, candidate.build, candidate=candidate)
        elif kind == "folder":
            for specifier in sorted(specifiers):
                yield Choice(identifier, specifier.removeprefix("=="))
        else:
            yield from _of_package(identifier, specifiers, self._cache)


def _of_package(identifier: str, specifiers: set[str], cache: CandidateCache) -> Iterator[Choice]:
    package = identifier.partition("[")[0]
    if package in cache.table or package.startswith(_ALWAYS_IN_TABLE):
        for row in cache.rows(package, specifiers):
            yield Choice(identifier, row.version, row=row)
    else:
        for version in _possible(specifiers):
            yield Choice(identifier, version)


def unmet(candidate: Candidate, cache: CandidateCache) -> Conflict | None:
    """A requirement of a release that nothing in the cache satisfies, whatever the other wishes."""
    for need in cache.closure(candidate):
        if not can_meet(need.name, frozenset((need.specifier,)), cache):
            return Conflict((need,), _why_none(need.name, cache))
    return None


def can_meet(name: str, specifiers: frozenset[str], cache: CandidateCache) -> bool:
    """Whether some release satisfies all of these at once."""
    key = (name, specifiers)
    if key not in cache.met:
        cache.met[key] = (
            len(specifiers) == 1
            if name.startswith("folder:")
            else any(
                all(_meets(specifier, choice) for specifier in specifiers)
                for choice in _of_package(name, set(specifiers), cache)
            )
        )
    return cache.met[key]


def _possible(specifiers: set[str]) -> Iterator[str]:
    """Versions of a package that is not in the table: enough to see whether ranges overlap."""
    named = sorted({version for text in specifiers for version in _VERSION.findall(text)})
    return chain(("9999",), named, (f"{version}.1" for version in named), ("0",))


def _meets(specifier: str, choice: Choice) -> bool:
    if ":" in choice.name:
        return not specifier or specifier == f"=={choice.version}"
    return contains(specifier, choice.version)


def _conflict(causes: Iterable[Any], cache: CandidateCache) -> Conflict:
    """The causes, each need once even if several packages have it."""
    needs = {(need.name, need.specifier): need for need in (cause.requirement for cause in causes)}
    first = next(iter(needs.values()))
    if first.name.startswith("folder:"):
        folder = first.name.partition(":")[2]
        end = f": these install the same files (nvidia/{folder})"
    else:
        end = _why_none(first.name, cache) if len(needs) == 1 else ""
    return Conflict(tuple(needs.values()), end)


def _wants(need: Need) -> str:
    if need.name.startswith("folder:"):
        return f"needs {need.specifier.removeprefix('==')}"
    if not need.owner:
        return f"{need.name.partition('[')[0]} {need.specifier.removeprefix('==')} is requested"
    return f"needs {need.name}{need.specifier}"


def _why_none(name: str, cache: CandidateCache) -> str:
    rows = cache.table.versions(name.partition("[")[0])
    if not rows:
        return ", which is not on the package index"
    if any(cache.cudnn_refuses(row) for row in rows):
        return ", which does not support this GPU"
    return ", which has no wheel for this machine"


def _pins(
    choices: Sequence[Choice], packages: Sequence[Release], cache: CandidateCache
) -> Iterator[tuple[str, str]]:
    """Pins that the command must add, because pip reads metadata only."""
    declared: dict[str, set[str]] = {}
    for choice in choices:
        if choice.row is not None:
            for need in cache.declared(choice.row, choice.name.rstrip("]").partition("[")[2]):
                declared.setdefault(need.name, set()).add(need.specifier)
    for row in packages:
        yield from _limits(row, declared, cache)
        yield from _cudnn_pin(row, declared, cache)


def _limits(
    row: Release, declared: Mapping[str, set[str]], cache: CandidateCache
) -> Iterator[tuple[str, str]]:
    for limit in undeclared_limits(row.package, row.version):
        wanted = Requirement(limit.requirement)
        known = wanted.name in cache.table
        open_to = cache.allowed(wanted.name, declared.get(wanted.name, set()))
        if not known or any(not wanted.specifier.contains(other.version) for other in open_to):
            yield limit.requirement, f"{row.package} {row.version}: {limit.because}"


def _cudnn_pin(
    row: Release, declared: Mapping[str, set[str]], cache: CandidateCache
) -> Iterator[tuple[str, str]]:
    if not row.package.startswith("nvidia-cudnn-cu"):
        return
    open_to = cache.allowed(row.package, declared.get(row.package, set()))
    refused = [
        served
        for other in open_to
        if cache.cudnn_refuses(other) and (served := cudnn_support(other.version))
    ]
    if refused:
        first, oldest = dotted(refused[-1].first), dotted(refused[-1].oldest)
        yield (
            f"{row.package}=={row.version}",
            f"cuDNN {first} and newer need compute capability {oldest}",
        )
