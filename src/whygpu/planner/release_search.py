"""Chooses one compatible release for each wish, or says that it gave up.

pip's resolver undoes its newest choice first. With many wishes it tries every release of the last
one before it changes the first, and can run out of steps although there is a simple solution.
Therefore the releases of the wishes are chosen here. Each choice removes incompatible releases from
the remaining wishes, and a wish without a release left ends a branch at once. The resolver handles
all other packages, for one release of each wish at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from whygpu.model.install_plan import Candidate, Solution
from whygpu.planner.candidate_cache import CandidateCache
from whygpu.planner.resolve import Conflict, TooDeep, can_meet, resolve

MOST_TRIES = 200
"""The most combinations that the resolver checks. Most plans need one."""
MOST_STEPS = 5000
"""The most releases that are compared with the earlier choices."""

Options = Sequence[tuple[str, Sequence[Candidate]]]
"""For each wish, the possible choices, best first."""
Asked = Mapping[str, frozenset[str]]
"""The requirements of the chosen releases: specifiers by package."""


class Nothing(NamedTuple):
    """Every combination was ruled out."""


class GaveUp(NamedTuple):
    """There may be a combination, but it was not found."""

    steps: int

    def __str__(self) -> str:
        return f"no combination was found in {self.steps} steps, but not all were tried"


def search(options: Options, cache: CandidateCache) -> Solution | Nothing | GaveUp:
    """The newest compatible candidates of the wishes; earlier wishes have priority."""
    return _Search(cache).run(options)


class _Search:
    def __init__(self, cache: CandidateCache) -> None:
        self._cache = cache
        self._steps = 0
        self._tries = 0
        self._is_complete = True
        self._refused: list[frozenset[str]] = []
        """Combinations that the resolver has refused. Adding releases to them does not help."""

    def run(self, options: Options) -> Solution | Nothing | GaveUp:
        for company in self._companies((), options, {}):
            found = self._tried(company)
            if found is not None:
                return found
        return Nothing() if self._is_complete else GaveUp(self._steps)

    def _companies(
        self, chosen: tuple[Candidate, ...], left: Options, asked: Asked
    ) -> Iterator[tuple[Candidate, ...]]:
        if not left:
            yield chosen
            return
        (_, options), rest = left[0], left[1:]
        for candidate in options:
            company = (*chosen, candidate)
            if self._is_spent():
                return
            if self._is_refused(company):
                continue
            self._steps += 1
            more = self._with(asked, candidate)
            still = self._left(rest, more)
            if still is not None:
                yield from self._companies(company, still, more)

    def _is_spent(self) -> bool:
        is_spent = self._steps >= MOST_STEPS or self._tries >= MOST_TRIES
        if is_spent:
            self._is_complete = False
        return is_spent

    def _is_refused(self, company: tuple[Candidate, ...]) -> bool:
        names = {item.build for item in company}
        return any(refused <= names for refused in self._refused)

    def _left(self, rest: Options, asked: Asked) -> Options | None:
        """The remaining choices for the other wishes; None if one of them has none left."""
        still = []
        for framework, options in rest:
            kept = [candidate for candidate in options if self._goes_with(candidate, asked)]
            if not kept:
                return None
            still.append((framework, kept))
        return still

    def _goes_with(self, candidate: Candidate, asked: Asked) -> bool:
        return all(
            can_meet(need.name, asked[need.name] | {need.specifier}, self._cache)
            for need in self._cache.closure(candidate)
            if need.name in asked
        )

    def _with(self, asked: Asked, candidate: Candidate) -> Asked:
        more = dict(asked)
        for need in self._cache.closure(candidate):
            more[need.name] = more.get(need.name, frozenset()) | {need.specifier}
        return more

    def _tried(self, company: tuple[Candidate, ...]) -> Solution | None:
        """The result of the resolver for this combination."""
        self._tries += 1
        found = self._resolved(company)
        if isinstance(found, Solution):
            return found
        if isinstance(found, TooDeep):
            self._is_complete = False
        else:
            culprits = self._fewest_refused(company)
            self._refused.append(frozenset(item.build for item in culprits))
        return None

    def _fewest_refused(self, company: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """The smallest part of the combination that the resolver still refuses."""
        for candidate in company:
            fewer = tuple(item for item in company if item != candidate)
            if isinstance(self._resolved(fewer), Conflict):
                company = fewer
        return company

    def _resolved(self, company: tuple[Candidate, ...]) -> Solution | Conflict | TooDeep:
        return resolve([(item.framework, [item]) for item in company], self._cache)
