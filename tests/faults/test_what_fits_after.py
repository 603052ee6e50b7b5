"""What would have fitted, after a run: asked for where it can help, and never in the way."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.launch.programs import PYTHON, WHYGPU, environment, run, same_as_bare, script
from tests.patience import PATIENCE, wait_until
from tests.schemas import obeys

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")

KERAS = """
import os, sys, time, types
__version__ = "3.0"
backend = types.SimpleNamespace(backend=lambda: "torch")

class Trainer:
    def make_train_function(self):
        pass

class Model(Trainer):
    inputs = None
    built = False
    def get_config(self):
        return {}
    def get_build_config(self):
        return None
    def fit(self, x, batch_size):
        epoch_iterator = types.SimpleNamespace(data_adapter=types.SimpleNamespace(batch_size=8))
        self.make_train_function()
        if x == "abort":
            sys.stderr.write("terminate called after throwing an instance of 'std::bad_alloc'\\n")
            sys.stderr.write("  what():  std::bad_alloc\\n")
            os.abort()
        raise MemoryError

def load(*arguments, **options):
    open("loading", "w").close()
    time.sleep(30)

saving = types.SimpleNamespace(
    serialize_keras_object=lambda value: value,
    get_registered_name=lambda kind: kind.__name__,
)
"""
PROGRAM = """
import keras
keras.Model().fit({x!r}, batch_size=16)
"""


def program(folder: Path, x: str, keras: str = KERAS) -> Path:
    script(folder, keras, "keras/__init__.py")
    return script(folder, PROGRAM.format(x=x))


def ended(folder: Path, x: str) -> tuple[int, dict[str, Any], str]:
    report = folder / "report.json"
    file = program(folder, x)
    done = run([*WHYGPU, "--no-repair", "--report", report, "--", PYTHON, file], cwd=folder)
    written = json.loads(report.read_text())
    obeys("run", written)
    return done.returncode, written["out_of_memory"]["estimate"], done.stderr


@pytest.mark.parametrize(
    ("x", "code", "begun", "batch"), [("raise", 1, False, 8), ("abort", 134, True, 8)]
)
def test_an_estimate_is_asked_for_what_the_program_was_at(
    tmp_path: Path, x: str, code: int, begun: bool, batch: int
) -> None:
    """By what it had noted when it began: `Model().fit` does not tell which model it is of."""
    returned, told, said = ended(tmp_path, x)
    assert returned == code
    names = ("answer", "model", "mode", "batch", "begun")
    assert tuple(told[name] for name in names) == ("cannot-tell", "Model", "train", batch, begun)
    # This is no true Keras.
    assert "has no attribute 'custom_object_scope'" in told["why"]
    assert "  estimate   cannot be made: " in said


def test_the_program_is_what_it_is_without(tmp_path: Path) -> None:
    same_as_bare([PYTHON, program(tmp_path, "raise")])


def test_ctrl_c_ends_the_estimate_and_the_exit_code_stays(tmp_path: Path) -> None:
    keras = f"{KERAS}\nsaving.custom_object_scope = load\n"
    words = [*WHYGPU, "--no-repair", "--", PYTHON, program(tmp_path, "raise", keras)]
    process = subprocess.Popen(
        [str(word) for word in words],
        env=environment(),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until((tmp_path / "loading").exists, process)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "  estimate   cannot be made: it was interrupted" in said
    assert "Traceback" not in said.partition("MemoryError")[2]
