"""Cells of a comparison's tables, the same on the terminal and in HTML."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.comparer.tolerance import fitting_precision
from whygpu.comparer.words import figure, seconds
from whygpu.model.comparison import (
    DeterminismKind,
    LaneEnd,
    LaneResult,
    LayerDifference,
    PairVerdict,
    Precision,
    TensorDifference,
    Units,
    Verdict,
)
from whygpu.render.run import size

ENDS: dict[LaneEnd, str] = {
    "ran": "ran",
    "cannot-run": "cannot run here",
    "failed": "failed",
    "wrong-device": "ran on the wrong device",
}
STEADY: dict[DeterminismKind, str] = {
    "same": "same",
    "rounding": "to rounding",
    "unseeded": "unseeded",
    "different": "no",
    "unknown": "?",
}
_PRECISIONS: dict[Precision, str] = {"tf32": "TF32"}
LANE_COLUMNS = ("lane", "ran on", "agrees with itself", "one call", "first call", "speed", "peak")
PAIR_COLUMNS = ("lanes", "verdict", "largest", "relative", "ULPs", "cosine", "parts at")
TENSOR_COLUMNS = (
    "name",
    "kind",
    "largest",
    "relative",
    "ULPs",
    "cosine",
    "NaN, inf",
    "of rounding",
)
_PREFIX = "keras:"


def lane_row(lane: LaneResult) -> tuple[str, ...]:
    run, speed = lane.run, lane.speed
    where = ", ".join(run.devices) or run.lane.device
    cells = [run.lane.name, where, STEADY[lane.determinism.kind]]
    if speed is None:
        return (*cells, "-", "-", "-", "-")
    half = max(speed.high_seconds - speed.median_seconds, speed.median_seconds - speed.low_seconds)
    spread = f" ±{100 * half / speed.median_seconds:.0f} %" if speed.median_seconds else ""
    against = "-" if speed.against_cpu is None else f"{figure(speed.against_cpu)}x"
    peak = speed.peak_device_bytes or speed.peak_host_bytes
    return (
        *cells,
        f"{seconds(speed.median_seconds)}{spread}",
        seconds(speed.first_call_seconds),
        against,
        size(peak) if peak else "-",
    )


def slower(lane: LaneResult) -> str:
    because = lane.speed.slower_because if lane.speed is not None else ""
    return f"{lane.run.lane.name} is slower than the CPU here because {because}"


def pair_rows(pairs: Sequence[PairVerdict]) -> list[tuple[str, ...]]:
    names = {name for pair in pairs for name in (pair.a, pair.b)}
    cut = len(_PREFIX) if all(name.startswith(_PREFIX) for name in names) else 0
    return [
        (
            f"{pair.a[cut:]}, {pair.b[cut:]}",
            verdict_words(pair.verdict, pair.level),
            *figures(worst_output(pair)),
            pair.first_layer or "-",
        )
        for pair in pairs
    ]


def output_row(tensor: TensorDifference) -> tuple[str, ...]:
    units = "-" if tensor.units is None else coarse_words(tensor.units)
    return (tensor.name, tensor.kind, *figures(tensor), not_finite(tensor), units)


def layer_row(layer: LayerDifference) -> tuple[str, ...]:
    worst = max(layer.tensors, key=_weight, default=None)
    odd = "-" if worst is None else not_finite(worst)
    return (layer.layer, layer.kind, *figures(worst), odd, units_words(layer))


def not_finite(tensor: TensorDifference) -> str:
    """How many are NaN and how many infinite, on either side."""
    sides = [(tensor.nan_a, tensor.inf_a), (tensor.nan_b, tensor.inf_b)]
    if not any(map(any, sides)):
        return "-"
    return " / ".join(f"{nan:,}, {inf:,}" for nan, inf in sides)


def units_words(layer: LayerDifference) -> str:
    local = layer.local
    if local is None:
        return "?" if layer.local_unknown else "-"
    if local.not_finite_in_one:
        return "not finite"
    return coarse_words(local.units)


def coarse_words(units: Units) -> str:
    if units.own > 1 and units.tf32 is not None and fitting_precision(units) == "tf32":
        return f"{figure(units.own)} ({figure(units.tf32)} of TF32)"
    return figure(units.own)


def verdict_words(verdict: Verdict, level: Precision | None) -> str:
    return f"{verdict} ({_PRECISIONS.get(level, level)})" if level is not None else verdict


def worst_output(pair: PairVerdict) -> TensorDifference | None:
    return max(pair.outputs, key=_weight, default=None)


def _weight(tensor: TensorDifference) -> tuple[bool, int, float, int, bool]:
    return (
        tensor.how == "not-at-all",
        tensor.not_finite_in_one,
        tensor.relative or 0.0,
        tensor.unequal,
        tensor.how == "numbers",
    )


def figures(tensor: TensorDifference | None) -> tuple[str, str, str, str]:
    """Largest, relative, ULPs, cosine."""
    if tensor is None:
        return ("-", "-", "-", "-")
    if tensor.how == "not-at-all":
        return ("no match", "-", "-", "-")
    if tensor.not_finite_in_one:
        return (f"{tensor.not_finite_in_one:,} not finite", "-", "-", "-")
    if tensor.how == "exactly":
        return (f"{tensor.unequal:,} differ" if tensor.unequal else "0", "-", "-", "-")
    return (
        _perhaps(tensor.max_abs),
        _perhaps(tensor.relative),
        "-" if tensor.max_ulp is None else _count(tensor.max_ulp),
        "-" if tensor.cosine is None else f"{tensor.cosine:.6f}",
    )


def _perhaps(number: float | None) -> str:
    return "-" if number is None else figure(number)


def _count(steps: int) -> str:
    return f"{steps:,}" if steps < 1_000_000 else f"{steps:.1e}"
