"""What the comparing task measured, by lane and by pair of lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from whygpu.model.comparison import LayerError, TensorDifference, WholeOutput
from whygpu.model.task_wire import (
    FoundEntry,
    LayerErrorsFound,
    OwnFound,
    PairFound,
    ReferenceFound,
    WholeFound,
)


class Measures(NamedTuple):
    own: Mapping[str, tuple[TensorDifference, ...]]
    """By lane: what its two runs do not share. A lane that ran once is not among them."""
    reference: Mapping[str, tuple[TensorDifference, ...]]
    """By lane: its outputs against the float64 reference's."""
    layers: Mapping[str, tuple[LayerError, ...]]
    pairs: tuple[PairFound, ...]
    whole: Mapping[str, tuple[WholeOutput, ...]]
    """By lane: its outputs against what its own layers gave."""


def of_entries(entries: Iterable[FoundEntry]) -> Measures:
    found = tuple(entries)
    return Measures(
        own={each.lane: each.tensors for each in found if isinstance(each, OwnFound)},
        reference={each.lane: each.tensors for each in found if isinstance(each, ReferenceFound)},
        layers={each.lane: each.errors for each in found if isinstance(each, LayerErrorsFound)},
        pairs=tuple(each for each in found if isinstance(each, PairFound)),
        whole={each.lane: each.outputs for each in found if isinstance(each, WholeFound)},
    )
