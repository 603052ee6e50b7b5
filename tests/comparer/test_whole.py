"""A function without layers: what rounding explains of its outputs, and what it does not."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from tests.cases import each
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


class Written:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.rounding: dict[str, Any] = {}

    def tensor(self, name: str, kind: str, array: Any, rounding: Any = None) -> None:
        self.kinds[name] = kind
        self.rounding[name] = rounding


def written(function: Callable[..., Any], *arguments: Any, lanes: str = "float32") -> Written:
    writer = Written()
    lane = SimpleNamespace(tensors={"output": SimpleNamespace(dtype=lanes)})
    float64_call.LiftedCall(function, arguments).record(writer, lane)
    return writer


def test_a_function_gets_its_numbers_in_float64_and_the_rest_as_it_is() -> None:
    given = []

    def function(x: Any, scale: float, count: int, ids: Any) -> Any:
        given.append((x.dtype.name, type(scale), count, ids.dtype.name))
        return {"scaled": x * scale * count, "ids": ids}

    ids = numpy.arange(3, dtype=numpy.int32)
    found = written(function, INPUT, 2.5, 3, ids)
    assert set(given) == {("float64", float, 3, "int32")}
    assert found.kinds == {"output.scaled": "output", "output.ids": "output"}
    assert found.rounding["output.ids"] is None
    spread, _, _ = found.rounding["output.scaled"]
    assert spread.max() > 0


@each(
    ("lanes", "precision"), [("float16", "float16"), ("float64", "float64"), ("int64", "float32")]
)
def test_rounding_is_that_of_the_precision_of_the_lanes(lanes: str, precision: str) -> None:
    assert written(numpy.tanh, INPUT, lanes=lanes).rounding["output"][2] == precision


@each("framework", ["torch", "tensorflow", "jax", "jaxlib"])
def test_a_tensor_is_given_as_a_tensor_of_its_framework(framework: str) -> None:
    class Tensor:
        layout, dtype = "strided", "float32"

        def __init__(self, array: Any) -> None:
            self.array = numpy.asarray(array)

        def same(self) -> Any:
            return self

        detach = cpu = resolve_conj = resolve_neg = same

        def numpy(self) -> Any:
            return self.array

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self.array

    Tensor.__module__ = f"{framework}.arrays"
    modules = {
        "torch": SimpleNamespace(
            Tensor=Tensor, strided="strided", bfloat16="bfloat16", as_tensor=Tensor
        ),
        "tensorflow": SimpleNamespace(Tensor=Tensor, convert_to_tensor=Tensor),
        "jax": SimpleNamespace(Array=Tensor, numpy=SimpleNamespace(asarray=Tensor)),
    }
    name = "jax" if framework == "jaxlib" else framework
    given = []

    def function(x: Any) -> Any:
        given.append(type(x))
        return x.array * 2.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, modules[name])
        written(function, Tensor(INPUT))
    assert set(given) == {Tensor}


def test_an_output_that_rounding_takes_away_or_gives_another_shape_has_a_reference() -> None:
    """Numbers that are moved are not exactly 1 any more."""

    def function(x: Any) -> Any:
        result = {"x": x, "ones": x[x == 1.0]}
        return dict(result, all_ones=x) if (x == 1.0).all() else result

    found = written(function, numpy.ones(4, numpy.float32))
    assert [found.rounding[f"output.{name}"][0].tolist() for name in ("ones", "all_ones")] == [
        [0.0] * 4
    ] * 2
    assert found.rounding["output.x"][0].max() > 0


@each(
    ("results", "reason"),
    [
        ([numpy.arange(3)] * 2, "the function returns no floating-point numbers"),
        ([numpy.ones(3), numpy.ones(4)], "output differs each time"),
        ([{"a": numpy.ones(3)}, {"b": numpy.ones(3)}], r"output\.a differs each time"),
        ([numpy.ones(3, numpy.float16)] * 2, "output is float16 whatever precision"),
    ],
)
def test_why_a_function_has_no_reference(results: list[Any], reason: str) -> None:
    waiting = iter(results)
    with pytest.raises(CannotLift, match=reason):
        written(lambda x: next(waiting), INPUT)


@each(
    ("shapes", "expected"),
    [
        ([], 1),
        ([()], 1),
        ([(100,)], 100),
        ([(100,), (300,)], 300),
        ([(2, 3, 50)], 150),  # all but the shortest side
        ([(0, 5)], 0 + 1),
        ([(4, 50), (7,)], 50),
        ([(4, 50), (70,)], 70),
        ([(4, 50), (50, 30)], 2 * 50),  # a stage for each of them
        ([(4, 50), (50, 30), (90,)], 2 * 90),
    ],
)
def test_the_largest_sum_that_arrays_of_these_shapes_can_make(shapes: Any, expected: int) -> None:
    assert float64_call.largest_sum(shapes) == expected
