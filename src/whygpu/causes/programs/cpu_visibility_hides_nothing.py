"""The program makes the CPU visible in order to hide the GPUs, which does not hide them.

## Why it happens

`tf.config.set_visible_devices(devices, device_type)` sets which devices *of that type* are visible.
With the CPUs and "CPU" it changes nothing; GPUs are not affected.

## What it looks like

No message. `tf.config.get_visible_devices("GPU")` still contains every GPU, and operations run
there.

## Fix

`tf.config.set_visible_devices([], "GPU")` hides all GPUs. `whygpu lint --fix` writes it.

## Fires on (code)

```python
import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_visible_devices(cpus, "CPU")
```

```python
import tensorflow as tf

devices = tf.config.list_physical_devices()
cpus = [device for device in devices if device.device_type == "CPU"]
tf.config.experimental.set_visible_devices(devices=cpus, device_type="CPU")
```

## Quiet on (code)

```python
import tensorflow as tf

tf.config.set_visible_devices([], "GPU")
```

Both types are set.

```python
import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_visible_devices(cpus, "CPU")
tf.config.set_visible_devices([], "GPU")
```

The variable hides the GPUs.

```python
import os
import tensorflow as tf

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
tf.config.set_visible_devices(tf.config.list_physical_devices("CPU"), "CPU")
```

## Sources

- <https://www.tensorflow.org/api_docs/python/tf/config/set_visible_devices>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import devices_listed, origin, text_of, tf_name
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.program import Edit, Program
from whygpu.model.values import Several

CAUSE = cause("WG712", __name__, __doc__, severity="error", effect="none")


@CAUSE.on_code("set_visible_devices")
def detect(program: Program) -> Iterator[CodeFinding]:
    calls = [call for call in program.calls() if tf_name(call.path) == "config.set_visible_devices"]
    if any(_type(call) != "CPU" for call in calls) or _hides_by_variable(program):
        return
    for call in calls:
        value = call.argument(0, "devices")
        if isinstance(value, Several):
            value = value.items[0]
        listed = devices_listed(origin(value))
        if listed is None or listed[1] != "CPU":
            continue
        yield CAUSE.in_code(
            program,
            call.node,
            subject="tensorflow",
            message="this makes the CPU visible, which it already is, and hides no GPU: "
            "operations still run on the GPU",
            fix='Write tf.config.set_visible_devices([], "GPU") to hide all GPUs.',
            edits=_edits(program, call),
        )


def _hides_by_variable(program: Program) -> bool:
    return any(
        setting.path == "CUDA_VISIBLE_DEVICES" and text_of(setting.value) in ("", "-1")
        for setting in program.settings()
    )


def _type(call: Call) -> str:
    return (text_of(call.argument(1, "device_type")) or "").upper()


def _edits(program: Program, call: Call) -> tuple[Edit, ...]:
    nodes: list[ast.expr] = list(call.node.args)
    nodes += [keyword.value for keyword in call.node.keywords]
    if len(nodes) != 2:
        return ()
    quote = program.source(nodes[1])[:1]
    if quote not in "'\"" or not isinstance(nodes[1], ast.Constant):
        return ()
    return (
        Edit(program.place(nodes[0]), "[]"),
        Edit(program.place(nodes[1]), f"{quote}GPU{quote}"),
    )
