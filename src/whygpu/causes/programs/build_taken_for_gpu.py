"""The program treats a property of the installed build as proof that a GPU is used.

## Why it happens

`tf.test.is_built_with_cuda()` shows how the package was compiled. It is True on a machine without a
GPU and without a driver. `torch.backends.cudnn.enabled` is a switch that is True even in a CPU
build, and `torch.version.cuda` is the CUDA version that the build was made with.

## What it looks like

"Model uses GPU: True" on a machine without one, or a branch for the GPU that always runs.

## Fix

Ask for devices: `tf.config.list_physical_devices("GPU")`, `torch.cuda.is_available()`. To find out
where an operation ran, check its result: `tensor.device`.

## Fires on (code)

```python
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
print(f"Model uses GPU: {tf.test.is_built_with_cuda()}")
```

```python
import torch

device = "cuda" if torch.backends.cudnn.enabled else "cpu"
```

```python
import tensorflow as tf

if tf.test.is_built_with_cuda():
    with tf.device("/GPU:0"):
        x = tf.constant(1.0)
```

```python
import tensorflow as tf

def has_gpu():
    return tf.test.is_built_with_cuda()

if tf.test.is_built_with_cuda():
    print("A GPU is available")
```

## Quiet on (code)

The program prints it as a property of the build.

```python
import tensorflow as tf

print("Built with CUDA:", tf.test.is_built_with_cuda())
```

The program also asks for devices.

```python
import tensorflow as tf

if tf.test.is_built_with_cuda() and tf.config.list_physical_devices("GPU"):
    print("GPU")
```

```python
import tensorflow as tf

cuda_available = tf.test.is_built_with_cuda()
print("GPUs:", tf.config.list_physical_devices("GPU"))
```

The switch is used as a switch.

```python
import torch

torch.backends.cudnn.enabled = False
print(torch.backends.cudnn.enabled)
```

The message is about the package.

```python
import tensorflow as tf

if tf.test.is_built_with_cuda():
    print("The installed version of TensorFlow includes GPU support.")
print("GPU support:", tf.test.is_built_with_gpu_support())
```

## Sources

- <https://www.tensorflow.org/api_docs/python/tf/test/is_built_with_cuda>
- <https://docs.pytorch.org/docs/stable/backends.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import tf_name
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Event, Mention
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program

CAUSE = cause("WG713", __name__, __doc__, severity="error", effect="none")

_CLAIMS_GPU = late(
    r"\bgpus?\b[^\n]*?\b(avail|used|using|enabled|found|detected|is)|"
    r"\b(uses?|using|on|have|has|with|found|detected)\b[^\n]*?\b(gpus?)\b|\bgpus?\s*[:=?]",
    re.IGNORECASE,
)
_ABOUT_BUILD = late(
    r"buil[dt]|compil|gpu[- ]support|supports? (?:a )?gpu|\binstalled (?:version|package)|\b(?:version|package) of\b",
    re.IGNORECASE,
)
_NAMES_GPU = late(
    r"^(?!.*buil[dt])(?:.*(?:use|has|have|is|with|on|any)_?(?:gpu|cuda)\w*|.*(?:gpu|cuda)_?"
    r"(?:avail|enabled|ok|found|used|ready|present)\w*|gpus?)$",
    re.IGNORECASE,
)
_ASKS_DEVICES = late(
    r"list_physical_devices|list_logical_devices|is_gpu_available|gpu_device_name"
    r"|cuda\.is_available|device_count|list_local_devices"
)


@CAUSE.on_code("is_built", "cudnn.", "version.cuda")
def detect(program: Program) -> Iterator[CodeFinding]:
    for event in program.named():
        what = _build_property(event)
        if not what:
            continue
        reason = _taken_for_gpu(program, event)
        if reason and not _asks_devices_as_well(program, event):
            yield CAUSE.in_code(
                program,
                event.node,
                subject="torch" if event.path.startswith("torch") else "tensorflow",
                message=f"{what} shows how the package was built, and is true on a machine "
                f"without a GPU; here {reason}",
                fix='Ask for devices: tf.config.list_physical_devices("GPU").'
                if not event.path.startswith("torch")
                else "Ask for devices: torch.cuda.is_available().",
                severity="info" if reason.startswith(_IN_NAME) else None,
            )


_IN_NAME = "by its name, "
"""Nothing shows what the value is used for."""


def _asks_devices_as_well(program: Program, event: Event) -> bool:
    """The same function asks for devices, so that its author knows the difference."""
    return any(
        call.scope is event.scope and _ASKS_DEVICES.search(call.path) for call in program.calls()
    )


def _build_property(event: Event) -> str:
    name = tf_name(event.path)
    if name in ("test.is_built_with_cuda", "test.is_built_with_gpu_support"):
        return f"tf.{name}()" if isinstance(event.node, ast.Call) else ""
    if type(event) is Mention and event.path in (
        "torch.backends.cudnn.enabled",
        "torch.version.cuda",
    ):
        return event.path
    if isinstance(event.node, ast.Call) and event.path in (
        "torch.backends.cuda.is_built",
        "torch.backends.cudnn.is_available",
    ):
        return f"{event.path}()"
    return ""


def _taken_for_gpu(program: Program, event: Event) -> str:
    """What the property is mistaken for; empty if the program uses it correctly."""
    statement = program.statement(event.node)
    tests = [frame.test for frame in event.context if frame.test is not None]
    around = " ".join(program.source(node) for node in (*tests, _head(statement)))
    if _ASKS_DEVICES.search(around):
        return ""
    node: ast.AST = event.node
    while node is not statement:
        parent = program.parent(node)
        if parent is None:
            return ""
        if isinstance(parent, ast.IfExp) and parent.test is node:
            return "it chooses a device" if _chooses_device(program, parent) else ""
        if isinstance(parent, ast.Call) and _is_print(parent):
            return _printed(program, parent)
        node = parent
    return _statement_claims(program, statement, event)


def _statement_claims(program: Program, statement: ast.stmt, event: Event) -> str:
    if isinstance(statement, ast.If):
        body = "\n".join(program.source(part) for part in (*statement.body, *statement.orelse))
        if _uses_gpu(body):
            return "it decides whether the GPU is used"
        claims = any(_claims(part) for part in (*statement.body, *statement.orelse))
        return "it decides what is printed about the GPU" if claims else ""
    if isinstance(statement, ast.Assert) and statement.msg is not None:
        return "it is used to ensure that there is a GPU" if _claims(statement.msg) else ""
    if isinstance(statement, ast.Assign):
        name = program.source(statement.targets[0])
        return f"{_IN_NAME}{name} tells whether there is a GPU" if _NAMES_GPU.search(name) else ""
    if isinstance(statement, ast.Return) and isinstance(event.scope, ast.FunctionDef):
        name = event.scope.name
        shown = f"{_IN_NAME}{name}() tells whether there is a GPU"
        return shown if _NAMES_GPU.search(name) else ""
    return ""


def _head(statement: ast.stmt) -> ast.AST:
    """The condition of an if; other statements as a whole."""
    return statement.test if isinstance(statement, (ast.If, ast.While)) else statement


def _is_print(call: ast.Call) -> bool:
    name = call.func
    word = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
    return word in ("print", "info", "debug", "warning", "log")


def _printed(program: Program, call: ast.Call) -> str:
    return "it is printed as if it meant that a GPU is used" if _claims(call) else ""


def _claims(node: ast.AST) -> bool:
    """The strings in the node state that a GPU exists or is used."""
    words = " ".join(
        inner.value
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    )
    return bool(_CLAIMS_GPU.search(words)) and not _ABOUT_BUILD.search(words)


def _chooses_device(program: Program, choice: ast.IfExp) -> bool:
    return _uses_gpu(program.source(choice.body))


def _uses_gpu(text: str) -> bool:
    return bool(re.search(r"""['"](/?(device:)?gpu|cuda)(:\d+)?['"]|\.cuda\(""", text, re.I))
