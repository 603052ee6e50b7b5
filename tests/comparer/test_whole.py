"""A function without layers: what rounding explains of its outputs, and what it does not."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from tests.comparer.inside import part

float64_call, recording = part("judging.float64_call"), part("lanes.recording")
task = part("tasks.differences")
CannotLift = part("judging.float64_keras").CannotLift
RANDOM = numpy.random.RandomState(3)
INPUT = RANDOM.standard_normal((6, 40)).astype(numpy.float32)
WEIGHTS = [RANDOM.standard_normal((40, 40)).astype(numpy.float32) / 6 for _ in range(4)]


def deep(x: Any, weights: list[Any], scale: float = 1.0) -> dict[str, Any]:
    for weight in weights:
        x = numpy.tanh(x @ weight) * scale
    return {"last": x, "best": x.argmax(axis=-1)}


def recorded(folder: pathlib.Path, result: dict[str, Any]) -> Any:
    writer = recording.Writer(str(folder))
    for name, array in result.items():
        writer.tensor(f"output.{name}", "output", array)
    writer.close()
    return recording.Recording(str(folder))


def reference(folder: pathlib.Path, function: Callable[..., Any], lane: Any) -> Any:
    writer = recording.Writer(str(folder))
    float64_call.LiftedCall(function, (INPUT, WEIGHTS)).record(writer, lane)
    writer.close()
    return recording.Recording(str(folder))


def units(tmp_path: pathlib.Path, scale: float) -> float:
    lane = recorded(tmp_path / "lane", deep(INPUT, WEIGHTS))
    other = recorded(tmp_path / "other", deep(INPUT, WEIGHTS, scale))
    exact = reference(tmp_path / "exact", deep, lane)
    found = {each["name"]: each for each in task.output_differences(lane, other, exact)}
    return float(found["output.last"]["units"]["own"])


def test_its_own_rounding_is_within_it(tmp_path: pathlib.Path) -> None:
    lane = recorded(tmp_path / "lane", deep(INPUT, WEIGHTS))
    exact = reference(tmp_path / "exact", deep, lane)
    (best, last) = sorted(
        task.output_differences(lane, exact, exact), key=lambda each: str(each["name"])
    )
    assert 0 < last["units"]["own"] < 0.2
    assert best["units"] is None


def test_a_fault_of_a_thousandth_is_beyond_it(tmp_path: pathlib.Path) -> None:
    assert units(tmp_path, 1.001) > 1


def test_a_function_that_draws_at_every_call_has_no_reference(tmp_path: pathlib.Path) -> None:
    random = numpy.random.RandomState(5)

    def draws(x: Any, weights: list[Any]) -> Any:
        return deep(x * random.randint(0, 2, x.shape), weights)

    lane = recorded(tmp_path / "lane", deep(INPUT, WEIGHTS))
    with pytest.raises(CannotLift, match=r"output\.(last|best) differs each time"):
        reference(tmp_path / "exact", draws, lane)


def test_a_function_that_stays_in_float32_has_no_reference(tmp_path: pathlib.Path) -> None:
    def stays(x: Any, weights: list[Any]) -> Any:
        return deep(x.astype(numpy.float32), [each.astype(numpy.float32) for each in weights])

    lane = recorded(tmp_path / "lane", deep(INPUT, WEIGHTS))
    with pytest.raises(CannotLift, match=r"output.last is float32 whatever precision"):
        reference(tmp_path / "exact", stays, lane)
