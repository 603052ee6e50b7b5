"""A PyTorch program moves its work to the GPU without a check that there is one.

## Why it happens

`.cuda()`, `.to("cuda")` or `torch.device("cuda")` was written on a machine with a GPU. On one
without, or where PyTorch does not see it, the program stops there.

## What it looks like

`AssertionError: Torch not compiled with CUDA enabled`, or `RuntimeError: Found no NVIDIA driver on
your system`, at the first such line. The program itself would run on a CPU.

## Fix

Choose the device once and use it everywhere:
`device = "cuda" if torch.cuda.is_available() else "cpu"`.

## Fires on (code)

```python
import torch

model = torch.nn.Linear(4, 2).cuda()
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
```

```python
import torch

device = torch.device("cuda")
model = torch.nn.Linear(4, 2).to(device)
for x, y in loader:
    loss = criterion(model(x.to(device)), y.to(device))
    loss.backward()
    optimizer.step()
```

## Quiet on (code)

```python
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(4, 2).to(device)
loss.backward()
```

The device is an option.

```python
import torch

if options.cuda:
    model.cuda()
loss.backward()
```

Another file calls it, and may check.

```python
import torch

class Trainer:
    def update(self, x, y):
        for part in x.split(8):
            loss = self.criterion(self.model(part.cuda()), y)
            loss.backward()
```

It needs GPUs in any case.

```python
import torch
import torch.distributed

torch.distributed.init_process_group("nccl")
model.cuda()
loss.backward()
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/cuda.html#best-practices>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.training_loops import training_loops
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program
from whygpu.model.text_lines import has_line

CAUSE = cause("WG743", __name__, __doc__, severity="info", effect="none")

_CHECKS = (
    *("is_available", "device_count", "is_initialized", "current_accelerator"),
    *("CUDA_VISIBLE_DEVICES", "get_device_properties", "nvidia-smi"),
)
_CHECKED = late(r"\bmps\b|no[-_]cuda|use[-_](?:cuda|gpu)|\bgpu_ids?\b")
"""Something is asked about the GPU, or somebody chooses."""
_is_checked = has_line(("mps", "cuda", "gpu"), _CHECKED)
_NEEDS_GPU = late(
    r"\bnccl\b|torch\.distributed|DistributedDataParallel|init_process_group|set_device\("
    r"|\bimport (?:triton|apex|deepspeed|cupy|pycuda|flash_attn|horovod|bitsandbytes|xformers)"
    r"|from (?:triton|apex|deepspeed|cupy|pycuda|flash_attn|horovod|bitsandbytes|xformers)\b"
    r"|cpp_extension|torch\.cuda\.(?:Stream|Event|CUDAGraph|amp|graph)|DataParallel"
)
"""The program is written for GPUs, so that a check would not let it run elsewhere."""
_needs_gpu = has_line(
    (
        *("nccl", "torch.distributed", "DataParallel", "init_process_group", "set_device("),
        *("triton", "apex", "deepspeed", "cupy", "pycuda", "flash_attn", "horovod"),
        *("bitsandbytes", "xformers", "cpp_extension", "torch.cuda."),
    ),
    _NEEDS_GPU,
)


_NOT_SURE = ("if", "handler", "case", "try", "function")
"""What may be around a call that is not always made; "function" is one that the file never calls."""


def _possible(text: str) -> bool:
    if any(word in text for word in _CHECKS):
        return False
    return not _is_checked(text) and not _needs_gpu(text)


@CAUSE.on_code("cuda", needs=("backward",), possible=_possible)
def detect(program: Program) -> Iterator[CodeFinding]:
    if not _possible(program.text) or not any(training_loops(program)):
        return
    found = next((call for call in program.calls() if _is_sure(program, call)), None)
    if found is not None:
        yield CAUSE.in_code(
            program,
            found.node,
            subject="torch",
            message=f"{_shown(program, found)} needs a GPU, and nothing checks that there is one: "
            "without, the program stops",
            fix='Choose the device once: device = "cuda" if torch.cuda.is_available() else "cpu"',
        )


def _is_sure(program: Program, call: Call) -> bool:
    """It moves something to the GPU whenever the program gets there."""
    if any(frame.kind in _NOT_SURE for frame in call.context):
        return False
    return _moves(call)


def _moves(call: Call) -> bool:
    node = call.node
    if call.path == "torch.device":
        return _is_cuda(node.args)
    if not isinstance(node.func, ast.Attribute):
        return False
    if call.method == "cuda":
        return not node.args and not node.keywords
    return call.method == "to" and _is_cuda(node.args)


def _is_cuda(arguments: list[ast.expr]) -> bool:
    first = arguments[0] if arguments else None
    return isinstance(first, ast.Constant) and first.value in ("cuda", "cuda:0")


def _shown(program: Program, call: Call) -> str:
    """The call without what it is called on, which may be long."""
    if call.path == "torch.device" or not isinstance(call.node.func, ast.Attribute):
        return program.source(call.node)
    arguments = ", ".join(program.source(each) for each in call.node.args)
    return f".{call.node.func.attr}({arguments})"
