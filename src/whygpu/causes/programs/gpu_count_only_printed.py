"""The program prints the number of GPUs, but trains even if there are none.

## Why it happens

`print("Num GPUs Available:", len(...))` is copied from a tutorial, where the reader sees it. In a
script nobody looks at it: with zero GPUs the training runs on the CPU for days.

## What it looks like

"Num GPUs Available:  0", once, at the top of a long log.

## Fix

Check the number: `if not gpus: raise SystemExit("no GPU found")`, or print a clear warning.

## Fires on (code)

```python
import tensorflow as tf

print("Num GPUs Available:", len(tf.config.list_physical_devices("GPU")))
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, y)
```

## Quiet on (code)

The script only reports.

```python
import tensorflow as tf

print("Num GPUs Available:", len(tf.config.list_physical_devices("GPU")))
```

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
print("Num GPUs Available:", len(gpus))
if not gpus:
    raise SystemExit("no GPU")
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, y)
```

## Sources

- <https://www.tensorflow.org/guide/gpu>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import gpus_listed
from whygpu.causes.evidence.runtime_starts import is_keras_model
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.program import Program
from whygpu.model.values import Result

CAUSE = cause("WG727", __name__, __doc__, severity="info", effect="none")


@CAUSE.on_code("_devices", needs=("fit(",))
def detect(program: Program) -> Iterator[CodeFinding]:
    listings = [call for call in program.calls() if gpus_listed(Result(call))]
    trained = [c for c in program.calls() if c.method == "fit" and is_keras_model(c.receiver)]
    if not listings or not trained or program.path.endswith(".ipynb"):
        return
    if not all(_only_printed(program, call) for call in listings):
        return
    first = listings[0]
    if first.index < trained[0].index:
        yield CAUSE.in_code(
            program,
            first.node,
            subject="tensorflow",
            message="the GPUs are counted only to print the number; with none, the training in "
            f"{program.line_name(trained[0].node)} runs on the CPU",
            fix='Stop or warn if there is none: if not gpus: raise SystemExit("no GPU").',
        )


def _only_printed(program: Program, call: Call) -> bool:
    """The call is inside a print, or in a variable that is only printed."""
    statement = program.statement(call.node)
    if _is_print(statement):
        return True
    if not isinstance(statement, ast.Assign) or statement.value is not call.node:
        return False
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name):
        return False
    reads = [
        node
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
    ]
    return bool(reads) and all(_is_print(program.statement(node)) for node in reads)


def _is_print(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and (
            getattr(statement.value.func, "id", "") == "print"
            or getattr(statement.value.func, "attr", "") in ("info", "debug", "print")
        )
    )
