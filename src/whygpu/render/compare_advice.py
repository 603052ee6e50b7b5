"""What to do about a comparison: only advice that follows from what it found."""

from __future__ import annotations

import math
from collections.abc import Iterator

from whygpu.model.comparison import (
    KERAS_BACKENDS,
    ComparisonReport,
    LaneResult,
    LayerDifference,
    LayerError,
    PairVerdict,
)
from whygpu.model.derived import and_list

_MOST = 5
_FEW = 2
_LARGEST_FLOAT16 = 65_504
_RUN_OPTIONS = {
    "no-cudnn": "--cudnn off",
    "no-tf32": "--tf32 off",
    "deterministic": "--deterministic",
}


def advice(report: ComparisonReport) -> list[str]:
    """Most useful first, each once."""
    return list(dict.fromkeys(_found(report)))[:_MOST]


def _found(report: ComparisonReport) -> Iterator[str]:
    yield from _seeds(report)
    for pair in report.pairs:
        if pair.verdict == "different":
            yield from _mend(pair, report)
    yield from _missing_lanes(report)
    yield from _races(report)
    yield from _not_a_number(report)
    if [lane.run.end for lane in report.lanes] == ["ran"]:
        yield "name a second lane: --lanes cpu,gpu, or keras:tensorflow,keras:jax"
    if any(pair.verdict == "rounding" and pair.level == "tf32" for pair in report.pairs):
        yield "for products in full float32: whygpu run --tf32 off -- python train.py"


def _seeds(report: ComparisonReport) -> Iterator[str]:
    if any(lane.determinism.kind == "unseeded" for lane in report.lanes):
        yield (
            "seed every generator where the program starts (keras.utils.set_random_seed(0), "
            "torch.manual_seed(0), numpy.random.seed(0)), and compare again"
        )


def _mend(pair: PairVerdict, report: ComparisonReport) -> Iterator[str]:
    if report.tolerance != "auto":
        yield (
            f"the tolerance {report.tolerance} was given; --tolerance auto tells whether it is "
            "more than rounding, and in which layer"
        )
        return
    layer = next((each for each in pair.layers if each.layer == pair.first_layer), None)
    if layer is None:
        yield from _go_around(pair, report)
        yield from _narrow_down(pair)
    else:
        yield from _mend_layer(layer, pair, report)


def _go_around(pair: PairVerdict, report: ComparisonReport) -> Iterator[str]:
    """If a lane is wrong only as a whole model: the options of a lane that is right."""
    lanes = {lane.run.lane.name: lane for lane in report.lanes}
    if pair.off is None or not any(
        each.output == pair.first_layer for each in lanes[pair.off].whole
    ):
        return
    off = {each.off for each in report.pairs if each.verdict == "different"}
    wrong = lanes[pair.off].run.lane
    for name, lane in lanes.items():
        other = lane.run.lane
        akin = other.differs_only_in_options(wrong)
        options = [_RUN_OPTIONS[each] for each in other.options if each in _RUN_OPTIONS]
        if akin and name not in off and lane.run.end == "ran" and options:
            yield f"whygpu run {' '.join(options)} -- python train.py avoids the fault"
            return


def _narrow_down(pair: PairVerdict) -> Iterator[str]:
    if pair.first_layer is not None and any(each.kind == "recorded" for each in pair.outputs):
        yield (
            f"look between {pair.first_layer} and what is recorded before it; more calls of "
            "whygpu.record() there narrow it down"
        )


def _mend_layer(
    layer: LayerDifference, pair: PairVerdict, report: ComparisonReport
) -> Iterator[str]:
    for each in layer.settings:
        values = _values(layer.layer, each.setting, report)
        yield f"give {layer.layer} the same {each.setting} everywhere: it is {values}"
    if layer.weights_differ:
        yield f"load the same weights everywhere: those of {layer.layer} are not the same"
    if layer.settings or layer.weights_differ:
        return
    overflow = [error for error in _errors(layer.layer, report) if error.not_finite]
    half = [error.lane for error in overflow if error.precision == "float16"]
    if half:
        yield (
            f"let {layer.layer} compute in float32 or bfloat16 on {and_list(half)}, or keep its "
            f"values below {_LARGEST_FLOAT16:,}: float16 cannot hold more"
        )
    elif _looks_like_tf32(layer, pair, report):
        yield (
            "add a lane with no-tf32, such as gpu:no-tf32: if the difference is gone there, TF32 "
            "is the cause"
        )
    elif pair.off is not None and layer.local is not None and layer.local.code_before:
        yield (
            f"look at what the program computes on {pair.off} between {layer.layer} and the layers "
            f"before it, and at {layer.layer} ({layer.kind}) itself"
        )
    elif pair.off is not None:
        yield (
            f"look at what {layer.layer} ({layer.kind}) computes on {pair.off}: its input is "
            "right, and its output is not"
        )
    else:
        yield from _third_backend(pair, report)


def _looks_like_tf32(layer: LayerDifference, pair: PairVerdict, report: ComparisonReport) -> bool:
    """Only GPUs multiply in TF32."""
    on_gpu = {lane.run.lane.name for lane in report.lanes if lane.run.lane.device == "gpu"}
    fits = layer.local is not None and layer.local.units.looks_like == "tf32"
    return fits and not on_gpu.isdisjoint((pair.a, pair.b))


def _values(layer: str, setting: str, report: ComparisonReport) -> str:
    """The values of a setting with their lanes, the rarest value first."""
    lanes: dict[str, dict[str, None]] = {}
    for pair in report.pairs:
        for found in pair.layers:
            for each in found.settings:
                if (found.layer, each.setting) == (layer, setting):
                    lanes.setdefault(each.value_a, {})[pair.a] = None
                    lanes.setdefault(each.value_b, {})[pair.b] = None
    *few, (most, names) = sorted(lanes.items(), key=lambda item: len(item[1]))
    values = [f"{value} on {and_list(list(names))}" for value, names in few]
    rest = "the others" if len(names) > _FEW else and_list(list(names))
    return ", ".join([*values, f"and {most} on {rest}"])


def _errors(layer: str, report: ComparisonReport) -> Iterator[LayerError]:
    for lane in report.lanes:
        yield from (error for error in lane.layers if error.layer == layer)


def _third_backend(pair: PairVerdict, report: ComparisonReport) -> Iterator[str]:
    lanes = {lane.run.lane.name: lane.run.lane for lane in report.lanes}
    between = {lanes[pair.a].backend, lanes[pair.b].backend}
    known = {lane.backend for lane in lanes.values() if lane.backend is not None}
    others = [name for name in KERAS_BACKENDS if name not in known]
    if None not in between and len(between) > 1 and others:
        yield f"add keras:{others[0]} to --lanes: a third backend shows which of the two is right"


def _missing_lanes(report: ComparisonReport) -> Iterator[str]:
    started = [lane for lane in report.lanes if lane.run.end != "cannot-run"]
    if started and all(lane.run.end == "failed" for lane in started):
        yield ("fix the program or its inputs first: no lane finished, for the reason above")
        return
    missing = [lane for lane in report.lanes if lane.run.end in ("cannot-run", "wrong-device")]
    absent = [lane for lane in missing if lane.run.missing]
    no_gpu = [lane for lane in missing if lane.run.lane.device == "gpu" and lane not in absent]
    used = any(lane.run.lane.device == "gpu" and lane.run.end == "ran" for lane in report.lanes)
    if no_gpu and not used:
        yield "whygpu check says why the GPU is not used here, and how to fix it"
    if absent:
        names = _names(absent)
        yield f"for {names}, install what is missing, or name another environment with --python"


def _races(report: ComparisonReport) -> Iterator[str]:
    racing = [lane for lane in report.lanes if lane.determinism.kind == "different"]
    if racing:
        yield (
            f"compare with the lane gpu:deterministic as well: if that one agrees with itself, "
            f"kernels race on {_names(racing)}"
        )


def _not_a_number(report: ComparisonReport) -> Iterator[str]:
    """Two NaNs count as equal, and prove nothing."""
    for pair in report.pairs:
        for each in pair.outputs:
            if each.nan_a and each.nan_b:
                yield (
                    f"{each.name} is NaN in {min(each.nan_a, each.nan_b):,} of "
                    f"{math.prod(each.shape_a):,} places on both lanes, so this says nothing about "
                    "the lanes: fix that first, or give other --inputs"
                )


def _names(lanes: list[LaneResult]) -> str:
    return and_list([lane.run.lane.name for lane in lanes])
