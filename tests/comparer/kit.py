"""Measured differences of made-up lanes: a test says only in what they differ from rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whygpu.comparer.comparison_report import report
from whygpu.comparer.measures import Measures
from whygpu.comparer.tolerance import Tolerance
from whygpu.model.comparison import (
    ComparisonReport,
    Lane,
    LaneRun,
    LayerDifference,
    LayerError,
    LocalDifference,
    Reference,
    TensorDifference,
    Timing,
    Units,
    WholeOutput,
)
from whygpu.model.task_wire import PairFound

TIMING = Timing(0.5, (0.010, 0.011, 0.012), items=4)


def tensor(name: str = "output", **changed: Any) -> TensorDifference:
    """Two arrays that differ in their last bits."""
    plain = TensorDifference(
        name, "output", "numbers", "float32", "float32", (2, 10), (2, 10), unequal=7, max_abs=6e-8,
        max_rel=1e-7, max_ulp=1, rms=2e-8, scale=1.0, level=0.5, cosine=1.0, where=(0, 3),
        value_a="0.5", value_b="0.50000006",
    )  # fmt: skip
    return plain._replace(**changed)


def same(name: str = "output", **changed: Any) -> TensorDifference:
    equal = {"unequal": 0, "max_abs": 0.0, "max_rel": 0.0, "max_ulp": 0, "rms": 0.0, "where": ()}
    return tensor(name, **{**equal, **changed})


def layer(name: str, units: Units | None = None, **changed: Any) -> LayerDifference:
    local = None if units is None else LocalDifference(6e-8, units)
    plain = LayerDifference(name, "Conv2D", (tensor(name, kind="layer"),), local)
    return plain._replace(**changed)


FINE, ROUNDED, WRONG = Units(0.05, 0.0005, 0.0001), Units(0.1, 0.001, 0.0003), Units(500, 40, 10)
TF32 = Units(60, 0.3, 0.08)


def run(name: str, **changed: Any) -> LaneRun:
    device, _, options = name.partition(":")
    backend = options if device == "keras" else None
    kinds = () if backend or not options else tuple(options.split("+"))
    lane = Lane(name, "gpu" if device == "gpu" else "cpu", kinds, backend)  # type: ignore[arg-type]
    return LaneRun(lane, "ran", products="float32", devices=(lane.device,))._replace(**changed)


def errors(lane: str, **units: Units) -> tuple[LayerError, ...]:
    return tuple(LayerError(name, lane, "float32", 1e-7, each, 0) for name, each in units.items())


def judged(
    runs: Sequence[LaneRun],
    pairs: Sequence[PairFound],
    *,
    layers: Mapping[str, tuple[LayerError, ...]] | None = None,
    own: Mapping[str, tuple[TensorDifference, ...]] | None = None,
    whole: Mapping[str, tuple[WholeOutput, ...]] | None = None,
    tolerance: float | None = None,
    backend: str = "keras 3.15.1 on tensorflow 2.21.0",
    notes: Sequence[str] = (),
    reference: Reference | None = None,
) -> ComparisonReport:
    steady = {each.lane.name: () for each in runs if each.end == "ran"}
    return report(
        what="model.keras",
        inputs="random, seed 0",
        tolerance=Tolerance(tolerance),
        reference=reference or Reference(True, backend),
        runs=runs,
        measures=Measures({**steady, **(own or {})}, {}, layers or {}, tuple(pairs), whole or {}),
        notes=notes,
    )


def pair(
    a: str,
    b: str,
    layers: Sequence[LayerDifference] = (),
    outputs: Sequence[TensorDifference] | None = None,
) -> PairFound:
    return PairFound(a, b, (tensor(),) if outputs is None else tuple(outputs), tuple(layers))
