"""A device scope contains the construction of a Keras model, but not its training.

## Why it happens

In TensorFlow 1 a device scope placed the operations of the graph that was built inside it.
TensorFlow 2 runs operations when they are called: around the constructor, `tf.device` decides at
most where variables are stored. `fit` outside the scope runs where TensorFlow places it, on the GPU
if there is one.

## What it looks like

No message. A model "on the CPU" trains on the GPU, and each step copies its weights there.

## Fix

Put `fit` and `predict` into the scope as well, or hide the GPU from the whole program with
`tf.config.set_visible_devices([], "GPU")`.

## Fires on (code)

```python
import tensorflow as tf

with tf.device("/CPU:0"):
    model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
model.fit(x, y)
```

## Quiet on (code)

```python
import tensorflow as tf

with tf.device("/CPU:0"):
    model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
    model.compile(optimizer="adam", loss="mse")
    model.fit(x, y)
```

TensorFlow uses the first GPU anyway.

```python
import tensorflow as tf

with tf.device("/GPU:0"):
    model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.compile(optimizer="adam", loss="mse")
model.fit(x, y)
```

TensorFlow 1 builds a graph there.

```python
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
with tf.device("/CPU:0"):
    model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.fit(x, y)
```

The CPU only joins what the GPUs compute.

```python
import tensorflow as tf

def divided(inputs, parts):
    outputs = []
    for number in range(parts):
        with tf.device(f"/gpu:{number}"):
            outputs.append(part(inputs, number))
    with tf.device("/cpu:0"):
        return tf.keras.Model(inputs, tf.keras.layers.Concatenate()(outputs))

model = divided(tf.keras.Input((8,)), 2)
model.fit(x, y)
```

## Sources

- <https://www.tensorflow.org/guide/gpu#manual_device_placement>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import device_scopes, text_of, tf_name
from whygpu.causes.evidence.runtime_starts import eager, is_keras_model
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.program import Program
from whygpu.model.values import Result
from whygpu.tables.runtime_starts import KERAS_RUNS

CAUSE = cause("WG716", __name__, __doc__, severity="warning", effect="none")


def _possible(text: str) -> bool:
    return any(f".{name}(" in text for name in KERAS_RUNS)


@CAUSE.on_code("device(", needs=("tensorflow", "keras"), possible=_possible)
def detect(program: Program) -> Iterator[CodeFinding]:
    if not eager(program) or "multi_gpu_model" in program.text:
        return
    runs = [call for call in program.calls() if call.method in KERAS_RUNS]
    for call in program.calls():
        if not is_keras_model(Result(call)):
            continue
        scope = next(device_scopes(call), None)
        if scope is None:
            continue
        statement, device = scope
        own = [run for run in runs if run.receiver == Result(call) and _same(run, call)]
        if not own or any(_stands_in(run, statement) or _any_scope(run) for run in own):
            continue
        first = min(own, key=lambda run: run.index)
        name = text_of(device.argument(0)) or ""
        if not name or _where_it_runs_anyway(name) or _divides(program, call, name):
            continue
        yield CAUSE.in_code(
            program,
            device.node,
            subject="tensorflow",
            message=f"{name} is set only for the construction of the model; {first.method} in "
            f"{program.line_name(first.node)} is outside and runs where TensorFlow "
            "places it, on the GPU if there is one",
            fix=f"Move {first.method} into the scope, or hide the GPUs from the whole program.",
        )


def _where_it_runs_anyway(name: str) -> bool:
    """TensorFlow uses the first GPU by default, if there is one."""
    return name.lower().rstrip("0").rstrip(":").endswith("gpu")


def _divides(program: Program, made: Call, name: str) -> bool:
    """The function that makes the model puts parts of it on other devices."""
    return any(
        other.scope is made.scope
        and tf_name(other.path) == "device"
        and text_of(other.argument(0)) != name
        for other in program.calls()
    )


def _same(run: Call, made: Call) -> bool:
    """Equal calls create equal models; compare the identity of the call."""
    return isinstance(run.receiver, Result) and run.receiver.call is made


def _stands_in(run: Call, statement: ast.AST) -> bool:
    return any(frame.node is statement for frame in run.context)


def _any_scope(run: Call) -> bool:
    return next(device_scopes(run), None) is not None
