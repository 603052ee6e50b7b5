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
