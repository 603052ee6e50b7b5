"""Each step by itself: a fault shows where it is, whatever it does to all that follows."""

from __future__ import annotations

import contextlib
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

    def rounded_inside(self, move: Any) -> Any:
        return contextlib.nullcontext()

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


@pytest.mark.slow
def test_what_is_drawn_anew_at_every_call_is_no_rounding(tmp_path: pathlib.Path) -> None:
    # Each lane starts its generator anew for a run; within a process it goes on.
    one, two = (network(layer7=dropping(lambda seed=seed: seed)) for seed in (1, 2))  # type: ignore[misc]
    reference = network(layer7=dropping(itertools.count(3).__next__))
    found = compared(tmp_path, reference, one=one, two=two)
    (pair,) = found.pairs
    assert (found.verdict, found.exit_code) == ("undetermined", 4)
    assert "layer7 (Layer) differs and cannot be judged" in pair.reasons[0]
    assert "uses random numbers" in pair.reasons[0]


@pytest.mark.slow
def test_rounding_that_is_amplified_to_every_digit_is_rounding(tmp_path: pathlib.Path) -> None:
    found = compared(tmp_path, one=network(), two=network())
    (pair,) = found.pairs
    assert (pair.outputs[0].cosine or 0) < 0.9
    assert (found.verdict, pair.level, found.exit_code) == ("rounding", "float32", 0)
    assert any("amplifies rounding" in reason for reason in pair.reasons)


@pytest.mark.slow
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


@pytest.mark.slow
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


class PlainTools(Tools):
    """Tools for functions instead of layers: they have weights in a list, and sum nothing."""

    def weights(self, layer: Any) -> list[Any]:
        return list(layer)

    def set_weights(self, layer: Any, weights: list[Any]) -> None:
        layer[:] = weights

    def keeps_state(self, layer: Any) -> bool:
        return "state" in map(str, layer)

    def facts(self, layer: Any, given: Any, outputs: Any) -> Any:
        return Facts(1, False)


def lane_of(folder: pathlib.Path, precision: str = "float32", **steps: Any) -> Any:
    """A recording of steps with these outputs."""
    writer = recording.Writer(str(folder))
    for name, outputs in steps.items():
        names = [f"{name}.{number}" for number in range(len(outputs))]
        for output, array in zip(names, outputs, strict=True):
            writer.tensor(output, "layer", numpy.asarray(array))
        writer.step(name, "Layer", names, precision, {}, "")
    writer.close()
    return recording.Recording(str(folder))


class Run:
    """The passes of a program with its steps, for one lane."""

    def __init__(
        self, folder: pathlib.Path, lane: Any, program: Callable[[Any], None], before: Any = None
    ) -> None:
        writer = local.ErrorWriter(str(folder))
        inputs = [VECTOR]
        self.forcing = local.Forcing(PlainTools(), lane, writer, inputs, before)
        self.passes = 0
        for _ in self.forcing.passes():
            self.passes += 1
            program(self)
        writer.close()
        self.errors = local.Errors(str(folder))

    def step(self, name: str, compute: Callable[..., Any], *args: Any, weights: Any = ()) -> Any:
        layer = weights if isinstance(weights, list) else list(weights)
        return self.forcing(name, layer, lambda given, kwargs: compute(*given), args, {})

    def reason(self, name: str) -> str:
        return str(self.errors.steps[name]["unknown"])


VECTOR = numpy.linspace(1.0, 2.0, 40)
UNIT = 2.0**-24
MOVED = 8 * UNIT
"""Numbers are moved as rounding moves a sum of 64 products."""


def test_a_step_that_the_lane_did_not_make_gives_its_own_result(tmp_path: pathlib.Path) -> None:
    results = []

    def program(run: Run) -> None:
        results.append(run.step("other", numpy.sqrt, VECTOR))
        run.step("known", numpy.sqrt, VECTOR)

    run = Run(tmp_path / "local", lane_of(tmp_path / "lane", known=[VECTOR**0.5]), program)
    assert run.passes == 5
    assert all(numpy.array_equal(result, numpy.sqrt(VECTOR)) for result in results)
    assert list(run.errors.steps) == ["known"]


@pytest.mark.parametrize(("precision", "size"), [("float32", MOVED), ("float16", 2 * 2.0**-11)])
def test_what_each_pass_gives_to_the_steps(
    tmp_path: pathlib.Path, precision: str, size: float
) -> None:
    """Twice the lane's own numbers, then each number moved by as much as rounding moves it."""
    recorded = (VECTOR + 0.5).astype(numpy.float32)
    seen: list[tuple[Any, Any, Any]] = []

    def first(x: Any, places: Any) -> Any:
        seen.append((x, places, None))
        return x + 0.5

    def program(run: Run) -> None:
        places = numpy.arange(40)
        passed = run.step("first", first, VECTOR.copy(), places)
        kept: dict[str, Any] = {}
        run.step("second", lambda x: kept.update(x=x) or x * 2, passed)
        seen[-1] = (*seen[-1][:2], (passed, kept["x"]))

    lane = lane_of(tmp_path / "lane", precision, first=[recorded], second=[recorded * 2])
    run = Run(tmp_path / "local", lane, program)
    assert run.passes == len(seen) == 5
    for number, (x, places, (passed, given)) in enumerate(seen):
        assert numpy.array_equal(places, numpy.arange(40))
        assert given is passed
        for array, exact in ((x, VECTOR), (passed, recorded.astype(numpy.float64))):
            if number < 2:
                assert numpy.array_equal(array, exact)
            else:
                factors = numpy.abs(array / exact - 1)
                # Separately and together: both ways add up, or they cancel out.
                assert (factors < 2.01 * size).all()
                assert factors.max() > 1.99 * size
    assert run.errors.read("second")[0].products is None  # no code before it


def test_a_step_that_fails_or_keeps_a_state_does_not_stop_the_others(
    tmp_path: pathlib.Path,
) -> None:
    recorded = VECTOR.astype(numpy.float32)
    results: dict[str, list[Any]] = {"fails": [], "state": [], "pair": []}

    def fails(x: Any) -> Any:
        raise ValueError("not in float64")

    def program(run: Run) -> None:
        results["fails"].append(run.step("fails", fails, VECTOR))
        results["state"].append(run.step("state", lambda x: {"x": x}, VECTOR, weights=["state"]))
        results["pair"].append(run.step("pair", fails, VECTOR))
        run.step("known", lambda x: x * 1, VECTOR)

    one = [recorded]
    lane = lane_of(
        tmp_path / "lane", fails=one, state=one, pair=[recorded, recorded * 2], known=one
    )
    run = Run(tmp_path / "local", lane, program)
    assert run.passes == 5
    for number in range(5):
        close: dict[str, Any] = {"rtol": 0 if number < 2 else 3 * MOVED}
        numpy.testing.assert_allclose(results["fails"][number], recorded, **close)
        numpy.testing.assert_allclose(results["state"][number]["x"], recorded, **close)
        numpy.testing.assert_allclose(results["pair"][number][1], recorded * 2, **close)
    assert run.reason("fails") == "float64 does not work in it: ValueError: not in float64"
    assert run.reason("state") == "it keeps a state from call to call"
    assert run.errors.read("state") == []
    assert run.errors.steps["state"]["precision"] == "float32"
    assert run.reason("known") == ""


def test_a_step_with_other_shapes_gives_its_own_result(tmp_path: pathlib.Path) -> None:
    results = []

    def program(run: Run) -> None:
        results.append(run.step("cut", lambda x: x[:3], VECTOR))
        run.step("known", lambda x: x * 1, VECTOR)

    recorded = VECTOR.astype(numpy.float32)
    run = Run(
        tmp_path / "local", lane_of(tmp_path / "lane", cut=[recorded], known=[recorded]), program
    )
    assert [result.tolist() for result in results] == [VECTOR[:3].tolist()] * 5
    assert run.reason("cut") == "its outputs have other shapes in float64"


def allowed(tmp_path: pathlib.Path, compute: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """What rounding explains of a single step, whose lane has its exact result."""
    result = [numpy.asarray(each) for each in trees.flat(compute(*args), lambda item: True)]
    lane = lane_of(tmp_path / "lane", options.pop("precision", "float32"), step=result)
    run = Run(tmp_path / "local", lane, lambda run: run.step("step", compute, *args, **options))
    (error,) = run.errors.read("step")
    return error


def test_a_step_that_only_passes_numbers_on_may_be_off_by_what_moves_them(
    tmp_path: pathlib.Path,
) -> None:
    error = allowed(tmp_path, lambda x: x * 1, VECTOR)
    assert error.products is None
    assert numpy.array_equal(error.gap, numpy.zeros(40))
    # Eight times one unit of its size, and twice that by moving.
    numpy.testing.assert_allclose(error.own / VECTOR / (8 * UNIT), 3, atol=0.9)


def test_code_before_a_step_counts_as_long_sums_of_products(tmp_path: pathlib.Path) -> None:
    plain = allowed(tmp_path / "1", lambda x: x * 1, VECTOR)
    between = allowed(tmp_path / "2", lambda x: x * 1, VECTOR + 1e-9)
    assert plain.products is None
    assert between.products is not None
    numpy.testing.assert_allclose(between.own / plain.own, 16, rtol=1e-3)


def test_moving_weights_shows_what_they_do_and_puts_them_back(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = [VECTOR.copy()]
    ids = numpy.arange(40)

    def look_up(ids: Any) -> Any:
        return weights[0][ids]

    moved = allowed(tmp_path / "1", look_up, ids, weights=weights)
    assert numpy.array_equal(weights[0], VECTOR)
    monkeypatch.setattr(local, "LARGEST_MOVED", 40)
    as_large = allowed(tmp_path / "2", look_up, ids, weights=weights)
    monkeypatch.setattr(local, "LARGEST_MOVED", 39)
    too_large = allowed(tmp_path / "3", look_up, ids, weights=weights)
    assert numpy.array_equal(moved.own, as_large.own)
    assert moved.own.min() > 1.5 * too_large.own.min()


def test_whole_numbers_are_right_or_wrong(tmp_path: pathlib.Path) -> None:
    order = numpy.argsort(-VECTOR)
    results = []

    def program(run: Run) -> None:
        results.append(run.step("step", lambda x: (numpy.argsort(-x), x * 1), VECTOR)[0])

    run = Run(tmp_path / "local", lane_of(tmp_path / "lane", step=[order, VECTOR]), program)
    assert [result.tolist() for result in results] == [order.tolist()] * 5
    places, numbers = run.errors.read("step")
    assert places.own.tolist() == [0.5] * 40
    assert numbers.own.max() < 1e-5


def test_a_layer_that_sums_products_is_compared_with_tensor_cores(tmp_path: pathlib.Path) -> None:
    lane = record(tmp_path / "lane", network()[:2])
    errors = local.Errors(force(lane, tmp_path / "local", layers=network()[:2]))
    assert all(errors.read(name)[0].products is not None for name in ("layer0", "layer1"))


def test_a_result_whose_shape_depends_on_rounding_is_judged_by_its_size(
    tmp_path: pathlib.Path,
) -> None:
    error = allowed(tmp_path, lambda x: x[numpy.isin(x, VECTOR)], VECTOR)
    numpy.testing.assert_allclose(error.own / VECTOR / (8 * UNIT), 1)


@pytest.mark.parametrize(
    ("precision", "known", "unit"),
    [
        ("float16", "float16", 2 * 2.0**-11),
        ("float64", "float64", 2.0**-53),
        ("fp4", "float32", UNIT),
    ],
)
def test_rounding_is_that_of_the_precision_of_the_step(
    tmp_path: pathlib.Path, precision: str, known: str, unit: float
) -> None:
    lane = lane_of(tmp_path / "lane", precision, step=[VECTOR])
    run = Run(tmp_path / "local", lane, lambda run: run.step("step", lambda x: x * 1, VECTOR))
    assert run.errors.steps["step"]["precision"] == known
    (error,) = run.errors.read("step")
    numpy.testing.assert_allclose(error.own / VECTOR / (8 * unit), 3, atol=0.9)


def test_a_lane_without_steps_has_nothing_to_judge(tmp_path: pathlib.Path) -> None:
    run = Run(tmp_path / "local", lane_of(tmp_path / "lane"), lambda run: None)
    assert run.passes == 1
    assert not run.errors.steps


@pytest.mark.parametrize(
    ("exact", "before", "precision", "passes"),
    [
        (VECTOR, {"step": [VECTOR * 1.04]}, "float32", 1),
        (VECTOR, {"step": [VECTOR * 0.96]}, "float32", 1),
        (VECTOR * 100, {"step": [VECTOR * 104]}, "float32", 1),
        (VECTOR[:0], {"step": [VECTOR[:0]]}, "float32", 1),
        (VECTOR, {"step": [VECTOR * 1.06]}, "float32", 5),
        (VECTOR, {"step": [-VECTOR]}, "float32", 5),
        (VECTOR, {"step": [VECTOR]}, "float16", 5),
        (VECTOR, {"step": [VECTOR, VECTOR]}, "float32", 5),
        (VECTOR, {"step": [VECTOR[:20]]}, "float32", 5),
        (VECTOR, {"other": [VECTOR]}, "float32", 5),
        (numpy.arange(40), {"step": [numpy.arange(40)]}, "float32", 5),
    ],
)
def test_rounding_is_not_measured_again_where_another_lane_has_nearly_the_same_result(
    tmp_path: pathlib.Path, exact: Any, before: dict[str, Any], precision: str, passes: int
) -> None:
    def program(run: Run) -> None:
        run.step("step", lambda x: exact * 1, VECTOR)

    def of_before(run: Run) -> None:
        for name, outputs in before.items():
            run.step(name, lambda x, outputs=outputs: [each * 1 for each in outputs], VECTOR)

    other = lane_of(tmp_path / "other", precision, **before)
    there = Run(tmp_path / "there", other, of_before)
    lane = lane_of(tmp_path / "lane", step=[exact])
    run = Run(tmp_path / "here", lane, program, (other, there.errors))
    assert run.passes == passes
    if passes == 1:
        pair = [each.errors.read("step")[0].own for each in (run, there)]
        assert numpy.array_equal(*pair)


def test_what_another_lane_could_not_judge_is_measured_here(tmp_path: pathlib.Path) -> None:
    def fails(x: Any) -> Any:
        raise ValueError("not in float64")

    lane = lane_of(tmp_path / "lane", step=[VECTOR])
    there = Run(tmp_path / "there", lane, lambda run: run.step("step", fails, VECTOR))
    here = Run(
        tmp_path / "here",
        lane,
        lambda run: run.step("step", lambda x: x * 1, VECTOR),
        (lane, there.errors),
    )
    assert (there.passes, here.passes) == (1, 5)
    without = (lane_of(tmp_path / "without", other=[VECTOR]), here.errors)
    again = Run(
        tmp_path / "again", lane, lambda run: run.step("step", lambda x: x * 1, VECTOR), without
    )
    assert again.passes == 5
