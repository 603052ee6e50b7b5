"""The program lists physical devices to check what is hidden, but that list never changes.

## Why it happens

`tf.config.list_physical_devices` lists the devices of the machine. `set_visible_devices` changes
which of them the program may use, but not this list.

## What it looks like

GPUs are still listed after all of them were hidden, or a GPU is listed that the program does not
use. The check shows nothing about the setting.

## Fix

Use `tf.config.get_visible_devices("GPU")`, or `tf.config.list_logical_devices("GPU")`, which also
starts the runtime. `whygpu lint --fix` writes the first.

## Fires on (code)

```python
import tensorflow as tf

tf.config.set_visible_devices([], "GPU")
print(tf.config.list_physical_devices("GPU"))
```

```python
import tensorflow as tf

tf.config.set_visible_devices([], "GPU")
devices = tf.config.list_physical_devices()
for device in devices:
    print(device)
```

## Quiet on (code)

```python
import tensorflow as tf

tf.config.set_visible_devices([], "GPU")
print(tf.config.get_visible_devices("GPU"))
```

The program configures the listed devices.

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
tf.config.set_visible_devices(gpus[1:], "GPU")
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
```

## Sources

- <https://www.tensorflow.org/api_docs/python/tf/config/list_physical_devices>
- <https://www.tensorflow.org/api_docs/python/tf/config/get_visible_devices>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import origin, text_of, tf_name
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.program import Edit, Program
from whygpu.model.values import Filtered, Result, Value

CAUSE = cause("WG714", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_code("set_visible_devices")
def detect(program: Program) -> Iterator[CodeFinding]:
    hidden = [
        call for call in program.calls() if tf_name(call.path) == "config.set_visible_devices"
    ]
    for call in program.calls():
        if tf_name(call.path) != "config.list_physical_devices":
            continue
        if (text_of(call.argument(0, "device_type")) or "").upper() == "CPU":
            continue
        earlier = [setter for setter in hidden if program.surely_before(setter, call)]
        if not earlier or _configured(program, call):
            continue
        yield CAUSE.in_code(
            program,
            call.node,
            subject="tensorflow",
            message="list_physical_devices lists the devices of the machine, whatever "
            f"set_visible_devices in {program.line_name(earlier[-1].node)} has hidden: "
            "it does not show what this program can use",
            fix="Use tf.config.get_visible_devices.",
            edits=_edit(program, call),
        )


def _configured(program: Program, listing: Call) -> bool:
    """The list, or a device of it, is passed to another call of tf.config."""
    return any(
        _comes_from(argument, listing)
        for call in program.calls()
        if tf_name(call.path).startswith("config.")
        for argument in (*call.arguments, *call.keywords.values())
    )


def _comes_from(value: Value, listing: Call) -> bool:
    value = origin(value)
    while isinstance(value, Filtered):
        value = value.of
    return isinstance(value, Result) and value.call is listing


def _edit(program: Program, call: Call) -> tuple[Edit, ...]:
    function = call.node.func
    source = program.source(function)
    name = "list_physical_devices"
    if not isinstance(function, ast.Attribute) or not source.endswith(f".{name}"):
        return ()
    return (Edit(program.place(function), source.removesuffix(name) + "get_visible_devices"),)
