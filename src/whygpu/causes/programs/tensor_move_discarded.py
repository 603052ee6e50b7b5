"""The program calls .to() or .cuda() on a tensor, but does not use the result.

## Why it happens

`model.to("cuda")` moves a module in place. A tensor is never moved: `x.to("cuda")` returns a copy,
and x stays where it was.

## What it looks like

`RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0
and cpu!`; or, if the model is on the CPU, no message and an unused GPU.

## Fix

Keep the result: `x = x.to("cuda")`. `whygpu lint --fix` writes it.

## Fires on (code)

```python
import torch

x = torch.randn(8, 4)
x.to("cuda")
```

```python
import torch
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=8)
for images, labels in loader:
    images.cuda()
    loss = model(images)
```

The parts of one batch: the first is kept.

```python
import torch

for images, labels in loader:
    images = images.cuda()
    labels.cuda()
    loss = criterion(model(images), labels)
    loss.backward()
```

```python
import torch

def run(net, loader, criterion):
    net.cuda()
    for images, labels in loader:
        images.cuda(non_blocking=True)
        criterion(net(images), labels.cuda()).backward()
```

## Quiet on (code)

```python
import torch

x = torch.randn(8, 4)
x = x.to("cuda")
```

```python
import torch

model = torch.nn.Linear(4, 2)
model.to("cuda")
```

```python
def move(thing):
    thing.to("cuda")
```

## Sources

- <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html>
- <https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from whygpu.causes.evidence.runtime_starts import may_be_cuda
from whygpu.causes.evidence.targets_left import discarded_moves
from whygpu.causes.evidence.torch_tensors import is_tensor
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.lazy_regex import late
from whygpu.model.program import Edit, Place, Program
from whygpu.model.text_lines import has_line
from whygpu.model.values import Item, Result, Value

CAUSE = cause("WG726", __name__, __doc__, severity="error", effect="none")


_WORDS = (".to(", ".cuda(", ".cpu(")
_STATEMENT = late(
    # Not an item of a list on several lines: `x.to(device),`
    r"^\s{0,200}\w{1,200}\.(?:to|cuda|cpu)\((?![^()]{0,200}\)\s{0,9},\s{0,9}$)"
    # if cuda: x.cuda(); but not {"x": x.cuda()}
    r"|^\s{0,200}(?:if|elif|else|for|while|with|try|except|finally|def|async)\b[^\n]{0,400}:\s{0,9}\w{1,200}"
    r"\.(?:to|cuda|cpu)\(|;\s{0,9}\w{1,200}\.(?:to|cuda|cpu)\("
)
"""A variable is moved at the start of a statement."""
_DEVICE = late(r"device|cuda|cpu|gpu", re.IGNORECASE)


@CAUSE.on_code(*_WORDS, needs=("torch",), possible=has_line(_WORDS, _STATEMENT))
def detect(program: Program) -> Iterator[CodeFinding]:
    of_batches = {move.call: move for move in discarded_moves(program)}
    for call in program.calls():
        if call.method not in ("to", "cuda", "cpu") or call.path:
            continue
        if not is_tensor(call.receiver) and call.node not in of_batches:
            continue
        statement = program.statement(call.node)
        if not isinstance(statement, ast.Expr) or statement.value is not call.node:
            continue
        assert isinstance(call.node.func, ast.Attribute)
        moved = call.node.func.value
        if not isinstance(moved, ast.Name):
            # torch.ones(1).cuda() alone warms up or tests the GPU.
            continue
        name = moved.id
        if _may_move_in_place(call.receiver) or name in _unpacked_names(program):
            continue
        move = of_batches.get(call.node)
        is_sure = move is None or move.is_sure or is_tensor(call.receiver)
        start = program.place(statement).start
        yield CAUSE.in_code(
            program,
            call.node,
            subject="torch",
            message=f".{call.method}() returns a copy of a tensor, but the result is not used: "
            f"{name} stays {'on its device' if _moves(program, call) else 'as it was'}"
            + ("" if is_sure else ", if it is a tensor"),
            fix=f"Keep the result: {name} = {program.source(call.node)}",
            edits=(Edit(Place(start, start), f"{name} = "),),
            severity=None if is_sure else "info",
        )


def _may_move_in_place(value: Value) -> bool:
    """What a collate function makes may be any object, such as the result of a tokenizer."""
    while isinstance(value, Item):
        value = value.of
    return isinstance(value, Result) and "collate_fn" in value.call.keywords


@lru_cache(maxsize=1)
def _unpacked_names(program: Program) -> frozenset[str]:
    """The x of model(**x): a mapping, whose own .to() moves it."""
    return frozenset(
        node.value.id
        for node in ast.walk(program.tree)
        if isinstance(node, ast.keyword) and node.arg is None and isinstance(node.value, ast.Name)
    )


def _moves(program: Program, call: Call) -> bool:
    """Whether it is about a device: x.to(torch.float16) converts the numbers."""
    given = call.argument(0, "device")
    about = " ".join(program.source(each) for each in call.node.args)
    return call.method != "to" or may_be_cuda(given) or bool(_DEVICE.search(about))
