"""The verdict on two lanes: equal, rounding, different or undetermined, with the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whygpu.comparer import evidence, layer_verdict, output_evidence, whole_model
from whygpu.comparer.layer_verdict import COARSER_FIRST, Lanes
from whygpu.comparer.tolerance import (
    LAST_BITS,
    UNRELATED,
    Tolerance,
    digits_lost,
    explaining_precision,
    overall,
    within,
)
from whygpu.model.comparison import (
    Determinism,
    PairVerdict,
    Precision,
    TensorDifference,
    Verdict,
)
from whygpu.model.task_wire import PairFound

UNSTEADY = ("unseeded", "different")
TRAINED = ("loss", "gradient", "weight")
"""The results of training do not follow from the layers of one inference."""


def pair(
    measured: PairFound,
    lanes: Lanes,
    tolerance: Tolerance,
    steadiness: Mapping[str, Determinism],
    witnesses: Sequence[evidence.Witness] = (),
) -> PairVerdict:
    """`witnesses` are other lanes: what they show of the layer at which the two differ first."""
    result = _Pair(measured, lanes)
    unsteady = [
        name
        for name in (measured.a, measured.b)
        if name in steadiness and steadiness[name].kind in UNSTEADY
    ]
    if unsteady:
        return result.verdict("undetermined", *_because_unsteady(unsteady, steadiness))
    if not measured.outputs and not measured.layers:
        return result.verdict("undetermined", "neither lane returned anything to compare")
    if all(map(_same, result.everything)):
        return result.verdict("equal", "all numbers are identical, bit for bit")
    if tolerance.relative is not None:
        return _by_number(result, tolerance.relative)
    structure = evidence.structure(measured)
    if structure:
        return result.verdict("different", *structure, first=_first_missing(measured))
    if measured.layers:
        return _by_layers(result, witnesses)
    return _by_outputs(result, measured.outputs)


class _Pair:
    def __init__(self, measured: PairFound, lanes: Lanes) -> None:
        self.measured = measured
        self.lanes = lanes
        self.everything = [
            *measured.outputs,
            *(tensor for layer in measured.layers for tensor in layer.tensors),
        ]

    def verdict(
        self,
        verdict: Verdict,
        *reasons: str,
        level: Precision | None = None,
        first: str | None = None,
        off: str | None = None,
    ) -> PairVerdict:
        measured = self.measured
        return PairVerdict(
            measured.a,
            measured.b,
            verdict,
            level,
            reasons,
            first,
            off,
            measured.outputs,
            measured.layers,
        )


def _same(tensor: TensorDifference) -> bool:
    return tensor.how != "not-at-all" and not tensor.unequal


def _because_unsteady(names: Sequence[str], steadiness: Mapping[str, Determinism]) -> list[str]:
    if any(steadiness[name].kind == "unseeded" for name in names):
        return [
            "the program does not seed its random numbers, so no two runs agree; this is not a "
            "difference between devices",
            *(f"{name}: {steadiness[name].reason}" for name in names),
        ]
    return [f"{name} does not agree with itself: {steadiness[name].reason}" for name in names]


def _first_missing(measured: PairFound) -> str | None:
    for layer in measured.layers:
        if any(tensor.how == "not-at-all" for tensor in layer.tensors):
            return layer.layer
    return next((each.name for each in measured.outputs if each.how == "not-at-all"), None)


def _by_layers(result: _Pair, witnesses: Sequence[evidence.Witness]) -> PairVerdict:
    """Judge every layer by itself; the difference of the outputs then follows from it."""
    lanes = result.lanes
    judged = [layer_verdict.judge(layer, lanes) for layer in result.measured.layers]
    judged = [evidence.contradicted(each, lanes, witnesses) for each in judged]
    parted = [each for each in judged if each.parted]
    if parted:
        off, reasons = evidence.parting(parted, lanes, witnesses)
        return result.verdict("different", *reasons, first=parted[0].layer.layer, off=off)
    unknown = [each for each in judged if each.unknown]
    if unknown:
        return result.verdict("undetermined", *evidence.unknown_layers(unknown, judged))
    odd = [each for each in result.measured.outputs if each.not_finite_in_one]
    if odd:
        reason = f"{output_evidence.not_finite(odd[0])}, although each layer by itself is correct"
        return result.verdict("different", reason, first=odd[0].name)
    stray = whole_model.stray(result.measured, lanes)
    if stray is not None:
        reasons = whole_model.reasons(stray, lanes, witnesses)
        return result.verdict("different", *reasons, first=stray.output, off=stray.off)
    unfounded = whole_model.unfounded(result.measured, lanes)
    if unfounded is not None:
        return result.verdict("undetermined", output_evidence.unfounded(unfounded))
    level = _coarsest([each.precision for each in judged])
    reasons = evidence.rounding(judged, result.measured, lanes, witnesses)
    trained = [each for each in result.measured.outputs if each.kind in TRAINED]
    if not trained:
        return result.verdict("rounding", *reasons, level=level)
    training = _by_outputs(result, trained)
    return training._replace(
        reasons=(*training.reasons, *reasons), level=_coarsest([training.level, level])
    )


def _coarsest(precisions: Sequence[Precision | None]) -> Precision | None:
    known = [precision for precision in precisions if precision is not None]
    return min(known, key=COARSER_FIRST.index) if known else None


def _by_outputs(result: _Pair, outputs: Sequence[TensorDifference]) -> PairVerdict:
    """In the order in which they were made: the first that is beyond rounding is where lanes part.

    What rounding explains of each is known from the float64 reference; without one, only last bits
    are rounding for certain, and only results that have little in common are different.
    """
    lanes = result.lanes
    levels: list[Precision | None] = []
    doubts: list[TensorDifference] = []
    for each in outputs:
        if not each.unequal:
            continue
        if each.how == "exactly":
            if not each.follows:
                return result.verdict("different", output_evidence.choice(each), first=each.name)
            continue
        if each.not_finite_in_one:
            return result.verdict("different", output_evidence.not_finite(each), first=each.name)
        if each.units is not None:
            own = _storage(each)
            level = explaining_precision(
                each.units, own, lanes.products, lanes.gpu_of_unknown_products
            )
            if level is None:
                return result.verdict(
                    "different", *output_evidence.beyond(each, lanes), first=each.name
                )
            levels.append(level)
            continue
        lost = digits_lost(each)
        if lost is None or lost <= LAST_BITS:
            levels.append(_storage(each))
        elif (overall(each) or 0.0) > UNRELATED and not doubts:
            return result.verdict("different", *output_evidence.unrelated(each), first=each.name)
        else:
            doubts.append(each)
    if doubts:
        return result.verdict("undetermined", *output_evidence.doubtful(doubts, lanes))
    return result.verdict(
        "rounding", *output_evidence.rounded_outputs(outputs, lanes), level=_coarsest(levels)
    )


def _storage(each: TensorDifference) -> Precision:
    known: list[Precision] = [
        name for name in COARSER_FIRST if name in (each.dtype_a, each.dtype_b)
    ]
    return known[0] if known else "float32"


def _by_number(result: _Pair, tolerance: float) -> PairVerdict:
    beyond = [each for each in result.measured.outputs if not within(each, tolerance)]
    if not beyond:
        worst = max((each.relative or 0.0 for each in result.measured.outputs), default=0.0)
        return result.verdict("rounding", output_evidence.within_number(worst, tolerance))
    first = next(
        (
            layer.layer
            for layer in result.measured.layers
            if not all(within(tensor, tolerance) for tensor in layer.tensors)
        ),
        beyond[0].name,
    )
    return result.verdict(
        "different", *output_evidence.beyond_number(beyond, tolerance), first=first
    )


def overall_verdict(verdicts: Sequence[Verdict], all_ran: bool) -> Verdict:
    """The worst of them; undetermined if a lane that was asked for did not run."""
    if "different" in verdicts:
        return "different"
    if not verdicts or not all_ran or "undetermined" in verdicts:
        return "undetermined"
    return "rounding" if "rounding" in verdicts else "equal"
