"""A function that checks for the GPU is tested without being called, and is always true.

## Why it happens

`torch.cuda.is_available` without parentheses is the function itself, and every function is true.

## What it looks like

The branch for the GPU runs on every machine. On one without a GPU: `Torch not compiled with CUDA
enabled`, or `No CUDA GPUs are available`.

## Fix

Call it: `torch.cuda.is_available()`. `whygpu lint --fix` writes it.

## Fires on (code)

```python
import torch

device = "cuda" if torch.cuda.is_available else "cpu"
```

```python
import tensorflow as tf

if not tf.test.is_built_with_cuda:
    raise SystemExit("no CUDA build")
```

In a variable that is only tested.

```python
import torch

def move(model, no_cuda=False):
    use_cuda = not no_cuda and torch.cuda.is_available
    return model.cuda() if use_cuda else model
```

## Quiet on (code)

```python
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
```

The function is passed on and called elsewhere.

```python
import torch

check = torch.cuda.is_available
print(check())
```

## Sources

- <https://docs.pytorch.org/docs/stable/generated/torch.cuda.is_available.html>
- <https://docs.python.org/3/library/stdtypes.html#truth-value-testing>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Mention
from whygpu.model.lazy_regex import late
from whygpu.model.program import Edit, Place, Program
from whygpu.model.text_lines import has_line

CAUSE = cause("WG729", __name__, __doc__, severity="error", effect="none")

_CHECKS = frozenset(
    {
        "torch.cuda.is_available",
        "torch.cuda.device_count",
        "torch.backends.mps.is_available",
        "tensorflow.test.is_gpu_available",
        "tensorflow.test.is_built_with_cuda",
        "tensorflow.test.gpu_device_name",
        "tensorflow.config.list_physical_devices",
        "jax.devices",
        "jax.device_count",
    }
)


_WORDS = tuple(sorted({name.rpartition(".")[2] for name in _CHECKS}))
_ONE = f"(?:{'|'.join(_WORDS)})\\b"
_NOT_CALLED = late(rf"\.{_ONE}(?!\s*\()|\bimport\b.*\b{_ONE}|^\s*{_ONE}\s*(?:,|#|$)")
"""A name without parentheses after it, or one that is imported."""


@CAUSE.on_code(*_WORDS, possible=has_line(_WORDS, _NOT_CALLED))
def detect(program: Program) -> Iterator[CodeFinding]:
    mentions = [each for each in program.events if type(each) is Mention and each.path in _CHECKS]
    variables = {_only_tested_as(program, event.node) for event in mentions} - {""}
    for event in mentions:
        if _only_tested_as(program, event.node) == "" and (
            not _is_tested(program, event.node) or getattr(event.node, "id", "") in variables
        ):
            # A test of such a variable is right as soon as the variable gets the result.
            continue
        end = program.place(event.node).end
        name = program.source(event.node)
        yield CAUSE.in_code(
            program,
            event.node,
            subject=event.path.partition(".")[0],
            message=f"{name} is tested here but not called: a function is always true, with or "
            "without a GPU",
            fix=f"Call it: {name}()",
            edits=(Edit(Place(end, end), "()"),),
        )


def _is_tested(program: Program, node: ast.AST) -> bool:
    """It is a condition: in an if, a while, an assert, or with and, or, not."""
    parent = program.parent(node)
    if isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return parent.test is node
    if isinstance(parent, ast.BoolOp):
        return parent.values[-1] is not node or _is_tested(program, parent)
    return isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)


def _only_tested_as(program: Program, node: ast.AST) -> str:
    """The variable that gets it, if the program tests this variable and does nothing else with it;
    else empty."""
    parent = program.parent(node)
    if isinstance(parent, ast.BoolOp) and parent.values[-1] is node:
        return _only_tested_as(program, parent)
    if not isinstance(parent, ast.Assign) or len(parent.targets) > 1:
        return ""
    name = getattr(parent.targets[0], "id", "")
    uses = [
        each
        for each in ast.walk(program.tree)
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
    ]
    return name if uses and all(_is_tested(program, use) for use in uses) else ""
