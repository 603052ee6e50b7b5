"""The reasons for a verdict, in sentences, and which of two lanes is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from whygpu.comparer.layer_verdict import Lanes, LayerJudgement
from whygpu.comparer.output_evidence import all_the_same, precision_not_allowed
from whygpu.model.comparison import (
    LaneRun,
    LayerDifference,
    LayerError,
    TensorDifference,
    WholeOutput,
)
from whygpu.model.derived import and_list
from whygpu.model.figures import PRECISIONS, figure, share, times
from whygpu.model.task_wire import PairFound


class Witness(NamedTuple):
    """A third lane."""

    run: LaneRun
    errors: Mapping[str, LayerError]
    whole: Sequence[WholeOutput] = ()


def structure(measured: PairFound) -> list[str]:
    """Arrays that are missing in one lane, or have another shape there."""
    tensors = [
        *(tensor for layer in measured.layers for tensor in layer.tensors),
        *measured.outputs,
    ]
    return [_not_comparable(each, measured) for each in tensors if each.how == "not-at-all"][:5]


def _not_comparable(each: TensorDifference, measured: PairFound) -> str:
    for dtype, lane in ((each.dtype_a, measured.a), (each.dtype_b, measured.b)):
        if not dtype:
            return f"{lane} has no {each.name}"
    if each.shape_a != each.shape_b:
        return (
            f"{each.name} has the shape {_shape(each.shape_a)} on {measured.a} and "
            f"{_shape(each.shape_b)} on {measured.b}"
        )
    return f"{each.name} is {each.dtype_a} on {measured.a} and {each.dtype_b} on {measured.b}"


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "()"


def contradicted(
    judged: LayerJudgement, lanes: Lanes, witnesses: Sequence[Witness]
) -> LayerJudgement:
    """A difference that looks like TF32 is not, if it is also there with TF32 switched off."""
    local = judged.layer.local
    if judged.precision != "tf32" or local is None or local.units.own <= 1:
        return judged
    for witness in witnesses:
        error = witness.errors.get(judged.layer.layer)
        without = "no-tf32" in witness.run.lane.options and akin(witness.run, lanes)
        if without and error is not None and error.units.own > 1:
            return judged._replace(parted=True, precision=None)
    return judged


def akin(run: LaneRun, lanes: Lanes) -> bool:
    """Whether a third lane differs from one of the two in its options only."""
    return any(run.lane.differs_only_in_options(other.lane) for other in (lanes.a, lanes.b))


def parting(
    parted: Sequence[LayerJudgement], lanes: Lanes, witnesses: Sequence[Witness]
) -> tuple[str | None, list[str]]:
    """Which lane is wrong at the first layer that differs, if that is known, and the reasons."""
    first = parted[0]
    name = first.layer.layer
    reasons = [_how_far(first, lanes)]
    if first.layer.local is not None and first.layer.local.code_before:
        reasons.append(
            f"the program computes the input of {name} itself, between two layers: the difference "
            "is in that code or in the layer"
        )
    reasons += [
        f"its setting {each.setting} is {each.value_a} on {lanes.a.lane.name} and {each.value_b} "
        f"on {lanes.b.lane.name}"
        for each in first.layer.settings[:5]
    ]
    if first.layer.weights_differ:
        reasons.append("the two lanes have different weights for it")
    off, who = _who_is_off(name, lanes, witnesses)
    set_up_alike = not first.layer.settings and not first.layer.weights_differ
    reasons += who if set_up_alike else who[:1]
    reasons += _looks_like(first, lanes)
    others = [each.layer.layer for each in parted[1:]]
    if others:
        shown = and_list(others[:3])
        more = f", and {len(others) - 3:,} more" if len(others) > 3 else ""
        verb = "differs" if len(others) == 1 else "differ"
        reasons.append(f"given the same input, {shown}{more} also {verb}")
    else:
        reasons.append("given the same input, every other layer agrees")
    return off, reasons


def _how_far(judged: LayerJudgement, lanes: Lanes) -> str:
    layer, local = judged.layer, judged.layer.local
    title = f"{layer.layer} ({layer.kind})"
    if local is None:
        return f"{title} is not the same: {layer.local_unknown or 'its outputs differ'}"
    if local.not_finite_in_one:
        return f"{title} is {_not_finite_lanes(layer, lanes)}"
    return (
        f"given the same input, {title} differs by up to {figure(local.max_abs)}, "
        f"{times(local.units.own)} what rounding explains"
    )


def _not_finite_lanes(layer: LayerDifference, lanes: Lanes) -> str:
    counts = (
        sum(tensor.nan_a + tensor.inf_a for tensor in layer.tensors),
        sum(tensor.nan_b + tensor.inf_b for tensor in layer.tensors),
    )
    reasons = []
    for run, errors, count in zip(
        (lanes.a, lanes.b), (lanes.errors_a, lanes.errors_b), counts, strict=True
    ):
        error = errors.get(layer.layer)
        if not count:
            continue
        text = f"NaN or infinite in {count:,} places on {run.lane.name}"
        if error is not None and error.not_finite:
            half = "; float16 cannot hold such values" if error.precision == "float16" else ""
            text += f"; in float64 the same input gives finite values{half}"
        reasons.append(text)
    return " and ".join(reasons) or "finite in one lane only"


def _who_is_off(
    layer: str, lanes: Lanes, witnesses: Sequence[Witness]
) -> tuple[str | None, list[str]]:
    """The reference decides, unless one of the lanes was computed by the same code as it was."""
    errors = ((lanes.a, lanes.errors_a.get(layer)), (lanes.b, lanes.errors_b.get(layer)))
    known = [(run, error) for run, error in errors if error is not None]
    if len(known) < 2:
        return None, []
    bad = [run for run, error in known if is_off(run, error)]
    good = [run for run, error in known if not is_off(run, error)]
    sizes = (_error_words(run, error) for run, error in known)
    reasons = [f"compared with float64: {', '.join(sizes)}"]
    if any(error.finite_alone for _, error in known):
        reasons.append(
            f"the float64 reference, computed by {lanes.reference_backend}, is not finite there "
            "either"
        )
        return None, reasons
    if len(bad) != 1:
        return None, reasons
    off, fine = bad[0], good[0]
    overflow = any(run is off and error.not_finite for run, error in known)
    if overflow or not _shares(fine, lanes) or _shares(off, lanes):
        return off.lane.name, reasons
    third = [each for each in witnesses if layer in each.errors and not _shares(each.run, lanes)]
    third = [each for each in third if each.run.lane.backend != off.lane.backend]
    backend = lanes.reference_backend
    if not third:
        reasons.append(
            f"{backend} computed both the reference and {fine.lane.name}: a third backend would "
            "show which of the two lanes is right"
        )
        return None, reasons
    if any(is_off(each.run, each.errors[layer]) for each in third):
        names = and_list([each.run.lane.name for each in third])
        reasons.append(
            f"{backend} computed both the reference and {fine.lane.name}, and {names} does not "
            f"agree with the reference: {fine.lane.name} may be the wrong one"
        )
        return None, reasons
    return off.lane.name, reasons


def is_off(run: LaneRun, error: LayerError) -> bool:
    """Whether a lane's layer is further from float64 than its precision explains."""
    if error.not_finite:
        return True
    coarse = {"tf32": error.units.tf32, "bfloat16": error.units.bfloat16}.get(run.products or "")
    return min(error.units.own, coarse if coarse is not None else error.units.own) > 1


def _shares(run: LaneRun, lanes: Lanes) -> bool:
    """Whether the reference was computed by the same code as the lane."""
    return run.lane.backend is None or run.lane.backend in lanes.reference_backend.split()


def _error_words(run: LaneRun, error: LayerError) -> str:
    if error.not_finite:
        return f"{run.lane.name} is not finite in {error.not_finite:,} places"
    if error.finite_alone:
        return f"{run.lane.name} is finite in {error.finite_alone:,} places where float64 is not"
    return f"{run.lane.name} differs by {share(error.units.own)} what rounding explains"


def _looks_like(judged: LayerJudgement, lanes: Lanes) -> list[str]:
    local = judged.layer.local
    fits = local.units.looks_like if local is not None else None
    if fits is None or local is None or local.not_finite_in_one or not lanes.have_gpu:
        return []
    return [precision_not_allowed(fits)]


def unknown_layers(
    unknown: Sequence[LayerJudgement], judged: Sequence[LayerJudgement]
) -> list[str]:
    first = unknown[0]
    count = len(judged) - len(unknown)
    return [
        f"{first.layer.layer} ({first.layer.kind}) differs and cannot be judged: {first.unknown}",
        f"{count:,} of {len(judged):,} layers can be judged, and none of these differs",
    ]


def rounding(
    judged: Sequence[LayerJudgement],
    measured: PairFound,
    lanes: Lanes,
    witnesses: Sequence[Witness],
) -> list[str]:
    reasons = _other_types(judged, measured)
    local = [(each, each.layer.local) for each in judged]
    coarse = [each for each, found in local if found is not None and found.units.own > 1]
    plain = [(found.units.own, each) for each, found in local if found and found.units.own <= 1]
    if coarse:
        reasons.append(_coarse(coarse, lanes))
        reasons += _gone_without(coarse, lanes, witnesses)
    if plain:
        most, worst = max(plain, key=lambda pair: pair[0])
        reasons.append(
            f"given the same input, {_each_of(len(plain), other=bool(coarse))} differs by at most "
            f"{figure(most)} of what rounding explains ({worst.layer.layer})"
        )
    alone = [each for each, found in local if found is None]
    if alone:
        reasons.append(
            f"{len(alone):,} of {len(judged):,} layers have no float64 reference; they differ only "
            "in their last bits"
        )
    made = [each for each in measured.outputs if each.kind == "output"]
    return reasons + all_the_same(made)


def _other_types(judged: Sequence[LayerJudgement], measured: PairFound) -> list[str]:
    """What no rounding explains, although the figures do not exceed that of the coarser type."""
    other = [
        (each.layer.layer, tensor)
        for each in judged
        for tensor in each.layer.tensors[:1]
        if tensor.dtype_a and tensor.dtype_b and tensor.dtype_a != tensor.dtype_b
    ]
    if not other:
        return []
    name, tensor = other[0]
    rest = len(other) - 1
    layers = "layer differs" if rest == 1 else "layers differ"
    more = f" ({rest:,} more {layers}, too)" if rest else ""
    return [
        f"{name} is {tensor.dtype_a} on {measured.a} and {tensor.dtype_b} on {measured.b}{more}; "
        "the lanes agree only to the digits of the coarser type"
    ]


def _each_of(count: int, *, other: bool) -> str:
    if count == 1:
        return "the other layer" if other else "the only layer"
    return f"each of {'the other ' if other else ''}{count:,} layers"


def _coarse(coarse: Sequence[LayerJudgement], lanes: Lanes) -> str:
    name = PRECISIONS.get(coarse[0].precision or "", coarse[0].precision or "")
    users = [run.lane.name for run in (lanes.a, lanes.b) if run.products not in ("float32", None)]
    who = and_list(users) if users else "the GPU lane, by its known settings,"
    worst = max(coarse, key=lambda each: each.layer.local.units.own if each.layer.local else 0.0)
    units = worst.layer.local.units if worst.layer.local else None
    ratio = (units.tf32 if worst.precision == "tf32" else units.bfloat16) if units else None
    return (
        f"{_layers_multiply(len(coarse))} in {name}, which {who} may use: "
        f"{worst.layer.layer} differs by {times(units.own if units else 0.0)} what float32 "
        f"explains, and {figure(ratio or 0.0)} of what {name} explains"
    )


def _layers_multiply(count: int) -> str:
    return "one layer multiplies" if count == 1 else f"{count:,} layers multiply"


def _gone_without(
    coarse: Sequence[LayerJudgement], lanes: Lanes, witnesses: Sequence[Witness]
) -> list[str]:
    for witness in witnesses:
        if "no-tf32" in witness.run.lane.options and akin(witness.run, lanes):
            errors = [witness.errors.get(each.layer.layer) for each in coarse]
            known = [error.units.own for error in errors if error is not None]
            if known and max(known) <= 1:
                return [f"the difference is gone in {witness.run.lane.name}"]
    return []
