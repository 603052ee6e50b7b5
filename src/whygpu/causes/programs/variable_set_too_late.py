"""An environment variable is set after the framework has read it.

## Why it happens

Each variable is read at a moment of its own. TF_CPP_MIN_LOG_LEVEL and JAX_PLATFORMS are read when
the framework is imported, KERAS_BACKEND when Keras is, and `import tensorflow` imports Keras.
CUDA_VISIBLE_DEVICES is read when CUDA starts: after `import tensorflow` or `import torch` it still
counts, after `tf.config.list_physical_devices()` or `torch.cuda.is_available()` it does not.
Nothing says that a setting came too late.

## What it looks like

No message. GPUs that were to be hidden are used, JAX computes on the GPU in spite of
JAX_PLATFORMS, Keras keeps its backend, TensorFlow goes on printing what was to be hidden. With
PyTorch, `torch.cuda.device_count()` says 0 while tensors do land on the GPU.

## Fix

Set the variable at the top of the program, above the imports, or in the shell that starts it.

## Fires on (code)

```python
import os
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
```

A function that is called first.

```python
import os
import torch

def report():
    print(torch.cuda.is_available())

report()
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
```

Read at the import.

```python
import os
import jax

os.environ["JAX_PLATFORMS"] = "cpu"
```

```python
import os
import keras

os.environ.setdefault("KERAS_BACKEND", "torch")
```

## Quiet on (code)

After the import is early enough for this one.

```python
import os
import tensorflow as tf

os.environ["CUDA_VISIBLE_DEVICES"] = ""
gpus = tf.config.list_physical_devices("GPU")
```

```python
import os
import torch

os.environ["CUDA_VISIBLE_DEVICES"] = "1"
print(torch.cuda.is_available())
```

Meant for a program that is started from this one.

```python
import os
import subprocess
import jax

os.environ["JAX_PLATFORMS"] = "cpu"
subprocess.run(["python", "other.py"])
```

```python
import os
os.environ["KERAS_BACKEND"] = "jax"
import keras
```

## Sources

- <https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars>
- <https://keras.io/getting_started/>
- <https://docs.jax.dev/en/latest/config_options.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_starts import MOMENTS
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Event, Setting
from whygpu.model.program import Program, surely_before
from whygpu.tables.variable_moments import ROWS, VariableMoment

CAUSE = cause("WG710", __name__, __doc__, severity="error", effect="none")

_CHILDREN = frozenset({"subprocess", "multiprocessing", "ray", "joblib", "dask", "pexpect"})
"""A program with these may set a variable for others to read."""


@CAUSE.on_code(*sorted({row.variable for row in ROWS}))
def detect(program: Program) -> Iterator[CodeFinding]:
    if program.imports & _CHILDREN or _starts_others(program):
        return
    for setting in program.settings():
        if setting.unset:
            continue
        for row in ROWS:
            if row.variable != setting.path or not _applies(row, program):
                continue
            reader = _read_before(program, setting, row)
            if reader is not None:
                yield _finding(program, setting, row, reader)
                break


def _starts_others(program: Program) -> bool:
    """It runs other programs, or takes modules out in order to import them anew."""
    return "sys.modules" in program.text or any(
        call.path.startswith(("os.exec", "os.spawn", "os.system", "os.popen", "os.fork"))
        or call.path in ("importlib.reload", "torch.multiprocessing.spawn")
        or call.path.startswith("torch.multiprocessing.")
        for call in program.calls()
    )


def _applies(row: VariableMoment, program: Program) -> bool:
    """TensorFlow 1 reads its log level late, and does not import the Keras of today."""
    if row.moment == "import tensorflow":
        return program.tensorflow == "2"
    return True


def _read_before(program: Program, setting: Setting, row: VariableMoment) -> Event | None:
    readers = [event for event in MOMENTS[row.moment](program) if surely_before(event, setting)]
    earlier_setting = any(
        other.path == setting.path and other is not setting and surely_before(other, setting)
        for other in program.settings()
    )
    # Set in time already; the later line may change nothing.
    if not readers or (earlier_setting and setting.default):
        return None
    return min(readers, key=lambda event: event.index)


def _finding(program: Program, setting: Setting, row: VariableMoment, reader: Event) -> CodeFinding:
    line = program.place(reader.node).start[0]
    what = " ".join(program.source(reader.node).split())
    if len(what) > 50:
        what = what[:47] + "..."
    return CAUSE.in_code(
        program,
        setting.node,
        subject=_framework(row.moment),
        message=f"{setting.path} is set here, after line {line} ({what}), where it has been read "
        f"already: it is read at {row.moment}, and setting it later has no effect",
        severity="warning" if setting.path == "TF_CPP_MIN_LOG_LEVEL" else None,
        fix=f"Set {setting.path} before line {line}, best at the top of the program.",
    )


def _framework(moment: str) -> str:
    for word, name in (("keras", "keras"), ("JAX", "jax"), ("jax", "jax"), ("PyTorch", "torch")):
        if word in moment:
            return name
    return "tensorflow"
