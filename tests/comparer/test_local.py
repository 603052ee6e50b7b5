"""Each step by itself: a fault shows where it is, whatever it does to all that follows."""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Callable
from typing import Any

import numpy
import pytest

from tests.comparer.inside import part
from whygpu.comparer import measures
from whygpu.comparer.comparison_report import report
from whygpu.comparer.tolerance import Tolerance
from whygpu.model.codec import decode
from whygpu.model.comparison import ComparisonReport, Lane, LaneRun, Reference
from whygpu.model.task_wire import FoundLine

local, recording, trees, task = (
    part("judging.local"),
    part("lanes.recording"),
    part("trees"),
    part("tasks.differences"),
)
Facts = part("judging.tools_keras").Facts
WIDTH = 48


class Layer:
    """A layer of a framework that consists of NumPy."""

    def __init__(self, name: str, act: Callable[[Any], Any], seed: int) -> None:
        self.name, self.act = name, act
        random = numpy.random.RandomState(seed)
        self.kernel = (random.standard_normal((WIDTH, WIDTH)) * 0.4).astype(numpy.float32)

    def __call__(self, x: Any) -> Any:
        return self.act(x @ self.kernel.astype(x.dtype))


class Tools:
    """What local.py asks of a framework, here of NumPy."""

    def flat(self, structure: Any) -> Any:
        return trees.flat(structure, lambda item: isinstance(item, numpy.ndarray))

    def replaced(self, structure: Any, change: Any) -> Any:
        return trees.replaced(structure, lambda item: isinstance(item, numpy.ndarray), change)

    def to_numpy(self, tensor: Any) -> Any:
        return tensor

    def tensor(self, array: Any) -> Any:
        return array

    def like(self, tensor: Any, array: Any) -> Any:
        return array

    def weights(self, layer: Layer) -> list[Any]:
        return [layer.kernel]

    def set_weights(self, layer: Layer, weights: list[Any]) -> None:
        (layer.kernel,) = weights

    def keeps_state(self, layer: Layer) -> bool:
        return layer.name == "stateful"

    def facts(self, layer: Layer, given: Any, outputs: Any) -> Any:
        return Facts(WIDTH, True)


def tanh(x: Any) -> Any:
    return numpy.tanh(3 * x)


def network(**changed: Callable[[Any], Any]) -> list[Layer]:
    """Layers that amplify what they are given: rounding reaches every digit."""
    names = [f"layer{number}" for number in range(30)]
    return [Layer(name, changed.get(name, tanh), number) for number, name in enumerate(names)]


INPUT = numpy.random.RandomState(99).standard_normal((4, WIDTH)).astype(numpy.float32)


def record(folder: pathlib.Path, layers: list[Layer], order: Any = None) -> str:
    """What a lane does: in float32, each lane summing in an order of its own."""
    writer = recording.Writer(str(folder))
    x = INPUT
    for layer in layers:
        kernel = layer.kernel
        order = numpy.arange(WIDTH) if order is None else order
        x = layer.act(x[:, order] @ kernel[order]).astype(numpy.float32)
        writer.tensor(layer.name, "layer", x)
        writer.step(layer.name, "Layer", [layer.name], "float32", {"act": layer.act.__name__}, "w")
    writer.tensor("output", "output", x)
    writer.close()
    return str(folder)


def force(
    lane: str, folder: pathlib.Path, before: Any = None, layers: list[Layer] | None = None
) -> str:
    """Float64 of each step, from the lane's own numbers."""
    writer = local.ErrorWriter(str(folder))
    forcing = local.Forcing(Tools(), recording.Recording(lane), writer, [INPUT], before)
    for _ in forcing.passes():
        x: Any = INPUT.astype(numpy.float64)
        for layer in layers or network():
            x = forcing(layer.name, layer, lambda args, kwargs, layer=layer: layer(*args), (x,), {})
    writer.close()
    return str(folder)


class Channel:
    def tell(self, text: str) -> None:
        pass


def compared(
    folder: pathlib.Path, reference: list[Layer] | None = None, **lanes: list[Layer]
) -> ComparisonReport:
    requests, before = [], None
    for number, (name, layers) in enumerate(lanes.items()):
        order = numpy.random.RandomState(number).permutation(WIDTH)
        runs = [record(folder / f"{name}-{run}", layers, order) for run in (1, 2)]
        errors = force(runs[0], folder / f"{name}-local", before, reference)
        before = before or (recording.Recording(runs[0]), local.Errors(errors))
        requests.append({"name": name, "runs": runs, "local": errors})
    found = task.all_differences({"lanes": requests, "reference": None}, Channel())
    return report(
        what="model.keras",
        inputs="random, seed 0",
        tolerance=Tolerance(),
        reference=Reference(True, "tensorflow"),
        runs=[LaneRun(Lane(name, "cpu"), "ran", products="float32") for name in lanes],
        measures=measures.of_entries(decode(FoundLine, {"entry": each}).entry for each in found),
    )


def dropping(seeds: Callable[[], int]) -> Callable[[Any], Any]:
    """A layer that drops half of what it is given, by numbers drawn with the next seed."""
    return lambda x: tanh(x) * numpy.random.RandomState(seeds()).randint(0, 2, x.shape)


def test_what_is_drawn_anew_at_every_call_is_no_rounding(tmp_path: pathlib.Path) -> None:
    # Each lane starts its generator anew for a run; within a process it goes on.
    one, two = (network(layer7=dropping(lambda seed=seed: seed)) for seed in (1, 2))  # type: ignore[misc]
    reference = network(layer7=dropping(itertools.count(3).__next__))
    found = compared(tmp_path, reference, one=one, two=two)
    (pair,) = found.pairs
    assert (found.verdict, found.exit_code) == ("undetermined", 4)
    assert "layer7 (Layer) differs and cannot be judged" in pair.reasons[0]
    assert "uses random numbers" in pair.reasons[0]


def test_rounding_that_is_amplified_to_every_digit_is_rounding(tmp_path: pathlib.Path) -> None:
    found = compared(tmp_path, one=network(), two=network())
    (pair,) = found.pairs
    assert (pair.outputs[0].cosine or 0) < 0.9
    assert (found.verdict, pair.level, found.exit_code) == ("rounding", "float32", 0)
    assert any("amplifies rounding" in reason for reason in pair.reasons)


def test_a_small_fault_is_found_in_its_layer_in_every_pair(tmp_path: pathlib.Path) -> None:
    def nearly_tanh(x: Any) -> Any:
        return numpy.tanh(3.0003 * x)

    found = compared(tmp_path, one=network(), two=network(layer7=nearly_tanh), three=network())
    verdicts = {(pair.a, pair.b): pair for pair in found.pairs}
    assert verdicts["one", "three"].verdict == "rounding"
    for names in (("one", "two"), ("two", "three")):
        pair = verdicts[names]
        assert (pair.verdict, pair.first_layer, pair.off) == ("different", "layer7", "two")
        assert any("setting act" in reason for reason in pair.reasons)
    assert found.headline == "two is different from one and three, first at layer7."


def test_an_overflow_is_found_where_it_happens(tmp_path: pathlib.Path) -> None:
    def half(x: Any) -> Any:
        with numpy.errstate(all="ignore"):
            short = x.astype(numpy.float16) * numpy.float16(60000)
            return tanh(x) + 0 * (short - short)

    found = compared(tmp_path, one=network(), two=network(layer4=half))
    (pair,) = found.pairs
    assert (pair.verdict, pair.first_layer, pair.off) == ("different", "layer4", "two")
    assert "NaN or infinite in" in pair.reasons[0]


def test_an_overflow_that_float64_has_too_is_found_all_the_same() -> None:
    exact = numpy.array([1.0, numpy.inf, numpy.inf, numpy.nan])
    lanes = numpy.array([[1.0, numpy.inf, 5.0, 2.0], [1.0, 3.0, 5.0, numpy.nan]])
    gaps = [local._gap(lane, exact) for lane in lanes]
    assert [list(map(str, gap)) for gap in gaps] == [
        ["0.0", "0.0", "nan", "nan"],
        ["0.0", "nan", "nan", "0.0"],
    ]
    assert local._gap(numpy.array([numpy.nan]), numpy.array([2.0]))[0] == numpy.inf


def test_a_step_that_float64_cannot_do_is_passed_over(tmp_path: pathlib.Path) -> None:
    lane = recording.Recording(record(tmp_path / "lane", network()))
    writer = local.ErrorWriter(str(tmp_path / "local"))
    forcing = local.Forcing(Tools(), lane, writer, [INPUT])

    def fails(args: Any, kwargs: Any) -> Any:
        raise TypeError("no float64 here\nand more")

    for _ in forcing.passes():
        given = forcing("layer0", network()[0], fails, (INPUT,), {})
        assert numpy.array_equal(given, lane.array("layer0"))
    writer.close()
    step = local.Errors(str(tmp_path / "local")).steps["layer0"]
    assert step["unknown"] == "float64 does not work in it: TypeError: no float64 here"


def test_code_between_steps_is_reckoned_to_the_next_and_answers_to_rounding(
    tmp_path: pathlib.Path,
) -> None:
    """A mean is taken off what is far larger than what is left: most digits go with it."""

    def between(x: Any) -> Any:
        return x - x.mean(axis=-1, keepdims=True)

    def far(x: Any) -> Any:
        return numpy.tanh(x) + x.dtype.type(1000)

    layers = [Layer("one", far, 1), Layer("two", numpy.tanh, 2)]
    writer = recording.Writer(str(tmp_path / "lane"))
    x: Any = INPUT
    for layer in layers:
        x = layer(between(x))
        writer.tensor(layer.name, "layer", x)
        writer.step(layer.name, "Layer", [layer.name], "float32", {}, "")
    writer.close()
    errors = local.ErrorWriter(str(tmp_path / "local"))
    lane = recording.Recording(str(tmp_path / "lane"))
    forcing = local.Forcing(Tools(), lane, errors, [INPUT])
    for _ in forcing.passes():
        x = INPUT.astype(numpy.float64)
        for layer in layers:
            given = (between(x),)
            x = forcing(
                layer.name, layer, lambda args, kwargs, layer=layer: layer(*args), given, {}
            )
    errors.close()
    request = {"name": "lane", "runs": [str(tmp_path / "lane")], "local": str(tmp_path / "local")}
    found = {each["layer"]: each for each in task.layer_errors(task.Lane(request))}
    assert found["two"]["max_abs"] > 1e-5
    assert found["two"]["units"]["own"] < 1


def test_a_recording_is_read_as_it_was_written(tmp_path: pathlib.Path) -> None:
    writer = recording.Writer(str(tmp_path))
    writer.tensor("bits", "output", numpy.array([0x3F80], dtype=numpy.uint16), dtype="bfloat16")
    writer.tensor("text", "recorded", numpy.array(["a", "bc"], dtype=object))
    writer.tensor("none", "output", numpy.zeros((0, 2)))
    writer.tensor("exact", "output", numpy.ones(2), rounding=(numpy.zeros(2), 5, "float32"))
    with pytest.raises(ValueError, match="recorded twice"):
        writer.tensor("text", "recorded", numpy.zeros(1))
    writer.close()
    read = recording.Recording(str(tmp_path))
    assert list(read.tensors) == ["bits", "text", "none", "exact"]
    assert read.tensors["bits"].dtype == "bfloat16"
    assert read.array("text").tolist() == ["a", "bc"]
    assert read.array("none").shape == (0, 2)
    assert read.rounding("exact")[1:] == (5, "float32")
    assert read.rounding("bits") is None
