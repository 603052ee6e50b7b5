"""A model's file that holds code: it is refused before anything of it is executed."""

from __future__ import annotations

import base64
import json
import marshal
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE
from whygpu.model.task_wire import (
    EstimateRequest,
    LaneRequest,
    Subject,
    TaskRequest,
    TrialRequest,
)
from whygpu.model.work import What
from whygpu.work.task_process import run_task

pytestmark = pytest.mark.slow
"""Each test starts programs."""

DENSE: dict[str, Any] = {"module": "keras.layers", "class_name": "Dense", "config": {"units": 4}}
CODE = base64.b64encode(marshal.dumps(compile("1", "x", "eval"))).decode()
HARMFUL: dict[str, dict[str, Any]] = {
    "a lambda of Keras 3": {
        "module": "keras.layers",
        "class_name": "Lambda",
        "config": {"function": {"class_name": "__lambda__", "config": {"code": CODE}}},
    },
    "a lambda of Keras 2": {
        "class_name": "Lambda",
        "config": {"name": "bad", "function": [CODE, None, None], "function_type": "lambda"},
    },
    "a registered name": {
        "class_name": "keras.src>Lambda",
        "config": {"function": [CODE, None, None]},
    },
    "an output shape": {
        "class_name": "Lambda",
        "config": {
            "function": "f",
            "function_type": "function",
            "output_shape": [CODE],
            "output_shape_type": "lambda",
        },
    },
    "within another layer": {
        "class_name": "TimeDistributed",
        "config": {"layer": {"class_name": "Lambda", "config": {"function_type": "lambda"}}},
    },
    "a module of Python": {"module": "os", "class_name": "system", "config": {"command": "true"}},
    "a built-in": {"module": "builtins", "class_name": "eval", "config": "1"},
    "a nested module": {"module": "importlib.util", "class_name": "find_spec", "config": {}},
}
HARMLESS: dict[str, dict[str, Any]] = {
    "layers": DENSE,
    "a function by its name": {
        "class_name": "Lambda",
        "config": {
            "function": {"module": "builtins", "class_name": "function", "config": "relu"},
            "function_type": "function",
        },
    },
    "an operation": {"class_name": "TFOpLambda", "config": {"function": "math.add"}},
    "a layer of a package": {"module": "a_package.layers", "class_name": "Mine", "config": {}},
    "a variable's type": {"class_name": "Cast", "config": {"type": "lambda x", "x_type": "float"}},
}
KERAS = """
__version__ = {version!r}
class Model: pass
class saving:
    @staticmethod
    def load_model(path, custom_objects=None, compile=True, safe_mode=False):
        open({marker!r}, "w").write(str(safe_mode))
        raise ValueError("the file was loaded")
"""


def model(folder: Path, layer: dict[str, Any]) -> Path:
    config = {"class_name": "Sequential", "config": {"layers": [DENSE, layer]}}
    path = folder / "model.keras"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("metadata.json", "{}")
    return path


def subject(what: What, folder: Path) -> Subject:
    return Subject(
        what=what,
        package="",
        seed=0,
        batch=1,
        shapes=None,
        inputs=None,
        train=1,
        shared=str(folder),
        lane="cpu",
        device="cpu",
        backend=None,
        options=(),
    )


@pytest.fixture
def keras(tmp_path: Path) -> Any:
    """A Keras that only notes that it was asked to load a file."""
    marker = tmp_path / "loaded"

    def loaded_by(task: str, path: Path, version: str = "3.10.0") -> tuple[str | None, str]:
        site = tmp_path / "site"
        site.mkdir(exist_ok=True)
        (site / "keras.py").write_text(KERAS.format(version=version, marker=str(marker)))
        what = What("model-file", str(path))
        requests: dict[str, TaskRequest] = {
            "estimate": EstimateRequest(what, batch=1, train=True),
            "trial": TrialRequest(what, pickled=None, batch=1),
            "lane": LaneRequest(subject(what, tmp_path), record=str(tmp_path / "record")),
        }
        end = run_task(
            requests[task],
            python=sys.executable,
            environ={**os.environ, "PYTHONPATH": str(site)},
            timeout=PATIENCE,
        )
        assert end.ended == "exception", end
        return (marker.read_text() if marker.exists() else None), end.how

    return loaded_by


@pytest.mark.parametrize("layer", HARMFUL.values(), ids=HARMFUL)
def test_code_in_a_file_is_refused_before_keras_sees_it(
    keras: Any, layer: dict[str, Any], tmp_path: Path
) -> None:
    loaded, how = keras("estimate", model(tmp_path, layer))
    assert loaded is None
    assert "is code that Keras would execute" in how
    assert "file.py:load_it" in how


@pytest.mark.parametrize("layer", HARMLESS.values(), ids=HARMLESS)
def test_a_file_without_code_is_loaded_in_safe_mode(
    keras: Any, layer: dict[str, Any], tmp_path: Path
) -> None:
    loaded, how = keras("estimate", model(tmp_path, layer))
    assert loaded == "True", how


@pytest.mark.parametrize("task", ["estimate", "trial", "lane"])
def test_every_task_refuses_code(keras: Any, task: str, tmp_path: Path) -> None:
    loaded, how = keras(task, model(tmp_path, HARMFUL["a lambda of Keras 2"]))
    assert loaded is None
    assert "a Lambda layer (bad)" in how


def test_a_model_for_a_keras_that_is_refused_is_not_loaded_first(
    keras: Any, tmp_path: Path
) -> None:
    loaded, how = keras("estimate", model(tmp_path, DENSE), version="2.15.0")
    assert loaded is None
    assert "Keras 2.15.0: estimates are made for Keras 3" in how


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"text"])
def test_a_file_that_is_no_model_is_not_given_to_keras(
    keras: Any, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "model.keras"
    path.write_bytes(content)
    assert keras("estimate", path)[0] is None


def test_an_archive_behind_hdf5_is_looked_at_as_both(keras: Any, tmp_path: Path) -> None:
    """Keras goes by the name of a file, and takes this one for HDF5."""
    archive = model(tmp_path, DENSE).read_bytes()
    path = tmp_path / "model.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100) + archive)
    loaded, how = keras("estimate", path)
    assert loaded is None
    assert "h5py" in how or "cannot be read" in how


def test_the_looking_is_done_without_a_framework() -> None:
    folder = Path(__file__).parents[2] / "src" / "whygpu" / "work" / "inside"
    code = "import sys; import whygpu_work.model_file; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"keras", "h5py", "numpy", "tensorflow"}.isdisjoint(done.stdout.split())
