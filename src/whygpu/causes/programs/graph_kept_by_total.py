"""A sum of losses keeps the graph of every step, so that memory grows until it runs out.

## Why it happens

The loss of a step refers to everything that backward() needs. `total += loss` makes a new tensor
that refers to all losses so far. PyTorch frees what backward() has used, but not the graph of the
sum: each step adds to it, and the time to free it at the end grows as well.

## What it looks like

GPU memory grows a little with each step, and the program ends with `CUDA out of memory` after many
steps that had enough.

## Fix

Add the number, or the tensor without its graph: `total += loss.item()`, or
`total += loss.detach()`, which does not wait for the GPU.

## Fires on (code)

```python
import torch

for x, y in loader:
    optimizer.zero_grad()
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    total_loss += loss
```

## Quiet on (code)

```python
import torch

for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    total_loss += loss.item()
    running += loss.detach()
```

The sum is what backward() is called on, so it is meant to have a graph.

```python
import torch

for batch in loader:
    total = criterion(model(batch.cuda()))
    penalty = regularizer(model)
    total += penalty
    total.backward()
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/faq.html>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.training_loops import may_train, mentions, training_loops
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.program import Edit, Place, Program

CAUSE = cause("WG734", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_code("backward", needs=("torch",), possible=may_train)
def detect(program: Program) -> Iterator[CodeFinding]:
    for loop in training_loops(program):
        for statement in loop.every_step:
            if not isinstance(statement, ast.AugAssign) or not isinstance(statement.op, ast.Add):
                continue
            added, total = statement.value, statement.target
            if not isinstance(added, ast.Name) or not mentions(added, loop.losses):
                continue
            if f"{program.source(total)}.backward" in program.text:
                # The sum is meant to have a graph.
                continue
            end = program.place(added).end
            yield CAUSE.in_code(
                program,
                statement,
                subject="torch",
                message=f"{program.source(statement)} keeps the graph of every step in memory: "
                f"{added.id} still refers to it",
                fix=f"Add the tensor without its graph: {added.id}.detach()",
                edits=(Edit(Place(end, end), ".detach()"),),
            )
