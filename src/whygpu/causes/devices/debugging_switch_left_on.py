"""A debugging switch that slows all work on the GPU is left on.

## Why it happens

Some switches make errors easier to find and the GPU much slower. `CUDA_LAUNCH_BLOCKING=1`, which
PyTorch's error messages recommend, makes the program wait for every kernel, so that the GPU idles
between kernels. `torch.autograd.set_detect_anomaly(True)` records where each operation was called
and checks every gradient. `tf.config.run_functions_eagerly(True)`, Keras's `run_eagerly=True` and
JAX's `jax_disable_jit` execute compiled functions one operation at a time. They are set to find one
error, and then stay in a shell profile, an image or a script.

## What it looks like

The framework uses the GPU and results are correct, but steps take several times as long as on
another machine. `nvidia-smi` shows low utilisation. PyTorch and TensorFlow print a warning once, at
the start.

## Fix

Unset the variable or remove the line. Keep the switch behind an option of the program if it is
needed again.

## Fires on (machine)

```toml
[environment.variables.CUDA_LAUNCH_BLOCKING]
value = "1"
```

```toml
[environment.variables.JAX_DISABLE_JIT]
value = "True"
```

## Quiet on (machine)

```toml
[environment.variables.CUDA_LAUNCH_BLOCKING]
value = "0"
```

JAX is not installed.

```toml
only = ["torch"]
[environment.variables.JAX_DISABLE_JIT]
value = "1"
```

## Cannot tell on (machine)

```toml
nothing_seen = true
[environment.variables.CUDA_LAUNCH_BLOCKING]
value = "1"
```

```toml
[environment.variables.JAX_DISABLE_JIT]
value = "1"
[target]
frameworks = {unknown = "site-packages: permission denied"}
```

## Fires on (log)

```
/home/me/train.py:14: UserWarning: Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.
  torch.autograd.set_detect_anomaly(True)
Epoch 1/5 loss: 0.5
```

```
/usr/lib/python3.11/site-packages/tensorflow/python/data/ops/structured_function.py:258: UserWarning: Even though the `tf.config.experimental_run_functions_eagerly` option is set, this option does not apply to tf.data functions. To force eager execution of tf.data functions, please use `tf.data.experimental.enable_debug_mode()`.
  warnings.warn(
Epoch 1/30
100/100 - 121s 1s/step - loss: 1.2042
```

```
$ CUDA_LAUNCH_BLOCKING=1 python train.py
Epoch 1/5 loss: 0.5
```

## Quiet on (log)

The message suggests the variable, but it is not set.

```
RuntimeError: CUDA error: device-side assert triggered
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
```

The program failed, so its speed is not the problem.

```
/home/me/train.py:14: UserWarning: Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.
Traceback (most recent call last):
  File "/home/me/train.py", line 40, in <module>
    loss.backward()
RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB
```

## Fires on (code)

```python
import torch

torch.autograd.set_detect_anomaly(True)
```

```python
import tensorflow as tf

tf.config.run_functions_eagerly(True)
```

```python
import keras

model = keras.Sequential([keras.layers.Dense(1)])
model.compile(loss="mse", run_eagerly=True)
```

```python
import jax

jax.config.update("jax_disable_jit", True)
```

```python
import os

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
import torch
```

```python
import torch

for x in loader:
    with torch.autograd.detect_anomaly():
        loss = model(x.cuda())
        loss.backward()
```

```python
import keras

model = keras.Sequential([keras.layers.Dense(1)])
model.compile(loss="mse")
model.run_eagerly = True
model.fit(x, y)
```

```python
import torch

def main():
    torch.autograd.set_detect_anomaly(True)

if __name__ == "__main__":
    main()
```

## Quiet on (code)

Only for debugging, and turned off again.

```python
import sys
import torch

if "--debug" in sys.argv:
    torch.autograd.set_detect_anomaly(True)
```

```python
import tensorflow as tf

tf.config.run_functions_eagerly(True)
inspect(model)
tf.config.run_functions_eagerly(False)
```

```python
import torch

torch.autograd.set_detect_anomaly(False)
```

CUDA has started, and does not read the variable again.

```python
import os
import torch

model = torch.nn.Linear(2, 2).cuda()
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
model.train()
```

Anomaly detection around each step, if the user asks for it.

```python
import torch

for x in loader:
    if options.debug:
        with torch.autograd.detect_anomaly():
            loss = model(x.cuda())
            loss.backward()
```

Tests may be slow.

```python
import pytest
import tensorflow as tf

tf.config.run_functions_eagerly(True)
```

The model is called like a function and never trained, so the switch changes nothing.

```python
import keras

shown = keras.Sequential([keras.layers.Dense(1)])
shown.compile(run_eagerly=True)
print(shown(images))
```

## Sources

- <https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars>
- <https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection>
- <https://www.tensorflow.org/api_docs/python/tf/config/run_functions_eagerly>
- <https://docs.jax.dev/en/latest/debugging/flags.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from whygpu.causes.evidence.device_code import text_of
from whygpu.causes.evidence.runtime_starts import MOMENTS, is_keras_model
from whygpu.causes.evidence.training_loops import computes_for_long, training_loops
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.derived import nvidia_gpu
from whygpu.model.events import Assignment, Call, Setting
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, need
from whygpu.model.program import Program, is_conditional
from whygpu.model.remedy import UnsetVariable
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import FrameworkName
from whygpu.model.values import Constant, Member
from whygpu.tables.runtime_starts import KERAS_RUNS
from whygpu.tables.variable_moments import ROWS

CAUSE = cause("WG410", __name__, __doc__, severity="warning", effect="none")

_WAITS = "makes the program wait for every kernel"
_ONE_BY_ONE = "executes compiled functions one operation at a time"


class _Variable(NamedTuple):
    name: str
    on: frozenset[str]
    """The values that switch it on, in lower case."""
    framework: FrameworkName | None
    """The framework that reads it; None for CUDA itself."""
    effect: str

    @property
    def subject(self) -> str:
        return self.framework or MACHINE


_VARIABLES = (
    _Variable("CUDA_LAUNCH_BLOCKING", frozenset({"1"}), None, _WAITS),
    _Variable(
        "JAX_DISABLE_JIT", frozenset({"1", "true", "t", "yes", "y", "on"}), "jax", _ONE_BY_ONE
    ),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for row in _VARIABLES:
        value = machine.environment.get(row.name)
        if not isinstance(value, Known) or value.value.lower() not in row.on:
            continue
        need(nvidia_gpu(machine))
        if row.framework is not None:
            need(machine.framework(row.framework))
        yield CAUSE.finding(
            subject=row.subject,
            message=f"{row.name}={value.value} is a debugging switch: it {row.effect}, which makes "
            "work on the GPU slow",
            evidence=(seen(value),),
            remedies=(Remedy("Unset it, unless you are debugging.", UnsetVariable((row.name,))),),
        )


class _Phrase(NamedTuple):
    words: str
    subject: str
    switch: str
    remedy: Remedy


_PHRASES = (
    _Phrase(
        r"Anomaly Detection has been enabled\. This mode will increase the runtime",
        "torch",
        "PyTorch's anomaly detection, which checks every gradient",
        Remedy("Remove set_detect_anomaly(True) or detect_anomaly() from the program."),
    ),
    _Phrase(
        r"Even though the `?tf\.config\.experimental_run_functions_eagerly`? option is set",
        "tensorflow",
        f"run_functions_eagerly, which {_ONE_BY_ONE}",
        Remedy("Remove tf.config.run_functions_eagerly(True) from the program."),
    ),
    _Phrase(
        r"(?:^|\bexport |\$ |\+ )CUDA_LAUNCH_BLOCKING=1\b",
        MACHINE,
        f"CUDA_LAUNCH_BLOCKING=1, which {_WAITS}",
        Remedy("Unset it, unless you are debugging.", UnsetVariable(("CUDA_LAUNCH_BLOCKING",))),
    ),
)
_PATTERNS = [late(f"(?m){row.words}") for row in _PHRASES]
_TRACEBACK = late(r"Traceback \(most recent call last\)")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    if log.failures or log.says(_TRACEBACK):
        # The reader needs the reason for the failure, and this is not it.
        return
    for row, pattern in zip(_PHRASES, _PATTERNS, strict=True):
        match = log.first(pattern)
        if match is not None:
            yield CAUSE.finding(
                subject=row.subject,
                message=f"a debugging switch makes the program slow: {row.switch}",
                evidence=log.evidence(match.line),
                remedies=(row.remedy,),
            )


_DEBUGS = late(r"debug[^/\\]{0,80}$", re.IGNORECASE)
"""The name of a file that is for debugging, or explains it."""
_EAGER = "tensorflow.config.run_functions_eagerly"
_OLD_EAGER = "tensorflow.config.experimental_run_functions_eagerly"
_ANOMALY = "torch.autograd.set_detect_anomaly"
_ANOMALY_BLOCKS = ("torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly")
_STEPS = frozenset({"train_step", "test_step", "predict_step"})
_LOSS_ARGUMENTS = {"y_true", "y_pred"}
_EFFECTS = {
    _EAGER: ("tensorflow", _ONE_BY_ONE),
    _OLD_EAGER: ("tensorflow", _ONE_BY_ONE),
    _ANOMALY: ("torch", "checks every gradient and records every operation"),
}


@CAUSE.on_code(
    "run_functions_eagerly",
    "detect_anomaly",
    "run_eagerly",
    "jax_disable_jit",
    *(row.name for row in _VARIABLES),
)
def detect_in_code(program: Program) -> Iterator[CodeFinding]:
    if program.imports & {"pytest", "unittest"} or _DEBUGS.search(program.path):
        return
    for call in program.calls():
        switched = _switch(call)
        if switched is None or is_conditional(call) or _switched_off_later(program, call):
            continue
        if call.method == "compile" and _only_called(program, call):
            continue
        subject, name, effect = switched
        doubt = _doubt(program, name)
        yield CAUSE.in_code(
            program,
            call.node,
            subject=subject,
            message=f"{name} is a debugging switch: it {effect}, which makes work on the GPU slow"
            + doubt,
            fix="Remove it, or set it only if an option of the program asks for debugging.",
            severity="info" if doubt else None,
        )
    for node in _eager_attributes(program):
        doubt = _doubt(program, "run_eagerly")
        yield CAUSE.in_code(
            program,
            node,
            subject="keras",
            message=f"run_eagerly is a debugging switch: it {_ONE_BY_ONE}, which makes work on the "
            f"GPU slow{doubt}",
            fix="Remove it, or set it only if an option of the program asks for debugging.",
            severity="info" if doubt else None,
        )
    for node in _anomaly_blocks(program):
        yield CAUSE.in_code(
            program,
            node,
            subject="torch",
            message="detect_anomaly is a debugging switch: it checks every gradient and records "
            "every operation, which makes each training step slow",
            fix="Remove it, or use it only if an option of the program asks for debugging.",
        )
    for setting in program.settings():
        row = next((row for row in _VARIABLES if row.name == setting.path), None)
        if row is None or setting.unset or is_conditional(setting) or _too_late(program, setting):
            continue
        if (text_of(setting.value) or "").lower() in row.on:
            doubt = _doubt(program, row.name)
            yield CAUSE.in_code(
                program,
                setting.node,
                subject=row.subject,
                message=f"{row.name} is a debugging switch: it {row.effect}, which makes work on "
                f"the GPU slow{doubt}",
                fix="Remove it; set it in the shell while you are debugging.",
                severity="info" if doubt else None,
            )


def _eager_attributes(program: Program) -> Iterator[ast.AST]:
    """model.run_eagerly = True"""
    for event in program.events:
        if (
            type(event) is Assignment
            and isinstance(event.node, ast.Attribute)
            and event.node.attr == "run_eagerly"
            and _is_true(event.value)
            and isinstance(event.target, Member)
            and is_keras_model(event.target.of)
            and not is_conditional(event)
        ):
            yield event.node


def _anomaly_blocks(program: Program) -> Iterator[ast.expr]:
    """with torch.autograd.detect_anomaly(): around or in a training loop."""
    for call in program.calls(*_ANOMALY_BLOCKS):
        parent = program.parent(call.node)
        block = program.parent(parent) if isinstance(parent, ast.withitem) else None
        if not isinstance(block, ast.With) or any(frame.kind == "if" for frame in call.context):
            continue
        inside = set(ast.walk(block))
        if any(
            loop.node in inside or any(statement in inside for statement in loop.every_step)
            for loop in training_loops(program)
        ):
            yield call.node


def _too_late(program: Program, setting: Setting) -> bool:
    """What reads the variable has read it before, so that this switches nothing on."""
    return any(
        program.surely_before(reader, setting)
        for row in ROWS
        if row.variable == setting.path
        for reader in MOMENTS[row.moment](program)
    )


def _doubt(program: Program, name: str) -> str:
    """Why the switch may be right here; empty if nothing says so."""
    if _is_eager(name) and _has_eager_code(program):
        return "; a function of this file may need it"
    return "" if computes_for_long(program) else "; nothing in this file trains a model"


def _switch(call: Call) -> tuple[str, str, str] | None:
    """The subject, the name and the effect of a switch that this call turns on."""
    if call.path in _EFFECTS and _is_true(call.argument(0, _keyword(call.path))):
        subject, effect = _EFFECTS[call.path]
        return subject, call.path.rpartition(".")[2], effect
    if call.path == "jax.config.update" and text_of(call.argument(0)) == "jax_disable_jit":
        return ("jax", "jax_disable_jit", _ONE_BY_ONE) if _is_true(call.argument(1)) else None
    if call.method == "compile" and _is_true(call.argument(None, "run_eagerly")):
        return "keras", "run_eagerly=True", _ONE_BY_ONE
    return None


def _is_eager(name: str) -> bool:
    return "eager" in name


@lru_cache(maxsize=1)
def _has_eager_code(program: Program) -> bool:
    """The file has a training step of its own, or a loss or layer that reads values.

    A compiled function runs their Python code once, and then never again.
    """
    return (
        any(
            isinstance(node, ast.FunctionDef) and node.name in _STEPS
            for node in ast.walk(program.tree)
        )
        or any(
            isinstance(call.scope, ast.FunctionDef)
            and (
                call.scope.name == "call"
                or {a.arg for a in call.scope.args.args} >= _LOSS_ARGUMENTS
            )
            for call in program.calls()
            if call.method == "numpy" and not call.path
        )
        or any(map(_keeps_in_list, ast.walk(program.tree)))
    )


def _keeps_in_list(node: ast.AST) -> bool:
    """A metric whose update_state appends tensors to a list of its own."""
    return (
        isinstance(node, ast.FunctionDef)
        and node.name == "update_state"
        and any(
            isinstance(inner, ast.Attribute) and inner.attr in ("append", "extend")
            for inner in ast.walk(node)
        )
    )


def _only_called(program: Program, compiled: Call) -> bool:
    """The model is called like a function, which run_eagerly does not change, and never trained."""
    function = compiled.node.func
    model = function.value if isinstance(function, ast.Attribute) else None
    if not isinstance(model, ast.Name):
        return False
    is_called = False
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Name) and node.id == model.id and isinstance(node.ctx, ast.Load):
            parent = program.parent(node)
            if isinstance(parent, ast.Attribute):
                if parent.attr in KERAS_RUNS:
                    return False
            elif isinstance(parent, ast.Call) and parent.func is node:
                is_called = True
            else:
                # Something else gets the model, and may train it.
                return False
    return is_called


def _keyword(path: str) -> str:
    return "mode" if path == _ANOMALY else "run_eagerly"


def _is_true(value: object) -> bool:
    return isinstance(value, Constant) and value.value is True


def _switched_off_later(program: Program, call: Call) -> bool:
    """Whether the same name is called again with False, or with a value that is not constant."""
    return any(
        other.index > call.index
        and other.path == call.path
        and _switch(other) is None
        and (call.path != "jax.config.update" or text_of(other.argument(0)) == "jax_disable_jit")
        for other in program.calls(call.path)
        if call.path
    )
