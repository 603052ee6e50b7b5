"""What differs between two values, and mixtures of both."""

from __future__ import annotations

import random

from tests.differences.noise import noisy
from tests.kit import machine, machine_causes, machine_examples
from whygpu.collectors.requirements import conflicts
from whygpu.differences.bench import NOT_RUN, Bench
from whygpu.differences.tree import compare, same
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.snapshot import Snapshot


def a_few_machines() -> list[Snapshot]:
    texts = [
        example.text
        for cause in machine_causes()
        for example in machine_examples(cause)
        if example.expectation == "fires"
    ]
    return [noisy(machine(text), seed) for seed, text in enumerate(texts[::6])]


def test_equal_values_have_no_leaves() -> None:
    assert compare(machine(), machine()).leaves == ()


def test_all_leaves_together_are_the_other_value() -> None:
    for other in a_few_machines():
        comparison = compare(machine(), other)
        assert comparison.mixture(0) == machine()
        assert comparison.mixture(comparison.everything) == other


def test_a_mixture_has_exactly_the_chosen_leaves_of_the_other_value() -> None:
    chance = random.Random(1)
    for other in a_few_machines():
        comparison = compare(machine(), other)
        chosen = chance.getrandbits(len(comparison.leaves)) & comparison.everything
        mixed = comparison.mixture(chosen)
        from_other = {leaf.place for leaf in compare(machine(), mixed).leaves}
        assert from_other == {leaf.place for leaf in comparison.leaves if leaf.bits & chosen}
        left = {leaf.place for leaf in compare(mixed, other).leaves}
        assert left == {leaf.place for leaf in comparison.leaves if not leaf.bits & chosen}


def test_sources_and_reasons_do_not_count() -> None:
    assert same(Known(1, "a"), Known(1, "b"))
    assert same((Absent("a"), Unknown("a")), (Absent("b"), Unknown("b")))
    assert not same(Absent("a"), Unknown("a"))
    assert not same(Known(1, "a"), Known(2, "a"))


def test_the_first_of_two_copies_stays_first() -> None:
    two = machine(
        '[[target.packages]]\nname = "torch"\nversion = "2.1.0"\nlocation = "/first"\n'
        '[[target.packages]]\nname = "torch"\nversion = "2.8.0"\nshadowed = true\n'
    )
    comparison = compare(machine(), two)
    added = next(leaf for leaf in comparison.leaves if leaf.before is None)
    packages = comparison.mixture(added.bits).target.packages
    assert isinstance(packages, Known)
    assert next(p.location for p in packages.value if p.name == "torch") == "/first"


def test_a_fact_that_one_side_did_not_check_is_not_comparable() -> None:
    unseen = machine('[driver]\nuvm = {unknown = "not permitted"}\n')
    (difference,) = Bench(machine(), unseen).differences
    assert not difference.comparable


def test_on_a_machine_that_was_put_together_nothing_ran() -> None:
    mixed = Bench(machine(), a_few_machines()[0]).machine(1)
    assert mixed.probes == ()
    assert mixed.probes_left_out == NOT_RUN


def test_conflicts_follow_from_the_packages() -> None:
    old = machine('[target.packages.numpy]\nversion = "1.20.0"\n')
    found = conflicts(old.target.packages)
    bench = Bench(machine(), old._replace(target=old.target._replace(conflicts=found)))
    (difference,) = bench.differences
    assert difference.fact.name == "numpy"
    mixed = bench.machine(difference.bits).target.conflicts
    assert isinstance(mixed, Known)
    assert {conflict.package for conflict in mixed.value} == {"tensorflow", "jax"}
