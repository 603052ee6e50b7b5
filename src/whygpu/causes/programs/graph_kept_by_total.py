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

```python
import torch

losses = []
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    total_loss = total_loss + loss
    losses.append(loss)
```

```python
import torch

for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    optimizer.step()
    total_loss += loss * x.size(0)
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

The sum begins anew in each step.

```python
import torch

for batch in loader:
    shown = 0
    loss = criterion(model(batch.cuda()))
    loss.backward()
    shown += loss
```

The sum begins anew with each batch, and the inner loop is only over the parts of one.

```python
import torch

for images in loader:
    total = 0
    for i in range(len(critics)):
        loss = critics[i](images.cuda())
        loss.backward()
        total += loss
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

The loss has lost its graph before it is added.

```python
import torch

for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
    with torch.no_grad():
        seen += loss
    loss = mean_of_all_processes(loss.detach())
    total_loss += loss
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/faq.html>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.training_loops import (
    TrainingLoop,
    may_train,
    mentions,
    statements,
    training_loops,
)
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.lazy_regex import late
from whygpu.model.program import Edit, Place, Program

CAUSE = cause("WG734", __name__, __doc__, severity="warning", effect="none")

_LOOPS = (ast.For, ast.While)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_BATCHES = late(r"load|batch|data|iter|sampl|step|train|tqdm", re.IGNORECASE)
"""What a loop over the batches of a data set goes over, by its name."""


class _Keeping(NamedTuple):
    """A statement that keeps a loss until after the step."""

    statement: ast.stmt
    kept_in: ast.expr
    loss: ast.Name


@CAUSE.on_code("backward", needs=("torch",), possible=may_train)
def detect(program: Program) -> Iterator[CodeFinding]:
    for loop in training_loops(program):
        for keeping in _kept(program, loop):
            statement, name = keeping.statement, keeping.loss.id
            end = program.place(keeping.loss).end
            is_list = isinstance(statement, ast.Expr)
            yield CAUSE.in_code(
                program,
                statement,
                subject="torch",
                message=f"{program.source(statement)} keeps the graph of every step in memory: "
                f"{name} still refers to it",
                fix=f"{'Keep' if is_list else 'Add'} the tensor without its graph: {name}.detach()",
                edits=(Edit(Place(end, end), ".detach()"),),
                # A list of all losses may be short, or be needed with its graphs.
                severity="info" if is_list else None,
            )


def _kept(program: Program, loop: TrainingLoop) -> Iterator[_Keeping]:
    """The losses that are kept with their graph."""
    begin_in_step = {
        ast.unparse(target)
        for statement in loop.every_step
        if isinstance(statement, ast.Assign) and _keeping(statement) is None
        for target in statement.targets
    }
    differentiated: set[str] = set()
    for statement in loop.every_step:
        keeping = _keeping(statement)
        if (
            keeping is not None
            and mentions(keeping.loss, loop.losses)
            and ast.unparse(keeping.kept_in) not in begin_in_step
            and not _begins_with_batch(program, loop, keeping)
            # The sum is meant to have a graph.
            and f"{program.source(keeping.kept_in)}.backward" not in program.text
            and not _records_nothing_around(program, loop, statement)
        ):
            yield keeping
        differentiated |= set(_names_with_backward(statement))
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            if isinstance(target, ast.Name) and target.id in differentiated:
                # loss = loss.item(), loss = reduced(loss.detach())
                return


def _begins_with_batch(program: Program, loop: TrainingLoop, keeping: _Keeping) -> bool:
    """An outer loop takes a batch and sets the sum to its start; this loop is over parts of it."""
    if _takes_batch(loop.node):
        return False
    outer = program.parent(loop.node)
    while outer is not None and not isinstance(outer, _FUNCTIONS):
        if isinstance(outer, _LOOPS) and _takes_batch(outer):
            return any(
                isinstance(statement, ast.Assign)
                and ast.unparse(keeping.kept_in) in map(ast.unparse, statement.targets)
                for statement in statements(ast.Module(outer.body, []))
                if statement is not keeping.statement
            )
        outer = program.parent(outer)
    return False


def _takes_batch(loop: ast.For | ast.While) -> bool:
    """for x, y in loader: or next(batches) in the body, not in a loop within it."""
    if isinstance(loop, ast.For):
        words = f"{ast.unparse(loop.target)} in {ast.unparse(loop.iter)}"
        if _BATCHES.search(words) and "epoch" not in words.lower():
            return True
    return any(
        isinstance(call, ast.Call) and _last_word(call.func) in ("next", "__next__", "next_batch")
        for statement in loop.body
        if not isinstance(statement, _LOOPS)
        for call in ast.walk(statement)
    )


def _last_word(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _names_with_backward(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        of = node.value if isinstance(node, ast.Attribute) and node.attr == "backward" else None
        if isinstance(of, ast.Name):
            yield of.id


def _keeping(statement: ast.stmt) -> _Keeping | None:
    """total += loss, total = total + loss, losses.append(loss)"""
    kept_in: ast.expr
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        kept_in, parts = statement.target, [statement.value]
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        if not isinstance(statement.value.op, ast.Add) or len(statement.targets) != 1:
            return None
        kept_in, parts = statement.targets[0], [statement.value.left, statement.value.right]
        same = [part for part in parts if ast.unparse(part) == ast.unparse(kept_in)]
        if len(same) != 1:
            return None
        parts.remove(same[0])
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
            return None
        kept_in, parts = call.func.value, call.args
    else:
        return None
    loss = _weighted(parts[0]) if len(parts) == 1 else None
    return _Keeping(statement, kept_in, loss) if loss is not None else None


def _weighted(node: ast.expr) -> ast.Name | None:
    """loss, loss * x.size(0), loss / len(loader); not loss_a + loss_b."""
    if isinstance(node, ast.Name):
        return node
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Mult, ast.Div)):
        return None
    pairs = [(node.left, node.right)]
    if isinstance(node.op, ast.Mult):
        pairs.append((node.right, node.left))
    named = [loss for loss, weight in pairs if isinstance(loss, ast.Name) and _is_weight(weight)]
    return named[0] if len(named) == 1 else None


def _is_weight(node: ast.expr) -> bool:
    """A number that is no tensor with a graph: 0.5, len(x), x.size(0), x.shape[0]."""
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Call):
        return _last_word(node.func) in ("len", "size", "float", "int")
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _records_nothing_around(program: Program, loop: TrainingLoop, statement: ast.stmt) -> bool:
    """with torch.no_grad():"""
    node: ast.AST | None = statement
    while node is not None and node is not loop.node:
        if isinstance(node, ast.With):
            words = " ".join(ast.unparse(item.context_expr) for item in node.items)
            if "no_grad" in words or "inference_mode" in words:
                return True
        node = program.parent(node)
    return False
