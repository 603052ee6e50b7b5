"""A GPU is chosen by a number that few machines have.

## Why it happens

"/gpu:2" or "cuda:3" is the number of a free GPU on the machine where the code was written. Numbers
count the GPUs that the program sees: after CUDA_VISIBLE_DEVICES="3", the only one is number 0.

## What it looks like

PyTorch: `CUDA error: invalid device ordinal`. TensorFlow 2 places the operation on the CPU without
a word, as soft placement is on by default; in a session of TensorFlow 1 it is
`InvalidArgumentError: Cannot assign a device for operation`.

## Fix

Choose the GPU from outside, with CUDA_VISIBLE_DEVICES, and use number 0 in the program; or take the
number from an option, and compare it with the number of GPUs.

## Fires on (code)

```python
import tensorflow as tf

with tf.device("/gpu:2"):
    a = tf.constant(1.0)
```

```python
import torch

device = torch.device("cuda:3" if torch.cuda.is_available() else "cpu")
```

The other GPUs are hidden, and this one is now number 0.

```python
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
import torch

x = torch.ones(3).to("cuda:1")
```

## Quiet on (code)

```python
import tensorflow as tf

with tf.device("/gpu:0"):
    a = tf.constant(1.0)
```

Counted first.

```python
import torch

device = "cuda:1" if torch.cuda.device_count() > 1 else "cuda:0"
x = torch.ones(3).to(device)
```

Spread over all from the first on.

```python
import torch

first = torch.nn.Linear(4, 4).to("cuda:0")
second = torch.nn.Linear(4, 4).to("cuda:1")
```

```python
import os
os.environ["CUDA_VISIBLE_DEVICES"] = "2,3"
import torch

x = torch.ones(3).cuda(1)
```

## Sources

- <https://www.tensorflow.org/guide/gpu#manual_device_placement>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.shared_code import text_of, tf_name
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.program import Program

CAUSE = cause("WG720", __name__, __doc__, severity="warning", effect="none")

_TF_DEVICE = re.compile(r"(?:/?(?:job|replica|task):\w+)*/?(?:device:)?gpu:(\d+)$", re.I)
_TORCH_DEVICE = re.compile(r"cuda:(\d+)$")
_COUNTS = re.compile(
    r"device_count\(|\blen\([^)\n]*(?:gpu|device)|num_gpus?\b|n_gpus?\b|ngpus?\b|gpu_count|world_size"
    r"|nproc|local_rank|MULTI_GPU|multi_gpu|num_devices",
    re.I,
)


class _Choice(NamedTuple):
    number: int
    node: ast.expr
    call: Call
    framework: str


@CAUSE.on_code("gpu:", "GPU:", "cuda:", ".cuda(", "set_device(")
def detect(program: Program) -> Iterator[CodeFinding]:
    choices = list(_choices(program))
    numbers = {choice.number for choice in choices}
    if not numbers or max(numbers) == 0:
        return
    visible = _visible(program)
    if visible is None and (_COUNTS.search(program.text) or numbers >= set(range(max(numbers)))):
        return
    for choice in choices:
        if choice.number == 0 or (visible is not None and choice.number < visible):
            continue
        yield CAUSE.in_code(
            program,
            choice.node,
            subject=choice.framework,
            message=_message(choice, visible),
            fix="Use number 0, and choose the GPU with CUDA_VISIBLE_DEVICES when starting the "
            "program.",
            severity="error" if visible is not None else None,
            confidence="certain" if visible is not None else "likely",
        )


def _message(choice: _Choice, visible: int | None) -> str:
    if visible is not None:
        left = (
            "no GPU"
            if visible == 0
            else "one GPU, number 0"
            if visible == 1
            else (f"{visible} GPUs, numbers 0 to {visible - 1}")
        )
        return (
            f"GPU {choice.number} is asked for, but CUDA_VISIBLE_DEVICES, set in this file, leaves "
            f"{left}"
        )
    effect = (
        "PyTorch fails with: invalid device ordinal"
        if choice.framework == "torch"
        else "TensorFlow 2 uses the CPU without a word, and TensorFlow 1 fails"
    )
    return (
        f"GPU {choice.number} is written into the program: on a machine with "
        f"{choice.number} or fewer {'GPU' if choice.number == 1 else 'GPUs'}, {effect}"
    )


def _choices(program: Program) -> Iterator[_Choice]:
    for call in program.calls():
        if _for_several(call):
            continue
        if tf_name(call.path) == "device":
            yield from _written(call, call.node.args, _TF_DEVICE, "tensorflow")
        elif call.path in ("torch.device", "torch.cuda.device"):
            yield from _written(call, call.node.args, _TORCH_DEVICE, "torch")
            if call.path == "torch.cuda.device":
                yield from _number(call)
        elif call.path == "torch.cuda.set_device" or (call.method == "cuda" and not call.path):
            yield from _written(call, call.node.args, _TORCH_DEVICE, "torch")
            yield from _number(call)
        elif call.method == "to" and not call.path:
            yield from _written(call, call.node.args[:1], _TORCH_DEVICE, "torch")
        elif call.path.startswith("torch."):
            values = [k.value for k in call.node.keywords if k.arg in ("device", "map_location")]
            yield from _written(call, values, _TORCH_DEVICE, "torch")


def _written(
    call: Call, nodes: list[ast.expr], pattern: re.Pattern[str], framework: str
) -> Iterator[_Choice]:
    """Device names that are written out in arguments; one side of a choice counts, too."""
    for node in nodes:
        parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]
        for part in parts:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                found = pattern.match(part.value)
                if found:
                    yield _Choice(int(found.group(1)), part, call, framework)


def _number(call: Call) -> Iterator[_Choice]:
    node = call.node.args[0] if call.node.args else None
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield _Choice(node.value, node, call, "torch")


def _for_several(call: Call) -> bool:
    """A test that is run on machines with several GPUs only."""
    return isinstance(call.scope, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(
        "gpu" in ast.unparse(decorator).lower() for decorator in call.scope.decorator_list
    )


def _visible(program: Program) -> int | None:
    """How many GPUs CUDA_VISIBLE_DEVICES leaves, where this program sets it to something plain."""
    words = {
        text_of(setting.value)
        for setting in program.settings()
        if setting.path == "CUDA_VISIBLE_DEVICES" and not setting.unset
    }
    if len(words) != 1:
        return None
    word = words.pop()
    if word is None:
        return None
    entries = [entry.strip() for entry in word.split(",") if entry.strip()]
    if not all(entry.isdigit() for entry in entries):
        return 0 if entries == ["-1"] else None
    return len(entries)
