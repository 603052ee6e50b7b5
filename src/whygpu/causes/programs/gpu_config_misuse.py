"""The program configures the GPUs too late, or with settings that contradict each other.

## Why it happens

The runtime starts with the first operation. It then fixes which GPUs the process sees, how it
allocates their memory and how it divides them, and refuses later calls. TensorFlow also has one
allocator policy for all GPUs: it refuses memory growth on one and not on another. A GPU has either
growth, a share or a fixed limit, appears once in a list, and has one number in all sessions.

## What it looks like

- `RuntimeError: Physical devices cannot be modified after being initialized`
- `RuntimeError: Visible devices cannot be modified after being initialized`
- `ValueError: Memory growth cannot differ between GPU devices`
- `ValueError: Cannot set memory growth on device when virtual devices configured`
- `ValueError: Unrecognized device: '/GPU:0'`: the name of a device instead of the device
- `visible_device_list contained a duplicate entry: 0,0`
- `TensorFlow device (GPU:0) is being mapped to multiple CUDA devices (1 now, and 0 previously)`
- `It's invalid to set per_process_gpu_memory_fraction when virtual_devices is set.`
- `jax.distributed.initialize() must be called before any JAX computations are executed`

## Fix

Put the calls at the very beginning, right after `import tensorflow`, before anything that computes
or lists logical devices. Set memory growth for every GPU in a loop. An environment variable
(TF_FORCE_GPU_ALLOW_GROWTH, CUDA_VISIBLE_DEVICES) set before the start has the same effect and
cannot come too late.

## Fires on (log)

```
  File "train.py", line 14, in <module>
    tf.config.experimental.set_memory_growth(gpu, True)
RuntimeError: Physical devices cannot be modified after being initialized
```

```
ValueError: Memory growth cannot differ between GPU devices
```

```
RuntimeError: jax.distributed.initialize() must be called before any JAX computations are executed.
```

```
    tf.config.set_visible_devices("/GPU:0", "GPU")
ValueError: Unrecognized device: '/GPU:0'
```

```
InvalidArgumentError: visible_device_list contained a duplicate entry: 0,0
```

## Quiet on (log)

```
2021-02-02 09:40:30.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1697] Adding visible gpu devices: 0, 1
Epoch 1/5
```

## Fires on (code)

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
x = tf.constant([1.0, 2.0])
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
```

A helper function that is called too late.

```python
import tensorflow as tf

def use_no_gpu():
    tf.config.set_visible_devices([], "GPU")

model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
model.compile(optimizer="adam", loss="mse")
use_no_gpu()
```

The model has created its variables.

```python
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(10)])
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
```

```python
import tensorflow as tf

inputs = tf.keras.Input((3,))
outputs = tf.keras.layers.Dense(10)(inputs)
tf.config.set_visible_devices([], "GPU")
```

Options that do not exist, or that belong elsewhere.

```python
import tensorflow.compat.v1 as tf

config = tf.ConfigProto()
config.allow_growth = True
```

```python
import tensorflow.compat.v1 as tf

config = tf.ConfigProto(allow_soft_placement=True)
config.gpu_option.allow_growth = True
```

```python
import torch

torch.cuda.set_per_process_memory_fraction(80.0)
```

Only one of all GPUs.

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.experimental.set_memory_growth(gpus[0], True)
```

## Quiet on (code)

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
for gpu in gpus:
    tf.config.experimental.set_memory_growth(gpu, True)
x = tf.constant([1.0, 2.0])
```

A model without an input has no variables yet.

```python
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
```

```python
import tensorflow.compat.v1 as tf

config = tf.ConfigProto(device_count={"GPU": 1})
config.gpu_options.allow_growth = True
config.gpu_options.experimental.use_unified_memory = True
```

Only one GPU is left visible.

```python
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.set_visible_devices(gpus[0], "GPU")
    tf.config.experimental.set_memory_growth(gpus[0], True)
```

```python
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
if gpus:
    tf.config.experimental.set_memory_growth(gpus[0], True)
```

It is not certain that the first call happens before the second.

```python
import tensorflow as tf

def train():
    return tf.constant(1.0)

def configure():
    tf.config.set_visible_devices([], "GPU")
```

## Sources

- <https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth>
- <https://www.tensorflow.org/api_docs/python/tf/config/experimental/set_memory_growth>
- <https://docs.jax.dev/en/latest/_autosummary/jax.distributed.initialize.html>
- <https://www.tensorflow.org/guide/gpu>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.device_code import (
    DEVICE_SETTERS,
    catches,
    guarded_by_attribute_error,
    path_of,
    tf_name,
)
from whygpu.causes.evidence.device_selection import partial_growth, unchecked_items
from whygpu.causes.evidence.log_subjects import framework_title, subject_of
from whygpu.causes.evidence.runtime_starts import tensorflow_starts
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Assignment, Call
from whygpu.model.finding import Finding, Remedy, Severity
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.program import Edit, Place, Program, exclusive, handlers_around
from whygpu.model.remedy import SetVariable
from whygpu.model.values import Constant, Member, Result, Value
from whygpu.tables.session_options import GPU_OPTIONS, SESSION_OPTIONS

CAUSE = cause("WG701", __name__, __doc__, severity="error", effect="broken")

_MOST_LINES = 4


class _Misuse(NamedTuple):
    """One kind of refusal."""

    words: re.Pattern[str]
    what: str
    """What the program does, as the rest of a sentence."""
    remedies: tuple[Remedy, ...]


_EARLIER = Remedy(
    "Move the call to the beginning of the program, before any other call of the framework. "
    "In a notebook, restart the kernel first."
)
_TOO_LATE = "after the runtime has started, which is too late"
_ONE_GPU = SetVariable("CUDA_VISIBLE_DEVICES", "0")
_GROWTH = SetVariable("TF_FORCE_GPU_ALLOW_GROWTH", "true")
_MISUSES = (
    _Misuse(
        late(
            r"Physical devices? (?:cannot|must not) be (?:modified|set|configured|changed)"
            r"|[Mm]emory growth must be set before (?:GPUs|devices)"
        ),
        f"sets memory growth {_TOO_LATE}",
        (_EARLIER, Remedy("Or set a variable before the program starts.", _GROWTH)),
    ),
    _Misuse(
        late(
            r"Visible devices? (?:cannot|must not) be (?:modified|set|configured|changed)"
            r"|(?:Physical|Visible) devices? (?:must|should) be (?:set|configured) (?:before|at program)"
        ),
        f"chooses its GPUs {_TOO_LATE}",
        (
            _EARLIER,
            Remedy("Or choose the GPU by a variable before the program starts.", _ONE_GPU),
        ),
    ),
    _Misuse(
        late(
            r"(?:Virtual|Logical) devices? (?:cannot|must not) be (?:modified|set|configured|changed)"
            r"|(?:Virtual|Logical) devices? (?:must|should) be (?:set|configured) (?:before|at program)"
            r"|must be called before any JAX (?:computations|calls)"
            r"|must be called before any calls that might initiali[sz]e the JAX"
            r"|Allocator backend parsed at runtime != allocator backend parsed at load"
            r"|cannot set while device is active in this process"
        ),
        f"changes how it uses its GPUs {_TOO_LATE}",
        (_EARLIER,),
    ),
    _Misuse(
        late(r"[Mm]emory growth cannot differ between GPU devices"),
        "sets memory growth for some GPUs and not for others; all GPUs of a process must have the "
        "same setting",
        (
            Remedy(
                "Set it for every GPU: for gpu in "
                "tf.config.experimental.list_physical_devices('GPU'): "
                "tf.config.experimental.set_memory_growth(gpu, True)."
            ),
            Remedy("Or set a variable for all GPUs.", _GROWTH),
            Remedy("Or let the process see only one GPU.", _ONE_GPU),
        ),
    ),
    _Misuse(
        late(r"Cannot set memory growth on device when virtual devices configured"),
        "sets both memory growth and virtual devices with a fixed limit for one GPU; only one of "
        "them is possible",
        (Remedy("Remove one of the two calls: a limit needs no growth."),),
    ),
    _Misuse(
        late(r"invalid to set per_process_gpu_memory_fraction when virtual_devices is set"),
        "sets both per_process_gpu_memory_fraction and virtual devices with a fixed limit; only "
        "one of them is possible",
        (Remedy("Remove one of the two: the limits of the virtual devices are the share."),),
    ),
    _Misuse(
        late(r"Setting memory limit is required for GPU virtual devices"),
        "divides a GPU into virtual devices without a memory limit for each",
        (
            Remedy(
                "Give every part a limit in MB: "
                "tf.config.experimental.VirtualDeviceConfiguration(memory_limit=4096)."
            ),
        ),
    ),
    _Misuse(
        late(r"number of GPUs in visible_device_list doesn't match the number of elements"),
        "divides another number of GPUs into virtual devices than visible_device_list names",
        (Remedy("Give virtual_devices one element for each GPU in visible_device_list."),),
    ),
    _Misuse(
        late(r"Unified memory on GPUs with compute capability lower than 6\.0"),
        "requests more memory than the GPU has (per_process_gpu_memory_fraction above 1, or "
        "unified memory), which only GPUs of compute capability 6.0 or higher support",
        (Remedy("Set per_process_gpu_memory_fraction to 1 or less."),),
    ),
    _Misuse(
        late(r"is being mapped to multiple (?:(?:CUDA|GPU) )?devices"),
        "requests the same TensorFlow device on two different GPUs: sessions of one process have "
        "different visible_device_list",
        (
            Remedy("Select the GPU once per process.", _ONE_GPU),
            Remedy("Give every Session of the process the same gpu_options."),
        ),
    ),
    _Misuse(
        late(r"visible_device_list contained a duplicate entry"),
        "lists the same GPU twice in visible_device_list",
        (Remedy("List every GPU once, for example visible_device_list = '0,1'."),),
    ),
    _Misuse(
        late(r"Cannot set memory growth on non-GPU"),
        "sets memory growth for a device that is not a GPU",
        (
            Remedy(
                "Set it only for the devices of tf.config.experimental.list_physical_devices('GPU')."
            ),
        ),
    ),
    _Misuse(
        late(r"ValueError: Unrecognized device: (?:\[|PhysicalDevice\(|LogicalDevice\(|['\"])"),
        "configures something that is not one of TensorFlow's physical devices of that kind: a "
        "device of another kind, a list instead of one device, or only the name of one",
        (
            Remedy(
                "Pass a device of tf.config.experimental.list_physical_devices('GPU'), not its "
                "name and not a CPU. To hide all GPUs, pass an empty list: "
                "tf.config.experimental.set_visible_devices([], 'GPU')."
            ),
        ),
    ),
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    for misuse in _MISUSES:
        lines = [match.line for match in log.find(misuse.words)]
        if lines:
            yield CAUSE.finding(
                subject=subject_of(log),
                message=f"the program that uses {framework_title(log)} {misuse.what}",
                evidence=log.evidence(*lines[:_MOST_LINES], *lines[-_MOST_LINES:]),
                remedies=misuse.remedies,
            )
            return


_SIMILAR = 0.7
"""How similar a wrong name and the one that is meant are at least."""
_PERCENT = 2
"""Larger than any fraction that somebody chooses to share main memory."""


@CAUSE.on_code(
    *sorted(name.removeprefix("config.") for name in DEVICE_SETTERS),
    *("ConfigProto", "GPUOptions", "memory_fraction"),
    needs=("tensorflow", "keras", "torch"),
)
def detect_in_code(program: Program) -> Iterator[CodeFinding]:
    yield from _too_late(program)
    yield from _some_only(program)
    yield from _no_such_option(program)
    yield from _impossible_fraction(program)
    yield from _times_memory(program)


_OPTIONS = {"ConfigProto": SESSION_OPTIONS, "GPUOptions": GPU_OPTIONS}


def _no_such_option(program: Program) -> Iterator[CodeFinding]:
    """config.allow_growth = True, config.gpu_option.allow_growth = True, GPUOptions(growth=True)"""
    for event in program.events:
        if type(event) is Assignment:
            owner, wrong = _wrong_option(event.target)
            error = "AttributeError"
        elif type(event) is Call and tf_name(event.path) in _OPTIONS:
            owner = tf_name(event.path)
            wrong = next((name for name in event.keywords if name not in _OPTIONS[owner]), "")
            error = "ValueError"
        else:
            continue
        if not wrong or guarded_by_attribute_error(event):
            continue
        yield CAUSE.in_code(
            program,
            event.node,
            subject="tensorflow",
            message=f"{owner} has no field {wrong}: this raises {error}",
            fix=_right_option(owner, wrong),
        )


def _right_option(owner: str, wrong: str) -> str:
    if owner == "ConfigProto" and wrong in GPU_OPTIONS:
        return f"Write gpu_options.{wrong}."
    # Only a wrong name needs it, and importing it takes time in every run.
    import difflib

    near = difflib.get_close_matches(wrong, sorted(_OPTIONS[owner]), 1, _SIMILAR)
    if near:
        return f"Write {near[0]}."
    return f"Look for the name in the documentation of {owner}."


def _wrong_option(target: Value) -> tuple[str, str]:
    """The field that ConfigProto or GPUOptions does not have, with its owner."""
    names: list[str] = []
    while isinstance(target, Member):
        names.insert(0, target.name)
        target = target.of
    owner = tf_name(path_of(target))
    if not names or owner not in _OPTIONS or not isinstance(target, Result):
        return "", ""
    if names[0] not in _OPTIONS[owner]:
        return owner, names[0]
    if names[0] == "gpu_options" and len(names) > 1 and names[1] not in GPU_OPTIONS:
        return "GPUOptions", names[1]
    return "", ""


def _is_option(target: Value, name: str) -> bool:
    """Whether it is this field of GPUOptions."""
    if not isinstance(target, Member) or target.name != name:
        return False
    while isinstance(target, Member):
        target = target.of
    return tf_name(path_of(target)) in _OPTIONS


_FRACTION = "per_process_gpu_memory_fraction"


def _times_memory(program: Program) -> Iterator[CodeFinding]:
    """A percentage in place of a fraction: TensorFlow then asks for many times the memory."""
    for event in program.events:
        if type(event) is Assignment and _is_option(event.target, _FRACTION):
            given = event.value
        elif type(event) is Call and tf_name(event.path) == "GPUOptions":
            given = event.keywords.get(_FRACTION)
        else:
            continue
        value = given.value if isinstance(given, Constant) else None
        if isinstance(value, float | int) and value >= _PERCENT:
            yield CAUSE.in_code(
                program,
                event.node,
                subject="tensorflow",
                message=f"{_FRACTION} is a fraction: {value} asks for {value} times the memory of "
                "the GPU, which TensorFlow then shares with main memory",
                fix="Give a fraction, such as 0.8 for 80 %.",
                severity="warning",
            )


def _impossible_fraction(program: Program) -> Iterator[CodeFinding]:
    for call in program.calls("torch.cuda.set_per_process_memory_fraction"):
        given = call.argument(0, "fraction")
        value = given.value if isinstance(given, Constant) else None
        if isinstance(value, float | int) and not 0 <= value <= 1:
            yield CAUSE.in_code(
                program,
                call.node,
                subject="torch",
                message=f"{value} is not a fraction of the GPU's memory: PyTorch accepts 0 to 1 "
                "and raises an error",
                fix="Give a fraction, such as 0.8 for 80 %.",
            )


def _too_late(program: Program) -> Iterator[CodeFinding]:
    starts = list(tensorflow_starts(program))
    for call in program.calls():
        if tf_name(call.path) not in DEVICE_SETTERS:
            continue
        earlier = [start for start in starts if program.surely_before(start, call)]
        if not earlier:
            continue
        start = min(earlier, key=lambda event: event.index)
        if _is_set_before(program, call, start):
            continue
        line = program.line_name(start.node)
        yield CAUSE.in_code(
            program,
            call.node,
            subject="tensorflow",
            message=f"{call.method} comes after {line} "
            f"({program.source(start.node.func)}), which has started TensorFlow's runtime: "
            "with a GPU, this raises RuntimeError, because devices can no longer be modified",
            fix=f"Move it above {line}, right after the import.",
            severity=_severity_if_caught(program, call),
        )


def _severity_if_caught(program: Program, call: Call) -> Severity | None:
    """The except clause reports it. A notebook may show several settings, each for a new start."""
    if not any(catches(handler, "RuntimeError") for handler in handlers_around(call)):
        return None
    return "info" if program.path.endswith(".ipynb") else "warning"


def _is_set_before(program: Program, call: Call, start: Call) -> bool:
    """It was set in time as well. TensorFlow only refuses to change what is set."""
    return any(
        other is not call
        and tf_name(other.path) == tf_name(call.path)
        and other.index < start.index
        and not exclusive(other, call)
        for other in program.calls()
    )


def _some_only(program: Program) -> Iterator[CodeFinding]:
    partial = partial_growth(program)
    if partial is None:
        return
    fails = any(item.node in partial.call.node.args for item in unchecked_items(program))
    yield CAUSE.in_code(
        program,
        partial.call.node,
        subject="tensorflow",
        message=f"memory growth is set only for GPU {partial.number}: on a machine with several "
        "GPUs the first operation raises ValueError: Memory growth cannot differ between GPU "
        "devices" + ("; on a machine without a GPU, this line raises IndexError" if fails else ""),
        fix="Set it in a loop over all GPUs.",
        edits=_loop(program, partial.call) if partial.only_call else (),
        confidence="certain" if fails else "likely",
        severity=None if fails else "warning",
    )


def _loop(program: Program, call: Call) -> tuple[Edit, ...]:
    """Put `for gpu in gpus:` around the call, if it is a separate statement."""
    statement = program.statement(call.node)
    device = call.node.args[0] if call.node.args else None
    if (
        not isinstance(statement, ast.Expr)
        or statement.value is not call.node
        or not isinstance(device, ast.Subscript)
        or statement.lineno != statement.end_lineno
    ):
        return ()
    start = program.place(statement).start
    indent = program.lines[start[0] - 1][: start[1] - 1]
    if indent.strip():
        return ()
    taken = {node.id for node in ast.walk(program.tree) if isinstance(node, ast.Name)}
    name = next((word for word in ("gpu", "device", "one_gpu") if word not in taken), None)
    if name is None:
        return ()
    over = program.source(device.value)
    return (
        Edit(Place(start, start), f"for {name} in {over}:\n{indent}    "),
        Edit(program.place(device), name),
    )
