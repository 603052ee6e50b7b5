"""A forked process uses CUDA although its parent process has already started it.

## Why it happens

A CUDA context belongs to the process that created it. `fork` copies the process, but not the
context: in the child process every CUDA call fails or hangs. Python's multiprocessing forks by
default on Linux up to 3.13, and so do data-loader workers, gunicorn with preload and Celery.

## What it looks like

- `RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing,
  you must use the 'spawn' start method`
- TensorFlow: the GPU is found and used, then `CUDA_ERROR_NOT_INITIALIZED` from the workers.
- `CUDA error: initialization error` from a DataLoader worker; the same from CuPy and Numba.

## Fix

Start workers with `spawn` (or `forkserver`), or do not use the GPU in the parent before they are
started: no tensor on it, no `is_available()` in old releases, no session.

## Fires on (log)

```
RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method
```

```
I tensorflow/core/common_runtime/gpu/gpu_device.cc:1115] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 7014 MB memory) -> physical GPU (device: 0, name: Quadro P4000, pci bus id: 0000:17:00.0, compute capability: 6.1)
E tensorflow/stream_executor/cuda/cuda_driver.cc:1368] could not retrieve CUDA device count: CUDA_ERROR_NOT_INITIALIZED: initialization error
```

```
  File "/usr/lib/python3.7/site-packages/torch/utils/data/_utils/worker.py", line 178, in _worker_loop
    data = fetcher.fetch(index)
RuntimeError: CUDA error: initialization error
```

## Quiet on (log)

```
RuntimeError: CUDA error: invalid device ordinal
```

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

Checking whether there is a GPU starts CUDA as well.

```python
from multiprocessing import Pool
import torch

def work(n):
    return torch.ones(n, device="cuda").sum().item()

print(torch.cuda.is_available())
with Pool(2) as pool:
    pool.map(work, [1, 2])
```

```python
import os
import torch

x = torch.zeros(3, device="cuda")
if os.fork() == 0:
    print(x + 1)
```

```python
import multiprocessing
import torch

def total(x):
    return x.sum()

if __name__ == "__main__":
    x = torch.ones(3).to("cuda")
    with multiprocessing.Pool(2) as pool:
        pool.map(total, [x, x])
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

- <https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing>
- <https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods>
- <https://github.com/tensorflow/tensorflow/issues/8220>
- <https://docs.pytorch.org/docs/stable/notes/multiprocessing.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from whygpu.causes.evidence.child_processes import children
from whygpu.causes.evidence.device_code import path_of, text_of
from whygpu.causes.evidence.log_subjects import framework_title, gpu_ends_after, subject_of
from whygpu.causes.evidence.runtime_starts import puts_on_cuda, torch_looks
from whygpu.causes.evidence.torch_tensors import tensor_device
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.finding import Confidence, Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.program import Program
from whygpu.model.remedy import SetVariable
from whygpu.model.values import Constant, Definition, Instance, Several

CAUSE = cause("WG703", __name__, __doc__, severity="error", effect="broken")

_STATEMENTS = late(
    r"(?i:Cannot re-?initiali[sz]e (?:CUDA|HIP|XPU|NPU) in (?:a )?forked (?:sub)?process)"
    r"|CUDA (?:was |has been )?(?:already )?initiali[sz]ed (?:before|in the parent"
    r"|in the main)[^\n]{0,60}fork"
    r"|poison_fork|in_bad_fork"
)
_NOT_INITIALIZED = late(
    r"CUDA_ERROR_NOT_INITIALIZED|cudaErrorInitializationError"
    r"|(?:CUDA|cuda) (?:runtime )?error(?: \(3\))? ?: ?initialization error"
    r"|error=3 : initialization error"
    r"|cuInit failed: initialization error|device properties, error code: 3\b"
    r"|cudaSuccess ?\(3 ?vs\. ?0\)"
)
_WORKERS = late(
    r"multiprocessing[/\\.]|_worker_loop|DataLoader worker|[Ff]orked?\b|ForkPoolWorker|ForkProcess"
    r"|Process-\d|Process ForkP|gunicorn|uwsgi|billiard|celery|joblib|Pool\(|prefork|worker process"
)
_FORK_WARNING = late(r"os\.fork\(\) (?:was called|is incompatible)")
_MOST_LINES = 6


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statements = [match.line for match in log.find(_STATEMENTS)]
    unready = [
        match.line
        for match in log.find(_NOT_INITIALIZED)
        # JAX asks for the versions of its libraries before it starts CUDA.
        if "versions_helpers.cc" not in match.text
    ]
    confidence: Confidence
    if statements:
        confidence = "certain"
    elif unready and (log.says(_WORKERS) or log.says(_FORK_WARNING) or _worked(log, unready[0])):
        confidence = "likely"
    elif unready:
        confidence = "possible"
    else:
        return
    lines = statements or unready
    ends = gpu_ends_after(log, lines[0])
    yield CAUSE.finding(
        subject=subject_of(log),
        message="a forked process uses CUDA although its parent has already started it, and "
        f"{framework_title(log)} cannot start it again there",
        evidence=log.evidence(*lines[:_MOST_LINES], *ends[:_MOST_LINES]),
        remedies=(
            Remedy(
                "Start the workers without fork, at the beginning of the program: "
                "multiprocessing.set_start_method('spawn')."
            ),
            Remedy(
                "Or do not use the GPU in the parent before they are started; let data-loader "
                "workers return CPU tensors, and move the batch in the main process."
            ),
            *_for_servers(log),
        ),
        confidence=confidence,
        ask=None
        if confidence == "certain"
        else "Does it work with one process and no workers (num_workers=0)? Then the fork is the "
        "reason.",
    )


def _worked(log: Log, line: int) -> bool:
    """A GPU was ready before, so CUDA itself works."""
    return any(device.event == "ready" and device.line < line for device in log.devices)


def _for_servers(log: Log) -> Iterator[Remedy]:
    if re.search(r"vllm", log.text, re.I):
        yield Remedy("For vLLM.", SetVariable("VLLM_WORKER_MULTIPROC_METHOD", "spawn"))
    elif re.search(r"gunicorn|uwsgi|celery", log.text, re.I):
        yield Remedy(
            "Load the model in each worker after the fork: no --preload, lazy-apps = true."
        )


_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")


@CAUSE.on_code("multiprocessing", "num_workers", "ProcessPoolExecutor", "os.fork", needs=("cuda",))
def detect_in_code(program: Program) -> Iterator[CodeFinding]:
    if "torch" not in program.imports or _spawns(program):
        return
    starts = list(torch_looks(program))
    yield from _forks(program, starts)
    for call, target in children(program):
        if not _uses_cuda(program, target.definition) and not _is_given_cuda(call):
            continue
        earlier = [start for start in starts if program.surely_before(start, call)]
        if earlier:
            line = program.line_name(earlier[0].node)
            yield CAUSE.in_code(
                program,
                call.node,
                subject="torch",
                message=f"the child is forked after {line} has started CUDA, and its function "
                f"{target.definition.node.name} "
                f"{'gets a tensor that is on the GPU' if _is_given_cuda(call) else 'uses CUDA'}"
                ": CUDA cannot start again there",
                fix='Call multiprocessing.set_start_method("spawn") first.',
            )
    yield from _workers(program)


def _forks(program: Program, starts: list[Call]) -> Iterator[CodeFinding]:
    """os.fork() after a tensor was put on the GPU; a child that runs exec is safe."""
    if any(call.path.startswith("os.exec") for call in program.calls()):
        return
    for call in program.calls("os.fork"):
        earlier = [
            start for start in starts if puts_on_cuda(start) and program.surely_before(start, call)
        ]
        if earlier:
            line = program.line_name(earlier[0].node)
            yield CAUSE.in_code(
                program,
                call.node,
                subject="torch",
                message=f"{line} has started CUDA before this fork, and CUDA cannot be used "
                "in the child",
                fix="Fork before the first use of CUDA, or start children with "
                'multiprocessing.get_context("spawn").',
            )


def _is_given_cuda(call: Call) -> bool:
    """One of the child's arguments is a tensor on the GPU."""
    given = [*call.arguments, *call.keywords.values()]
    parts = [part for value in given if isinstance(value, Several) for part in value.items]
    return any(tensor_device(value) == "cuda" for value in (*given, *parts))


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
                fix="Return tensors on the CPU, and move them in the training loop.",
            )


def _spawns(program: Program) -> bool:
    """A start method is set, so the author knows about fork."""
    return any(
        call.method in ("set_start_method", "get_context")
        and text_of(call.argument(0, "method")) != "fork"
        for call in program.calls()
    )


def _uses_cuda(program: Program, definition: Definition) -> bool:
    inside = set(ast.walk(definition.node))
    return any(type(e) is Call and e.node in inside and puts_on_cuda(e) for e in program.events)
