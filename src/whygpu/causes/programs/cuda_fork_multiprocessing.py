"""CUDA is used in a forked child after the parent has started it.

## Why it happens

On Linux, `multiprocessing` forks (by default, before Python 3.14). A child inherits the parent's
memory, but not its connection to the GPU, which cannot be made again there. The workers of a
DataLoader are such children.

## What it looks like

`RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you
must use the 'spawn' start method`, or a CUDA initialization error inside a worker.

## Fix

Start children with spawn: `multiprocessing.set_start_method("spawn")`, or
`torch.multiprocessing.spawn`; or leave CUDA alone in the parent until the children run. A data set
hands out tensors on the CPU, and the training loop moves them.

## Fires on (code)

```python
import multiprocessing
import torch

def work(n):
    print(torch.ones(n).cuda())

model = torch.nn.Linear(4, 2).cuda()
children = [multiprocessing.Process(target=work, args=(n,)) for n in range(2)]
```

```python
import torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return torch.ones(3).cuda()

loader = DataLoader(Images(), num_workers=4)
```

Asking whether there is a GPU starts CUDA as well.

```python
from multiprocessing import Pool
import torch

def work(n):
    return torch.ones(n, device="cuda").sum().item()

print(torch.cuda.is_available())
with Pool(2) as pool:
    pool.map(work, [1, 2])
```

## Quiet on (code)

```python
import multiprocessing
import torch

def work(n):
    print(torch.ones(n).cuda())

multiprocessing.set_start_method("spawn")
model = torch.nn.Linear(4, 2).cuda()
children = [multiprocessing.Process(target=work, args=(n,)) for n in range(2)]
```

The parent does not use CUDA.

```python
import multiprocessing
import torch

def work(n):
    print(torch.ones(n).cuda())

children = [multiprocessing.Process(target=work, args=(n,)) for n in range(2)]
```

```python
import torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return torch.ones(3)

loader = DataLoader(Images(), num_workers=4)
for image in loader:
    image = image.cuda()
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/multiprocessing.html>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.shared_code import path_of, text_of
from whygpu.causes.shared_processes import children
from whygpu.causes.shared_starts import puts_on_cuda, torch_looks
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.program import Program, surely_before
from whygpu.model.values import Constant, Definition, Instance

CAUSE = cause("WG703", __name__, __doc__, severity="error", effect="broken")

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


@CAUSE.on_code("multiprocessing", "num_workers", "ProcessPoolExecutor")
def detect(program: Program) -> Iterator[CodeFinding]:
    if "torch" not in program.imports or _spawns(program):
        return
    starts = list(torch_looks(program))
    for call, target in children(program):
        if not _uses_cuda(program, target.definition):
            continue
        earlier = [start for start in starts if surely_before(start, call)]
        if earlier:
            line = program.place(earlier[0].node).start[0]
            yield CAUSE.in_code(
                program,
                call.node,
                subject="torch",
                message=f"the child is forked after line {line} has started CUDA, and its function "
                f"{target.definition.node.name} uses CUDA, which cannot start again there",
                fix='Call multiprocessing.set_start_method("spawn") first.',
            )
    yield from _workers(program)


def _workers(program: Program) -> Iterator[CodeFinding]:
    for call in program.calls(*_LOADERS):
        workers = call.keywords.get("num_workers")
        dataset = call.argument(0, "dataset")
        if not isinstance(workers, Constant) or not workers.value:
            continue
        if not isinstance(dataset, Instance) or "multiprocessing_context" in call.keywords:
            continue
        if not any("Dataset" in path_of(base) for base in dataset.definition.bases):
            continue
        getter = dataset.definition.members.get("__getitem__")
        if getter is not None and _uses_cuda(program, getter):
            yield CAUSE.in_code(
                program,
                call.node,
                subject="torch",
                message=f"__getitem__ of {dataset.definition.node.name} uses CUDA, and "
                f"num_workers={workers.value} runs it in forked children, where CUDA cannot start",
                fix="Hand out tensors on the CPU, and move them in the training loop.",
            )


def _spawns(program: Program) -> bool:
    """Some start method is chosen: the author knows."""
    return any(
        call.method in ("set_start_method", "get_context")
        and text_of(call.argument(0, "method")) != "fork"
        for call in program.calls()
    )


def _uses_cuda(program: Program, definition: Definition) -> bool:
    inside = set(ast.walk(definition.node))
    return any(type(e) is Call and e.node in inside and puts_on_cuda(e) for e in program.events)
