"""One layer of two lanes: whether they part there, and which precision explains a difference."""

from __future__ import annotations

from tests.cases import each
from tests.comparer.kit import FINE, TF32, WRONG, errors, layer, run, same, tensor
from whygpu.comparer.layer_verdict import Lanes, judge
from whygpu.model.comparison import (
    LayerDifference,
    LayerError,
    LocalDifference,
    Precision,
    TensorDifference,
)

CPU, GPU = run("cpu"), run("gpu")


def lanes(a: Precision | None, b: Precision | None, *, gpu: str = "gpu") -> Lanes:
    return Lanes(CPU._replace(products=a), run(gpu, products=b), {}, {})


@each(
    ("a", "b", "products"),
    [
        ("float32", "float32", "float32"),
        ("float32", "tf32", "tf32"),
        ("bfloat16", "tf32", "bfloat16"),
        (None, "float32", None),
        (None, "tf32", "tf32"),
    ],
)
def test_the_coarser_of_two_lanes_decides(
    a: Precision | None, b: Precision | None, products: Precision | None
) -> None:
    assert lanes(a, b).products == products


@each(
    ("gpu", "products", "unknown"),
    [
        ("gpu", None, True),
        ("gpu", "float32", False),
        ("gpu:no-tf32", None, False),
        ("cpu", None, False),
    ],
)
def test_a_gpu_that_could_not_be_asked_may_use_tf32_unless_it_is_forbidden(
    gpu: str, products: Precision | None, unknown: bool
) -> None:
    assert lanes("float32", products, gpu=gpu).gpu_of_unknown_products is unknown


def judged(one: LayerDifference, **precisions: Precision) -> tuple[bool, str | None, str]:
    """Whether they part, what explains it, and why that is unknown."""
    of: dict[str, dict[str, LayerError]] = {
        name: {"conv": errors(name, conv=FINE)[0]._replace(precision=precision)}
        for name, precision in precisions.items()
    }
    found = judge(one, Lanes(CPU, GPU, of.get("cpu", {}), of.get("gpu", {})))
    return found.parted, found.precision, found.unknown


PARTED, ROUNDED = (True, None, ""), (False, "float32", "")


@each(
    ("one", "expected"),
    [
        (layer("conv", FINE), ROUNDED),
        (layer("conv", WRONG), PARTED),
        (layer("conv", TF32), PARTED),
        (layer("conv", FINE, tensors=(tensor(), same(how="not-at-all"))), PARTED),
        (layer("conv", FINE, local=LocalDifference(6e-8, FINE, not_finite_in_one=1)), PARTED),
    ],
)
def test_a_layer_that_was_computed_again(
    one: LayerDifference, expected: tuple[bool, str | None, str]
) -> None:
    assert judged(one) == expected


@each(
    ("precisions", "precision"),
    [
        ({"cpu": "float64", "gpu": "float32"}, "float32"),
        ({"cpu": "float32", "gpu": "float16"}, "float16"),
        ({"cpu": "bfloat16", "gpu": "float16"}, "bfloat16"),
        ({"gpu": "float64"}, "float64"),
    ],
)
def test_a_layer_rounds_in_the_coarser_of_its_own_precisions(
    precisions: dict[str, Precision], precision: str
) -> None:
    assert judged(layer("conv", FINE), **precisions) == (False, precision, "")


@each(
    ("tensors", "expected"),
    [
        ((tensor(),), ROUNDED),
        ((same(), tensor()), ROUNDED),
        ((tensor(rms=64 * 2.0**-24 * 0.5),), ROUNDED),
        ((tensor(dtype_a="float16"),), (False, "float16", "")),
        ((tensor(dtype_a="float64", dtype_b="float64", rms=1e-16),), (False, "float64", "")),
        ((same(dtype_a="int32", dtype_b="int32"),), (False, None, "")),
        ((tensor(rms=65 * 2.0**-24 * 0.5),), (False, None, "no rule")),
        ((tensor(), tensor(rms=0.1)), (False, None, "no rule")),
        ((tensor(rms=None),), (False, None, "no rule")),
        ((tensor(not_finite_in_one=1),), (False, None, "no rule")),
    ],
)
def test_a_layer_that_could_not_be_computed_again_is_fine_within_its_last_bits(
    tensors: tuple[TensorDifference, ...], expected: tuple[bool, str | None, str]
) -> None:
    assert judged(layer("conv", tensors=tensors, local_unknown="no rule")) == expected
