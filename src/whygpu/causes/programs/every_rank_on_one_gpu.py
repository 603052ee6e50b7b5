"""Every process of a distributed program uses the same GPU.

## Why it happens

`torchrun` starts one process for each GPU. Each of them must choose its own GPU, by the number in
the variable LOCAL_RANK. `DistributedDataParallel(model, device_ids=[0])` with a fixed number makes
all processes of a machine share GPU 0, and the others stay idle.

## What it looks like

`nvidia-smi` shows all processes on GPU 0, which runs out of memory. NCCL ends the program with
`Duplicate GPU detected : rank 1 and rank 0 both on CUDA device`.

## Fix

`local_rank = int(os.environ["LOCAL_RANK"])`, then `torch.cuda.set_device(local_rank)` and
`DistributedDataParallel(model, device_ids=[local_rank])`.

## Fires on (code)

```python
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

torch.distributed.init_process_group("nccl")
model = DDP(torch.nn.Linear(2, 2).cuda(), device_ids=[0])
```

```python
import torch

def worker(rank, size):
    torch.distributed.init_process_group("nccl", rank=rank, world_size=size)
    torch.cuda.set_device(0)
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
```

Nothing chooses a GPU.

```python
import torch

torch.distributed.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).to("cuda"))
```

## Quiet on (code)

```python
import torch

def worker(rank, size):
    torch.distributed.init_process_group("nccl", rank=rank, world_size=size)
    torch.cuda.set_device(rank)
    return torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2).cuda())
```

```python
import os
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

torch.distributed.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
model = DDP(torch.nn.Linear(2, 2).cuda(rank), device_ids=[rank])
```

Only a part of the program, which one process runs, uses the first GPU.

```python
import torch

def worker(rank, size, model):
    torch.distributed.init_process_group("nccl", rank=rank, world_size=size)
    torch.cuda.set_device(rank)
    return torch.nn.parallel.DistributedDataParallel(model)

def evaluate(model):
    torch.cuda.set_device(0)
```

PyTorch ignores a negative number.

```python
import torch

def worker(rank, size, model):
    torch.distributed.init_process_group("nccl", rank=rank, world_size=size)
    torch.cuda.set_device(-1)
    return torch.nn.parallel.DistributedDataParallel(model)
```

Each process sees only its own GPU.

```python
import os
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]
torch.distributed.init_process_group("nccl")
model = DDP(torch.nn.Linear(2, 2).cuda(), device_ids=[0])
```

There is only one process.

```python
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

torch.distributed.init_process_group("nccl", rank=0, world_size=1)
model = DDP(torch.nn.Linear(2, 2).cuda(), device_ids=[0])
```

The function gets the number; other processes may call it with another one.

```python
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(rank):
    return DDP(torch.nn.Linear(2, 2).cuda(rank), device_ids=[rank])

if torch.cuda.device_count() > 1:
    torch.multiprocessing.spawn(train, nprocs=2)
else:
    train(0)
```

## Sources

- <https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html>
- <https://docs.pytorch.org/docs/stable/elastic/run.html>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import takes_current_gpu
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.finding import Severity
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program
from whygpu.model.values import Constant, Several

CAUSE = cause("WG733", __name__, __doc__, severity="warning", effect="none")

_ONE_GPU_EACH = late(
    r"CUDA_VISIBLE_DEVICES|SLURM_|world_size\s{0,3}=\s{0,3}1\b|WORLD_SIZE['\"]\]\s?=\s?"
)
"""Who starts the processes may give each of them one GPU, as Slurm can."""
_CHOOSES = late(
    r"set_device|device_ids|(?i:local_?rank)|cuda\.device\(|cuda:|\(\s{0,9}(?:self\.)?(?:gpu|rank)|deepspeed"
)
_REPLICAS = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
)
_JOINS = "torch.distributed.init_process_group"
_BRANCHES = frozenset({"if", "case", "handler"})


@CAUSE.on_code("DistributedDataParallel")
def detect(program: Program) -> Iterator[CodeFinding]:
    if _ONE_GPU_EACH.search(program.text):
        return
    replicas = list(program.calls(*_REPLICAS))
    if not replicas:
        return
    for call in replicas:
        number = _fixed_number(call)
        if number is not None:
            yield _finding(program, call, f"device_ids=[{number}]", number)
    join = next(iter(program.calls(_JOINS)), None)
    if join is None:
        return
    for call, number in _devices_set(program):
        yield _finding(program, call, f"set_device({number})", number)
    if join.argument(0, "backend") == Constant("nccl") and not _CHOOSES.search(program.text):
        used = next(filter(takes_current_gpu, program.calls()), None)
        if used is not None:
            yield _finding(program, used, "the current GPU", 0, severity="info")


def _devices_set(program: Program) -> Iterator[tuple[Call, int]]:
    """The numbers that set_device always gets; none if it gets another value elsewhere, as by rank."""
    found = []
    for call in program.calls("torch.cuda.set_device"):
        given = call.argument(0, "device")
        number = given.value if isinstance(given, Constant) else None
        if type(number) is not int:
            return
        # PyTorch ignores a negative number.
        if number >= 0 and not any(frame.kind in _BRANCHES for frame in call.context):
            found.append((call, number))
    yield from found


def _finding(
    program: Program, call: Call, chosen: str, number: int, severity: Severity | None = None
) -> CodeFinding:
    return CAUSE.in_code(
        program,
        call.node,
        subject="torch",
        message=f"{chosen} is the same in every process, so all processes of a "
        f"machine use GPU {number} and the other GPUs stay idle",
        fix='Use the number in os.environ["LOCAL_RANK"], for set_device as well.',
        confidence="likely",
        severity=severity,
    )


def _fixed_number(call: Call) -> int | None:
    given = call.argument(1, "device_ids")
    if not isinstance(given, Several) or len(given.items) != 1:
        return None
    item = given.items[0]
    if _is_given(call):
        return None
    return item.value if isinstance(item, Constant) and isinstance(item.value, int) else None


def _is_given(call: Call) -> bool:
    """The list has a parameter of the function: other processes may call it with another number."""
    if not isinstance(call.scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    given = {node.arg for node in ast.walk(call.scope.args) if isinstance(node, ast.arg)}
    return any(isinstance(node, ast.Name) and node.id in given for node in _names_in_list(call))


def _names_in_list(call: Call) -> Iterator[ast.AST]:
    nodes = [keyword.value for keyword in call.node.keywords if keyword.arg == "device_ids"]
    for node in nodes or call.node.args[1:2]:
        yield from ast.walk(node)
