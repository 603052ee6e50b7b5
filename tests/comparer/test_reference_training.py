"""What rounding explains of training, where a gradient is a sum that cancels out."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy
import pytest

from tests.comparer.inside import part

recording, task = part("lanes.recording"), part("tasks.differences")
reference_training = part("judging.reference_training")
RANDOM = numpy.random.RandomState(5)
INPUT, WEIGHT = RANDOM.standard_normal((64, 20)), RANDOM.standard_normal((20, 6))


def gradients(x: Any, weight: Any) -> tuple[Any, Any]:
    """Of the mean of third powers behind a layer whose mean is taken away, as a batch normalization
    does: what its bias adds is gone, and so is the bias's gradient but for rounding."""
    out = x @ weight
    centred = out - out.mean(0)
    back = 3 * centred**2 / centred.size
    back = back - back.mean(0)
    return x.T @ back, back.sum(0)


class Lifted:
    def __init__(self, names: tuple[str, str]) -> None:
        self._names = names

    def train(self, writer: Any, steps: int, change: Any = None) -> None:
        change = change or (lambda array: array)
        found = gradients(change(INPUT), change(WEIGHT))
        for name, values in zip(self._names, found, strict=True):
            writer.tensor(f"gradient {name}", "gradient", values)


def lane(folder: pathlib.Path, names: tuple[str, str], order: int, wrong: float = 0.0) -> Any:
    """In float32, with the samples in another order."""
    rows = numpy.random.RandomState(order).permutation(len(INPUT))
    x, weight = INPUT[rows].astype(numpy.float32), WEIGHT.astype(numpy.float32)
    writer = recording.Writer(str(folder))
    for name, values in zip(names, gradients(x, weight), strict=True):
        writer.tensor(f"gradient {name}", "gradient", values + numpy.float32(wrong))
    writer.close()
    return recording.Recording(str(folder))


@pytest.mark.parametrize(
    "names",
    [("0.weight", "0.bias"), ("conv/kernel", "conv/bias"), ("net/conv/kernel", "net/conv/bias")],
)
def test_what_is_left_of_a_bias_is_rounding(tmp_path: pathlib.Path, names: tuple[str, str]) -> None:
    one, other = (lane(tmp_path / str(order), names, order) for order in (1, 2))
    wrong = lane(tmp_path / "wrong", names, 1, wrong=1e-4)
    writer = recording.Writer(str(tmp_path / "float64"))
    reference_training.record(Lifted(names), writer, 1, one)
    writer.close()
    exact = recording.Recording(str(tmp_path / "float64"))
    fine = task.output_differences(one, other, exact)
    assert all(each["unequal"] for each in fine)
    assert [each["units"]["own"] < 1 for each in fine] == [True, True]
    off = task.output_differences(one, wrong, exact)
    assert [each["units"]["own"] > 1 for each in off] == [True, True]


class Written:
    """A writer that keeps the rounding of each tensor."""

    def __init__(self) -> None:
        self.rounding: dict[str, tuple[Any, int, str]] = {}

    def tensor(self, name: str, kind: str, array: Any, rounding: Any) -> None:
        self.rounding[name] = rounding

    def spread(self, name: str) -> list[float]:
        return [float(each) for each in self.rounding[name][0]]


class Trained:
    """Training with given results: gradients, and the weights before and after it."""

    def __init__(self, gradients: dict[str, Any], before: dict[str, Any], after: dict[str, Any]):
        self._gradients, self._before, self._after = gradients, before, after
        self.steps: list[int] = []

    def train(self, writer: Any, steps: int, change: Any = None) -> None:
        self.steps.append(steps)
        change = change or (lambda array: array)
        writer.tensor("loss", "loss", change(numpy.array([2.0 + steps])))
        for name, values in self._gradients.items():
            gradient = numpy.array(values) if steps else numpy.array(values) + 7.0
            writer.tensor(f"gradient {name}", "gradient", change(gradient))
        for name, values in (self._after if steps else self._before).items():
            writer.tensor(f"weight {name}", "weight", change(numpy.array(values)))


ONES = [1.0] * 50
BEFORE = {
    "conv/kernel": [1.0] * 50,
    "conv/bias": [0.0, 0.0],
    "dense/kernel": [0.0, 1.0],
    "dead/bias": [1.0],
    "scale": [1.0],
    "shift": [1.0],
    "norm/mean": [0.0],
    "seed/state": [0],
    "none/weight": [],
}
AFTER = {
    "conv/kernel": [0.9] * 50,
    "conv/bias": [0.3, 0.2],
    "dense/kernel": [0.0, 1.0],
    "dead/bias": [1.0],
    "scale": [1.0],
    "shift": [1.0],
    "norm/mean": [0.1],
    "seed/state": [10**9],
    "none/weight": [],
    "late/weight": [50.0],
}
SMALL = 1e-5


def trained(
    folder: pathlib.Path, bias_gradient: list[float], lane_bias: list[float] | None
) -> tuple[Written, Trained]:
    """With one lane, whose weights were trained as well."""
    gradients = {
        "conv/kernel": ONES,
        "conv/bias": bias_gradient,
        "dense/kernel": [1e-6, 1e-6],
        "scale": [100.0],
        "shift": [1e-5],
    }
    dead = {"dead/bias": [0.0]} if 0.0 in bias_gradient else {}
    lifted = Trained({**gradients, **dead}, BEFORE, AFTER)
    writer = recording.Writer(str(folder))
    if lane_bias is not None:
        bias = numpy.array(lane_bias, dtype=numpy.float32)
        writer.tensor("weight conv/bias", "weight", bias)
        writer.tensor("gradient conv/bias", "gradient", bias)
    writer.tensor("weight norm/mean", "weight", numpy.array([7.0], dtype=numpy.float32))
    writer.tensor("conv", "layer", numpy.zeros((100, 1), dtype=numpy.float32))
    writer.close()
    found = Written()
    reference_training.record(lifted, found, 2, recording.Recording(str(folder)))
    return found, lifted


def test_a_weight_without_a_gradient_of_its_own_may_go_as_far_as_any_weight(
    tmp_path: pathlib.Path,
) -> None:
    """The first bias has only rounding for a gradient, and Adam makes a full step of it."""
    found, lifted = trained(tmp_path, [0.0, 1.0], [0.25, 9.0])
    bias = found.spread("weight conv/bias")
    assert bias[0] == pytest.approx(0.3)
    assert bias[1] < SMALL
    assert max(found.spread("weight conv/kernel")) < SMALL
    assert max(found.spread("gradient conv/bias")) < SMALL
    # It is the gradient that decides, not the weight, and each layer by itself.
    assert max(found.spread("weight dense/kernel")) < SMALL
    assert max(found.spread("weight shift")) < SMALL
    assert found.spread("weight dead/bias") == pytest.approx([0.3])
    assert max(found.spread("loss")) < SMALL
    # An average of results follows the biases, as far as those of the lane went.
    assert found.spread("weight norm/mean") == pytest.approx([0.05])
    assert lifted.steps == [2, 2, 2, 2, 2, 0]


class Drawing(Trained):
    """Training with a layer that draws new random numbers each time."""

    def train(self, writer: Any, steps: int, change: Any = None) -> None:
        super().train(writer, steps, change)
        writer.tensor("loss", "loss", numpy.array([float(len(self.steps))]))


def test_training_that_draws_random_numbers_has_no_reference(tmp_path: pathlib.Path) -> None:
    recording.Writer(str(tmp_path)).close()
    written, lifted = Written(), Drawing({}, BEFORE, AFTER)
    reference_training.record(lifted, written, 2, recording.Recording(str(tmp_path)))
    assert (written.rounding, lifted.steps) == ({}, [2, 2])


def test_averages_follow_no_further_than_any_weight_went(tmp_path: pathlib.Path) -> None:
    found, _ = trained(tmp_path, [0.0, 1.0], [-5.0, 9.0])
    assert found.spread("weight norm/mean") == pytest.approx([0.3])


@pytest.mark.parametrize("lane_bias", [None, [0.25, 0.0, 0.0]])
def test_a_lane_without_that_weight_says_nothing_about_averages(
    tmp_path: pathlib.Path, lane_bias: list[float] | None
) -> None:
    found, _ = trained(tmp_path, [0.0, 1.0], lane_bias)
    assert max(found.spread("weight norm/mean")) < SMALL
    assert found.spread("weight conv/bias")[0] == pytest.approx(0.3)


def test_where_every_gradient_is_larger_than_rounding_nothing_is_left_to_chance(
    tmp_path: pathlib.Path,
) -> None:
    found, lifted = trained(tmp_path, [1.0, 1.0], [0.25, 0.0])
    assert max(found.spread("weight conv/bias")) < SMALL
    assert max(found.spread("weight norm/mean")) < SMALL
    assert lifted.steps == [2, 2, 2, 2, 2]


def test_a_gradient_has_at_least_the_rounding_of_the_largest_one_of_its_layer(
    tmp_path: pathlib.Path,
) -> None:
    found, _ = trained(tmp_path, [0.0, 1.0], [0.25, 0.0])
    size = 10 * 2.0**-24  # of a sum of 100
    assert found.spread("gradient conv/bias")[0] == size
    # The kernel moves by twice that where both changes go the same way.
    assert max(found.spread("gradient conv/kernel")) == pytest.approx(2 * size, rel=1e-3)
    # Whole numbers are not rounded.
    assert found.spread("weight seed/state") == [pytest.approx(0.05)]


@pytest.mark.parametrize(
    ("tensors", "precisions", "expected"),
    [
        ({}, [], (1, "float32")),
        ({"layer": (4, 6, 8), "weight": (50, 4)}, ["float32"] * 3, (150, "float32")),
        ({"layer": (50, 1)}, ["float32", "float16", "bits"], (150, "float16")),
        ({"weight": (4, 6, 8), "layer": ()}, ["bfloat16"], (24, "bfloat16")),
        ({"output": (1000, 2), "weight": (900,), "layer": (3, 2)}, [], (3, "float32")),
    ],
)
def test_sums_are_as_long_as_those_of_all_steps_together(
    tmp_path: pathlib.Path,
    tensors: dict[str, tuple[int, ...]],
    precisions: list[str],
    expected: tuple[int, str],
) -> None:
    writer = recording.Writer(str(tmp_path))
    for kind, shape in tensors.items():
        writer.tensor(kind, kind, numpy.zeros(shape, dtype=numpy.float32))
    for number, precision in enumerate(precisions):
        writer.step(f"step{number}", "Layer", [], precision, {}, "")
    writer.close()
    found = Written()
    lane = recording.Recording(str(tmp_path))
    reference_training.record(Trained({"bias": ONES}, {}, {}), found, 1, lane)
    assert found.rounding["gradient bias"][1:] == expected
