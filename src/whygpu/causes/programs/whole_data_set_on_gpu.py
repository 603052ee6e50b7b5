"""The program puts the whole data set on the GPU instead of one batch at a time.

## Why it happens

This works with a small data set, and avoids copying. A larger one takes the memory that the model
needs. The workers and the pinned memory of a DataLoader also need the data on the CPU.

## What it looks like

Out of memory before the first step. With `pin_memory=True`: `RuntimeError: cannot pin
'torch.cuda.FloatTensor' only dense CPU tensors can be pinned`; with workers: `Cannot re-initialize
CUDA in forked subprocess`.

## Fix

Keep the data set on the CPU and move each batch: `x = x.to(device, non_blocking=True)` with
`pin_memory=True`.

## Fires on (code)

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
data = TensorDataset(images.to(device), labels.to(device))
loader = DataLoader(data, batch_size=32)
```

```python
import tensorflow as tf

with tf.device("/GPU:0"):
    data = tf.data.Dataset.from_tensor_slices((images, labels))
```

```python
import numpy as np
import torch

images = torch.from_numpy(np.load("images.npy")).float().cuda()
```

## Quiet on (code)

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

loader = DataLoader(TensorDataset(images, labels), batch_size=32, pin_memory=True)
for x, y in loader:
    x, y = x.to("cuda"), y.to("cuda")
```

```python
import tensorflow as tf

with tf.device("/CPU:0"):
    data = tf.data.Dataset.from_tensor_slices((images, labels))
```

## Sources

- <https://docs.pytorch.org/docs/stable/data.html#memory-pinning>
- <https://www.tensorflow.org/guide/data_performance>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.device_code import device_scopes, path_of, text_of, tf_name
from whygpu.causes.evidence.runtime_starts import may_be_cuda
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program
from whygpu.model.text_lines import has_line
from whygpu.model.values import Constant, Member, Result, Value

CAUSE = cause("WG725", __name__, __doc__, severity="info", effect="none")

_WRAPS = ("torch.from_numpy", "torch.tensor", "torch.as_tensor", "torch.Tensor")
_LOADS = ("numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.memmap")


_DATA_SETS = ("TensorDataset", "from_tensor_slices")
_LOADING = ("np.load", "numpy.load", "numpy import", "loadtxt", "genfromtxt", "memmap")
_has_member = has_line(
    (".data", ".targets", ".train_data"), late(r"(?<!utils)\.(?:data|targets|train_data)\b")
)


def _possible(text: str) -> bool:
    if any(word in text for word in (*_DATA_SETS, *_LOADING)):
        return True
    return "torchvision" in text and _has_member(text)


@CAUSE.on_code(
    *(*_DATA_SETS, *_LOADING, "torchvision"),
    needs=(".cuda(", ".to(", "device("),
    possible=_possible,
)
def detect(program: Program) -> Iterator[CodeFinding]:
    for call in program.calls():
        if call.path.endswith(".TensorDataset") and call.path.startswith("torch."):
            if any(_on_gpu(value) for value in call.arguments):
                fails = _fails(program, call)
                yield CAUSE.in_code(
                    program,
                    call.node,
                    subject="torch",
                    message="the whole data set is put on the GPU at once"
                    + (f"; {fails}" if fails else ", which takes memory from the model"),
                    fix="Keep the data set on the CPU and move each batch in the loop.",
                    severity="error" if fails else None,
                )
        elif _moves_all(call):
            yield CAUSE.in_code(
                program,
                call.node,
                subject="torch",
                message="all loaded data is put on the GPU at once, which takes memory from the "
                "model",
                fix="Keep the data on the CPU and move each batch in the loop.",
            )
        elif tf_name(call.path) == "data.Dataset.from_tensor_slices":
            scope = next(device_scopes(call), None)
            name = text_of(scope[1].argument(0)) if scope else None
            if name is not None and "gpu" in name.lower():
                yield CAUSE.in_code(
                    program,
                    call.node,
                    subject="tensorflow",
                    message=f"the whole data set becomes a constant on {name}, which takes "
                    "memory from the model; batches are copied to the GPU anyway",
                    fix="Create the data set outside of the device scope.",
                )


def _moves_all(call: Call) -> bool:
    """torch.from_numpy(np.load(...)).cuda(), datasets.MNIST(...).data.to("cuda")."""
    if not _on_gpu(Result(call)):
        return False
    value = call.receiver
    if isinstance(value, Member) and value.name in ("data", "targets", "train_data"):
        return path_of(value.of).startswith("torchvision.datasets.")
    while isinstance(value, Result) and not value.call.path:
        value = value.call.receiver
    if not isinstance(value, Result) or value.call.path not in _WRAPS:
        return False
    return path_of(value.call.argument(0)) in _LOADS


def _on_gpu(value: Value) -> bool:
    if not isinstance(value, Result) or value.call.path:
        return False
    if value.call.method == "cuda":
        return True
    return value.call.method == "to" and may_be_cuda(value.call.argument(0, "device"))


def _fails(program: Program, dataset: Call) -> str:
    """The error that a loader of this data set will raise."""
    for call in program.calls("torch.utils.data.DataLoader"):
        given = call.argument(0, "dataset")
        if not isinstance(given, Result) or given.call is not dataset:
            continue
        if call.keywords.get("pin_memory") == Constant(True):
            return (
                "pin_memory=True then raises RuntimeError, because only CPU tensors can be pinned"
            )
        workers = call.keywords.get("num_workers")
        if isinstance(workers, Constant) and workers.value:
            return f"num_workers={workers.value} passes it to forked children, where CUDA fails"
    return ""
