"""The program uses tf.test.is_gpu_available, which is deprecated in TensorFlow 2.

## Why it happens

In TensorFlow 1 this was the usual check. It creates every device to get the answer, which takes the
GPU's memory before the program has set how much it may use. A future release will remove it.

## What it looks like

`WARNING: is_gpu_available (from tensorflow.python.framework.test_util) is deprecated and will be
removed in a future version. Use tf.config.list_physical_devices('GPU') instead.`

## Fix

Use `tf.config.list_physical_devices("GPU")`, which starts nothing. `whygpu lint --fix` writes it.

## Fires on (code)

```python
import tensorflow as tf

if tf.test.is_gpu_available():
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
```

## Quiet on (code)

```python
import tensorflow as tf

if tf.config.list_physical_devices("GPU"):
    print("GPU")
```

TensorFlow 1 has no alternative.

```python
import tensorflow as tf

print(tf.test.is_gpu_available(), tf.Session())
```

## Sources

- <https://www.tensorflow.org/api_docs/python/tf/test/is_gpu_available>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import DEVICE_SETTERS, guarded_by_attribute_error, tf_name
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.program import Edit, Program, in_one_run

CAUSE = cause("WG715", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_code("is_gpu_available")
def detect(program: Program) -> Iterator[CodeFinding]:
    if program.tensorflow != "2":
        return
    limits = [call for call in program.calls() if tf_name(call.path) in DEVICE_SETTERS]
    for call in program.calls():
        if tf_name(call.path) == "test.is_gpu_available" and not guarded_by_attribute_error(call):
            limited = any(in_one_run(call, limit) and call.index < limit.index for limit in limits)
            yield CAUSE.in_code(
                program,
                call.node,
                subject="tensorflow",
                message="is_gpu_available is deprecated; it creates every GPU device to get the "
                "answer"
                + (", which takes their memory before growth or a limit is set" if limited else ""),
                fix='Use tf.config.list_physical_devices("GPU"), which starts nothing.',
                edits=_edit(program, call.node),
                # Nothing else goes wrong in a program that leaves the GPU's memory to TensorFlow.
                severity=None if limited else "info",
            )


def _edit(program: Program, node: ast.Call) -> tuple[Edit, ...]:
    source = program.source(node.func)
    if node.args or node.keywords or not source.endswith(".test.is_gpu_available"):
        return ()
    module = source.removesuffix(".test.is_gpu_available")
    return (Edit(program.place(node), f"bool({module}.config.list_physical_devices('GPU'))"),)
