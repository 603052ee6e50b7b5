"""Batches in the shapes that programs have them in."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import pytest

from whygpu.errors import UsageError
from whygpu.guard.batches import bounds, leaves, mapped, samples_in


class Rows:
    """As much of an array as is asked for."""

    dtype = "float32"

    def __init__(self, rows: int, *, axes: int = 2) -> None:
        self.shape = (rows, 3)[:axes]


class Pair(NamedTuple):
    x: Any
    y: Any


def test_all_arrays_are_found_and_changed_in_their_containers() -> None:
    batch = ([Rows(4), None], {"a": Rows(4), "n": 3}, Pair(Rows(4), Rows(0, axes=0)))
    assert samples_in(leaves(batch)) == 4
    changed = mapped(batch, lambda array: Rows(1))
    assert samples_in(leaves(changed)) == 1
    assert isinstance(changed[2], Pair)
    assert changed[0][1] is None
    assert changed[1]["n"] == 3
    assert changed[2].y is batch[2].y
    assert samples_in(leaves(batch)) == 4


def test_a_mapping_keeps_its_type() -> None:
    assert type(mapped(OrderedDict(a=Rows(2)), lambda array: array)) is OrderedDict


def test_rows_must_agree() -> None:
    with pytest.raises(UsageError, match=r"batch\[0\] has 4, batch\[1\]\['w'\] has 10"):
        samples_in(leaves((Rows(4), {"w": Rows(10)})))


@pytest.mark.parametrize("batch", [object(), ({1, 2},), {"graph": object()}])
def test_what_is_unknown_is_refused(batch: Any) -> None:
    with pytest.raises(UsageError, match="cannot split"):
        samples_in(leaves(batch))


def test_without_an_array_there_is_nothing_to_cut() -> None:
    with pytest.raises(UsageError, match="no array"):
        samples_in(leaves((1, "a", Rows(0, axes=0))))


def test_bounds() -> None:
    assert list(bounds((3, 2, 2))) == [(0, 3), (3, 5), (5, 7)]
