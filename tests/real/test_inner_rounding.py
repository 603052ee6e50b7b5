"""Numbers that cancel out inside of a layer: what rounding explains, and what it does not."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from typing import Any

import pytest

from tests.comparer.inside import INSIDE
from tests.targets import python_of

PROGRAM = """
import json, sys
import torch
from whygpu_work.judging import local
from whygpu_work.judging.lifted_torch import TorchTools
from whygpu_work.lanes import layers_torch, recording

folder = sys.argv[1]

class Cancels(torch.nn.Module):
    def __init__(self, fault=0.0):
        super().__init__()
        self.fault = fault

    def forward(self, x):
        return (x + 1e6) - 1e6 + self.fault

class Plain(Cancels):
    def forward(self, x):
        return torch.tanh(x) * (1.0 + self.fault)

x = torch.randn(64, 64, generator=torch.Generator().manual_seed(1))
for kind, fault in ((Cancels, 0.0), (Cancels, 10.0), (Plain, 0.0), (Plain, 1e-5)):
    where = "{}/{}-{}".format(folder, kind.__name__, fault)
    writer = recording.Writer(where)
    writer.tensor("layer", "layer", kind(fault)(x).numpy())
    writer.step("layer", "Layer", ["layer"], "float32", {}, "w")
    writer.close()
    errors = local.ErrorWriter(where + "-errors")
    given = x.double()
    forcing = local.Forcing(
        TorchTools(torch), recording.Recording(where), errors, [given.numpy()])
    sound = kind().eval()
    for _ in forcing.passes():
        forcing("layer", sound, lambda args, kwargs: sound(*args), (given.clone(),), {})
    errors.close()
    (error,) = local.Errors(where + "-errors").read("layer")
    worst = float((abs(error.gap) / error.own).max())
    print("FOUND " + json.dumps([kind.__name__, fault, worst]))
"""


KERAS_PROGRAM = """
import json, sys
import keras, numpy
from whygpu_work.judging import local
from whygpu_work.judging.tools_keras import KerasTools
from whygpu_work.lanes import recording

folder = sys.argv[1]
if keras.backend.backend() == "jax":
    import jax
    jax.config.update("jax_enable_x64", True)

class Cancels(keras.layers.Layer):
    def __init__(self, dtype, fault=0.0):
        super().__init__(dtype=dtype)
        self.fault = fault

    def call(self, x):
        return (x + 1e6) - 1e6 + self.fault

class Plain(Cancels):
    def call(self, x):
        return keras.ops.tanh(x) * (1.0 + self.fault)

x = numpy.random.RandomState(1).randn(64, 64).astype("float32")
for kind, fault in ((Cancels, 0.0), (Cancels, 10.0), (Plain, 0.0), (Plain, 1e-5)):
    where = "{}/{}-{}".format(folder, kind.__name__, fault)
    writer = recording.Writer(where)
    given = keras.ops.convert_to_tensor(x, dtype="float32")
    result = keras.ops.convert_to_numpy(kind("float32", fault)(given))
    writer.tensor("layer", "layer", result)
    writer.step("layer", "Layer", ["layer"], "float32", {}, "w")
    writer.close()
    errors = local.ErrorWriter(where + "-errors")
    wide = keras.ops.convert_to_tensor(x.astype("float64"), dtype="float64")
    forcing = local.Forcing(
        KerasTools(keras), recording.Recording(where), errors, [x.astype("float64")])
    sound = kind("float64")
    for _ in forcing.passes():
        forcing("layer", sound, lambda args, kwargs: sound(*args), (wide,), {})
    errors.close()
    (error,) = local.Errors(where + "-errors").read("layer")
    worst = float((abs(error.gap) / error.own).max())
    print("FOUND " + json.dumps([kind.__name__, fault, worst]))
again = keras.ops.convert_to_numpy(kind("float32", fault)(given))
assert (again == result).all()  # Nothing is changed any more.
"""

FUNCTION_PROGRAM = """
import json, sys
import numpy
from whygpu_work.judging import float64_call

framework = sys.argv[1]
if framework == "jax":
    import jax
    jax.config.update("jax_enable_x64", True)
    make, compiled, numbers = jax.numpy.asarray, jax.jit, jax.numpy
elif framework == "tensorflow":
    import tensorflow
    make, compiled, numbers = tensorflow.convert_to_tensor, tensorflow.function, tensorflow.math
else:
    import torch
    make, compiled, numbers = torch.as_tensor, lambda function: function, torch

def cancels(x):
    return (x + 1e6) - 1e6

def plain(x):
    return numbers.tanh(x)

class Kept:
    def tensor(self, name, kind, values, rounding=None):
        self.values, self.rounding = values, rounding

x = numpy.random.RandomState(1).randn(64, 64).astype("float32")
for name, function in (("Cancels", cancels), ("Plain", plain)):
    kept = Kept()
    float64_call.LiftedCall(compiled(function), (make(x),)).record(
        kept, type("Lane", (), {"tensors": {}}))
    single = numpy.asarray(function(make(x)))
    spread = kept.rounding[0]
    print("FOUND " + json.dumps(
        [name, float(abs(single - kept.values).max()), float(spread.max())]))
"""


def _found(python: str, program: str, *arguments: str, **variables: str) -> list[Any]:
    ended = subprocess.run(
        [python, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=dict(os.environ, PYTHONPATH=str(INSIDE), **variables),
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    lines = ended.stdout.splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("FOUND ")]


def _assert_only_faults_are_beyond_rounding(found: list[Any]) -> None:
    units = {(kind, fault): worst for kind, fault, worst in found}
    assert 0 < units["Cancels", 0.0] <= 1
    assert units["Cancels", 10.0] > 1
    assert units["Plain", 0.0] <= 1
    assert units["Plain", 1e-5] > 1


def test_what_cancels_out_inside_of_a_layer_is_rounding_and_faults_are_not(
    tmp_path: pathlib.Path,
) -> None:
    _assert_only_faults_are_beyond_rounding(_found(python_of("torch"), PROGRAM, str(tmp_path)))


@pytest.mark.parametrize("backend", ["tensorflow", "jax", "torch"])
def test_the_same_for_a_keras_layer_on_every_backend(tmp_path: pathlib.Path, backend: str) -> None:
    python = python_of("keras-all")
    found = _found(python, KERAS_PROGRAM, str(tmp_path), KERAS_BACKEND=backend)
    _assert_only_faults_are_beyond_rounding(found)


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
def test_what_cancels_out_inside_of_a_function_is_rounding(framework: str) -> None:
    found = _found(python_of("keras-all"), FUNCTION_PROGRAM, framework)
    (_, gap, allowed), (_, plain_gap, plain_allowed) = found
    assert 0 < gap < 8 * allowed
    assert plain_gap < 8 * plain_allowed < 1e-4
