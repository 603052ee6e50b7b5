"""PyTorch's allocator, replayed: sizes as the real one counts them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.cases import each
from tests.comparer.inside import part

ALLOCATOR = part("estimates.pytorch.allocator")
KIB, MIB = 1 << 10, 1 << 20

Events = list[tuple[int, int | None]]


@each(
    ("size", "allocated", "reserved"),
    [
        (1, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        # Less than a MiB would be left over, which is not split off.
        (11 * MIB + 512 * KIB, 12 * MIB, 12 * MIB),
        # More is.
        (32 * MIB + 512 * KIB, 32 * MIB + 512 * KIB, 34 * MIB),
    ],
)
def test_one_allocation(size: int, allocated: int, reserved: int) -> None:
    peak = ALLOCATOR.replay([(1, size)])
    assert (peak.allocated, peak.reserved) == (allocated, reserved)
    assert peak.live == {1: allocated}


def test_what_is_freed_is_used_again() -> None:
    peak = ALLOCATOR.replay([(1, 64 * MIB), (1, None), (2, 64 * MIB)])
    assert (peak.allocated, peak.reserved) == (64 * MIB, 64 * MIB)


def test_free_neighbours_become_one_block() -> None:
    events: Events = [(1, 4 * MIB), (2, 4 * MIB), (1, None), (2, None), (3, 8 * MIB)]
    assert ALLOCATOR.replay(events).reserved == 20 * MIB


def test_a_hole_that_is_too_small_costs_a_new_segment() -> None:
    events: Events = [(1, 40 * MIB), (1, None), (2, 30 * MIB), (3, 12 * MIB)]
    peak = ALLOCATOR.replay(events)
    assert peak.allocated == 42 * MIB
    assert peak.reserved == 52 * MIB


def test_the_smallest_block_that_is_large_enough_is_taken() -> None:
    events: Events = [(1, 50 * MIB), (2, 30 * MIB), (1, None), (2, None), (3, 30 * MIB)]
    peak = ALLOCATOR.replay([*events, (4, 50 * MIB)])
    assert peak.reserved == 80 * MIB


def test_the_peak_is_the_moment_of_most_and_not_the_end() -> None:
    peak = ALLOCATOR.replay([(1, 64 * MIB), (2, 32 * MIB), (1, None), (3, 16 * MIB)])
    assert peak.allocated == 96 * MIB
    assert set(peak.live) == {1, 2}


def test_with_little_memory_unused_segments_are_given_back() -> None:
    events: Events = [(1, 100 * MIB), (1, None), (2, 120 * MIB)]
    assert ALLOCATOR.replay(events).reserved == 220 * MIB
    assert ALLOCATOR.replay(events, 130 * MIB).reserved == 120 * MIB
    with pytest.raises(ALLOCATOR.DoesNotFit):
        ALLOCATOR.replay(events, 110 * MIB)


def test_the_least_memory_lies_between_the_peak_and_what_is_held() -> None:
    events: Events = [(1, 100 * MIB), (1, None), (2, 120 * MIB)]
    peak = ALLOCATOR.replay(events)
    assert 120 * MIB <= ALLOCATOR.least(events, peak) <= 122 * MIB


def made_up(seed: int) -> tuple[Events, int]:
    """Random events, and the most that is asked for at one time."""
    chance = random.Random(seed)
    events: Events = []
    held: dict[int, int] = {}
    most = 0
    for key in range(300):
        size = int(2 ** chance.uniform(8, 26))
        held[key] = size
        events.append((key, size))
        most = max(most, sum(held.values()))
        while held and chance.random() < 0.48:
            gone = chance.choice(list(held))
            del held[gone]
            events.append((gone, None))
    return events, most


@pytest.mark.parametrize("seed", range(5))
def test_counts_hold_together(seed: int) -> None:
    events, most = made_up(seed)
    peak: Any = ALLOCATOR.replay(events)
    assert most <= peak.allocated <= peak.reserved
    assert sum(peak.live.values()) == peak.allocated
    least = ALLOCATOR.least(events, peak)
    assert peak.allocated <= least <= peak.reserved
    assert ALLOCATOR.replay(events, least).allocated == peak.allocated
