"""A distribution strategy is created, but the Keras model is made outside its scope.

## Why it happens

A strategy copies variables to all GPUs only if they are created inside `strategy.scope()`. Keras
remembers the strategy in whose scope a model is made, and trains with that one. Creating a strategy
does not change anything by itself.

## What it looks like

- The model is made outside and compiled inside the scope: TensorFlow stops, at `compile` with
  `ValueError: Variable ... was not created in the distribution strategy scope`, or with Keras 3 in
  the first step of `fit` with an `AssertionError` that has no text.
- No scope is entered: no message. One GPU trains, the other ones stay idle.

## Fix

Make and compile the model inside `with strategy.scope():`; `fit` may be outside.

## Fires on (code)

```python
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
with strategy.scope():
    model.compile(optimizer="adam", loss="mse")
model.fit(x, y)
```

```python
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
print("replicas:", strategy.num_replicas_in_sync)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(x, y)
```

Only the data is made in the scope.

```python
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
with strategy.scope():
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
model.fit(data)
```

## Quiet on (code)

```python
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
model.fit(x, y)
```

The scope is around the call of the function that makes the model.

```python
import tensorflow as tf

def make():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    return model

strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = make()
model.fit(x, y)
```

The copy is made inside the scope.

```python
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
with strategy.scope():
    model = tf.keras.models.clone_model(model)
    model.compile(optimizer="adam", loss="mse")
model.fit(x, y)
```

Something else gets the strategy.

```python
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
tf.distribute.experimental_set_strategy(strategy)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(x, y)
```

## Sources

- <https://www.tensorflow.org/guide/distributed_training>
- <https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#scope>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import tf_name
from whygpu.causes.evidence.runtime_starts import eager, is_keras_model
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.program import Program
from whygpu.model.values import Result

CAUSE = cause("WG737", __name__, __doc__, severity="warning", effect="none")

_STRATEGIES = frozenset(
    {
        "distribute.MirroredStrategy",
        "distribute.MultiWorkerMirroredStrategy",
        "distribute.experimental.MultiWorkerMirroredStrategy",
    }
)
_FIX = "Make and compile the model inside with strategy.scope():."


@CAUSE.on_code("MirroredStrategy")
def detect(program: Program) -> Iterator[CodeFinding]:
    if not eager(program):
        return
    strategies = [call for call in program.calls() if tf_name(call.path) in _STRATEGIES]
    if not strategies:
        return
    for call in program.calls():
        if call.method == "compile" and _in_scope(call):
            made = _model_outside(call)
            if made is not None:
                yield CAUSE.in_code(
                    program,
                    made,
                    subject="tensorflow",
                    message="the model is made outside strategy.scope() and compiled inside it in "
                    f"{program.line_name(call.node)}: its variables are not the strategy's, and "
                    "TensorFlow stops at compile or in the first step",
                    fix=_FIX,
                )
    trained = next((call for call in program.calls() if _trains_a_model(call)), None)
    in_scope = [call for call in program.calls() if _in_scope(call)]
    if trained is None or not all(map(_is_about_data, in_scope)):
        return
    for strategy in strategies:
        if _is_unused(program, strategy):
            yield CAUSE.in_code(
                program,
                strategy.node,
                subject="tensorflow",
                message="no model is made inside the scope of this strategy: fit in "
                f"{program.line_name(trained.node)} trains on one GPU",
                fix=_FIX,
            )


def _in_scope(call: Call) -> bool:
    return any(
        isinstance(value, Result) and value.call.method == "scope"
        for frame in call.context
        if frame.kind == "with"
        for value in frame.values
    )


def _is_about_data(call: Call) -> bool:
    """tf.data.Dataset.from_tensor_slices(x).batch(8): no variables are made."""
    while not call.path and isinstance(call.receiver, Result):
        call = call.receiver.call
    return call.path.startswith(("tensorflow.data.", "tensorflow.zeros", "builtins.print"))


def _model_outside(compiled: Call) -> ast.AST | None:
    """The call that made the model, if it is in no scope.

    It is in the same function, or in one of the file that this function calls.
    """
    receiver = compiled.receiver
    if not isinstance(receiver, Result) or not is_keras_model(receiver) or _in_scope(receiver.call):
        return None
    made = receiver.call
    if made.scope is compiled.scope:
        return made.node
    return next((frame.node for frame in made.context if frame.kind == "call"), None)


def _trains_a_model(call: Call) -> bool:
    return call.method == "fit" and is_keras_model(call.receiver)


def _is_unused(program: Program, strategy: Call) -> bool:
    """It has one name, which is read for the number of replicas, or for a scope without a model."""
    assignment = program.parent(strategy.node)
    if not isinstance(assignment, ast.Assign) or not isinstance(assignment.targets[0], ast.Name):
        return False
    name = assignment.targets[0].id
    return all(
        getattr(program.parent(node), "attr", "") in ("num_replicas_in_sync", "scope")
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
    )
