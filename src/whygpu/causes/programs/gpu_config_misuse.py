"""GPUs are configured too late, or some of them differently from the others.

## Why it happens

TensorFlow takes memory growth, visible devices and logical devices once, when its runtime starts.
More calls start it than people think: making a constant, entering tf.device, making an optimizer,
`model.compile`, and `tf.config.list_logical_devices`. Memory growth must be the same on all GPUs
that the program sees; code written on a machine with one GPU sets it for gpus[0] alone.

## What it looks like

`RuntimeError: Physical devices cannot be modified after being initialized`, or `Visible devices
cannot be modified after being initialized`, often caught and printed, with the setting lost. With
growth on one GPU of several, the first operation fails with `ValueError: Memory growth cannot
differ between GPU devices`.

## Fix

Configure devices right after the import, in a loop over all GPUs:

    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)

## Fires on (code)

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
x = tf.constant([1.0, 2.0])
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
```

A helper that is called too late.

```python
import tensorflow as tf

def use_no_gpu():
    tf.config.set_visible_devices([], "GPU")

model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.compile(optimizer="adam", loss="mse")
use_no_gpu()
```

One GPU of all.

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.experimental.set_memory_growth(gpus[0], True)
```

## Quiet on (code)

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
x = tf.constant([1.0, 2.0])
```

The one GPU that is left visible.

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[0], "GPU")
    tf.config.experimental.set_memory_growth(gpus[0], True)
```

```python
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.experimental.set_memory_growth(gpus[0], True)
```

Nothing says that the first has happened when the second does.

```python
import tensorflow as tf

def train():
    return tf.constant(1.0)

def configure():
    tf.config.set_visible_devices([], "GPU")
```

## Sources

- <https://www.tensorflow.org/guide/gpu>
- <https://www.tensorflow.org/api_docs/python/tf/config/experimental/set_memory_growth>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.shared_code import tf_name
from whygpu.causes.shared_selection import partial_growth
from whygpu.causes.shared_starts import tensorflow_starts
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.program import Edit, Place, Program, surely_before

CAUSE = cause("WG701", __name__, __doc__, severity="error", effect="broken")

_SETTERS = (
    "config.set_memory_growth",
    "config.set_visible_devices",
    "config.set_logical_device_configuration",
    "config.set_virtual_device_configuration",
)


@CAUSE.on_code(*(name.removeprefix("config.") for name in _SETTERS))
def detect(program: Program) -> Iterator[CodeFinding]:
    yield from _too_late(program)
    yield from _some_only(program)


def _too_late(program: Program) -> Iterator[CodeFinding]:
    starts = list(tensorflow_starts(program))
    for call in program.calls():
        if tf_name(call.path) not in _SETTERS:
            continue
        earlier = [start for start in starts if surely_before(start, call)]
        if not earlier:
            continue
        start = min(earlier, key=lambda event: event.index)
        line = program.place(start.node).start[0]
        yield CAUSE.in_code(
            program,
            call.node,
            subject="tensorflow",
            message=f"{call.method} comes after line {line} "
            f"({program.source(start.node.func)}), which has started TensorFlow's runtime: "
            "with a GPU, this raises RuntimeError, because devices cannot be modified any more",
            fix=f"Move it above line {line}, right after the import.",
        )


def _some_only(program: Program) -> Iterator[CodeFinding]:
    partial = partial_growth(program)
    if partial is None:
        return
    yield CAUSE.in_code(
        program,
        partial.call.node,
        subject="tensorflow",
        message=f"memory growth is set for GPU {partial.number} alone: on a machine with several "
        "GPUs the first operation raises ValueError: Memory growth cannot differ between GPU "
        "devices",
        fix="Set it in a loop over all GPUs, or make the others invisible first.",
        edits=_loop(program, partial.call) if partial.only_call else (),
        confidence="likely",
        severity="warning",
    )


def _loop(program: Program, call: Call) -> tuple[Edit, ...]:
    """for gpu in gpus: around the call, where it is a statement of its own."""
    statement = program.statement(call.node)
    device = call.node.args[0] if call.node.args else None
    if (
        not isinstance(statement, ast.Expr)
        or statement.value is not call.node
        or not isinstance(device, ast.Subscript)
        or statement.lineno != statement.end_lineno
    ):
        return ()
    start = program.place(statement).start
    indent = program.lines[start[0] - 1][: start[1] - 1]
    if indent.strip():
        return ()
    taken = {node.id for node in ast.walk(program.tree) if isinstance(node, ast.Name)}
    name = next((word for word in ("gpu", "device", "one_gpu") if word not in taken), None)
    if name is None:
        return ()
    over = program.source(device.value)
    return (
        Edit(Place(start, start), f"for {name} in {over}:\n{indent}    "),
        Edit(program.place(device), name),
    )
