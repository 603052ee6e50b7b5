"""What a lane does inside the target, as far as it needs no framework."""

from __future__ import annotations

import collections
import pathlib
from typing import Any

import pytest

from tests.cases import each
from tests.comparer.inside import part

TIMING = part("lanes.timing")

numpy = pytest.importorskip("numpy")
Pair = collections.namedtuple("Pair", "left right")


def names(tree: Any) -> list[str]:
    return [name for name, _ in part("lanes.host_arrays").named(tree, "output")]


@each(
    ("tree", "expected"),
    [
        (numpy.zeros(2), ["output"]),
        (3.0, ["output"]),
        ([1, (2, 3)], ["output[0]", "output[1][0]", "output[1][1]"]),
        ({"a": 1, "b": {"c": 2}}, ["output.a", "output.b.c"]),
        (Pair(1, None), ["output.left"]),
        (None, []),
    ],
)
def test_arrays_are_named_by_their_place(tree: Any, expected: list[str]) -> None:
    assert names(tree) == expected


def test_objects_with_fields_are_looked_into_and_others_refused() -> None:
    class Output:
        def __init__(self) -> None:
            self.logits = numpy.zeros(3)
            self._cache = object()

    assert names(Output()) == ["output.logits"]
    with pytest.raises(part("lanes.host_arrays").NotAnArray, match=r"output\[0\] is of type set"):
        names([{1, 2}])


def test_a_structure_is_filled_in_the_order_of_its_names() -> None:
    arrays = part("lanes.host_arrays")
    tree = {"b": [1, None, 2], "a": Pair(3, (4,))}
    assert arrays.mapped(lambda each: each * 10, tree) == {
        "b": [10, None, 20],
        "a": Pair(30, (40,)),
    }


def test_what_layers_give_has_one_order_and_one_name_on_every_backend() -> None:
    """JAX sorts dictionaries, and TensorFlow has names where others have places."""
    trees = part("trees")
    one = trees.without_fields(trees.in_key_order({"b": Pair(1, 2), "a": 3}))
    other = trees.without_fields(trees.in_key_order({"a": 3, "b": (1, 2)}))
    assert names(one) == names(other) == ["output.a", "output.b[0]", "output.b[1]"]


class Clock:
    """A call that takes as long as it is told, on a clock that it moves itself."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *lengths: float) -> None:
        self.now = 0.0
        self.calls = 0
        self.lengths = lengths
        monkeypatch.setattr("time.perf_counter", lambda: self.now)

    def __call__(self) -> None:
        self.now += self.lengths[min(self.calls, len(self.lengths) - 1)]
        self.calls += 1


class ByName:
    """As a module of PyTorch is called."""

    def forward(self, x: int, y: int = 0) -> Any:
        return x, y

    __call__ = forward


class OneDictionary:
    def forward(self, batch: dict[str, int]) -> Any:
        return batch

    __call__ = forward


def test_a_dictionary_is_the_arguments_of_a_module_or_the_one_that_it_takes() -> None:
    call = part("work_torch").call
    given = {"x": 1, "y": 2}
    assert call(ByName(), given) == (1, 2)
    assert call(OneDictionary(), given) is given
    assert call(ByName(), (1, 2)) == call(ByName(), [1, 2]) == (1, 2)
    with pytest.raises(TypeError, match="'z'"):
        call(ByName(), {"x": 1, "y": 2, "z": 3, "batch": 4})


def test_calls_go_on_for_the_time_given(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 9.0, 8.0, 0.25)
    lengths = TIMING.measured(clock, 0.1, 10.0)
    assert set(lengths) == {0.25}  # the two calls of the warm-up are not among them
    assert len(lengths) == 40


def test_a_long_call_is_measured_a_few_times_and_a_very_long_one_not_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert TIMING.measured(Clock(monkeypatch, 12.0), 12.0, 1.5) == [12.0, 12.0]
    assert TIMING.measured(Clock(monkeypatch, 100.0), 100.0, 1.5) == []
    assert TIMING.measured(Clock(monkeypatch, 100.0), 100.0, 1.5, repeat=3) == [100.0] * 3


def test_median_of_even_and_odd_counts() -> None:
    assert TIMING.median([3.0, 1.0, 2.0]) == 2.0
    assert TIMING.median([4.0, 1.0, 2.0, 3.0]) == 2.5


def npz(tmp_path: pathlib.Path, **arrays: Any) -> str:
    numpy.savez(tmp_path / "inputs.npz", **arrays)
    return str(tmp_path / "inputs.npz")


def test_inputs_are_matched_by_name_else_by_order(tmp_path: pathlib.Path) -> None:
    inputs = part("lanes.chosen_inputs")
    given = inputs.read(npz(tmp_path, b=numpy.zeros((2, 1)), a=numpy.ones((2, 3))), None)
    assert [array.shape for array in inputs.matched(given, ["a", "b"])] == [(2, 3), (2, 1)]
    assert [array.shape for array in inputs.matched(given, ["x", "y"])] == [(2, 1), (2, 3)]
    with pytest.raises(part("loading").Unusable, match="--inputs has b, a; the model takes a, c"):
        inputs.matched(given, ["a", "c"])
    with pytest.raises(part("loading").Unusable, match="the model takes x"):
        inputs.matched(given, ["x"])


def test_rows_of_inputs_are_repeated_up_to_the_batch(tmp_path: pathlib.Path) -> None:
    path = npz(tmp_path, a=numpy.arange(3.0).reshape(3, 1), scale=numpy.float32(2))
    given = dict(part("lanes.chosen_inputs").read(path, 5))
    assert given["a"].ravel().tolist() == [0, 1, 2, 0, 1]
    assert given["scale"] == 2


def test_an_input_of_another_shape_is_refused_with_both(tmp_path: pathlib.Path) -> None:
    check = part("lanes.chosen_inputs").check
    assert check(numpy.zeros((4, 8, 3)), "x", (None, 3), "float32").dtype == numpy.float32
    with pytest.raises(
        part("loading").Unusable, match=r"x is of shape \(4, 2\); .*\(rows, any, 3\)"
    ):
        check(numpy.zeros((4, 2)), "x", (None, 3), "float32")


@each(
    ("function", "names", "wanted"),
    [
        (lambda x, y: 0, ["x", "y"], True),
        (lambda x, y=1: 0, ["x"], True),
        (lambda x, y: 0, ["x"], False),
        (lambda batch_size: 0, ["x"], False),
        (lambda: 0, ["x"], False),
    ],
)
def test_a_function_is_fed_if_it_takes_what_there_is(
    function: Any, names: list[str], wanted: bool
) -> None:
    assert part("lanes.chosen_inputs").wanted_by(function, names) is wanted


def loaded(tmp_path: pathlib.Path, program: str) -> Any:
    """What a lane makes of the function `work` of a program."""
    (tmp_path / "program.py").write_text(program)
    what = {"kind": "function", "path": str(tmp_path / "program.py"), "name": "work"}
    request = {"what": what, "shared": str(tmp_path / "shared"), "lane": "cpu", "train": 0}
    return part("lanes.subject").load({**request, "inputs": None, "batch": None})


MADE_BY_A_FUNCTION = """
import time, numpy

def make():
    time.sleep(0.004)
    return (numpy.arange(6.0),)

def work():
    return lambda x: x * 2, make
"""


def test_the_time_of_making_input_is_measured_where_a_function_makes_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part("lanes.measure"), "PARTS_SECONDS", 0.02)
    work = loaded(tmp_path, MADE_BY_A_FUNCTION)
    ((_, array, _),) = work.call()
    assert array.tolist() == [0, 2, 4, 6, 8, 10]
    subject = {"device": "cpu", "train": 0}
    request = {"measure": {"seconds": 0.01, "repeat": 3}, "subject": subject}
    timing = part("lanes.measure").timing_of(work, work.call, 0.0, request)
    assert timing["input_seconds"] >= 0.004
    assert min(timing["seconds"]) >= 0.004


def test_input_that_stands_there_takes_no_time(tmp_path: pathlib.Path) -> None:
    program = MADE_BY_A_FUNCTION.replace(", make\n", ", make()\n")
    work = loaded(tmp_path, program)
    assert work.kind == "pair"
    assert part("lanes.measure").input_seconds(work) is None
