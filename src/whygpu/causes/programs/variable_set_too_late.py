"""The program sets a variable or an option after the framework has read it.

## Why it happens

Each variable is read at its own time. TF_CPP_MIN_LOG_LEVEL and JAX_PLATFORMS are read when the
framework is imported, KERAS_BACKEND when Keras is imported, and `import tensorflow` imports Keras.
CUDA_VISIBLE_DEVICES is read when CUDA starts: after `import tensorflow` or `import torch` it still
has an effect, after `tf.config.list_physical_devices()` or `torch.cuda.is_available()` it does not.
No message reports that a setting came too late.

## What it looks like

No message. The program uses GPUs that it tried to hide, JAX computes on the GPU despite
JAX_PLATFORMS, Keras keeps its backend, and TensorFlow still prints messages that it was set to
hide. With PyTorch, `torch.cuda.device_count()` returns 0 although tensors are put on the GPU.

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

The variable is read at the import.

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

An option of JAX, and a backend that is set after names of the old one were imported.

```python
import jax

print(jax.devices())
jax.config.update("jax_platforms", "cpu")
```

```python
import keras
from keras import layers

keras.config.set_backend("jax")
model = keras.Sequential([layers.Dense(1)])
```

## Quiet on (code)

For this variable, after the import is early enough.

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

Changed temporarily, then restored.

```python
import os
import jax

devices = jax.devices()
flags = os.environ.get("XLA_FLAGS", "")
try:
    os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"
    describe(devices)
finally:
    os.environ["XLA_FLAGS"] = flags
```

The value is already in force.

```python
import os
os.environ["KERAS_BACKEND"] = "jax"
import keras
os.environ["KERAS_BACKEND"] = "jax"
```

The function is called again, and sets it to the value that it has.

```python
import os
import torch

def run(frozen):
    gpu = 0
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    return torch.cuda.is_available()

run(False)
run(True)
```

Set for a program that this one starts.

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

import ast
import re
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import text_of
from whygpu.causes.evidence.runtime_starts import MOMENTS, jax_starts
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import CONDITIONAL, Event, Import, Setting
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program
from whygpu.tables.variable_moments import ROWS, VariableMoment

CAUSE = cause("WG710", __name__, __doc__, severity="error", effect="none")

_RESTART = late(r"\brestart", re.IGNORECASE)
_TPU = late(r"(?<![A-Za-z])(?:TPU|tpu)s?(?![A-Za-z])")
"""Also within Chinese or Japanese words, which have no spaces around it."""
_DEFAULTS = {
    "CUDA_LAUNCH_BLOCKING": "0",
    "KERAS_BACKEND": "tensorflow",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "true",
}
_CHILDREN = frozenset({"subprocess", "multiprocessing", "ray", "joblib", "dask", "pexpect"})
"""A program that imports these may set a variable for other processes."""


@CAUSE.on_code(
    *sorted({row.variable for row in ROWS}),
    *("jax_platform", "set_backend"),
    needs=("environ", "putenv", "jax_platform", "set_backend"),
)
def detect(program: Program) -> Iterator[CodeFinding]:
    if program.imports & _CHILDREN or _starts_others(program):
        return
    for setting in program.settings():
        if setting.unset or _put_back(program, setting) or _restarted(program, setting):
            continue
        for row in ROWS:
            if row.variable != setting.path or not _applies(row, program):
                continue
            reader = _read_before(program, setting, row)
            if reader is not None:
                yield _finding(program, setting, row, reader)
                break
    yield from _jax_options(program)
    yield from _keras_backend(program)


def _jax_options(program: Program) -> Iterator[CodeFinding]:
    starts = list(jax_starts(program))
    for call in program.calls("jax.config.update"):
        option = text_of(call.argument(0))
        earlier = [start for start in starts if program.surely_before(start, call)]
        if option in ("jax_platforms", "jax_platform_name") and earlier:
            line = program.line_name(earlier[0].node)
            yield CAUSE.in_code(
                program,
                call.node,
                subject="jax",
                message=f"{option} is set after {line}, where JAX has already chosen its "
                "platform, so it has no effect",
                fix=f"Set it before {line}, right after the import.",
            )


def _keras_backend(program: Program) -> Iterator[CodeFinding]:
    """set_backend reloads Keras: names that were imported before belong to the old backend."""
    for call in program.calls("keras.config.set_backend"):
        after = [event for event in program.events if event.index > call.index]
        if any(type(event) is Import and event.path.startswith("keras") for event in after):
            continue
        if any(event.path.startswith("keras.") for event in after):
            yield CAUSE.in_code(
                program,
                call.node,
                subject="keras",
                message="set_backend reloads Keras; names that were imported before and are used "
                "below keep the old backend",
                fix='Set os.environ["KERAS_BACKEND"] above `import keras` instead, or import '
                "Keras again after this.",
            )


def _put_back(program: Program, setting: Setting) -> bool:
    """Set temporarily: a `finally` clause restores it."""
    node: ast.AST | None = setting.node
    while node is not None:
        if isinstance(node, ast.Try) and any(
            setting.path in program.source(statement) for statement in node.finalbody
        ):
            return True
        node = program.parent(node)
    return False


def _restarted(program: Program, setting: Setting) -> bool:
    """A comment before the setting asks the user to restart the notebook."""
    line = program.place(setting.node).start[0]
    return program.path.endswith(".ipynb") and any(
        text.lstrip().startswith("#") and _RESTART.search(text) for text in program.lines[:line]
    )


def _starts_others(program: Program) -> bool:
    """It runs other programs, or removes modules in order to import them again."""
    return "sys.modules" in program.text or any(
        call.path.startswith(("os.exec", "os.spawn", "os.system", "os.popen", "os.fork"))
        or call.path in ("importlib.reload", "torch.multiprocessing.spawn")
        or call.path.startswith("torch.multiprocessing.")
        for call in program.calls()
    )


def _applies(row: VariableMoment, program: Program) -> bool:
    """TensorFlow 1 reads its log level late, and does not import the current Keras."""
    if row.moment == "import tensorflow":
        return program.tensorflow == "2"
    return True


def _read_before(program: Program, setting: Setting, row: VariableMoment) -> Event | None:
    readers = [
        event for event in MOMENTS[row.moment](program) if program.surely_before(event, setting)
    ]
    if not readers:
        return None
    first = min(readers, key=lambda event: event.index)
    return None if _set_in_time(program, setting, first) else first


def _set_in_time(program: Program, setting: Setting, reader: Event) -> bool:
    """Whether an earlier line has set it, so that this line changes nothing."""
    for other in program.settings():
        if other.path != setting.path or other is setting or other.unset:
            continue
        if setting.default and program.surely_before(other, setting):
            return True
        same = text_of(other.value) == text_of(setting.value) is not None
        if same or (other.node is setting.node and not _depends_on_call(setting)):
            return program.surely_before(other, reader)
    return False


def _depends_on_call(setting: Setting) -> bool:
    """Whether a line that runs again may set another value: it depends on a parameter or a loop."""
    function = setting.scope
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return True
    given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    assigned: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            given |= set(_names(node.target))
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for name in (name for target in targets for name in _names(target)):
                assigned.setdefault(name, []).append(node.value)
    waiting, seen = [setting.node], set[str]()
    while waiting:
        for name in set(_names(waiting.pop())) - seen:
            if name in given:
                return True
            seen.add(name)
            waiting += assigned.get(name, [])
    return False


def _names(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _finding(program: Program, setting: Setting, row: VariableMoment, reader: Event) -> CodeFinding:
    line = program.line_name(reader.node)
    default = _DEFAULTS.get(setting.path)
    is_default = default is not None and text_of(setting.value) == default
    for_tpu = _is_for_tpu(program, setting)
    what = " ".join(program.source(reader.node).split())
    if len(what) > 50:
        what = what[:47] + "..."
    return CAUSE.in_code(
        program,
        setting.node,
        subject=_framework(row.moment),
        message=f"{setting.path} is set here, after {line} ({what}), which has already read "
        f"it: it is read at {row.moment}, and setting it later has no effect"
        + (f"; {default} is the default" if is_default else "")
        + ("; on a TPU it has none at any time" if for_tpu else ""),
        # It only concerns messages, or the value is in force unless it was set outside.
        severity="info"
        if is_default
        or setting.path == "TF_CPP_MIN_LOG_LEVEL"
        or _depends_there(program, setting)
        or for_tpu
        else None,
        fix=f"Set {setting.path} before {line}, preferably at the top of the program.",
    )


def _is_for_tpu(program: Program, setting: Setting) -> bool:
    """The memory of a TPU is not managed by these variables, whenever they are set."""
    return setting.path.startswith("XLA_PYTHON_CLIENT_") and bool(_TPU.search(program.text))


def _depends_there(program: Program, setting: Setting) -> bool:
    """A function of another file decides by itself whether it sets the variable."""
    return any(
        frame.kind in CONDITIONAL and program.origin(frame.node) is not None
        for frame in setting.context
    )


def _framework(moment: str) -> str:
    for word, name in (("keras", "keras"), ("JAX", "jax"), ("jax", "jax"), ("PyTorch", "torch")):
        if word in moment:
            return name
    return "tensorflow"
