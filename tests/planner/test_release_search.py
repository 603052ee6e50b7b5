"""One release for each wish: nothing is called impossible that was not ruled out."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from tests.cases import each
from tests.planner.small_table import TABLE, machine, release, table_of, tensorflow
from whygpu.model.install_plan import Candidate, Solution
from whygpu.planner import release_search as searching
from whygpu.planner import resolve as resolve_module
from whygpu.planner.candidate_cache import CandidateCache, _exact
from whygpu.planner.candidates import candidates
from whygpu.planner.planning import make_plan, why_not
from whygpu.planner.release_search import GaveUp, Nothing, Options, search
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


def refused_late(*names: str) -> tuple[Options, CandidateCache]:
    """Three releases of each wish. TensorFlow and PyTorch exclude each other, but only through
    packages that they do not pin, so that the resolver alone sees it."""
    rows = [
        *(tensorflow(f"2.{n}.0", "3.11", "12.5.1", "keras") for n in (18, 19, 20)),
        # Releases without an index of their own: each has one build.
        *(release("torch", f"3.{n}", cuda="12.8", requires=("h5py",)) for n in (7, 8, 9)),
        *(release("onnxruntime-gpu", f"1.{n}", cuda="12.8") for n in (1, 2, 3)),
        release("keras", "3.0", requires=("six<2",)),
        release("h5py", "4.0", requires=("six>=2",)),
        *(release("six", version) for version in "12"),
    ]
    table = table_of(rows)
    return [(name, candidates(name, table)) for name in names], CandidateCache(machine(), table)


@each(
    ("limit", "value", "expected"),
    [
        # For each of 3 releases of TensorFlow one step, and one with a try for each of PyTorch.
        ("MOST_STEPS", 12, Nothing()),
        ("MOST_STEPS", 11, GaveUp(11)),
        ("MOST_STEPS", 1, GaveUp(1)),
        ("MOST_TRIES", 9, Nothing()),
        ("MOST_TRIES", 4, GaveUp(6)),
        ("MOST_TRIES", 1, GaveUp(2)),
    ],
)
def test_only_a_search_that_ends_within_its_limits_rules_everything_out(
    limit: str, value: int, expected: Nothing | GaveUp
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, limit, value)
        assert search(*refused_late("tensorflow", "torch")) == expected


@each("names", [*permutations(("tensorflow", "torch", "onnxruntime"))])
def test_what_was_refused_is_not_tried_again_in_other_company(names: tuple[str, ...]) -> None:
    """Nine pairs exclude each other, whichever of the three releases of the third wish is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "MOST_TRIES", 10)
        assert search(*refused_late(*names)) == Nothing()


def test_a_resolver_that_gives_up_rules_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve_module, "MOST_ROUNDS", 1)
    assert isinstance(search(*refused_late("tensorflow", "torch")), GaveUp)


def test_pins_are_decided_first_so_that_few_rounds_suffice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resolve_module, "MOST_ROUNDS", 10)
    rows = [
        tensorflow("2.20.0", "3.11", "12.5.1", "absl", "grpc"),
        release("absl", "1", requires=("six==1",)),
        release("six", "1", requires=("grpc<2",)),
        *(release("grpc", f"{n}") for n in range(1, 40)),
    ]
    table = table_of(rows)
    found = resolve(
        [("tensorflow", candidates("tensorflow", table))], CandidateCache(machine(), table)
    )
    assert isinstance(found, Solution)
    assert ("grpc", "1") in found.packages


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
