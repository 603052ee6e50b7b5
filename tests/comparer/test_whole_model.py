"""Outputs that do not follow from the layers: a compiler may get a model wrong as a whole."""

from __future__ import annotations

import numpy
import pytest

from tests.comparer.inside import part
from tests.comparer.kit import FINE, TF32, judged, layer, pair, run, same, tensor
from whygpu.model.comparison import ComparisonReport, TensorDifference, WholeOutput
from whygpu.render.compare_advice import advice

CPU = run("cpu")
GPU = run("gpu", products="tf32")
NO_TF32 = run("gpu:no-tf32")
NO_CUDNN = run("gpu:no-cudnn", products="tf32")
FAR = tensor(rms=0.04, max_abs=0.1)
BITS = tensor(rms=2e-8)


def whole(difference: TensorDifference, name: str = "output") -> tuple[WholeOutput, ...]:
    return (WholeOutput(name, "head", difference._replace(name=name)),)


def with_outputs(apart: TensorDifference, by_layers: TensorDifference, **gaps: TensorDifference):  # type: ignore[no-untyped-def]
    """Two lanes whose layers are fine, with what each gives as a whole against its layers."""
    head = layer("head", FINE, tensors=(by_layers._replace(name="head", kind="layer"),))
    return judged(
        [CPU, NO_TF32],
        [pair("cpu", "gpu:no-tf32", [head], [apart])],
        whole={name.replace("gpu", "gpu:no-tf32"): whole(gap) for name, gap in gaps.items()},
    )


def test_what_only_the_whole_model_gets_wrong_is_no_rounding() -> None:
    found = with_outputs(FAR, BITS, cpu=same(), gpu=FAR)
    assert (found.verdict, found.pairs[0].off) == ("different", "gpu:no-tf32")
    assert found.pairs[0].first_layer == "output"
    assert (
        found.pairs[0]
        .reasons[0]
        .startswith("output differs by 8 % of its size, but only by 4.0e-06")
    )
    assert "is wrong, not the program" in found.pairs[0].reasons[1]
    assert found.headline.startswith("gpu:no-tf32 is different from cpu, first at output")


@pytest.mark.parametrize(
    ("apart", "by_layers"),
    [
        (FAR, FAR),
        (FAR, tensor(rms=0.01)),
        (tensor(rms=2e-5), BITS),  # 16 times what last bits come to
    ],
)
def test_what_the_layers_show_as_well_is_amplified_rounding(
    apart: TensorDifference, by_layers: TensorDifference
) -> None:
    assert with_outputs(apart, by_layers, cpu=same(), gpu=FAR).verdict == "rounding"


def test_layers_in_bfloat16_explain_what_a_compiler_does_not_round() -> None:
    """Without the recording, a compiler keeps results in float32 between such layers."""
    apart = tensor(rms=0.0008)
    head = layer("head", FINE, tensors=(BITS._replace(name="head", kind="layer"),))
    for dtype, verdict in (("bfloat16", "rounding"), ("float32", "different")):
        inner = same()._replace(name="inner", kind="layer", dtype_a=dtype, dtype_b=dtype)
        found = judged(
            [CPU, NO_TF32],
            [pair("cpu", "gpu:no-tf32", [layer("inner", FINE, tensors=(inner,)), head], [apart])],
            whole={"cpu": whole(same()), "gpu:no-tf32": whole(apart)},
        )
        assert found.verdict == verdict


def test_the_lane_that_is_right_knows_which_layer_an_output_is() -> None:
    other = layer("other", FINE, tensors=(FAR._replace(name="other", kind="layer"),))
    head = layer("head", FINE, tensors=(BITS._replace(name="head", kind="layer"),))
    strayed = (WholeOutput("output", "other", FAR),)
    for first, second in ((whole(same()), strayed), (strayed, whole(same()))):
        found = judged(
            [CPU, NO_TF32],
            [pair("cpu", "gpu:no-tf32", [other, head], [FAR])],
            whole={"cpu": first, "gpu:no-tf32": second},
        )
        assert found.verdict == "different"


def test_nobody_is_blamed_where_both_stray_or_neither_is_known_to() -> None:
    for gaps in ({"cpu": FAR, "gpu": FAR}, {"cpu": BITS, "gpu": BITS}):
        found = with_outputs(FAR, BITS, **gaps)
        assert (found.verdict, found.pairs[0].off) == ("different", None)
        assert len(found.pairs[0].reasons) == 1


def test_an_output_that_no_layer_gave_is_unknown() -> None:
    found = with_outputs(FAR, BITS)
    assert found.verdict == "undetermined"
    assert "No layer returns it" in found.pairs[0].reasons[0]
    assert with_outputs(BITS, BITS).verdict == "rounding"


def test_lanes_without_the_fault_are_named() -> None:
    runs = [CPU, GPU, NO_CUDNN]
    rough = tensor("head", kind="layer", rms=1e-5)
    head = layer("head", TF32, tensors=(rough,))
    pairs = [
        pair("cpu", "gpu", [head], [FAR]),
        pair("cpu", "gpu:no-cudnn", [head], [rough._replace(name="output", kind="output")]),
        pair("gpu", "gpu:no-cudnn", [head], [FAR]),
    ]
    gaps = {"cpu": whole(same()), "gpu": whole(FAR), "gpu:no-cudnn": whole(BITS)}
    found: ComparisonReport = judged(runs, pairs, whole=gaps)
    assert [each.off for each in found.pairs] == ["gpu", None, "gpu"]
    assert found.pairs[0].reasons[-1] == "the fault does not occur in gpu:no-cudnn"
    assert found.headline.startswith("gpu is different from cpu and gpu:no-cudnn")
    assert advice(found)[0].startswith("whygpu run --cudnn off -- python train.py")


def test_several_lanes_that_are_off_are_named_together() -> None:
    runs = [CPU, NO_TF32, run("gpu")]
    head = layer("head", FINE, tensors=(tensor("head", kind="layer"),))
    pairs = [pair("cpu", name, [head], [FAR]) for name in ("gpu:no-tf32", "gpu")]
    gaps = {"cpu": whole(same()), "gpu": whole(FAR), "gpu:no-tf32": whole(FAR)}
    found = judged(runs, pairs, whole=gaps)
    assert found.headline.startswith("gpu:no-tf32 and gpu are different from cpu, first at output")


def test_an_output_is_held_against_the_nearest_step_of_its_shape(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rng = numpy.random.default_rng(0)
    logits, other = rng.standard_normal((2, 4, 10)).astype("float32")
    lanes = part("lanes.recording")
    writer = lanes.Writer(str(tmp_path))
    writer.tensor("output", "output", logits)
    for name, array in (
        ("dense", logits[:2] + numpy.float32(1e-6)),
        ("last", other[:2]),
        ("wide", rng.standard_normal((4, 11))),
    ):
        writer.tensor(name, "layer", array)
        writer.step(name, "Dense", [name], "float32", {}, "")
    writer.close()
    recording = lanes.Recording(str(tmp_path))
    (found,) = part("tasks.differences").whole_outputs(recording)
    assert (found["output"], found["step"]) == ("output", "dense")
    assert found["difference"]["max_abs"] < 3e-6
