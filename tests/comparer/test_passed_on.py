"""Which inputs of a step the program's own code has computed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.comparer.inside import part

passed_on: Any = part("lanes.passed_on")


class Tensor:
    """An array that knows as much as is asked for."""

    shape = (2, 3)
    dtype = "float32"


class Slotted:
    """One that no weak reference can be made to."""

    __slots__ = ()
    shape = (2, 3)
    dtype = "float32"


@pytest.mark.parametrize("kind", [Tensor, Slotted])
def test_results_and_inputs_are_passed_on_and_the_rest_is_computed(kind: Any) -> None:
    given, result = kind(), kind()
    noted = passed_on.PassedOn(list)
    noted.begin([given])
    noted.note([result])
    assert not noted.is_computed([given, result])
    assert noted.is_computed([result, kind()])


def test_results_of_steps_are_not_kept() -> None:
    """As many results as a deep model has would take the memory of training."""
    alive = []

    class Counted(Tensor):
        def __init__(self) -> None:
            alive.append(self.shape)

        def __del__(self) -> None:
            alive.pop()

    noted = passed_on.PassedOn(list)
    noted.begin([])
    for _ in range(5):
        noted.note([Counted()])
    assert alive == []
    assert noted.is_computed([Tensor()])
