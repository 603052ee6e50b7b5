"""The program uses a name of the device API that no release has, or not the installed one.

## Why it happens

The API moved: some functions are in tf.config, some in tf.config.experimental, and a few in both.
Answers on the web and generated code confuse them, or invent an error class that sounds right.
TensorFlow 1.14, 1.15 and 2.0 have in tf.config.experimental what later releases have in tf.config.

## What it looks like

`AttributeError: module 'tensorflow._api.v2.config' has no attribute 'set_memory_growth'`. If the
name is in an except clause, the AttributeError occurs only after another error, and hides it.

## Fix

Use the name that exists. `whygpu lint --fix` writes it if it is unambiguous.

## Fires on (code)

```python
import tensorflow as tf

for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.set_memory_growth(gpu, True)
```

```python
from tensorflow import config

print(config.experimental_list_physical_devices("GPU"))
```

```python
import tensorflow as tf

try:
    tf.zeros((10, 10))
except tf.errors.CUDAOutOfMemoryError:
    print("too large")
```

```python
import torch

if torch.cuda.is_avaliable():
    print("GPU")
```

## Fires on (log)

```
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    tf.config.set_memory_growth(gpu, True)
AttributeError: module 'tensorflow._api.v2.config' has no attribute 'set_memory_growth'
```

TensorFlow 2.1 has this name, 1.15 does not.

```
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    gpus = tf.config.list_physical_devices("GPU")
AttributeError: module 'tensorflow._api.v1.config' has no attribute 'list_physical_devices'
```

## Quiet on (log)

TensorFlow 2.0 has this name, 2.1 does not.

```
AttributeError: module 'tensorflow._api.v2.config' has no attribute 'experimental_list_devices'
```

## Quiet on (code)

```python
import tensorflow as tf

for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
```

The program's own object has the same name.

```python
from settings import config

config.set_memory_growth(True)
```

The author knows that it may be missing.

```python
import tensorflow as tf

if hasattr(tf.config, "set_memory_growth"):
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.set_memory_growth(gpu, True)
```

## Sources

- <https://www.tensorflow.org/api_docs/python/tf/config>
- <https://www.tensorflow.org/api_docs/python/tf/errors>
- <https://docs.pytorch.org/docs/stable/cuda.html>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import guarded_by_attribute_error
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Raised
from whygpu.model.program import Edit, Program
from whygpu.tables.device_names import BEFORE, ROWS, right_name

CAUSE = cause("WG711", __name__, __doc__, severity="error", effect="broken")


@CAUSE.on_code(
    "tf.config",
    "tensorflow.config",
    "config.experimental",
    "config.set_",
    "config.list_",
    *("tf.errors.", "tf1.errors.", "tf2.errors.", "tensorflow.errors.", "import errors"),
    *(".".join(name.split(".")[-2:]) for name in ROWS if name.startswith("torch.cuda.")),
    "is_gpu_",
    "set_backend",
    "is_cuda_available",
    needs=("tensorflow", "torch", "keras"),
)
def detect(program: Program) -> Iterator[CodeFinding]:
    if any(call.path == "builtins.hasattr" for call in program.calls("builtins.hasattr")):
        return
    for event in program.named():
        correction = right_name(event.path)
        if correction is None or guarded_by_attribute_error(event):
            continue
        node = event.node.func if isinstance(event.node, ast.Call) else event.node
        framework = event.path.partition(".")[0]
        written = event.path.replace("tensorflow.", "tf.", 1)
        right = correction.replace("tensorflow.", "tf.", 1)
        module = written.rpartition(".")[0]
        yield CAUSE.in_code(
            program,
            node,
            subject=framework,
            message=f"{written} does not exist: this raises AttributeError"
            + (f"; the right name is {right}" if right else ""),
            fix=f"Write {right}." if right else f"Look for the right name in {module}.",
            edits=_edit(program, node, event.path, correction) if right else (),
        )


def _edit(program: Program, node: ast.AST, wrong: str, right: str) -> tuple[Edit, ...]:
    """Replace the written name, if the part before the wrong name is in the source."""
    source = program.source(node)
    base, _, _ = wrong.rpartition(".")
    last = wrong.rpartition(".")[2]
    if not isinstance(node, ast.Attribute) or not source.endswith(f".{last}"):
        return ()
    stem = source[: -len(last) - 1]
    if right.startswith(f"{base}."):
        return (Edit(program.place(node), f"{stem}.{right.removeprefix(base + '.')}"),)
    # tf.config.experimental.x that should be tf.config.x
    outer, _, inner = base.rpartition(".")
    if right.startswith(f"{outer}.") and stem.endswith(f".{inner}"):
        stem = stem[: -len(inner) - 1]
        return (Edit(program.place(node), f"{stem}.{right.removeprefix(outer + '.')}"),)
    return ()


_NO_ATTRIBUTE = late(r"module '(?P<module>[\w.]{2,80})' has no attribute '(?P<name>\w{2,80})'")
_API = late(r"(?:_core)?\._api\.v[12]\b")
"""TensorFlow's own name for the folder of its public API; 1.15 and 2.0 have it in a package of its
own."""
_INSIDE_TENSORFLOW = late(r"-packages[/\\]tensorflow(?:_core)?[/\\]")
_INSIDE_A_PACKAGE = late(r"-packages[/\\]")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    for raised in log.raised:
        missed = _NO_ATTRIBUTE.search(raised.message) if raised.type == "AttributeError" else None
        if missed is None or raised.handled:
            continue
        path = f"{_API.sub('', missed['module'])}.{missed['name']}"
        older = BEFORE.get(path)
        correction = older or right_name(path)
        if correction is None or (older and _package_calls(raised)):
            continue
        written, right = (text.replace("tensorflow.", "tf.", 1) for text in (path, correction))
        where = "in the installed release, only in later ones" if older else "in any release"
        yield CAUSE.finding(
            subject=path.partition(".")[0],
            message=f"the name {written} does not exist {where}"
            + (f"; the right name is {right}" if right else ""),
            evidence=log.evidence(raised.line),
            remedies=(
                Remedy(f"Write {right}." if right else f"Look for the right name of {written}."),
            ),
        )
        return


def _package_calls(raised: Raised) -> bool:
    """An installed package that needs a later TensorFlow: not the program's name to change."""
    callers = [frame for frame in raised.frames if not _INSIDE_TENSORFLOW.search(frame)]
    return bool(callers) and bool(_INSIDE_A_PACKAGE.search(callers[-1]))
