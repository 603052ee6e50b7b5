"""Tensors or parameters of one operation are on different devices.

## Why it happens

PyTorch moves nothing by itself: an operation wants all its tensors on one device. A tensor that is
made without `device=` is on the CPU, whatever device the model is on.

## What it looks like

`RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0
and cpu!`

## Fix

Make the tensor where it is needed (`torch.ones(3, device=x.device)`), or move it (`x.to(device)`,
keeping the result).

## Fires on (code)

```python
import torch

a = torch.ones(3, device="cuda")
b = torch.ones(3)
print(a + b)
```

```python
import torch

model = torch.nn.Linear(4, 2)
model.cuda()
x = torch.randn(8, 4)
print(model(x))
```

```python
import torch
from torch import nn
from torchvision import datasets

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

loader = torch.utils.data.DataLoader(datasets.MNIST("."))
model = Net().to("cuda")
for images, labels in loader:
    print(model(images))
```

## Quiet on (code)

```python
import torch

a = torch.ones(3, device="cuda")
b = torch.ones(3)
print(a + b.cuda())
```

A loss has no parameters, and is on no device.

```python
import torch

loss = torch.nn.MSELoss()
print(loss(torch.ones(3).cuda(), torch.ones(3).cuda()))
```

DataParallel moves what it is given.

```python
import torch

model = torch.nn.DataParallel(torch.nn.Linear(4, 2).cuda())
print(model(torch.randn(8, 4)))
```

A single number may come from the CPU.

```python
import torch

a = torch.ones(3, device="cuda")
print(a + torch.tensor(1.0))
```

```python
import torch

torch.set_default_device("cuda")
model = torch.nn.Linear(4, 2).cuda()
print(model(torch.randn(8, 4)))
```

```python
import torch

model = torch.nn.Linear(4, 2)
if torch.cuda.is_available():
    model.cuda()
x = torch.randn(8, 4)
print(model(x))
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/cuda.html>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.shared_tensors import module_device, plain, tensor_device
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call, Combination
from whygpu.model.program import Program
from whygpu.model.values import Several, Value

CAUSE = cause("WG702", __name__, __doc__, severity="error", effect="broken")

_TOGETHER = frozenset(
    f"torch.{name}"
    for name in [
        "add",
        "sub",
        "mul",
        "div",
        "matmul",
        "mm",
        "bmm",
        "dot",
        "mv",
        "cat",
        "stack",
        "where",
        "einsum",
        "addmm",
    ]
)


@CAUSE.on_code("cuda")
def detect(program: Program) -> Iterator[CodeFinding]:
    if "torch" not in program.imports or not plain(program):
        return
    for event in program.events:
        if type(event) is Combination:
            left, right = tensor_device(event.value.left), tensor_device(event.value.right)
            if left and right and left != right:
                yield _finding(program, event.node, f"one side is on {left}, the other on {right}")
        elif type(event) is Call and event.path in _TOGETHER:
            devices = {tensor_device(value) for value in _tensors(event)} - {None}
            if len(devices) > 1:
                yield _finding(program, event.node, "its tensors are on cuda and on cpu")
        elif type(event) is Call and not event.path and event.arguments:
            module = module_device(program, event.target, event)
            tensor = tensor_device(event.arguments[0])
            if module and tensor and module != tensor:
                what = f"the module is on {module}, the tensor on {tensor}"
                yield _finding(program, event.node, what)


def _tensors(call: Call) -> Iterator[Value]:
    for value in call.arguments:
        if isinstance(value, Several):
            yield from value.items
        else:
            yield value


def _finding(program: Program, node: ast.AST, what: str) -> CodeFinding:
    return CAUSE.in_code(
        program,
        node,
        subject="torch",
        message=f"{what}: this raises RuntimeError: Expected all tensors to be on the same device",
        fix="Make both on one device, or move one of them and keep the result.",
    )
