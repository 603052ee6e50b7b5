"""Whether a lane agrees with itself: rounding, a program without a seed, or a fault."""

from __future__ import annotations

from tests.cases import each
from tests.comparer.kit import FINE, TF32, WRONG, run, same, tensor
from whygpu.comparer.steadiness import judge
from whygpu.model.comparison import Determinism, LaneRun, TensorDifference

CPU, GPU, OTHER = run("cpu"), run("gpu"), run("gpu:no-tf32")


def steadiness(lane: LaneRun, *differences: TensorDifference) -> Determinism:
    """Of one lane whose two runs differ by these, beside a CPU that does the same twice."""
    return judge([CPU, lane], {"cpu": (), lane.lane.name: differences})[lane.lane.name]


def test_two_runs_that_agree_to_the_last_bit() -> None:
    assert steadiness(GPU).kind == "same"


def test_a_lane_that_ran_once_is_not_judged_and_one_that_did_not_run_is_left_out() -> None:
    failed = OTHER._replace(end="failed")
    found = judge([CPU, GPU, failed], {"cpu": ()})
    assert {name: each.kind for name, each in found.items()} == {"cpu": "same", "gpu": "unknown"}


@each(
    ("difference", "kind"),
    [
        (tensor(units=FINE), "rounding"),
        (tensor(units=WRONG), "different"),
        (tensor(units=FINE, not_finite_in_one=1), "different"),
        (tensor(), "rounding"),
        (tensor(rms=65 * 2.0**-24 * 0.5), "rounding"),
        (tensor(rms=2.0**-12 * 0.5), "rounding"),
        (tensor(rms=1.1 * 2.0**-12 * 0.5), "different"),
        (tensor(rms=None), "rounding"),
        (tensor(dtype_a="int8", dtype_b="int8", rms=0.4), "rounding"),
        (tensor(not_finite_in_one=1), "different"),
        (same(how="not-at-all"), "different"),
        (tensor(how="exactly"), "different"),
    ],
)
def test_what_two_runs_of_a_gpu_differ_by(difference: TensorDifference, kind: str) -> None:
    assert steadiness(GPU, difference).kind == kind


def test_half_precision_may_differ_by_half_of_its_digits() -> None:
    coarse = tensor(dtype_a="float16", dtype_b="float16", rms=0.02 * 0.5)
    assert steadiness(GPU, coarse).kind == "rounding"
    assert steadiness(GPU, coarse._replace(rms=0.04 * 0.5)).kind == "different"


def test_a_lane_that_may_multiply_in_tf32_may_differ_by_as_much() -> None:
    """A compiler may choose another kernel in the next run."""
    for products, kind in (("tf32", "rounding"), ("float32", "different")):
        lane = GPU._replace(products=products)  # type: ignore[arg-type]
        assert steadiness(lane, tensor(units=TF32)).kind == kind
        assert steadiness(lane, tensor(rms=2.0**-6 * 0.5)).kind == kind


def test_a_first_difference_within_rounding_excuses_what_follows_from_it() -> None:
    assert steadiness(GPU, tensor("first", units=FINE), tensor("later", units=WRONG)).kind == (
        "rounding"
    )
    known_later = (tensor("first"), tensor("later", units=WRONG))
    assert steadiness(GPU, *known_later).kind == "different"


def test_a_choice_may_flip_with_the_last_bit_of_the_numbers_it_is_made_from() -> None:
    label = tensor("label", how="exactly", dtype_a="int64", dtype_b="int64")
    assert steadiness(GPU, label, tensor()).kind == "rounding"
    assert steadiness(GPU, label, tensor(), same("more", how="not-at-all")).kind == "different"


FAR = (tensor(units=WRONG),)


@each(
    ("lanes", "own", "kind"),
    [
        ([CPU, GPU], {"cpu": (), "gpu": FAR}, "different"),
        ([CPU, GPU], {"cpu": FAR, "gpu": FAR}, "unseeded"),
        ([GPU, OTHER], {"gpu": FAR, "gpu:no-tf32": FAR}, "unseeded"),
        ([GPU, OTHER], {"gpu": FAR, "gpu:no-tf32": ()}, "different"),
        ([GPU, OTHER], {"gpu": FAR}, "different"),
        ([GPU], {"gpu": FAR}, "different"),
        ([CPU, GPU, OTHER], {"gpu": FAR, "gpu:no-tf32": FAR}, "unseeded"),
    ],
)
def test_a_missing_seed_and_a_faulty_gpu_are_different_reasons(
    lanes: list[LaneRun], own: dict[str, tuple[TensorDifference, ...]], kind: str
) -> None:
    assert judge(lanes, own)["gpu"].kind == kind


def test_a_cpu_that_disagrees_with_itself_is_a_program_without_a_seed() -> None:
    assert judge([CPU, GPU], {"cpu": FAR, "gpu": ()})["cpu"].kind == "unseeded"


def test_few_of_a_coarse_types_units_are_rounding_however_much_they_are() -> None:
    """A quarter of the values is 64 units of bfloat16."""
    coarse = tensor(dtype_a="bfloat16", dtype_b="bfloat16", rms=0.25 * 0.5)
    assert steadiness(GPU, coarse).kind == "rounding"
    assert steadiness(GPU, coarse._replace(rms=0.3 * 0.5)).kind == "different"


def test_a_lane_whose_products_are_unknown_is_judged_by_its_types() -> None:
    assert steadiness(GPU._replace(products=None), tensor(rms=0.1)).kind == "different"


@each(
    ("difference", "reason"),
    [
        (same(how="not-at-all"), "(shapes or names differ)"),
        (tensor(not_finite_in_one=1200), "(1,200 values are finite in one run only)"),
        (tensor(units=WRONG, max_abs=None, unequal=3), "(3 values differ)"),
        (tensor(units=WRONG, max_abs=0.5, scale=2.0), "(up to 0.5 where values reach 2)"),
    ],
)
def test_the_reason_says_where_two_runs_differ_and_by_how_much(
    difference: TensorDifference, reason: str
) -> None:
    assert f"two runs differ at output {reason}" in steadiness(GPU, difference).reason


@each(
    ("lane", "why"), [(CPU, "threads sum in another order"), (GPU, "kernels with atomic additions")]
)
def test_rounding_has_a_reason_of_its_device(lane: LaneRun, why: str) -> None:
    assert why in steadiness(lane, tensor(units=FINE)).reason
