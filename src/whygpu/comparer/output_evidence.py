"""Sentences about outputs: which differences are rounding, a choice, or more than rounding."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.comparer.layer_verdict import Lanes
from whygpu.comparer.tolerance import UNITS, digits_lost, overall
from whygpu.model.comparison import TensorDifference
from whygpu.model.derived import and_list
from whygpu.model.figures import PRECISIONS, figure, times

AMPLIFIED = 0.01
"""If outputs differ by this part of their size and no layer is wrong, the report says why."""


def all_the_same(outputs: Sequence[TensorDifference]) -> list[str]:
    """The sentences about the outputs if all layers are right."""
    if all(not each.unequal for each in outputs):
        return ["the outputs are identical, bit for bit"] if outputs else []
    known = [(overall(each) or 0.0, each) for each in outputs if each.how == "numbers"]
    size, worst = max(known, key=lambda pair: pair[0], default=(0.0, None))
    if worst is not None and size > AMPLIFIED:
        return [
            f"{worst.name} still differs by {figure(100 * size)} % of its size: the model "
            "amplifies rounding, on any device"
        ]
    return _choices(outputs)


def unfounded(each: TensorDifference) -> str:
    return (
        f"{each.name} differs by {figure(100 * (overall(each) or 0.0))} % of its size, although "
        "each layer by itself is correct. No layer returns it, so whygpu cannot tell whether the "
        "model amplifies rounding that much or its own code computes something else"
    )


def _choices(outputs: Sequence[TensorDifference]) -> list[str]:
    return [
        f"{each.name} differs in {each.unequal:,} places, where the values in {each.follows} that "
        f"decide it are {figure(each.margin or 0.0)} apart"
        for each in outputs
        if each.follows
    ]


def choice(each: TensorDifference) -> str:
    return (
        f"{each.name} differs in {each.unequal:,} places (first at {list(each.where)}: "
        f"{each.value_a} and {each.value_b}); it must be exactly equal"
    )


def not_finite(each: TensorDifference) -> str:
    return (
        f"in {each.not_finite_in_one:,} places, {each.name} is NaN or infinite in one lane only "
        f"(first at {list(each.where)}: {each.value_a} and {each.value_b})"
    )


def beyond(each: TensorDifference, lanes: Lanes) -> list[str]:
    """An output that differs by more than rounding moves the float64 reference."""
    units = each.units
    assert units is not None
    reasons = [
        f"{each.name} differs by up to {figure(each.max_abs or 0.0)} where values reach "
        f"{figure(each.scale or 0.0)}: {times(units.own)} as much as rounding changes it"
    ]
    fits = units.looks_like
    if fits is not None and lanes.have_gpu:
        reasons.append(precision_not_allowed(fits))
    return reasons


def precision_not_allowed(precision: str) -> str:
    name = PRECISIONS.get(precision, precision)
    return f"products in {name} give differences of this size, but no lane's settings allow {name}"


def unrelated(each: TensorDifference) -> list[str]:
    cosine = "" if each.cosine is None else f", cosine {each.cosine:.4f}"
    return [
        f"{each.name} differs by {figure(100 * (overall(each) or 0.0))} % of its size{cosine}",
        "it has no float64 reference, so whygpu cannot tell a fault from rounding that the program "
        "amplifies; in both cases the results are different",
    ]


def doubtful(doubts: Sequence[TensorDifference], lanes: Lanes) -> list[str]:
    first = doubts[0]
    reasons = [
        f"{first.name} differs by {figure(overall(first) or 0.0)} of its size, "
        f"{figure(digits_lost(first) or 0.0)} roundings of {first.dtype_a}; without a float64 "
        "reference, whygpu cannot tell whether the program amplifies rounding that much",
        "use --tolerance to set the difference that you accept",
    ]
    size = overall(first) or 0.0
    if lanes.products == "tf32" and size < UNITS["tf32"] * 8:
        reasons.insert(
            1, "TF32, which a lane may use, gives differences of this size: add the lane no-tf32"
        )
    return reasons


def outvoted(
    name: str, lost: float, few: float, agree: tuple[str, str], wrong: str
) -> tuple[str, ...]:
    """Without a reference: two lanes that round differently agree, and the third does not."""
    return (
        f"{name} differs by {figure(lost)} roundings; {and_list(agree)} round differently, and are "
        f"only {figure(few)} roundings apart: the program does not amplify rounding that much, and "
        f"{wrong} is off",
    )


def rounded_outputs(outputs: Sequence[TensorDifference], lanes: Lanes) -> list[str]:
    known = [(each.units.own, each) for each in outputs if each.units is not None]
    reasons = []
    if known:
        most, worst = max(known, key=lambda pair: pair[0])
        if most > 1:
            name = "TF32" if lanes.products in ("tf32", None) else str(lanes.products)
            reasons.append(
                f"{worst.name} differs by {times(most)} what float32 explains, but not by more "
                f"than {name} explains, which a lane may use"
            )
        else:
            reasons.append(
                f"rounding explains every difference (the largest is {figure(most)} of what it "
                f"explains, in {worst.name})"
            )
    else:
        lost = max((digits_lost(each) or 0.0 for each in outputs), default=0.0)
        reasons.append(
            f"only the last bits differ: at most {figure(lost)} roundings over a whole array"
        )
    return reasons + _choices(outputs)


def within_number(worst: float, tolerance: float) -> str:
    return (
        f"the outputs differ by at most {figure(worst)} of their largest value, within the given "
        f"tolerance {tolerance:g}"
    )


def beyond_number(beyond_: Sequence[TensorDifference], tolerance: float) -> list[str]:
    reasons = []
    for each in beyond_[:5]:
        if each.how == "exactly":
            reasons.append(choice(each))
        elif each.how == "not-at-all":
            reasons.append(f"{each.name} is missing in one lane, or has another shape there")
        elif each.not_finite_in_one:
            reasons.append(not_finite(each))
        else:
            reasons.append(
                f"{each.name} differs by {figure(each.relative or 0.0)} of its largest value, more "
                f"than the given tolerance {tolerance:g}"
            )
    return reasons
