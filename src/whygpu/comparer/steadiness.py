"""Whether a lane agrees with itself, and why not. This is reported before lanes are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whygpu.comparer.layer_verdict import Lanes
from whygpu.comparer.tolerance import LAST_BITS, UNITS, digits_lost, explaining_precision, overall
from whygpu.model.comparison import Determinism, LaneRun, TensorDifference, Units
from whygpu.model.figures import figure


def judge(
    runs: Sequence[LaneRun], own: Mapping[str, tuple[TensorDifference, ...]]
) -> dict[str, Determinism]:
    """By lane name; of lanes that ran."""
    ran = [run for run in runs if run.end == "ran"]
    beyond = {run.lane.name for run in ran if _beyond_rounding(own.get(run.lane.name, ()), run)}
    unseeded = _unseeded(ran, own, beyond)
    return {
        run.lane.name: _of_lane(run, own, run.lane.name in beyond, unseeded=unseeded) for run in ran
    }


def _unseeded(
    ran: Sequence[LaneRun], own: Mapping[str, tuple[TensorDifference, ...]], beyond: set[str]
) -> bool:
    """A CPU gives the same result twice, except for the order of sums. If its results differ by
    more, or if those of every lane do, then the program itself differs from run to run."""
    twice = [run for run in ran if run.lane.name in own]
    on_cpu = [run for run in twice if run.lane.device == "cpu"]
    if on_cpu:
        return any(run.lane.name in beyond for run in on_cpu)
    return len(twice) > 1 and all(run.lane.name in beyond for run in twice)


def _beyond_rounding(differences: Sequence[TensorDifference], run: LaneRun) -> bool:
    if not differences:
        return False
    first = differences[0]
    if first.units is not None and not first.not_finite_in_one:
        # Everything before this step is the same, and what comes after follows from it.
        return not _explained(first.units, run)
    numbers = [each for each in differences if each.how == "numbers"]
    if not numbers:
        return True
    # Values that depend on a comparison, such as an argmax, may change with a last bit.
    odd = any(each.how == "not-at-all" for each in differences)
    return odd or any(_too_far(each, run) for each in numbers)


def _explained(units: Units, run: LaneRun) -> bool:
    """By rounding in the precision that the lane may multiply in: from one run to the next a
    compiler may choose another kernel, and kernels of TF32 differ by as much as TF32 does."""
    lane = Lanes(run, run, {}, {})
    level = explaining_precision(units, "float32", lane.products, lane.gpu_of_unknown_products)
    return level is not None


def _too_far(each: TensorDifference, run: LaneRun) -> bool:
    if each.not_finite_in_one:
        return True
    if each.units is not None:
        return not _explained(each.units, run)
    relative, lost = overall(each), digits_lost(each)
    if relative is None or lost is None:
        return False
    # The order of sums does not cost half of the digits.
    kinds = (each.dtype_a, each.dtype_b, run.products or "")
    unit = max(UNITS.get(kind, 0.0) for kind in kinds)
    return lost > LAST_BITS and relative > unit**0.5


def _of_lane(
    run: LaneRun,
    own: Mapping[str, tuple[TensorDifference, ...]],
    beyond: bool,
    *,
    unseeded: bool,
) -> Determinism:
    name = run.lane.name
    if name not in own:
        return Determinism("unknown", "it ran only once")
    found = own[name]
    if not found:
        return Determinism("same", "two runs gave identical results, bit for bit")
    first = found[0]
    size = _size(first)
    if not beyond:
        cause = (
            "kernels with atomic additions sum in another order each time, or a compiler chose "
            "another kernel that was faster this time"
            if run.lane.device == "gpu"
            else "threads sum in another order each time"
        )
        return Determinism(
            "rounding", f"two runs differ at {first.name} by rounding ({size}): {cause}", first
        )
    if unseeded:
        return Determinism(
            "unseeded",
            f"two runs differ at {first.name} ({size}) by far more than rounding: the program does "
            "not seed its random numbers",
            first,
        )
    return Determinism(
        "different",
        f"two runs differ at {first.name} ({size}) by more than rounding, but two runs on the CPU "
        "do not: a kernel has a race, or the memory is faulty",
        first,
    )


def _size(each: TensorDifference) -> str:
    if each.how == "not-at-all":
        return "shapes or names differ"
    if each.not_finite_in_one:
        return f"{each.not_finite_in_one:,} values are finite in one run only"
    if each.max_abs is None:
        return f"{each.unequal:,} values differ"
    return f"up to {figure(each.max_abs)} where values reach {figure(each.scale or 0.0)}"
