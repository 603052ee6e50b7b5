"""One release for each wish: nothing is called impossible that was not ruled out."""

from __future__ import annotations

from itertools import product

import pytest

from tests.cases import each
from tests.planner.small_table import TABLE, machine
from whygpu.model.install_plan import Candidate, Solution
from whygpu.planner import release_search as searching
from whygpu.planner.candidate_cache import CandidateCache, _exact
from whygpu.planner.candidates import candidates
from whygpu.planner.planning import make_plan, why_not
from whygpu.planner.release_search import Nothing, search
from whygpu.planner.resolve import resolve
from whygpu.planner.wishes import parse_all


def by_trying_all(
    options: list[tuple[str, list[Candidate]]], cache: CandidateCache
) -> tuple[Candidate, ...] | None:
    for company in product(*(items for _, items in options)):
        found = resolve([(item.framework, [item]) for item in company], cache)
        if isinstance(found, Solution):
            return found.chosen
    return None


@each(
    "names",
    ["torch jax tensorflow", "jax torch keras", "tensorflow keras torch", "keras jax tensorflow"],
)
@each("python", ["3.9", "3.11", "3.12"])
def test_the_search_finds_what_trying_every_combination_finds(names: str, python: str) -> None:
    cache = CandidateCache(machine(python=python), TABLE)
    options = [(name, list(candidates(name, TABLE))) for name in names.split()]
    expected = by_trying_all(options, cache)
    found = search(options, cache)
    if expected is None:
        assert isinstance(found, Nothing)
    else:
        assert isinstance(found, Solution)
        assert found.chosen == expected


@each("limit", ["MOST_STEPS", "MOST_TRIES"])
def test_a_search_that_was_cut_short_claims_no_conflict(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, limit, 0)
    wishes = parse_all(["tensorflow", "jax", "torch"])
    answer = make_plan(machine(), wishes, TABLE)
    assert answer.plan is None
    assert answer.conflict == ""
    assert answer.exit_code == 4
    assert "no combination was found" in answer.unchecked[0]
    chain = why_not(machine(), wishes[0], wishes[1:], TABLE).chain
    assert (chain[-1].constraint, chain[-1].outcome) == ("conflict", "unchecked")


@each(
    ("specifier", "version"),
    [
        ("==2.15.0.post1", "2.15.0.post1"),
        ("==1.2", "1.2"),
        ("<=0.7.2,>=0.7.2", "0.7.2"),
        ("==1.2.*", None),
        (">=1.2", None),
        ("<=1.2,>=1.1", None),
        ("!=1.2", None),
        ("~=1.2", None),
    ],
)
def test_the_one_version_that_a_specifier_leaves(specifier: str, version: str | None) -> None:
    assert _exact(specifier) == version
