"""What a comparison advises: only what follows from what it found."""

from __future__ import annotations

import pytest

from tests.comparer.kit import FINE, TF32, WRONG, errors, judged, layer, pair, run, same, tensor
from whygpu.model.comparison import LocalDifference, SettingDifference, Units
from whygpu.render.compare_advice import advice


def test_lanes_that_agree_need_none() -> None:
    assert advice(judged([run("cpu"), run("gpu")], [pair("cpu", "gpu", [layer("a", FINE)])])) == []


def test_a_setting_is_told_with_the_lanes_that_have_it() -> None:
    names = ("keras:tensorflow", "keras:jax", "keras:torch")
    setting = SettingDifference("epsilon", "0.01", "0.001")
    odd = layer("norm", WRONG, settings=(setting,))
    pairs = [
        pair(names[0], names[1], [odd]),
        pair(names[0], names[2], [odd]),
        pair(names[1], names[2], [layer("norm", FINE)]),
    ]
    assert advice(judged([run(name) for name in names], pairs)) == [
        "give norm the same epsilon everywhere: it is 0.01 on keras:tensorflow, and 0.001 on "
        "keras:jax and keras:torch"
    ]


def test_weights() -> None:
    found = [pair("cpu", "gpu", [layer("dense", WRONG, weights_differ=True)])]
    assert advice(judged([run("cpu"), run("gpu")], found)) == [
        "load the same weights everywhere: those of dense are not the same"
    ]


def test_what_overflows_in_float16() -> None:
    local = LocalDifference(0.0, Units(0.0), not_finite_in_one=3)
    over = errors("gpu", scale=FINE)[0]._replace(precision="float16", not_finite=3)
    report = judged(
        [run("cpu"), run("gpu")],
        [pair("cpu", "gpu", [layer("scale", local=local)])],
        layers={"cpu": errors("cpu", scale=FINE), "gpu": (over,)},
    )
    (said,) = advice(report)
    assert said.startswith("let scale compute in float32 or bfloat16 on gpu")


def test_a_layer_that_is_off_by_itself() -> None:
    runs = [run("keras:tensorflow"), run("keras:jax"), run("keras:torch")]
    names = [each.lane.name for each in runs]
    pairs = [
        pair(names[0], names[1], [layer("norm", WRONG)]),
        pair(names[0], names[2], [layer("norm", FINE)]),
        pair(names[1], names[2], [layer("norm", WRONG)]),
    ]
    units = {name: errors(name, norm=WRONG if name == "keras:jax" else FINE) for name in names}
    (said,) = advice(judged(runs, pairs, layers=units))
    assert said.startswith("look at what norm (Conv2D) computes on keras:jax")
    between = layer("norm", local=LocalDifference(0.1, WRONG, code_before=True))
    pairs = [pairs[0]._replace(layers=(between,)), pairs[1], pairs[2]._replace(layers=(between,))]
    (said,) = advice(judged(runs, pairs, layers=units))
    assert said.startswith("look at what the program computes on keras:jax between norm and")
    two = judged(
        runs[:2],
        [pair(names[0], names[1], [layer("norm", WRONG)])],
        layers={name: units[name] for name in names[:2]},
    )
    assert advice(two) == [
        "add keras:torch to --lanes: a third backend shows which of the two is right"
    ]


def test_tf32() -> None:
    found = [pair("cpu", "gpu", [layer("conv", TF32)])]
    (said,) = advice(judged([run("cpu"), run("gpu", products="tf32")], found))
    assert said == "for products in full float32: whygpu run --tf32 off -- python train.py"
    (said,) = advice(judged([run("cpu"), run("gpu")], found))
    assert said.startswith("add a lane with no-tf32")


def test_a_script_is_narrowed_down() -> None:
    apart = tensor("loss", kind="recorded", max_abs=0.9, max_rel=0.9, rms=0.5)
    report = judged([run("cpu"), run("gpu")], [pair("cpu", "gpu", outputs=[apart])])
    (said,) = advice(report)
    assert said.startswith("look between loss and what is recorded before it")


def test_a_tolerance_that_was_given() -> None:
    apart = tensor(max_abs=0.9)
    report = judged([run("cpu"), run("gpu")], [pair("cpu", "gpu", outputs=[apart])], tolerance=1e-4)
    (said,) = advice(report)
    assert "--tolerance auto" in said
    assert "by more than the given tolerance 0.0001" in report.headline
    within = judged([run("cpu"), run("gpu")], [pair("cpu", "gpu", outputs=[apart])], tolerance=1.0)
    assert within.headline == "The lanes differ by no more than the given tolerance 1."


@pytest.mark.parametrize(
    ("lane", "missing", "words"),
    [
        ("gpu", "", "whygpu check says why"),
        ("keras:jax", "jax", "for keras:jax, install what"),
    ],
)
def test_a_lane_that_cannot_run(lane: str, missing: str, words: str) -> None:
    refused = run(lane, end="cannot-run", reason="a reason", missing=missing)
    (said,) = advice(judged([run("cpu"), refused], []))
    assert said.startswith(words)


def test_random_numbers_and_races() -> None:
    apart = (tensor(max_abs=0.5, max_rel=0.5, rms=0.4),)
    unseeded = judged([run("cpu"), run("gpu")], [pair("cpu", "gpu")], own={"cpu": apart})
    assert advice(unseeded)[0].startswith("seed every generator where the program starts")
    racing = judged([run("cpu"), run("gpu")], [pair("cpu", "gpu")], own={"gpu": apart})
    (said,) = advice(racing)
    assert said.startswith("compare with the lane gpu:deterministic as well")


def test_a_program_that_fails_by_itself() -> None:
    failed = run("cpu", end="failed", reason="KeyError: 'x'")
    absent = run("gpu", end="cannot-run", reason="the NVIDIA driver shows no GPU")
    (said,) = advice(judged([failed, absent], []))
    assert said.startswith("fix the program or its inputs first")
    assert len(advice(judged([failed], []))) == 1


def test_equal_nans_tell_nothing() -> None:
    empty = same(nan_a=20, nan_b=20, cosine=None)
    report = judged([run("cpu"), run("gpu")], [pair("cpu", "gpu", outputs=[empty])])
    assert report.verdict == "equal"
    (said,) = advice(report)
    assert said.startswith("output is NaN in 20 of 20 places on both lanes")


def test_one_lane_is_no_comparison() -> None:
    (said,) = advice(judged([run("cpu")], []))
    assert said.startswith("name a second lane")
