"""Finds releases that go together: resolvelib, pip's own resolver, over the release table."""

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

from whygpu.model.install_plan import Candidate, Solution
from whygpu.model.machine_spec import dotted
from whygpu.model.release import Release
from whygpu.planner.candidate_cache import Need, Shelf
from whygpu.planner.wishes import contains
from whygpu.tables.cudnn_support import cudnn_support
from whygpu.tables.undeclared_limits import undeclared_limits

MOST_ROUNDS = 2000
_ALWAYS_IN_TABLE = ("nvidia-", "cuda-", "tensorrt")
"""Of these the table has every package that the index has: what it lacks cannot be installed."""
_VERSION = re.compile(r"\d+(?:\.\d+)*")


class Choice(NamedTuple):
    """One way to meet a need."""

    name: str
    version: str
    row: Release | None = None
    candidate: Candidate | None = None


class Conflict(NamedTuple):
    needs: tuple[Need, ...]
    """The resolver's own causes: what cannot be met together."""
    end: str
    """The end of the sentence that the causes begin."""

    @property
    def about_files(self) -> bool:
        """Two packages install the same files, which no metadata say."""
        return any(need.name.startswith("folder:") for need in self.needs)

    def reason(self, candidate: Candidate | None = None) -> str:
        """The causes as a sentence; about a candidate, what that one asks for comes first."""
        own = (
            {f"{part.package} {part.version}": part for part in candidate.parts}
            if candidate
            else {}
        )
        said: dict[str, None] = {}
        for need in sorted(self.needs, key=lambda need: need.owner not in own):
            owner = need.owner
            if candidate is not None and owner in own:
                part = own[owner]
                owner = "" if part.package == candidate.package else f"its {part.package}"
            said[f"{owner} {_wants(need)}".strip()] = None
        return "; ".join(said) + self.end


class TooDeep(NamedTuple):
    """The resolver has given up, which says nothing about what is possible."""


def resolve(
    wishes: Sequence[tuple[str, Sequence[Candidate]]], shelf: Shelf
) -> Solution | Conflict | TooDeep:
    """The newest of each wish's candidates that go together, earlier wishes first."""
    provider = _Provider(dict(wishes), shelf)
    roots = [Need(f"wish:{framework}", "") for framework, _ in wishes]
    try:
        result = Resolver(provider, BaseReporter()).resolve(roots, max_rounds=MOST_ROUNDS)
    except ResolutionImpossible as error:
        return _conflict(error.causes, shelf)
    except ResolutionTooDeep:
        return TooDeep()
    choices = tuple(result.mapping.values())
    chosen = [result.mapping[root.name].candidate for root in roots]
    return Solution(
        chosen=tuple(candidate for candidate in chosen if candidate is not None),
        packages=tuple(sorted((c.name, c.version) for c in choices if _is_package(c))),
        pins=tuple(_pins(choices, shelf)),
    )


class _Provider(AbstractProvider[Need, Choice, str]):
    """The shelf as the resolver asks for it."""

    def __init__(self, wishes: Mapping[str, Sequence[Candidate]], shelf: Shelf) -> None:
        self._wishes = wishes
        self._order = {f"wish:{framework}": place for place, framework in enumerate(wishes)}
        self._shelf = shelf

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
        """Wishes first; then what leaves the least choice."""
        if identifier in self._order:
            return (self._order[identifier] - len(self._order), "")
        pinned = any("==" in item.requirement.specifier for item in information[identifier])
        return (0 if pinned else 1, identifier)

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
            return self._shelf.closure(candidate.candidate)
        if candidate.row is None:
            return []
        return self._shelf.needs_of(candidate.name, candidate.row)

    def _choices(self, identifier: str, specifiers: set[str]) -> Iterator[Choice]:
        kind, _, name = identifier.partition(":")
        if kind == "wish":
            for candidate in self._wishes[name]:
                yield Choice(identifier, candidate.requirement, candidate=candidate)
        elif kind == "folder":
            for specifier in sorted(specifiers):
                yield Choice(identifier, specifier.removeprefix("=="))
        else:
            yield from _of_package(identifier, specifiers, self._shelf)


def _of_package(identifier: str, specifiers: set[str], shelf: Shelf) -> Iterator[Choice]:
    package = identifier.partition("[")[0]
    if package in shelf.table or package.startswith(_ALWAYS_IN_TABLE):
        for row in shelf.rows(package, specifiers):
            yield Choice(identifier, row.version, row=row)
    else:
        for version in _possible(specifiers):
            yield Choice(identifier, version)


def unmet(candidate: Candidate, shelf: Shelf) -> Conflict | None:
    """What a release asks for and nothing on the shelf meets, whatever else is wished for."""
    for need in shelf.closure(candidate):
        if not can_meet(need.name, frozenset((need.specifier,)), shelf):
            return Conflict((need,), _why_none(need.name, shelf))
    return None


def can_meet(name: str, specifiers: frozenset[str], shelf: Shelf) -> bool:
    """Whether something on the shelf meets all of these at once."""
    key = (name, specifiers)
    if key not in shelf.met:
        shelf.met[key] = (
            len(specifiers) == 1
            if name.startswith("folder:")
            else any(
                all(_meets(specifier, choice) for specifier in specifiers)
                for choice in _of_package(name, set(specifiers), shelf)
            )
        )
    return shelf.met[key]


def _possible(specifiers: set[str]) -> Iterator[str]:
    """Versions of a package that is not in the table: enough to see whether ranges overlap."""
    named = sorted({version for text in specifiers for version in _VERSION.findall(text)})
    return chain(("9999",), named, (f"{version}.1" for version in named), ("0",))


def _meets(specifier: str, choice: Choice) -> bool:
    if ":" in choice.name:
        return not specifier or specifier == f"=={choice.version}"
    return contains(specifier, choice.version)


def _is_package(choice: Choice) -> bool:
    return choice.row is not None and "[" not in choice.name


def _conflict(causes: Iterable[Any], shelf: Shelf) -> Conflict:
    """The causes, each need once, whoever else has it."""
    needs = {(need.name, need.specifier): need for need in (cause.requirement for cause in causes)}
    first = next(iter(needs.values()))
    if first.name.startswith("folder:"):
        folder = first.name.partition(":")[2]
        end = f": these install the same files (nvidia/{folder})"
    else:
        end = _why_none(first.name, shelf) if len(needs) == 1 else ""
    return Conflict(tuple(needs.values()), end)


def _wants(need: Need) -> str:
    kind, _, name = need.name.partition(":")
    if kind == "folder":
        return f"needs {need.specifier.removeprefix('==')}"
    if kind == "wish":
        return f"no release of {name} is left"
    if not need.owner:
        return f"{need.name.partition('[')[0]} {need.specifier.removeprefix('==')} is asked for"
    return f"needs {need.name}{need.specifier}"


def _why_none(name: str, shelf: Shelf) -> str:
    rows = shelf.table.versions(name.partition("[")[0])
    if not rows:
        return ", which is not on the package index"
    if any(shelf.cudnn_refuses(row) for row in rows):
        return ", which does not serve this GPU"
    return ", which has no wheel for this machine"


def _pins(choices: Sequence[Choice], shelf: Shelf) -> Iterator[tuple[str, str]]:
    """What the command has to add, because pip reads metadata only."""
    declared: dict[str, set[str]] = {}
    for choice in choices:
        if choice.row is not None:
            for need in shelf.declared(choice.row, choice.name.rstrip("]").partition("[")[2]):
                declared.setdefault(need.name, set()).add(need.specifier)
    for choice in choices:
        if choice.row is not None and _is_package(choice):
            yield from _limits(choice.row, declared, shelf)
            yield from _cudnn_pin(choice.row, declared, shelf)


def _limits(
    row: Release, declared: Mapping[str, set[str]], shelf: Shelf
) -> Iterator[tuple[str, str]]:
    for limit in undeclared_limits(row.package, row.version):
        wanted = Requirement(limit.requirement)
        known = wanted.name in shelf.table
        open_to = shelf.allowed(wanted.name, declared.get(wanted.name, set()))
        if not known or any(not wanted.specifier.contains(other.version) for other in open_to):
            yield limit.requirement, f"{row.package} {row.version}: {limit.because}"


def _cudnn_pin(
    row: Release, declared: Mapping[str, set[str]], shelf: Shelf
) -> Iterator[tuple[str, str]]:
    if not row.package.startswith("nvidia-cudnn-cu"):
        return
    open_to = shelf.allowed(row.package, declared.get(row.package, set()))
    served = [cudnn_support(other.version) for other in open_to if shelf.cudnn_refuses(other)]
    if served and served[-1] is not None:
        first = f"{served[-1].first[0]}.{served[-1].first[1]}"
        yield (
            f"{row.package}=={row.version}",
            f"cuDNN {first} and newer need compute capability {dotted(served[-1].oldest)}",
        )
