"""The smallest sets of positions that make something happen."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

from whygpu.differences.search import (
    MOST_SETS,
    OutOfTrials,
    Positions,
    Sets,
    smallest_set,
    smallest_sets,
)


def needs(*sets: set[int]) -> Callable[[Positions], bool]:
    """It happens if all positions of one of these sets are there."""
    return lambda positions: any(wanted <= set(positions) for wanted in sets)


def test_whatever_is_needed_is_found_and_nothing_else() -> None:
    chance = random.Random(5)
    for size in (1, 2, 3, 5):
        for count in (size, 17, 200):
            wanted = set(chance.sample(range(count), size))
            assert set(smallest_set(needs(wanted), tuple(range(count)))) == wanted


def test_one_among_many_takes_few_trials() -> None:
    trials = 0

    def happens(positions: Positions) -> bool:
        nonlocal trials
        trials += 1
        return 617 in positions

    assert smallest_set(happens, tuple(range(1000))) == (617,)
    assert trials <= 25


def test_a_smaller_set_is_preferred_to_the_first_one() -> None:
    for one, three in itertools.product(range(6, 12), itertools.combinations(range(6), 3)):
        assert smallest_set(needs({one}, set(three)), tuple(range(12))) == (one,)
    for two in itertools.combinations(range(6, 12), 2):
        assert smallest_set(needs(set(two), {0, 1, 2}), tuple(range(12))) == two


def test_a_set_was_found_when_the_trials_run_out() -> None:
    left = 40

    def happens(positions: Positions) -> bool:
        nonlocal left
        if not left:
            raise OutOfTrials
        left -= 1
        return needs({0, 1, 2}, {998, 999})(positions)

    assert smallest_set(happens, tuple(range(1000))) == (0, 1, 2)


def test_sets_that_are_each_enough_are_all_found() -> None:
    found = smallest_sets(needs({3}, {7, 8}, {11}), range(20))
    assert sorted(found.found) == [(3,), (7, 8), (11,)]
    assert found.complete


def test_more_sets_than_anybody_reads() -> None:
    found = smallest_sets(lambda positions: bool(positions), range(100))
    assert len(found.found) == MOST_SETS
    assert not found.complete


def test_the_trials_run_out() -> None:
    left = 3

    def happens(positions: Positions) -> bool:
        nonlocal left
        if not left:
            raise OutOfTrials
        left -= 1
        return 5 in positions

    assert smallest_sets(happens, range(1000)) == Sets((), complete=False)


def test_something_that_does_not_get_truer_with_more() -> None:
    """One position takes back what another one does."""

    def happens(positions: Positions) -> bool:
        return 4 in positions and (9 not in positions or 2 in positions)

    found = smallest_set(happens, tuple(range(12)))
    assert happens(found)
    assert found == (4,)
