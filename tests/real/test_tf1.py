"""The same TensorFlow 1 program on TensorFlow 1 and, under --tf1, on TensorFlow 2."""

from __future__ import annotations

import functools
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

import pytest

from tests.patience import PATIENCE
from tests.targets import python_of

pytestmark = pytest.mark.timeout(900)

PROGRAM = pathlib.Path(__file__).with_name("tf1_program.py")
ENVIRONMENT = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}


class Ends:
    """What both runs of the program left behind."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder) / "report.json"
            run = [sys.executable, "-m", "whygpu", "run", "--tf1", "--device", "cpu"]
            run += ["--report", str(report), "--", python_of("tensorflow-2.21"), str(PROGRAM)]
            new = _start(run)
            old = _start([python_of("tensorflow-gpu-1.15"), str(PROGRAM)])
            self.old, _ = _answer(old)
            self.new, self.said = _answer(new)
            self.report = json.loads(report.read_text())


@functools.cache
def ends() -> Ends:
    return Ends()


def _start(command: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT)


def _answer(process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    out, err = process.communicate(timeout=3 * PATIENCE)
    assert process.returncode == 0, err[-3000:]
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer, err


def differences(old: object, new: object, where: str = "") -> list[str]:
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [each for place, pair in pairs for each in differences(*pair, f"{where}/{place}")]
    if isinstance(old, float) and isinstance(new, (int, float)):
        same = math.isclose(old, new, rel_tol=1e-3, abs_tol=1e-4)
    else:
        same = old == new
    return [] if same else [f"{where}: TensorFlow 1 has {old!r}, --tf1 has {new!r}"]


def test_every_answer_is_that_of_tensorflow_1() -> None:
    old, new = ends().old["answers"], ends().new["answers"]
    assert old.keys() == new.keys()
    failed = {name: answer for name, answer in old.items() if isinstance(answer, str)}
    assert not failed, "the program itself is wrong"
    assert [each for name in old for each in differences(old[name], new[name], name)] == []


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        ("contrib module", ["ModuleNotFoundError", "contrib.factorization", "no counterpart"]),
        ("contrib name", ["ImportError", "cannot import name 'nothing_of_that_name'"]),
        ("contrib name inside", ["ImportError", "cannot import name 'nothing_of_that_name'"]),
        ("keras layer", ["AttributeError", "LocallyConnected2D", "pip install tf_keras"]),
        ("estimator", ["AttributeError", "BoostedTreesClassifier", "2.15"]),
        ("TensorFlow 2 only", ["AttributeError", "without --tf1"]),
        ("no such name", ["module 'tensorflow' has no attribute 'nothing_of_that_name'"]),
        ("mnist", ["FileNotFoundError", "train-images-idx3-ubyte.gz", "nothing is downloaded"]),
        ("libraries see", ["keras._tf_keras.keras"]),
        ("numpy", ["<class 'int'>"]),
        ("inside a library", ["False"]),
        # tf.summary.scalar is another thing of this name.
        ("wrong name inside", ["ImportError", "array_ops' has no attribute 'scalar'"]),
    ],
)
def test_what_is_not_there_says_so(refusal: str, words: list[str]) -> None:
    said = ends().new["refusals"][refusal]
    assert all(word in said for word in words), said


def test_whygpu_says_what_stood_in() -> None:
    notes = ends().said
    assert "behaves as TensorFlow 1" in notes
    assert "tf.contrib.layers -> whygpu's own implementation" in notes
    assert "tf.contrib.rnn.static_rnn -> tf.nn.static_rnn" in notes
    assert "numpy.int -> Python's int" in notes
    assert "tf.python.ops.array_ops.stack -> tf.stack" in notes
    assert ends().report["device"] == "cpu"


FLAGS_OF_THE_FIRST_RELEASES = """
import numpy, tensorflow as tf
flags = tf.app.flags
flags.DEFINE_string("log_dir", "logs", "absl has a flag of this name too")
flags.DEFINE_float("rate", numpy.float32(0.5), "a number of NumPy")
flags.DEFINE_integer(flag_name="steps", default_value=3, docstring="by the old names")
FLAGS = flags.FLAGS
FLAGS._parse_flags()

def main(_):
    FLAGS.words = 7  # no flag
    print(FLAGS.log_dir, FLAGS.rate, FLAGS.steps, FLAGS.words, hasattr(FLAGS, "nothing"))

tf.app.run()
"""


def test_flags_are_those_of_the_first_releases(tmp_path: pathlib.Path) -> None:
    """TensorFlow 1.15 itself refuses most of them: they ended with release 1.4."""
    program = tmp_path / "program.py"
    program.write_text(FLAGS_OF_THE_FIRST_RELEASES)
    run = [sys.executable, "-m", "whygpu", "run", "--tf1", "--"]
    done = _start([*run, python_of("tensorflow-2.21"), str(program), "--log_dir=here"])
    out, err = done.communicate(timeout=PATIENCE)
    assert out.split() == ["here", "0.5", "3", "7", "False"], err[-3000:]
