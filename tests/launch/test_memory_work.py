"""What a dying program was at, read from its frames: no framework is needed to look."""

from __future__ import annotations

import ast
import importlib
import json
import pathlib
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from whygpu import launch

BOOTSTRAP = pathlib.Path(launch.__file__).parent / "bootstrap"


@pytest.fixture(scope="module")
def part() -> Iterator[Any]:
    """Gives modules of the bootstrap by name."""
    sys.path.insert(0, str(BOOTSTRAP))
    yield lambda name: importlib.import_module(f"whygpu_bootstrap.{name}")
    sys.path.remove(str(BOOTSTRAP))


class Array:
    def __init__(self, *shape: int, dtype: str = "float32") -> None:
        self.shape = shape
        self.dtype = SimpleNamespace(name=dtype)


class ndarray(Array):  # noqa: N801
    """By whose name it is known that its shape is no code of the program's."""


class Shape(tuple[Any, ...]):
    @property
    def rank(self) -> int:
        return len(self)


def dataset(*shape: int | None) -> Any:
    spec = SimpleNamespace(shape=Shape(shape), dtype=SimpleNamespace(name="uint8"))
    return SimpleNamespace(element_spec=(spec, spec))


class Model:
    """A Keras model, as far as it can be noted."""

    inputs: Any = None
    built = False
    _compile_config = SimpleNamespace(
        config={"optimizer": "adam", "loss": None, "metrics": [object()]}
    )

    def fail(self, *arguments: Any, **options: Any) -> None:
        raise MemoryError

    fit = evaluate = predict = train_on_batch = predict_on_batch = __call__ = fail

    def get_config(self) -> dict[str, Any]:
        return {"layers": [1]}

    def get_build_config(self) -> None:
        return None


def keras(version: str = "3.15.1") -> ModuleType:
    module = ModuleType("keras")
    module.__dict__.update(
        __version__=version,
        Model=Model,
        backend=SimpleNamespace(backend=lambda: "jax"),
        saving=SimpleNamespace(
            serialize_keras_object=lambda value: value,
            get_registered_name=lambda kind: kind.__name__,
        ),
    )
    return module


def frames(part: Any, folder: pathlib.Path, code: str, **names: Any) -> Any:
    """Those of a program that dies, with these variables."""
    path = folder / "program.py"
    path.write_text(code)
    try:
        exec(compile(code, str(path), "exec"), names)
    except MemoryError as error:
        # The first is this function's.
        return part("memory.frames").frames_of(error)[1:]
    raise AssertionError("the program lives")


def noted(
    part: Any,
    monkeypatch: pytest.MonkeyPatch,
    folder: pathlib.Path,
    code: str,
    *,
    batch: int | None = None,
    version: str = "3.15.1",
    **names: Any,
) -> Any:
    monkeypatch.setitem(sys.modules, "keras", keras(version))
    seen = frames(part, folder, code, model=Model(), **names)
    return part("memory.work").noted_work(seen, batch)


@pytest.mark.parametrize(
    ("code", "names", "expected"),
    [
        ("model.fit(x, batch_size=64)", {"x": Array(1000, 8)}, 64),
        ("model.fit(x, y, 64)", {"x": Array(1000, 8), "y": None}, 64),
        ("model.fit(x)", {"x": Array(1000, 8)}, 32),
        ("model.fit(x)", {"x": Array(20, 8)}, 20),
        ("model.fit([x, x], batch_size=64)", {"x": Array(50, 8)}, 50),
        ("model.predict(x, 256)", {"x": Array(1000, 8)}, 256),
        ("model.train_on_batch(x)", {"x": Array(128, 8)}, 128),
        ("model.fit(make(), batch_size=2 * size)", {"make": list, "size": 32}, 64),
        (
            "model.fit(\n    x,\n    **options,\n)",
            {"x": Array(99, 8), "options": {"batch_size": 16}},
            16,
        ),
        ("model.fit(x, batch_size=args.batch)", {"x": 0, "args": SimpleNamespace(batch=7)}, 7),
        ("model.fit(x, batch_size=sizes['b'][0])", {"x": 0, "sizes": {"b": [9]}}, 9),
        ("model.fit(data)", {"data": dataset(48, 8)}, 48),
        ("model.fit(data)", {"data": SimpleNamespace(batch_size=24)}, 24),
    ],
)
def test_the_batch_that_a_keras_model_was_given(
    part: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    code: str,
    names: dict[str, Any],
    expected: int,
) -> None:
    found = noted(part, monkeypatch, tmp_path, code, **names)
    assert (found["why"], found["batch"]) == ("", expected)


def test_a_keras_model_is_noted_without_its_weights(
    part: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    code = "def train(self):\n    self.model.fit(x)\ntrain(owner)"
    owner = SimpleNamespace(model=Model())
    found = noted(
        part, monkeypatch, tmp_path, code, x=Array(64, 8, 3, dtype="float64"), owner=owner
    )
    data = json.loads(found.pop("data"))
    assert {key: found[key] for key in ("of", "name", "mode", "backend", "input")} == {
        "of": "keras",
        "name": "Model",
        "mode": "train",
        "backend": "jax",
        "input": "8x3:float32",
    }
    assert data["model"]["config"] == {"layers": [1]}
    assert data["compile"] == {"optimizer": "adam", "loss": None}


@pytest.mark.parametrize(
    ("code", "more", "why"),
    [
        ("model.fit(make())", {"make": lambda: None}, "nothing shows which batch size fit() used"),
        ("model.fit(x)", {"x": Array(9, 8), "version": "2.15.0"}, "this is Keras 2.15.0"),
    ],
)
def test_why_a_keras_model_is_not_noted(
    part: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: pathlib.Path,
    code: str,
    more: dict[str, Any],
    why: str,
) -> None:
    assert why in noted(part, monkeypatch, tmp_path, code, **more)["why"]


def test_a_variable_tells_the_batch_where_the_call_does_not(
    part: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    code = "model.predict(make())"
    found = noted(part, monkeypatch, tmp_path, code, batch=12, make=lambda: None)
    assert (found["mode"], found["batch"]) == ("infer", 12)


@pytest.mark.parametrize(
    ("framework", "why"),
    [("jax", "cannot recreate a JAX function"), ("tensorflow", "nothing shows which Keras model")],
)
def test_why_work_cannot_be_recreated(
    part: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, framework: str, why: str
) -> None:
    seen = frames(part, tmp_path, "raise MemoryError")
    assert part("memory.work").noted_work(seen, None) is None
    monkeypatch.setitem(sys.modules, framework, ModuleType(framework))
    assert why in part("memory.work").noted_work(seen, None)["why"]


class Watched:
    """Something whose properties must not be asked: they are code of the program's."""

    batch = 5

    def __init__(self) -> None:
        self.asked = False

    @property
    def size(self) -> int:
        self.asked = True
        return 3


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("number", 4),
        ("number * 2 + 1", 9),
        ("number // 0", None),
        ("number / 2", None),
        ("words['a']", 1),
        ("words['missing']", None),
        ("thing.batch", 5),
        ("thing.size", None),
        ("thing.missing.batch", None),
        ("(number, 3)", [4, 3]),
        ("len(words)", 1),
        ("len(array)", 7),
        ("array.shape[1]", 2),
        ("len(thing)", None),
        ("x.to('cuda')", "x"),
        ("x.mean()", None),
        ("(lambda: 1)()", None),
        ("nowhere", None),
    ],
)
def test_expressions_are_read_and_not_run(
    part: Any, tmp_path: pathlib.Path, expression: str, expected: Any
) -> None:
    thing = Watched()
    names = {"number": 4, "words": {"a": 1}, "thing": thing, "x": "x", "array": ndarray(7, 2)}
    ((frame, _),) = frames(part, tmp_path, "raise MemoryError", **names)
    reading = part("memory.frames")
    found = reading.value_of(ast.parse(expression, mode="eval").body, frame)
    assert found == (reading.UNKNOWN if expected is None else expected)
    assert not thing.asked


def test_tensorflow_is_not_imported_to_note_a_model_of_another_backend(
    part: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy = SimpleNamespace(_available=None)
    utils = SimpleNamespace(tensorflow=lazy)
    monkeypatch.setitem(sys.modules, "keras.src.utils.module_utils", utils)
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    quietly = part("memory.work_keras")._without_tensorflow
    assert quietly(lambda: lazy._available) is False
    assert lazy._available is None
    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    assert quietly(lambda: lazy._available) is None
