"""The search for the largest batch: what it returns was asked for, and it asks seldom."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.cases import each
from tests.comparer.inside import part

SEARCH = part("estimates.largest")
Need = Callable[[int], float]


def affine(fixed: int, each: float) -> Need:
    return lambda batch: fixed + each * batch


def in_steps(fixed: int, each: float, step: int) -> Need:
    return lambda batch: -(-(fixed + each * batch) // step) * step


def flat_then_rising(floor: int, fixed: int, each: float) -> Need:
    """As where a small batch's step takes less than the optimiser's update."""
    return lambda batch: max(floor, fixed + each * batch)


def true_largest(need: Need, room: int) -> int:
    low, high = 0, SEARCH.LARGEST
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if need(middle) <= room else (low, middle - 1)
    return low


def search(need: Need, room: int, start: int) -> tuple[int, int | None, list[int]]:
    asked: list[int] = []

    def ask(batch: int) -> float:
        asked.append(batch)
        return need(batch)

    found = SEARCH.largest(ask, room, start)
    return found.batch, found.next_batch, asked


@each("start", [1, 8, 64, 512])
def test_affine_memory_is_settled_with_five_estimates(start: int) -> None:
    batch, following, asked = search(affine(700, 37.5), 24_000, start)
    assert (batch, following) == (621, 622)
    assert len(asked) <= 5
    assert {batch, following} <= set(asked)


def test_nothing_fits() -> None:
    batch, following, asked = search(affine(900, 200), 1000, 32)
    assert (batch, following) == (0, 1)
    assert 1 in asked


def test_one_fits_and_two_do_not() -> None:
    assert search(affine(900, 60), 1000, 32)[:2] == (1, 2)


def test_memory_that_does_not_depend_on_the_batch_ends_at_the_largest() -> None:
    batch, following, asked = search(affine(100, 0), 1000, 8)
    assert (batch, following) == (SEARCH.LARGEST, None)
    assert len(asked) <= SEARCH.MOST_ESTIMATES


def test_it_is_content_with_what_is_known_when_time_is_up() -> None:
    times = iter(range(0, 10_000, 100))
    found = SEARCH.largest(affine(10, 1.7), 1000, 4, seconds=150, clock=lambda: next(times))
    assert found.batch >= 4
    assert found.next_batch is None or found.next_batch > found.batch


def test_any_kind_of_growth() -> None:
    chance = random.Random(8)
    for _ in range(400):
        fixed, each = chance.randint(1, 50_000), chance.uniform(0.1, 500)
        need = chance.choice(
            [
                affine(fixed, each),
                in_steps(fixed, each, chance.choice([20, 200])),
                flat_then_rising(chance.randint(1000, 100_000), fixed, each),
            ]
        )
        room = chance.randint(1000, 300_000)
        batch, following, asked = search(need, room, chance.choice([1, 8, 32, 64, 512]))
        truth = true_largest(need, room)
        assert batch == 0 or need(batch) <= room
        assert following is None or need(following) > room
        assert len(asked) <= SEARCH.MOST_ESTIMATES
        assert batch >= 0.9 * truth - 1
