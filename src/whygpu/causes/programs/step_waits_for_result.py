"""Each training step waits for the GPU, because the program reads a result in it.

## Why it happens

PyTorch only launches work on a GPU and goes on: the GPU computes one step while the program
prepares the next. `loss.item()`, `loss.cpu()`, `print(loss)` and `torch.cuda.synchronize()` need
the result, so they wait until the GPU has computed everything. Then the GPU waits until the program
has launched the next step.

## What it looks like

The use of the GPU in nvidia-smi stays below 100 %, and rises when the line is removed. How much it
costs depends on the program: `whygpu run --profile` measures it.

## Fix

Read the value every hundredth step, or add `loss.detach()` to a tensor and read that at the end of
the epoch.

## Fires on (code)

```python
import torch

for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    print("loss", loss)
```

```python
import torch

for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    torch.cuda.synchronize()
```

```python
import torch

for x, y in loader:
    out = model(x.cuda())
    loss = criterion(out, y.cuda())
    loss.backward()
    optimizer.step()
    seen += out.size(0)
    correct += (out.argmax(1) == y.cuda()).sum().item()
```

## Quiet on (code)

The value is read in some steps only.

```python
import torch

for step, (x, y) in enumerate(loader):
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
```

Nothing is trained: an evaluation needs its results.

```python
import torch

for x, y in loader:
    total += criterion(model(x.cuda()), y.cuda()).item()
```

On a CPU, reading a result costs nothing.

```python
import torch

for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
    print(loss)
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/cuda.html>
- <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.training_loops import (
    TrainingLoop,
    may_train,
    mentions,
    training_loops,
    uses_gpu,
)
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.program import Program

CAUSE = cause("WG735", __name__, __doc__, severity="info", effect="none")

_READING = frozenset({"item", "cpu", "tolist", "numpy"})
_ALWAYS_WAIT = frozenset({"synchronize", "empty_cache"})
"""To give memory back, PyTorch waits until nothing uses it, and the next step asks for it again."""
_ON_THE_HOST = frozenset({"shape", "size", "dim", "ndim", "numel", "device", "dtype"})
"""Attributes of a tensor that the program knows before the GPU has computed it."""


@CAUSE.on_code("backward", needs=("torch",), possible=may_train)
def detect(program: Program) -> Iterator[CodeFinding]:
    if not uses_gpu(program):
        return
    for loop in training_loops(program):
        found = next(_waiting_calls(program, loop), None)
        if found is not None:
            yield CAUSE.in_code(
                program,
                found,
                subject="torch",
                message=f"{program.source(found)} waits for the GPU in every step, and the GPU "
                "then waits for the next one",
                fix="Do it every hundredth step, or once after the loop.",
            )


def _waiting_calls(program: Program, loop: TrainingLoop) -> Iterator[ast.Call]:
    for statement in loop.every_step:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and _waits(program, node, loop):
                yield node


def _waits(program: Program, call: ast.Call, loop: TrainingLoop) -> bool:
    called = call.func
    if isinstance(called, ast.Name):
        return called.id in ("print", "float") and any(mentions(a, loop.losses) for a in call.args)
    if not isinstance(called, ast.Attribute):
        return False
    if called.attr in _ALWAYS_WAIT:
        return program.source(called) == f"torch.cuda.{called.attr}"
    return called.attr in _READING and _is_computed_from(called.value, loop.results)


def _is_computed_from(node: ast.expr, names: frozenset[str]) -> bool:
    """loss.detach(), (out.argmax(1) == y).sum(); but not out.size(0), which needs no result."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute):
        return node.attr not in _ON_THE_HOST and _is_computed_from(node.value, names)
    if isinstance(node, ast.Call):
        inside = (node.func, *node.args) if isinstance(node.func, ast.Attribute) else node.args
        is_read = isinstance(node.func, ast.Attribute) and node.func.attr in _READING
        return not is_read and any(_is_computed_from(each, names) for each in inside)
    return any(
        _is_computed_from(each, names)
        for each in ast.iter_child_nodes(node)
        if isinstance(each, ast.expr)
    )
