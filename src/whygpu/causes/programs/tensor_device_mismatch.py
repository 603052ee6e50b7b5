"""The tensors of one operation are on different devices.

## Why it happens

All inputs of an operation must be on the device where it runs. `.to("cuda")` moves only the
parameters and buffers of a model. It does not move a tensor created in `forward`, a list of layers,
the optimizer's state, or the batch from the data loader. NumPy can read only main memory.

## What it looks like

- `Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!`
- `Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same`
- `Expected object of backend CPU but got backend CUDA for argument #2 'weight'`
- `can't convert cuda:0 device type tensor to numpy`
- `module must have its parameters and buffers on device cuda:0`

## Fix

Move the tensor that is on the wrong device: `batch.to(device)`, `torch.arange(n, device=x.device)`,
`self.register_buffer(...)`, `nn.ModuleList`, and `.cpu()` before `.numpy()`.

## Fires on (log)

```
RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu! (when checking argument for argument mat1 in method wrapper_addmm)
```

```
RuntimeError: Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should be a MKLDNN tensor and weight is a dense tensor
```

```
TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.
```

Some arguments must stay on the CPU:

```
  File "/srv/asr/encoder.py", line 88, in forward
    packed = pack_padded_sequence(features, sizes, batch_first=True)
RuntimeError: 'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:1 Long tensor
```

## Quiet on (log)

The types differ, but the device is the same.

```
RuntimeError: expected scalar type Float but found Half
```

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

```python
import torch

a = torch.rand(3).cuda()
print(a.numpy())
```

On a machine with a GPU.

```python
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

def predict(x):
    x = x.to(device)
    return x.detach().numpy()
```

The targets of the batch stay on the CPU.

```python
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loss_fn = torch.nn.CrossEntropyLoss()

def train(model, loader):
    for data, target in loader:
        data = data.to(device)
        out = model(data)
        loss = loss_fn(out, target)
        loss.backward()
```

A loss, and an array of NumPy.

```python
import torch

net = torch.nn.Linear(10, 2).cuda()
criterion = torch.nn.MSELoss()
inputs = torch.rand(5, 10).cuda()
targets = torch.rand(5, 2)
print(criterion(net(inputs), targets))
```

```python
import numpy as np
import torch

shown = np.array(torch.zeros(5).to("cuda:0"))
```

What a model computes is where the model is.

```python
import torch

def step(net, batch):
    device = torch.device("cuda")
    net = net.to(device)
    batch = batch.to(device)
    return net(batch) + torch.rand(batch.size(0), 10)
```

A plain attribute stays behind when the module is moved.

```python
import torch

class Scaled(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = torch.ones(dim)

    def forward(self, x):
        return x * self.scale

model = Scaled(16).cuda()
```

## Quiet on (code)

A buffer moves with its module, and forward moves the other one itself.

```python
import torch

class Scaled(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("scale", torch.ones(dim))
        self.shift = torch.zeros(dim)

    def forward(self, x):
        return x * self.scale + self.shift.to(x.device)

model = Scaled(16).cuda()
```

The module is made on its device.

```python
import torch

norm = torch.nn.LayerNorm(8, device=torch.device("cuda"))
print(norm(torch.randn(2, 8, device="cuda")))
```

```python
import torch

a = torch.rand(3).cuda()
print(a.cpu().numpy())
```

```python
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loss_fn = torch.nn.CrossEntropyLoss()

def train(model, loader):
    for number, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)
        loss = loss_fn(model(data), target)
        loss.backward()
```

The result comes back to the CPU, where the targets are.

```python
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loss_fn = torch.nn.CrossEntropyLoss()

def train(model, loader):
    for data, target in loader:
        data = data.to(device)
        out = model(data).cpu()
        loss = loss_fn(out, target)
        loss.backward()
```

```python
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

def predict(x):
    x = x.to(device)
    if device.type == "cpu":
        return x.numpy()
    return x.detach().cpu().numpy()
```

```python
import torch

a = torch.ones(3, device="cuda")
b = torch.ones(3)
print(a + b.cuda())
```

A loss has no parameters, and so no device.

```python
import torch

loss = torch.nn.MSELoss()
print(loss(torch.ones(3).cuda(), torch.ones(3).cuda()))
```

DataParallel moves its inputs.

```python
import torch

model = torch.nn.DataParallel(torch.nn.Linear(4, 2).cuda())
print(model(torch.randn(8, 4)))
```

A single number may be on the CPU.

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

- <https://docs.pytorch.org/docs/stable/notes/cuda.html#device-agnostic-code>
- <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.causes.evidence.plain_attributes import tensors_left_behind
from whygpu.causes.evidence.targets_left import targets_left
from whygpu.causes.evidence.torch_tensors import (
    Device,
    is_computed,
    may_be_on_cuda,
    module_device,
    plain,
    tensor_device,
)
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call, Combination
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.program import Program
from whygpu.model.values import Result, Several, Value

CAUSE = cause("WG702", __name__, __doc__, severity="error", effect="broken")

_DEVICE = r"(?:CPU|CUDA|GPU|cpu|cuda:?\d{0,2}|device)"
_MESSAGES = late(
    r"[Ee]xpected all tensors to be on the same device(?:, but found at least two devices, "
    r"(?P<one>[\w:]{1,12}) and (?P<other>[\w:]{1,12}))?"
    r"|[Ee]xpected (?:object|tensor|input|self|weight)[^\n]{0,60} "
    rf"(?:of (?:device type|backend)|on|to be on) (?:the same )?{_DEVICE}\b[^\n]{{0,40}} but"
    r"|[Ee]xpected device \w|[Ee]xpected [^\n]{0,40} to be on the same device"
    # Names of tensor types, one for the GPU and one for the CPU.
    r"|torch\.cuda\.\w{3,20}Tensor\b[^\n]{0,80}\btorch\.(?!cuda)\w{3,20}Tensor\b"
    r"|torch\.(?!cuda)\w{3,20}Tensor\b[^\n]{0,80}\btorch\.cuda\.\w{3,20}Tensor\b"
    r"|Input and (?:parameter|hidden|weight)s? tensors are not at the same device"
    r"|can'?t convert (?:\w{3,6}:?\d{0,2} device type|CUDA) tensor to numpy"
    r"|Implicit conversion to a NumPy array is not allowed"
    r"|must have its parameters and buffers on device"
    rf"|(?:[Tt]ensor|[Aa]rgument|input|parameters?)[^\n]{{0,60}} (?:is|are) on {_DEVICE},? but"
    r"|indices should be either on cpu or on the same device as the indexed tensor"
    r"|(?:must|should|need to) (?:all )?(?:be|live) on the same (?:GPU|device)"
    r"|arguments are located on different GPUs"
    r"|[Pp]ointer argument[^\n]{0,20} cannot be accessed from Triton \(cpu tensor\?\)"
    r"|[Tt]ensor for (?:argument #\d{1,2} )?'?[\w ]{1,30}'? is on (?:CPU|GPU)"
    r"|Received incompatible devices for jitted computation"
    r"|Tensors on conflicting devices"
    rf"|on device ?=? ?'?{_DEVICE}'?, but [^\n]{{1,80}} (?:is|are) on device ?=? ?'?{_DEVICE}"
    r"|argument should be a 1D CPU int64 tensor, but got 1D cuda"
    r"|[Ee]xpected a '\w{3,6}' device type for generator but found '\w{3,6}'"
)
_COMPLAINT = late(
    r"[Ee]xpected|[Ff]ound|\bgot\b|same|combination of arguments|convert|not allowed|must|should"
    r"|different|cannot"
    r"|[Cc]onflicting|[Ii]ncompatible|is on "
)
"""Words that make two tensor types in one line an error message."""
_TO_NUMPY = late(r"to numpy")
_OPTIMIZER = late(r"optim[/\\]|optimizer\.step|in adam|in sgd|_multi_tensor|addcmul|exp_avg", re.I)
_MOST_LINES = 6


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    matches = [match for match in log.find(_MESSAGES) if _COMPLAINT.search(match.text)]
    if not matches:
        return
    first = matches[0]
    one, other = first.groups["one"], first.groups["other"]
    where = f" ({one} and {other})" if one and other else ""
    lines = [match.line for match in matches[:_MOST_LINES]]
    ends = [f.line for f in log.failures if _MESSAGES.search(f.text)]
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"one operation has inputs on different devices{where}: a tensor was not moved to "
        "the GPU, or not back from it",
        evidence=log.evidence(*lines, *ends[:_MOST_LINES]),
        remedies=tuple(_remedies(log, first.text)),
    )


def _remedies(log: Log, text: str) -> Iterator[Remedy]:
    if _TO_NUMPY.search(text):
        yield Remedy("Copy it to main memory first: tensor.detach().cpu().numpy().")
        return
    if log.says(_OPTIMIZER):
        yield Remedy(
            "Move the model to the GPU before the optimizer is created or its state is loaded; "
            "the state stays where the parameters were."
        )
    yield Remedy(
        "Print the .device of each tensor in the line where the traceback ends, and move the one "
        "that differs: x = x.to(model_device)."
    )
    yield Remedy(
        "Create new tensors on the right device (torch.zeros(n, device=x.device)), and constants "
        "of a module with self.register_buffer, which .to() moves."
    )


_DEVICE_TEST = late(r"cuda|gpu|cpu|device", re.IGNORECASE)
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


_NUMPY_MAKERS = frozenset(f"numpy.{name}" for name in ("array", "asarray", "ascontiguousarray"))
_MOVES = ("to", "cuda", "cpu")


_OPERANDS = (
    *(".numpy(", "backward", "torchvision", "torch import"),
    *(".rand", ".zeros", ".ones", ".empty", ".eye"),
)
"""A file with none of these has no tensor whose device is known, and no batch to train with."""


def _possible(text: str) -> bool:
    return any(word in text for word in _OPERANDS)


@CAUSE.on_code("cuda", needs=("torch",), possible=_possible)
def detect_in_code(program: Program) -> Iterator[CodeFinding]:
    if "torch" not in program.imports or not plain(program):
        return
    for event in program.events:
        if type(event) is Combination:
            left, right = tensor_device(event.value.left), tensor_device(event.value.right)
            if left and right and left != right:
                what = f"one side is on {left}, the other on {right}"
                yield _finding(program, event.node, what, (event.value.left, event.value.right))
        elif type(event) is Call and event.path in _TOGETHER:
            tensors = tuple(_tensors(event))
            if len({tensor_device(value) for value in tensors} - {None}) > 1:
                what = "its tensors are on cuda and on cpu"
                yield _finding(program, event.node, what, tensors)
        elif type(event) is Call and event.method == "numpy" and not event.node.args:
            yield from _to_numpy(program, event)
        elif type(event) is Call and event.path in _NUMPY_MAKERS:
            if tensor_device(event.argument(0, "object")) == "cuda":
                yield _as_array(program, event)
        elif type(event) is Call and _is_loss(event.target):
            devices = {_device_of(program, value) for value in event.arguments[:2]} - {None}
            if len(devices) > 1:
                yield _finding(program, event.node, "its tensors are on cuda and on cpu")
        elif type(event) is Call and not event.path and event.arguments:
            module = module_device(program, event.target, event)
            tensor = tensor_device(event.arguments[0])
            if module and tensor and module != tensor:
                what = f"the module is on {module}, the tensor on {tensor}"
                yield _finding(program, event.node, what)
    for stays in tensors_left_behind(program):
        yield CAUSE.in_code(
            program,
            stays.node,
            subject="torch",
            message=f"{program.source(stays.attribute)} is no parameter or buffer of {stays.owner}, "
            f"so {stays.owner} leaves it on the CPU when it is moved: on the GPU this raises "
            "RuntimeError: Expected all tensors to be on the same device",
            fix=f'Write self.register_buffer("{stays.attribute.attr}", ...) in __init__.',
            confidence="likely",
            severity=None if stays.is_moved else "info",
        )
    for found in targets_left(program):
        yield CAUSE.in_code(
            program,
            found.call,
            subject="torch",
            message=f"{found.moved} was moved to the GPU, {found.target} of the same batch was "
            "not: on a machine with a GPU this raises RuntimeError: Expected all tensors to be on "
            "the same device",
            fix=f"Move it as well: {found.target} = {found.target}.to(device).",
            confidence="likely",
        )


def _to_numpy(program: Program, call: Call) -> Iterator[CodeFinding]:
    surely = tensor_device(call.receiver) == "cuda"
    if not surely and (call.node.keywords or not may_be_on_cuda(call.receiver) or _asked(call)):
        return
    when = "the tensor" if surely else "on a machine with a GPU the tensor"
    yield CAUSE.in_code(
        program,
        call.node,
        subject="torch",
        message=f"{when} is on cuda: this raises TypeError: can't convert cuda:0 device type "
        "tensor to numpy",
        fix="Copy it to main memory first: .detach().cpu().numpy().",
        confidence="certain" if surely else "likely",
    )


def _as_array(program: Program, call: Call) -> CodeFinding:
    return CAUSE.in_code(
        program,
        call.node,
        subject="torch",
        message="the tensor is on cuda: this raises TypeError: can't convert cuda:0 device type "
        "tensor to numpy",
        fix="Copy it to main memory first: .cpu().",
    )


def _is_loss(target: Value) -> bool:
    """The criterion of criterion = torch.nn.MSELoss()."""
    while isinstance(target, Result) and not target.call.path and target.call.method in _MOVES:
        target = target.call.receiver
    return (
        isinstance(target, Result)
        and target.call.path.startswith("torch.nn.")
        and target.call.path.endswith("Loss")
    )


def _device_of(program: Program, value: Value) -> Device | None:
    """The device of a tensor, also of one that a module of known device computes from one there."""
    if isinstance(value, Result) and not value.call.path and value.call.arguments:
        module = module_device(program, value.call.target, value.call)
        given = tensor_device(value.call.arguments[0])
        return module if module == given else None
    return tensor_device(value)


def _asked(call: Call) -> bool:
    """A condition around it looks at the device."""
    return any(
        frame.test is not None and _DEVICE_TEST.search(ast.unparse(frame.test))
        for frame in call.context
    )


def _tensors(call: Call) -> Iterator[Value]:
    for value in call.arguments:
        if isinstance(value, Several):
            yield from value.items
        else:
            yield value


def _finding(
    program: Program, node: ast.AST, what: str, tensors: Sequence[Value] = ()
) -> CodeFinding:
    return CAUSE.in_code(
        program,
        node,
        subject="torch",
        message=f"{what}: this raises RuntimeError: Expected all tensors to be on the same device",
        fix="Create both on one device, or move one of them and keep the result.",
        confidence="likely" if any(map(is_computed, tensors)) else "certain",
    )
