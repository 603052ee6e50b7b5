"""The program prints an error of device set-up or training, and continues.

## Why it happens

`except Exception as e: print(e)` around the set-up catches every error: a name that does not exist,
a typing error, a GPU that is out of memory. The program then continues with the devices it has, or
ends with exit status 0 although it has done nothing.

## What it looks like

One line such as "An error occurred: module 'tensorflow' has no attribute 'Session'" among others,
then a slow run on the CPU, or a job that counts as successful.

## Fix

Catch only the expected error (RuntimeError for configuration that comes too late,
tf.errors.ResourceExhaustedError for memory), and let all others end the program; or raise again
after printing.

## Fires on (code)

```python
import tensorflow as tf

try:
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
except Exception as error:
    print(error)
```

```python
import tensorflow.compat.v1 as tf

def connect():
    return tf.Session()

try:
    session = connect()
except:
    pass
```

```python
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
try:
    model.compile("adam", "mse")
    model.fit(x, y)
except tf.errors.ResourceExhaustedError:
    print("out of memory")
except Exception as error:
    print("error:", error)
```

## Quiet on (code)

```python
import tensorflow as tf

try:
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
except RuntimeError as error:
    print(error)
```

```python
import tensorflow as tf

try:
    tf.config.set_visible_devices([], "GPU")
except Exception as error:
    print(error)
    raise
```

```python
import torch

for number in range(torch.cuda.device_count()):
    try:
        torch.cuda.set_device(number)
    except Exception as error:
        print(number, error)
        continue
```

```python
import torch

def has_gpu():
    try:
        torch.ones(1).cuda()
        return True
    except Exception:
        return False
```

## Sources

- <https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth>
- <https://docs.python.org/3/tutorial/errors.html#handling-exceptions>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import DEVICE_SETTERS, is_broad, only_reports, tf_name
from whygpu.causes.evidence.runtime_starts import is_keras_model, puts_on_cuda
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.program import Program

CAUSE = cause("WG722", __name__, __doc__, severity="warning", effect="none")

_SETS_UP = DEVICE_SETTERS | {
    "Session",
    "InteractiveSession",
    "distribute.MirroredStrategy",
    "distribute.MultiWorkerMirroredStrategy",
}


@CAUSE.on_code(
    *("except:", "except Exception", "except BaseException"),
    needs=(
        *sorted({name.rpartition(".")[2] for name in _SETS_UP}),
        *("set_device", "cuda", "jax.distributed", "fit("),
    ),
)
def detect(program: Program) -> Iterator[CodeFinding]:
    if not program.imports & {"tensorflow", "torch", "jax", "keras"}:
        return
    notebook = program.path.endswith(".ipynb")
    for call in program.calls():
        what = _what(call)
        # In a notebook, the user sees the error.
        if not what or (notebook and what == "fit"):
            continue
        handler = _swallowing(call)
        if handler is None:
            continue
        yield CAUSE.in_code(
            program,
            handler,
            subject="torch" if puts_on_cuda(call) else "tensorflow",
            message=f"every error of {what} in {program.line_name(call.node)} is caught "
            "here, and the program continues",
            fix="Catch only the expected error, and raise all others again.",
            # Who reads the output then sees the error; or the author names the expected one.
            severity="info" if _shows_it(handler) or _explains(program, handler) else None,
        )


def _what(call: Call) -> str:
    name = tf_name(call.path)
    if name in _SETS_UP:
        return name.rpartition(".")[2]
    if call.path in ("torch.cuda.set_device", "torch.cuda.init", "jax.distributed.initialize"):
        return call.path
    if call.method == "fit" and is_keras_model(call.receiver):
        return "fit"
    return f".{call.method}" if puts_on_cuda(call) and not call.path else ""


def _swallowing(call: Call) -> ast.ExceptHandler | None:
    """The broad except clause that catches an error of the call and only prints it."""
    for frame in reversed(call.context):
        if frame.kind in ("function", "handler"):
            return None
        if frame.kind == "loop" and not isinstance(frame.node, (ast.For, ast.While)):
            return None
        if frame.kind != "try":
            continue
        assert isinstance(frame.node, ast.Try)
        broad = next((one for one in frame.node.handlers if is_broad(one)), None)
        if broad is not None:
            swallows = only_reports(broad) and not _moves_on(frame.node) and not _tries_next(broad)
            return broad if swallows else None
    return None


def _shows_it(handler: ast.ExceptHandler) -> bool:
    """The clause prints or logs the error itself, not only a text of its own."""
    nodes = [node for statement in handler.body for node in ast.walk(statement)]
    return any(
        (isinstance(node, ast.Name) and node.id == handler.name)
        or (isinstance(node, ast.Attribute) and node.attr in ("exception", "print_exc"))
        or (isinstance(node, ast.keyword) and node.arg == "exc_info")
        for node in nodes
    )


def _explains(program: Program, handler: ast.ExceptHandler) -> bool:
    """A comment in the clause: "# no GPU", "# the devices are already initialised"."""
    if program.origin(handler) is not None:
        return False
    last = handler.end_lineno or handler.lineno
    return any("#" in line for line in program.lines[handler.lineno - 1 : last])


def _tries_next(handler: ast.ExceptHandler) -> bool:
    """In a loop over devices, one that does not work is skipped."""
    return any(isinstance(statement, ast.Continue) for statement in handler.body)


def _moves_on(node: ast.Try) -> bool:
    """The try block searches for something that works, or demonstrates an error."""
    return any(
        isinstance(inner, (ast.Return, ast.Break, ast.Raise))
        or (isinstance(inner, ast.Assert) and isinstance(inner.test, ast.Constant))
        for part in node.body
        for inner in ast.walk(part)
    )
