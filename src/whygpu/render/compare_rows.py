"""Cells of a comparison's tables, the same on the terminal and in HTML."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.model.comparison import (
    DeterminismKind,
    LaneEnd,
    LaneResult,
    LayerDifference,
    PairVerdict,
    Precision,
    SpeedSummary,
    TensorDifference,
    Units,
    Verdict,
)
from whygpu.model.figures import figure, seconds
from whygpu.model.units import size_text

ENDS: dict[LaneEnd, str] = {
    "ran": "ran",
    "cannot-run": "cannot run here",
    "failed": "failed",
    "wrong-device": "ran on the wrong device",
}
STEADY: dict[DeterminismKind, str] = {
    "same": "exactly",
    "rounding": "to rounding",
    "unseeded": "unseeded",
    "different": "no",
    "unknown": "?",
}
_PRECISIONS: dict[Precision, str] = {"tf32": "TF32"}
LANE_COLUMNS: tuple[str, ...] = ("lane", "on", "repeats", "one call", "first call", "speed", "peak")
PAIR_COLUMNS: tuple[str, ...] = (
    "lanes",
    "verdict",
    "largest",
    "relative",
    "ULPs",
    "cosine",
    "worst in",
    "first at",
)
TENSOR_COLUMNS: tuple[str, ...] = (
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


def lane_rows(lanes: Sequence[LaneResult]) -> list[tuple[str, ...]]:
    """One row for each lane that ran. Speed is relative to the first lane on the CPU."""
    baseline = next((lane for lane in lanes if lane.run.lane.device == "cpu"), None)
    others = any(lane.speed is not None and lane.speed.against_cpu for lane in lanes)
    one_gpu = len(gpus(lanes)) == 1
    return [
        _lane_row(lane, one_gpu, "1x" if lane is baseline and others else "-") for lane in lanes
    ]


def gpus(lanes: Sequence[LaneResult]) -> list[str]:
    """The GPUs that lanes ran on, by name."""
    names = [", ".join(lane.run.devices) for lane in lanes if lane.run.lane.device == "gpu"]
    return sorted(set(names) - {"", "gpu"})


def _lane_row(lane: LaneResult, one_gpu: bool, baseline: str) -> tuple[str, ...]:
    run, speed = lane.run, lane.speed
    named = run.devices and run.lane.device == "gpu" and not one_gpu
    where = ", ".join(run.devices) if named else run.lane.device.upper()
    cells = (run.lane.name, where, STEADY[lane.determinism.kind])
    if speed is None:
        return (*cells, "-", "-", "-", "-")
    peak = speed.peak_device_bytes or speed.peak_host_bytes
    return (
        *cells,
        f"{seconds(speed.median_seconds)}{_spread(speed)}",
        seconds(speed.first_call_seconds),
        baseline if speed.against_cpu is None else f"{figure(speed.against_cpu)}x",
        size_text(peak) if peak else "-",
    )


def _spread(speed: SpeedSummary) -> str:
    if speed.no_measurement or not speed.median_seconds:
        return " (?)"
    half = max(speed.high_seconds - speed.median_seconds, speed.median_seconds - speed.low_seconds)
    return f" ±{100 * half / speed.median_seconds:.0f} %"


def pair_row(pair: PairVerdict, lanes: str) -> tuple[str, ...]:
    """`lanes` is the name of the pair."""
    verdict, worst = verdict_words(pair.verdict, pair.level), worst_output(pair)
    which = worst.name if worst is not None and len(pair.outputs) > 1 else "-"
    return (lanes, verdict, *figures(worst), which, pair.first_layer or "-")


def short_names(pairs: Sequence[PairVerdict]) -> dict[str, str]:
    """Lane names without the prefix that they all share."""
    names = {name for pair in pairs for name in (pair.a, pair.b)}
    cut = len(_PREFIX) if all(name.startswith(_PREFIX) for name in names) else 0
    return {name: name[cut:] for name in names}


def output_row(tensor: TensorDifference) -> tuple[str, ...]:
    units = "-" if tensor.units is None else coarse_words(tensor.units)
    return (
        tensor.name.removeprefix(f"{tensor.kind} "),
        tensor.kind,
        *figures(tensor),
        not_finite(tensor),
        units,
    )


def layer_row(layer: LayerDifference) -> tuple[str, ...]:
    worst = max(layer.tensors, key=_weight, default=None)
    odd = "-" if worst is None else not_finite(worst)
    return (layer.layer, layer.kind, *figures(worst), odd, units_words(layer))


def not_finite(tensor: TensorDifference) -> str:
    """How many are NaN and how many infinite, on either side: - / 40 NaN."""
    sides = [(tensor.nan_a, tensor.inf_a), (tensor.nan_b, tensor.inf_b)]
    if not any(map(any, sides)):
        return "-"
    return " / ".join(_odd(nan, infinite) for nan, infinite in sides)


def _odd(nan: int, infinite: int) -> str:
    counts = [(nan, "NaN"), (infinite, "inf")]
    return " + ".join(f"{count:,} {name}" for count, name in counts if count) or "-"


def units_words(layer: LayerDifference) -> str:
    local = layer.local
    if local is None:
        return "?" if layer.local_unknown else "-"
    if local.not_finite_in_one:
        return "not finite"
    return coarse_words(local.units)


def coarse_words(units: Units) -> str:
    if units.own > 1 and units.tf32 is not None and units.looks_like == "tf32":
        return f"{figure(units.own)} ({figure(units.tf32)} of TF32)"
    return figure(units.own)


def verdict_words(verdict: Verdict, level: Precision | None) -> str:
    return f"{verdict} ({_PRECISIONS.get(level, level)})" if level is not None else verdict


def worst_output(pair: PairVerdict) -> TensorDifference | None:
    return max(pair.outputs, key=_weight, default=None)


def pair_weight(pair: PairVerdict) -> tuple[bool, int, float, int, bool]:
    worst = worst_output(pair)
    return _weight(worst) if worst is not None else (False, 0, 0.0, 0, False)


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
