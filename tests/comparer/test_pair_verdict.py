"""Verdicts from figures: what is equal, rounding, different, and what is unknown."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from tests.cases import each
from tests.comparer.kit import (
    FINE,
    ROUNDED,
    TF32,
    WRONG,
    errors,
    judged,
    layer,
    pair,
    run,
    same,
    tensor,
)
from whygpu.comparer import tolerance
from whygpu.comparer.pair_verdict import overall_verdict
from whygpu.errors import UsageError
from whygpu.model.comparison import (
    ComparisonReport,
    LocalDifference,
    PairVerdict,
    Reference,
    SettingDifference,
    TensorDifference,
    Units,
    WholeOutput,
)
from whygpu.render.compare_advice import advice

CPU, GPU = run("cpu"), run("gpu")
TENSORFLOW, JAX, TORCH = run("keras:tensorflow"), run("keras:jax"), run("keras:torch")


def only(*outputs: TensorDifference, given: float | None = None) -> PairVerdict:
    """The verdict on two lanes that have outputs and no layers."""
    found = judged([CPU, GPU], [pair("cpu", "gpu", outputs=outputs)], tolerance=given)
    return found.pairs[0]


def test_the_same_bits_are_equal() -> None:
    found = judged([CPU, GPU], [pair("cpu", "gpu", outputs=[same()])])
    assert (found.verdict, found.exit_code) == ("equal", 0)


def test_layers_within_rounding_are_rounding_whatever_the_outputs_differ_by() -> None:
    far = tensor(rms=0.2, max_abs=0.7)
    layers = [layer("conv", ROUNDED), layer("dense", FINE, tensors=(far._replace(name="dense"),))]
    whole = {name: (WholeOutput("output", "dense", same()),) for name in ("cpu", "gpu")}
    found = judged([CPU, GPU], [pair("cpu", "gpu", layers, [far])], whole=whole)
    assert (found.verdict, found.pairs[0].level) == ("rounding", "float32")
    assert "each of 2 layers" in found.pairs[0].reasons[0]
    assert "the model amplifies rounding" in found.pairs[0].reasons[1]


def test_a_layer_in_another_type_on_one_lane_is_named_although_it_only_rounds() -> None:
    half = tensor(rms=1e-4, max_abs=1e-3)._replace(name="dense", dtype_b="float16")
    layers = [layer("conv", ROUNDED), layer("dense", FINE, tensors=(half,))]
    (verdict,) = judged([CPU, GPU], [pair("cpu", "gpu", layers)]).pairs
    assert verdict.verdict == "rounding"
    assert verdict.reasons[0].startswith("dense is float32 on cpu and float16 on gpu;")
    for more, said in ((1, "1 more layer differs"), (2, "2 more layers differ")):
        rest = [layer(f"next{n}", FINE, tensors=(half,)) for n in range(more)]
        (verdict,) = judged([CPU, GPU], [pair("cpu", "gpu", layers + rest)]).pairs
        assert f"float16 on gpu ({said}, too);" in verdict.reasons[0]


def test_the_first_layer_that_parts_and_the_lane_that_is_off() -> None:
    layers = [layer("conv", FINE), layer("norm", WRONG), layer("dense", FINE)]
    found = judged(
        [CPU, GPU],
        [pair("cpu", "gpu", layers)],
        layers={
            "cpu": errors("cpu", conv=FINE, norm=FINE),
            "gpu": errors("gpu", conv=FINE, norm=WRONG),
        },
    )
    (verdict,) = found.pairs
    assert (verdict.verdict, verdict.first_layer, verdict.off) == ("different", "norm", "gpu")
    assert found.exit_code == 1
    assert verdict.reasons[-1] == "given the same input, every other layer agrees"


def three(**units: Units) -> dict[tuple[str, str], PairVerdict]:
    """Three backends, each with an error in one layer; the reference is TensorFlow's."""
    runs = [TENSORFLOW, JAX, TORCH]
    names = [each.lane.name for each in runs]
    by_name = {f"keras:{name}": each for name, each in units.items()}
    pairs = []
    for number, a in enumerate(names):
        for b in names[number + 1 :]:
            apart = WRONG if by_name[a] != by_name[b] else FINE
            pairs.append(pair(a, b, [layer("norm", apart)]))
    layers = {name: errors(name, norm=each) for name, each in by_name.items()}
    found = judged(runs, pairs, layers=layers)
    return {(each.a, each.b): each for each in found.pairs}


def test_a_third_backend_confirms_who_is_off() -> None:
    found = three(tensorflow=FINE, jax=WRONG, torch=FINE)
    assert found["keras:tensorflow", "keras:jax"].off == "keras:jax"
    assert found["keras:jax", "keras:torch"].off == "keras:jax"
    assert found["keras:tensorflow", "keras:torch"].verdict == "rounding"


def test_a_reference_that_shares_its_code_with_one_side_is_no_judge() -> None:
    found = three(tensorflow=FINE, jax=WRONG, torch=WRONG)
    verdict = found["keras:tensorflow", "keras:jax"]
    assert (verdict.verdict, verdict.off) == ("different", None)
    assert "keras:tensorflow may be the wrong one" in " ".join(verdict.reasons)
    layers = {
        "keras:tensorflow": errors("keras:tensorflow", norm=FINE),
        "keras:jax": errors("keras:jax", norm=WRONG),
    }
    alone = judged(
        [TENSORFLOW, JAX],
        [pair("keras:tensorflow", "keras:jax", [layer("norm", WRONG)])],
        layers=layers,
    )
    assert alone.pairs[0].off is None
    assert "a third backend would show" in " ".join(alone.pairs[0].reasons)


def test_settings_weights_and_overflow_are_evidence() -> None:
    setting = SettingDifference("epsilon", "0.001", "1e-05")
    broken = layer("norm", WRONG, settings=(setting,), weights_differ=True)
    reasons = judged([CPU, GPU], [pair("cpu", "gpu", [broken])]).pairs[0].reasons
    assert "its setting epsilon is 0.001 on cpu and 1e-05 on gpu" in reasons
    assert "the two lanes have different weights for it" in reasons
    local = LocalDifference(0.0, FINE, not_finite_in_one=3)
    tensors = (tensor("norm", kind="layer", inf_b=3),)
    half = errors("gpu", norm=FINE)[0]._replace(not_finite=3, precision="float16")
    found = judged(
        [CPU, GPU],
        [pair("cpu", "gpu", [layer("norm", local=local, tensors=tensors)])],
        layers={"cpu": errors("cpu", norm=FINE), "gpu": (half,)},
    ).pairs[0]
    assert (found.verdict, found.off) == ("different", "gpu")
    assert "float16 cannot hold such values" in found.reasons[0]


def test_an_overflow_that_the_reference_has_too_blames_nobody() -> None:
    local = LocalDifference(0.0, FINE, not_finite_in_one=3)
    tensors = (tensor("cast", kind="layer", inf_a=3),)
    alone = errors("gpu", cast=FINE)[0]._replace(finite_alone=3)
    found = judged(
        [CPU, GPU],
        [pair("cpu", "gpu", [layer("cast", local=local, tensors=tensors)])],
        layers={"cpu": errors("cpu", cast=FINE), "gpu": (alone,)},
    ).pairs[0]
    assert (found.verdict, found.first_layer, found.off) == ("different", "cast", None)
    assert "NaN or infinite in 3 places on cpu" in found.reasons[0]
    assert "is not finite there either" in " ".join(found.reasons)


def test_tf32_is_rounding_where_it_is_in_use_and_named() -> None:
    gpu, without = run("gpu", products="tf32"), run("gpu:no-tf32")
    layers = {
        "cpu": errors("cpu", conv=FINE),
        "gpu": errors("gpu", conv=TF32),
        "gpu:no-tf32": errors("gpu:no-tf32", conv=FINE),
    }
    pairs = [
        pair("cpu", "gpu", [layer("conv", TF32), layer("relu", FINE)]),
        pair("cpu", "gpu:no-tf32", [layer("conv", FINE)]),
    ]
    found = judged([CPU, gpu, without], pairs, layers=layers)
    first, second = found.pairs
    assert (first.verdict, first.level) == ("rounding", "tf32")
    assert (second.verdict, second.level) == ("rounding", "float32")
    assert "one layer multiplies in TF32, which gpu may use" in first.reasons[0]
    assert "the difference is gone in gpu:no-tf32" in first.reasons
    assert "TF32" in found.headline


def test_what_looks_like_tf32_is_not_if_it_stays_without_it() -> None:
    gpu, without = run("gpu", products="tf32"), run("gpu:no-tf32")
    layers = {
        "cpu": errors("cpu", conv=FINE),
        "gpu": errors("gpu", conv=TF32),
        "gpu:no-tf32": errors("gpu:no-tf32", conv=TF32),
    }
    found = judged([CPU, gpu, without], [pair("cpu", "gpu", [layer("conv", TF32)])], layers=layers)
    assert found.pairs[0].verdict == "different"


def test_tf32_that_no_setting_allows_is_different() -> None:
    found = judged([CPU, GPU], [pair("cpu", "gpu", [layer("conv", TF32)])])
    assert found.verdict == "different"
    assert "products in TF32 give differences of this size" in " ".join(found.pairs[0].reasons)


def test_cpus_do_not_multiply_in_tf32() -> None:
    runs = [run("keras:tensorflow"), run("keras:jax")]
    found = judged(runs, [pair("keras:tensorflow", "keras:jax", [layer("conv", TF32)])])
    assert found.verdict == "different"
    assert "TF32" not in " ".join(found.pairs[0].reasons)
    assert not any("tf32" in each for each in advice(found))


def test_code_between_layers_is_named_beside_the_layer() -> None:
    local = LocalDifference(6e-8, WRONG, code_before=True)
    found = judged([CPU, GPU], [pair("cpu", "gpu", [layer("dense", local=local)])])
    assert "the difference is in that code or in the layer" in found.pairs[0].reasons[1]
    plain = judged([CPU, GPU], [pair("cpu", "gpu", [layer("dense", WRONG)])])
    assert "that code" not in " ".join(plain.pairs[0].reasons)


FAR: dict[str, Any] = {"max_abs": 0.9, "max_rel": 1.0, "max_ulp": 10**9, "rms": 0.5, "cosine": 0.1}


def without_reference(names: Sequence[str], far: str) -> ComparisonReport:
    """Lanes of which one is far from the others, and the others differ in their last bits."""
    pairs = [
        pair(a, b, outputs=[tensor(**(FAR if far in (a, b) else {}))])
        for a, b in itertools.combinations(names, 2)
    ]
    return judged([run(name) for name in names], pairs, reference=Reference(False))


def test_without_a_reference_two_lanes_that_agree_show_which_is_wrong() -> None:
    found = without_reference(["keras:tensorflow", "keras:jax", "keras:torch"], "keras:jax")
    assert [each.off for each in found.pairs] == ["keras:jax", None, "keras:jax"]
    reason = "keras:tensorflow and keras:torch agree, and keras:jax agrees with neither"
    assert found.pairs[0].reasons[-1] == found.pairs[2].reasons[-1] == reason
    assert found.headline.startswith("keras:jax is different from keras:tensorflow and keras:torch")


DOUBTFUL: dict[str, Any] = {"max_abs": 1e-5, "max_ulp": 200, "rms": 5e-6}


def doubtful(third: str, agreement: dict[str, Any]) -> ComparisonReport:
    """Of three backends one is 168 roundings off; `agreement` is of the other two."""
    names = ["keras:tensorflow", "keras:jax", "keras:torch"]
    pairs = [
        pair(a, b, outputs=[tensor(**(DOUBTFUL if third in (a, b) else agreement))])
        for a, b in itertools.combinations(names, 2)
    ]
    return judged([run(name) for name in names], pairs, reference=Reference(False))


def test_two_lanes_that_round_differently_and_agree_show_that_the_third_is_off() -> None:
    found = doubtful("keras:tensorflow", {})
    assert [each.off for each in found.pairs] == ["keras:tensorflow", "keras:tensorflow", None]
    assert found.verdict == "different"
    assert "does not amplify rounding that much" in found.pairs[0].reasons[0]


@pytest.mark.parametrize("third", ["keras:jax", "keras:torch"])
def test_two_lanes_that_may_share_a_library_show_nothing_of_the_third(third: str) -> None:
    found = doubtful(third, {})
    assert found.verdict == "undetermined"
    assert {each.off for each in found.pairs} == {None}


def test_two_lanes_that_are_identical_show_nothing_of_the_third() -> None:
    equal = {"unequal": 0, "max_abs": 0.0, "max_rel": 0.0, "max_ulp": 0, "rms": 0.0, "where": ()}
    found = doubtful("keras:tensorflow", equal)
    assert found.verdict == "undetermined"
    assert {each.off for each in found.pairs} == {None}


def test_two_lanes_that_agree_less_well_show_nothing_of_the_third() -> None:
    found = doubtful("keras:tensorflow", {"rms": 1e-6})
    assert found.verdict == "undetermined"


def test_two_lanes_of_the_same_code_are_no_two_witnesses() -> None:
    found = without_reference(["cpu", "gpu", "gpu:deterministic"], "cpu")
    assert {each.off for each in found.pairs} == {None}


def test_what_is_far_smaller_than_tf32_does_not_look_like_it() -> None:
    small = Units(20, 0.03, 0.008)
    found = judged([CPU, GPU], [pair("cpu", "gpu", [layer("conv", small)])])
    assert found.verdict == "different"
    assert "TF32" not in " ".join(found.pairs[0].reasons)


def test_tf32_on_a_gpu_that_could_not_be_asked() -> None:
    unknown = run("gpu", products=None)
    found = judged([CPU, unknown], [pair("cpu", "gpu", [layer("conv", TF32)])])
    assert (found.verdict, found.pairs[0].level) == ("rounding", "tf32")


def test_a_layer_that_cannot_be_judged() -> None:
    rough = tensor("rnn", kind="layer", rms=1e-3)
    unknown = layer("rnn", tensors=(rough,), local_unknown="it keeps a state from call to call")
    found = judged([CPU, GPU], [pair("cpu", "gpu", [layer("conv", FINE), unknown])])
    assert (found.verdict, found.exit_code) == ("undetermined", 4)
    assert "it keeps a state" in found.pairs[0].reasons[0]
    fine = unknown._replace(tensors=(tensor("rnn", kind="layer"),))
    (alone,) = judged([CPU, GPU], [pair("cpu", "gpu", [fine])]).pairs
    assert alone.verdict == "rounding"
    assert (
        alone.reasons[0]
        == "1 of 1 layers have no float64 reference; they differ only in their last bits"
    )


def test_what_is_not_there_or_of_another_shape_is_different() -> None:
    missing = tensor("scores", how="not-at-all", dtype_b="", shape_b=())
    assert only(missing).reasons == ("gpu has no scores",)
    shaped = tensor(how="not-at-all", shape_b=(2, 11))
    assert only(shaped).reasons == ("output has the shape 2x10 on cpu and 2x11 on gpu",)


def test_outputs_against_what_rounding_moves_them_by() -> None:
    assert only(tensor(units=ROUNDED)).verdict == "rounding"
    beyond = only(tensor("a", units=FINE), tensor("b", units=WRONG), tensor("c", units=WRONG))
    assert (beyond.verdict, beyond.first_layer) == ("different", "b")


def test_training_is_judged_beside_the_layers() -> None:
    layers = [layer("conv", FINE)]
    fine, wrong = tensor("loss", kind="loss", units=FINE), tensor("g", kind="gradient", units=WRONG)
    assert judged([CPU, GPU], [pair("cpu", "gpu", layers, [fine])]).verdict == "rounding"
    found = judged([CPU, GPU], [pair("cpu", "gpu", layers, [fine, wrong])]).pairs[0]
    assert (found.verdict, found.first_layer) == ("different", "g")


def test_outputs_without_a_reference() -> None:
    assert only(tensor()).verdict == "rounding"
    assert only(tensor(rms=1e-4)).verdict == "undetermined"
    assert only(tensor(rms=0.2)).verdict == "different"
    assert only(tensor(not_finite_in_one=1)).verdict == "different"


def test_choices_are_judged_by_what_they_were_made_from() -> None:
    labels = tensor("labels", how="exactly", dtype_a="int64", dtype_b="int64", unequal=1)
    assert only(tensor(), labels).verdict == "different"
    tied = labels._replace(follows="output", margin=3e-8)
    verdict = only(tensor(), tied)
    assert verdict.verdict == "rounding"
    assert "are 3.0e-08 apart" in verdict.reasons[-1]


@pytest.mark.parametrize(
    ("max_abs", "verdict"), [(1e-4, "rounding"), (1.01e-4, "different"), (0.0, "rounding")]
)
def test_a_given_tolerance_is_of_the_largest_value(max_abs: float, verdict: str) -> None:
    found = only(tensor(max_abs=max_abs * 5, scale=5.0), given=1e-4)
    assert found.verdict == verdict


def test_a_given_tolerance_names_the_first_layer_beyond_it() -> None:
    rough = layer("two", WRONG, tensors=(tensor("two", kind="layer", max_abs=0.1),))
    layers = [layer("one", WRONG), rough]
    measured = pair("cpu", "gpu", layers, [tensor(max_abs=0.01)])
    found = judged([CPU, GPU], [measured], tolerance=1e-3)
    assert (found.verdict, found.pairs[0].first_layer) == ("different", "two")


def test_what_is_equal_has_no_part_in_what_differs() -> None:
    assert only(same(), same("more")).verdict == "equal"
    whole_numbers = same("labels", how="exactly", dtype_a="int64", dtype_b="int64")
    assert only(whole_numbers, tensor()).verdict == "rounding"
    precise = tensor(dtype_a="float64", dtype_b="float64", rms=1e-17)
    tied = whole_numbers._replace(unequal=1, follows="output", margin=3e-17)
    assert only(precise, tied).level == "float64"


def test_without_a_pair_there_is_no_verdict() -> None:
    assert overall_verdict([], True) == "undetermined"
    assert overall_verdict(["equal", "rounding"], True) == "rounding"
    assert overall_verdict(["equal", "rounding"], False) == "undetermined"
    assert overall_verdict(["undetermined", "different"], False) == "different"


def test_lanes_that_give_nothing_are_not_called_equal() -> None:
    nothing = only()
    assert nothing.verdict == "undetermined"
    assert nothing.reasons == ("neither lane returned anything to compare",)
    layers_only = judged([CPU, GPU], [pair("cpu", "gpu", [layer("conv", FINE)], ())])
    assert layers_only.verdict == "rounding"


def test_an_output_that_one_lane_lacks_is_not_equal_although_no_number_differs() -> None:
    missing = same("scores", how="not-at-all", dtype_b="", shape_b=())
    found = only(same(), missing)
    assert (found.verdict, found.first_layer) == ("different", "scores")
    by_number = only(same(), missing, given=0.5)
    assert (by_number.verdict, by_number.first_layer) == ("different", "scores")


def test_a_layer_that_one_lane_lacks_is_where_they_part() -> None:
    gone = layer("norm", FINE, tensors=(same("norm", how="not-at-all", dtype_b="", shape_b=()),))
    layers = [layer("conv", FINE), gone]
    found = judged([CPU, GPU], [pair("cpu", "gpu", layers)]).pairs[0]
    assert (found.verdict, found.first_layer) == ("different", "norm")


def test_an_output_that_is_not_finite_is_different_although_every_layer_is_right() -> None:
    outputs = [
        tensor("fine"),
        tensor("odd", not_finite_in_one=3),
        tensor("later", not_finite_in_one=1),
    ]
    found = judged([CPU, GPU], [pair("cpu", "gpu", [layer("conv", FINE)], outputs)]).pairs[0]
    assert (found.verdict, found.first_layer) == ("different", "odd")
    assert found.reasons[0].endswith("although each layer by itself is correct")


def test_outputs_are_judged_in_the_order_in_which_they_were_made() -> None:
    """What was doubtful before makes a later difference doubtful too."""
    doubtful, unrelated = tensor("early", rms=1e-4), tensor("late", rms=0.2)
    assert only(doubtful, unrelated).verdict == "undetermined"
    assert only(unrelated, doubtful).verdict == "different"
    equal_first = only(same("even"), tensor("odd", units=WRONG))
    assert (equal_first.verdict, equal_first.first_layer) == ("different", "odd")


@each(
    ("rms", "verdict"),
    [
        (64 * 2.0**-24 * 0.5, "rounding"),
        (65 * 2.0**-24 * 0.5, "undetermined"),
        (0.05, "undetermined"),
        (0.051, "different"),
    ],
)
def test_without_a_reference_last_bits_are_rounding_and_a_tenth_is_another_result(
    rms: float, verdict: str
) -> None:
    assert only(tensor(rms=rms, level=0.5)).verdict == verdict


@each(
    ("types", "level"),
    [
        (("float32", "float32"), "float32"),
        (("float64", "float64"), "float64"),
        (("float16", "float32"), "float16"),
        (("bfloat16", "float64"), "bfloat16"),
        (("int32", "int32"), "float32"),
    ],
)
def test_the_level_of_rounding_is_that_of_the_coarser_type(
    types: tuple[str, str], level: str
) -> None:
    first, second = types
    found = only(tensor(dtype_a=first, dtype_b=second, rms=1e-20))
    assert (found.verdict, found.level) == ("rounding", level)
    with_units = only(tensor(dtype_a=first, dtype_b=second, units=FINE))
    assert (with_units.verdict, with_units.level) == ("rounding", level)


def test_of_several_outputs_the_coarsest_level_is_named() -> None:
    found = only(tensor("a", units=FINE), tensor("b", dtype_a="float16", units=FINE), tensor("c"))
    assert found.level == "float16"


def test_a_given_tolerance_says_how_far_the_worst_output_is_off() -> None:
    outputs = [tensor("a", max_abs=2e-5), tensor("b", max_abs=5e-5), tensor("c", max_abs=None)]
    (reason,) = only(*outputs, given=1e-4).reasons
    assert "5.0e-05" in reason


def test_a_gradient_or_a_weight_is_judged_by_itself_like_a_loss() -> None:
    layers = [layer("conv", FINE)]
    for kind in ("loss", "gradient", "weight"):
        wrong = tensor("trained", kind=kind, units=WRONG)
        found = judged([CPU, GPU], [pair("cpu", "gpu", layers, [wrong])])
        assert found.verdict == "different", kind


def test_tolerance_in_words() -> None:
    assert tolerance.parse("auto").relative is None
    assert tolerance.parse("1e-4").relative == 1e-4
    for wrong in ("tight", "-1", "2", "nan"):
        with pytest.raises(UsageError, match="expected auto"):
            tolerance.parse(wrong)


def test_a_lane_that_did_not_run_leaves_the_question_open() -> None:
    absent = run("gpu", end="cannot-run", reason="there is no GPU on this machine")
    pairs = [pair("keras:tensorflow", "keras:jax", [layer("conv", FINE)])]
    found = judged([TENSORFLOW, JAX, absent], pairs)
    assert (found.verdict, found.exit_code) == ("undetermined", 4)
    assert "there is no GPU on this machine" in found.headline
    assert "The others differ by rounding only." in found.headline


def test_unseeded_randomness_is_no_difference_between_devices() -> None:
    far = (tensor(rms=0.4, units=Units(1e5)),)
    found = judged(
        [CPU, GPU],
        [pair("cpu", "gpu", outputs=[tensor(rms=0.4, units=Units(1e5))])],
        own={"cpu": far, "gpu": far},
    )
    assert {each.determinism.kind for each in found.lanes} == {"unseeded"}
    assert (found.verdict, found.exit_code) == ("undetermined", 4)
    assert "does not seed" in found.headline
    assert "not a difference between devices" in found.pairs[0].reasons[0]


def test_a_gpu_that_sums_in_another_order_each_time_is_named_and_compared() -> None:
    found = judged([CPU, GPU], [pair("cpu", "gpu")], own={"gpu": (tensor(units=FINE),)})
    assert [each.determinism.kind for each in found.lanes] == ["same", "rounding"]
    assert "atomic" in found.lanes[1].determinism.reason
    assert found.verdict == "rounding"


def test_a_gpu_that_disagrees_with_itself_beyond_rounding_is_not_compared() -> None:
    found = judged([CPU, GPU], [pair("cpu", "gpu")], own={"gpu": (tensor(units=WRONG),)})
    assert found.lanes[1].determinism.kind == "different"
    assert found.verdict == "undetermined"


def test_random_whole_numbers_are_unseeded_too() -> None:
    dice = tensor(how="exactly", dtype_a="int64", dtype_b="int64", max_abs=None)
    found = judged([CPU, GPU], [pair("cpu", "gpu")], own={"cpu": (dice,), "gpu": (dice,)})
    assert found.lanes[0].determinism.kind == "unseeded"
