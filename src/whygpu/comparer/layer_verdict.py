"""Judges the layers of two lanes: which differ, and which precision explains the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from whygpu.comparer.tolerance import LAST_BITS, digits_lost, explaining_precision
from whygpu.model.comparison import (
    LaneRun,
    LayerDifference,
    LayerError,
    Precision,
    TensorDifference,
    WholeOutput,
)

COARSER_FIRST: tuple[Precision, ...] = ("bfloat16", "float16", "tf32", "float32", "float64")


class LayerJudgement(NamedTuple):
    layer: LayerDifference
    parted: bool
    precision: Precision | None
    """What explains the difference, if something does."""
    unknown: str = ""
    """Why the layer could not be judged."""


class Lanes(NamedTuple):
    """Two lanes with their layers' errors against float64."""

    a: LaneRun
    b: LaneRun
    errors_a: Mapping[str, LayerError]
    errors_b: Mapping[str, LayerError]
    reference_backend: str = ""
    """What the reference was computed by, in words: keras 3.15.1 on tensorflow 2.21.0."""
    whole_a: Sequence[WholeOutput] = ()
    whole_b: Sequence[WholeOutput] = ()

    @property
    def products(self) -> Precision | None:
        """The coarsest precision that either may use for products; None if one is unknown."""
        known = [run.products for run in (self.a, self.b)]
        coarse = [precision for precision in known if precision in ("tf32", "bfloat16")]
        if coarse:
            return min(coarse, key=COARSER_FIRST.index)
        return None if None in known else "float32"

    @property
    def have_gpu(self) -> bool:
        """Whether one of them ran on a GPU: only GPUs multiply in TF32."""
        return "gpu" in (self.a.lane.device, self.b.lane.device)

    @property
    def gpu_of_unknown_products(self) -> bool:
        return any(
            run.lane.device == "gpu" and "no-tf32" not in run.lane.options and run.products is None
            for run in (self.a, self.b)
        )


def judge(layer: LayerDifference, lanes: Lanes) -> LayerJudgement:
    if any(tensor.how == "not-at-all" for tensor in layer.tensors):
        return LayerJudgement(layer, parted=True, precision=None)
    local = layer.local
    if local is None:
        return _without_reference(layer)
    if local.not_finite_in_one:
        return LayerJudgement(layer, parted=True, precision=None)
    precision = explaining_precision(
        local.units,
        _own_precision(layer.layer, lanes),
        lanes.products,
        lanes.gpu_of_unknown_products,
    )
    return LayerJudgement(layer, parted=precision is None, precision=precision)


def _own_precision(layer: str, lanes: Lanes) -> Precision:
    known: list[Precision] = [
        errors[layer].precision for errors in (lanes.errors_a, lanes.errors_b) if layer in errors
    ]
    return min(known, key=COARSER_FIRST.index) if known else "float32"


def _without_reference(layer: LayerDifference) -> LayerJudgement:
    """A layer that could not be computed again: it is fine if only last bits differ."""
    if all(_last_bits_only(tensor) for tensor in layer.tensors):
        return LayerJudgement(layer, parted=False, precision=_storage(layer.tensors))
    return LayerJudgement(layer, parted=False, precision=None, unknown=layer.local_unknown)


def _last_bits_only(tensor: TensorDifference) -> bool:
    if not tensor.unequal:
        return True
    lost = digits_lost(tensor)
    return not tensor.not_finite_in_one and lost is not None and lost <= LAST_BITS


def _storage(tensors: tuple[TensorDifference, ...]) -> Precision | None:
    names = {tensor.dtype_a for tensor in tensors} | {tensor.dtype_b for tensor in tensors}
    known: list[Precision] = [name for name in COARSER_FIRST if name in names]
    return known[0] if known else None
