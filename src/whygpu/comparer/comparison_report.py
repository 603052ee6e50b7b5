"""Makes the whole report from the lanes' runs and the measured differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whygpu.comparer import output_evidence, pair_verdict, speed, steadiness
from whygpu.comparer.evidence import Witness
from whygpu.comparer.layer_verdict import Lanes
from whygpu.comparer.measures import Measures
from whygpu.comparer.tolerance import LAST_BITS, Tolerance, digits_lost
from whygpu.model.comparison import (
    ComparisonReport,
    Determinism,
    Lane,
    LaneResult,
    LaneRun,
    LayerError,
    PairVerdict,
    Reference,
    Verdict,
    WholeOutput,
)
from whygpu.model.derived import and_list
from whygpu.model.task_wire import PairFound

_ROUNDING = "rounding"
FEW_ROUNDINGS = 4
FAR_BEYOND = 16
"""Times the roundings between two lanes that agree: a third lane so far off is no rounding."""
_NOT_RUN = Determinism("unknown", "it did not run")


def report(
    *,
    what: str,
    inputs: str,
    tolerance: Tolerance,
    reference: Reference,
    runs: Sequence[LaneRun],
    measures: Measures,
    notes: Sequence[str] = (),
) -> ComparisonReport:
    steady = steadiness.judge(runs, measures.own)
    errors = {
        name: {error.layer: error for error in found} for name, found in measures.layers.items()
    }
    pairs = tuple(
        _pair(each, runs, errors, measures.whole, tolerance, steady, reference)
        for each in measures.pairs
    )
    if not reference.ran:
        pairs = tuple(_with_majority(each, pairs, runs, steady) for each in pairs)
    lanes = _lanes(runs, measures, steady)
    all_ran = all(run.end == "ran" for run in runs)
    verdict = pair_verdict.overall_verdict([each.verdict for each in pairs], all_ran)
    return ComparisonReport(
        what=what,
        inputs=inputs,
        tolerance=str(tolerance),
        reference=reference,
        lanes=lanes,
        pairs=pairs,
        verdict=verdict,
        headline=headline(verdict, lanes, pairs, str(tolerance)),
        notes=tuple(notes),
    )


def _pair(
    measured: PairFound,
    runs: Sequence[LaneRun],
    errors: Mapping[str, Mapping[str, LayerError]],
    whole: Mapping[str, Sequence[WholeOutput]],
    tolerance: Tolerance,
    steady: Mapping[str, Determinism],
    reference: Reference,
) -> PairVerdict:
    by_name = {run.lane.name: run for run in runs}
    a, b = by_name[measured.a], by_name[measured.b]
    lanes = Lanes(
        a,
        b,
        errors.get(measured.a, {}),
        errors.get(measured.b, {}),
        reference.backend,
        whole.get(measured.a, ()),
        whole.get(measured.b, ()),
    )
    witnesses = [
        Witness(run, errors.get(run.lane.name, {}), whole.get(run.lane.name, ()))
        for run in runs
        if run.end == "ran" and run is not a and run is not b
    ]
    return pair_verdict.pair(measured, lanes, tolerance, steady, witnesses)


def _with_majority(
    pair: PairVerdict,
    pairs: Sequence[PairVerdict],
    runs: Sequence[LaneRun],
    steady: Mapping[str, Determinism],
) -> PairVerdict:
    """Without a float64 reference: two lanes that agree show that the third is wrong.

    They count if they share neither device nor backend, so that they share little code.
    """
    if pair.off is not None or pair.verdict not in ("different", "undetermined"):
        return pair
    if any(steady[name].kind in pair_verdict.UNSTEADY for name in (pair.a, pair.b)):
        return pair
    lanes = {run.lane.name: run.lane for run in runs}
    for other in pairs:
        agree = {other.a, other.b}
        if other.verdict not in ("equal", _ROUNDING) or len(agree & {pair.a, pair.b}) != 1:
            continue
        (right,) = agree & {pair.a, pair.b}
        if lanes[other.a].differs_only_in_options(lanes[other.b]):
            continue
        wrong = pair.b if right == pair.a else pair.a
        reason = f"{other.a} and {other.b} agree, and {wrong} agrees with neither"
        third = (agree - {right}).pop()
        against = next((each for each in pairs if {each.a, each.b} == {third, wrong}), None)
        if against is None or against.verdict != pair.verdict:
            continue
        if pair.verdict == "different":
            return pair._replace(off=wrong, reasons=(*pair.reasons, reason))
        far = _far_beyond(pair, against, other)
        if far is not None and not _may_share_library(lanes[other.a], lanes[other.b]):
            return pair._replace(
                verdict="different",
                first_layer=far[0],
                off=wrong,
                reasons=output_evidence.outvoted(*far, (other.a, other.b), wrong),
            )
    return pair


def _may_share_library(one: Lane, other: Lane) -> bool:
    """Whether two lanes may get an inner result from one library, rounded alike.

    Amplified, that rounding would be the same in both, whatever they round differently after it.
    All backends use cuBLAS and cuDNN on a GPU. On a CPU, TensorFlow shares oneDNN with PyTorch and
    Eigen with JAX."""
    if one.device != other.device:
        return False
    return one.device == "gpu" or {one.backend, other.backend} != {"jax", "torch"}


def _far_beyond(
    pair: PairVerdict, against: PairVerdict, agreed: PairVerdict
) -> tuple[str, float, float] | None:
    """The first output in which two pairs differ far more than the pair that agrees. That pair
    rounded differently, so the program does not amplify rounding that much. Also the roundings of
    both.

    Results that are identical, bit for bit, show nothing: neither lane may have rounded."""
    apart, again, close = (
        {each.name: digits_lost(each) for each in found.outputs}
        for found in (pair, against, agreed)
    )
    for name, lost in apart.items():
        few, third = close.get(name), again.get(name)
        if lost is None or not few or third is None or min(lost, third) <= LAST_BITS:
            continue
        if few <= FEW_ROUNDINGS and min(lost, third) > FAR_BEYOND * few:
            return name, lost, few
    return None


def _lanes(
    runs: Sequence[LaneRun], measures: Measures, steady: Mapping[str, Determinism]
) -> tuple[LaneResult, ...]:
    cpu = next((run for run in runs if run.lane.device == "cpu" and run.end == "ran"), None)
    return tuple(
        LaneResult(
            run,
            steady.get(run.lane.name, _NOT_RUN),
            speed.summary(run, cpu) if run.end == "ran" else None,
            measures.reference.get(run.lane.name, ()),
            measures.layers.get(run.lane.name, ()),
            measures.whole.get(run.lane.name, ()),
        )
        for run in runs
    )


def headline(
    verdict: Verdict, lanes: Sequence[LaneResult], pairs: Sequence[PairVerdict], tolerance: str
) -> str:
    unseeded = [each.run.lane.name for each in lanes if each.determinism.kind == "unseeded"]
    if unseeded:
        disagree = (
            "does not agree with itself" if len(unseeded) == 1 else "do not agree with themselves"
        )
        return (
            f"The program does not seed its random numbers: {and_list(unseeded)} {disagree}. This "
            "is not a difference between devices."
        )
    limit = _ROUNDING if tolerance == "auto" else f"the given tolerance {tolerance}"
    if verdict == "different":
        return _different(lanes, pairs, limit)
    missing = [each.run for each in lanes if each.run.end != "ran"]
    if missing:
        names = and_list([run.lane.name for run in missing])
        rest = _agreement(pairs, limit)
        return f"Cannot tell: {names} did not run as asked ({missing[0].reason}).{rest}"
    if verdict == "undetermined":
        first = next((each for each in pairs if each.verdict == "undetermined"), None)
        return (
            f"Cannot tell: {first.reasons[0]}." if first else "Cannot tell: nothing was compared."
        )
    if verdict == "equal":
        return "All lanes give identical results, bit for bit."
    levels = {each.level for each in pairs if each.verdict == "rounding"}
    coarse = " Some of it comes from TF32; see below." if "tf32" in levels else ""
    return f"The lanes differ by {_small(limit)}.{coarse}"


def _small(limit: str) -> str:
    return f"{limit} only" if limit == _ROUNDING else f"no more than {limit}"


def _agreement(pairs: Sequence[PairVerdict], limit: str) -> str:
    if not pairs:
        return ""
    worst = pair_verdict.overall_verdict([each.verdict for each in pairs], all_ran=True)
    return {
        "equal": " The others give identical results, bit for bit.",
        "rounding": f" The others differ by {_small(limit)}.",
    }.get(worst, "")


def _different(lanes: Sequence[LaneResult], pairs: Sequence[PairVerdict], limit: str) -> str:
    different = [each for each in pairs if each.verdict == "different"]
    off = {each.off for each in different}
    first = different[0]
    where = f" first at {first.first_layer}" if first.first_layer else ""
    ran = [each.run.lane.name for each in lanes if each.run.end == "ran"]
    fine = [name for name in ran if name not in off]
    if None not in off and fine:
        wrong = [name for name in ran if name in off]
        verb, outputs = ("is", "its") if len(wrong) == 1 else ("are", "their")
        return (
            f"{and_list(wrong)} {verb} different from {and_list(fine)},"
            f"{where or f' in {outputs} outputs'}."
        )
    where = where or " in their outputs"
    common = set.intersection(*({each.a, each.b} for each in different))
    if len(common) == 1:
        (lane,) = common
        others = [each.b if each.a == lane else each.a for each in different]
        return f"{lane} differs from {and_list(others)} by more than {limit},{where}."
    names = "; ".join(f"{each.a} and {each.b}" for each in different[:3])
    more = f"; and {len(different) - 3} more pairs" if len(different) > 3 else ""
    return f"{names}{more} differ by more than {limit},{where}."
