"""The except clause around the choice of a GPU does not catch the error that occurs there.

## Why it happens

TensorFlow's guide puts `set_visible_devices` and `set_memory_growth` into a try block with `except
RuntimeError`, the error that they raise when they come too late. A missing GPU is an IndexError of
the list, raised before TensorFlow is called. Memory growth on only some GPUs is a ValueError.

## What it looks like

A traceback, despite the try block.

## Fix

Check the length of the list, and keep the except clause for the error it is intended for.

## Fires on (code)

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    try:
        tf.config.set_visible_devices(gpus[1], "GPU")
    except RuntimeError as error:
        print(error)
```

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    try:
        tf.config.experimental.set_memory_growth(gpus[0], True)
        print(tf.config.list_logical_devices("GPU"))
    except RuntimeError as error:
        print(error)
```

## Quiet on (code)

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if len(gpus) > 1:
    try:
        tf.config.set_visible_devices(gpus[1], "GPU")
    except RuntimeError as error:
        print(error)
```

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
try:
    tf.config.set_visible_devices(gpus[1], "GPU")
except (RuntimeError, IndexError) as error:
    print(error)
```

## Sources

- <https://www.tensorflow.org/guide/gpu>
- <https://docs.python.org/3/library/exceptions.html#IndexError>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import catches, caught, tf_name
from whygpu.causes.evidence.device_selection import partial_growth, unchecked_items
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Event
from whygpu.model.program import Program, handlers_around

CAUSE = cause("WG721", __name__, __doc__, severity="warning", effect="broken")


@CAUSE.on_code("_devices(")
def detect(program: Program) -> Iterator[CodeFinding]:
    for taken in unchecked_items(program):
        handler = _passed_by(taken.event, "IndexError", "LookupError")
        if handler is not None:
            yield _finding(program, handler, taken.node, "IndexError", "the list is too short")
    partial = partial_growth(program)
    if partial is None:
        return
    for call in program.calls():
        if tf_name(call.path) != "config.list_logical_devices" or call.index < partial.call.index:
            continue
        handler = _passed_by(call, "ValueError")
        if handler is not None and handler is _passed_by(partial.call, "ValueError"):
            reason = "memory growth differs between GPUs"
            yield _finding(program, handler, call.node, "ValueError", reason)


def _passed_by(event: Event, *errors: str) -> ast.ExceptHandler | None:
    """The except clause for RuntimeError that does not catch such an error."""
    handlers = list(handlers_around(event))
    if any(catches(handler, *errors) for handler in handlers):
        return None
    return next((handler for handler in handlers if "RuntimeError" in caught(handler)), None)


def _finding(
    program: Program, handler: ast.ExceptHandler, node: ast.AST, error: str, reason: str
) -> CodeFinding:
    return CAUSE.in_code(
        program,
        handler,
        subject="tensorflow",
        message=f"this catches {', '.join(caught(handler))}, but "
        f"{program.line_name(node)} raises {error} if {reason}",
        fix="Check before, or catch that error as well.",
    )
