"""What the comparing task measured, by lane and by pair of lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from whygpu.model.codec import decode
from whygpu.model.comparison import LayerDifference, LayerError, TensorDifference, WholeOutput


class PairMeasures(NamedTuple):
    a: str
    b: str
    outputs: tuple[TensorDifference, ...]
    layers: tuple[LayerDifference, ...]


class Measures(NamedTuple):
    own: Mapping[str, tuple[TensorDifference, ...]]
    """By lane: what its two runs do not share. A lane that ran once is not among them."""
    reference: Mapping[str, tuple[TensorDifference, ...]]
    """By lane: its outputs against the float64 reference's."""
    layers: Mapping[str, tuple[LayerError, ...]]
    pairs: tuple[PairMeasures, ...]
    whole: Mapping[str, tuple[WholeOutput, ...]]
    """By lane: its outputs against what its own layers gave."""


def of_entries(entries: Iterable[Mapping[str, Any]]) -> Measures:
    """From what `tasks.differences` has found."""
    own: dict[str, tuple[TensorDifference, ...]] = {}
    reference: dict[str, tuple[TensorDifference, ...]] = {}
    layers: dict[str, tuple[LayerError, ...]] = {}
    pairs: list[PairMeasures] = []
    whole: dict[str, tuple[WholeOutput, ...]] = {}
    for entry in entries:
        match entry["kind"]:
            case "own":
                own[entry["lane"]] = decode(_Tensors, entry["tensors"], "own")
            case "reference":
                reference[entry["lane"]] = decode(_Tensors, entry["tensors"], "reference")
            case "layer-errors":
                layers[entry["lane"]] = decode(_LayerErrors, entry["errors"], "layer-errors")
            case "whole":
                whole[entry["lane"]] = decode(_Wholes, entry["outputs"], "whole")
            case "pair":
                fields = {name: entry[name] for name in PairMeasures._fields}
                pairs.append(decode(PairMeasures, fields, "pair"))
    return Measures(own, reference, layers, tuple(pairs), whole)


_Tensors = tuple[TensorDifference, ...]
_LayerErrors = tuple[LayerError, ...]
_Wholes = tuple[WholeOutput, ...]
