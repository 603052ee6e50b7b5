"""After running out of GPU memory, the program retries in the except clause without freeing any.

## Why it happens

While an except clause runs, the exception exists. Its traceback keeps every variable of the frames
that failed, so the tensors of the failed attempt still hold the memory.

## What it looks like

The second attempt runs out of memory as well, even with a smaller batch.

## Fix

Leave the except clause before trying again (set a flag, or use a loop), delete what is no longer
needed (`del`, `gc.collect()`), then call `torch.cuda.empty_cache()` or
`tf.keras.backend.clear_session()`.

## Fires on (code)

```python
import torch

def train(batch):
    return model(batch)

try:
    train(64)
except torch.cuda.OutOfMemoryError:
    train(32)
```

```python
import tensorflow as tf

try:
    model.fit(x, y, batch_size=128)
except tf.errors.ResourceExhaustedError:
    print("once more")
    model.fit(x, y, batch_size=64)
```

```python
import torch

try:
    out = model(x)
except RuntimeError as error:
    if "out of memory" in str(error):
        out = model(x[:8])
    else:
        raise
```

```python
import torch

def answer(model, x):
    while True:
        try:
            return model(x)
        except torch.cuda.OutOfMemoryError:
            print("once more")
```

## Quiet on (code)

```python
import torch

failed = False
try:
    train(64)
except torch.cuda.OutOfMemoryError:
    failed = True
if failed:
    torch.cuda.empty_cache()
    train(32)
```

```python
import torch

try:
    train(64)
except torch.cuda.OutOfMemoryError:
    torch.cuda.empty_cache()
    train(32)
```

```python
import torch

try:
    out = model(x)
except RuntimeError:
    out = model(x.cpu())
```

The handler gives the error a name of the program, and goes on with the CPU.

```python
import torch

try:
    model = load_model(path, "cuda")
except torch.cuda.OutOfMemoryError as error:
    if strict:
        raise load_model.Error("out of memory") from error
    model = load_model(path, "cpu")
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/faq.html>
- <https://www.tensorflow.org/api_docs/python/tf/errors/ResourceExhaustedError>
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from whygpu.causes.evidence.device_code import caught, only_reports
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program

CAUSE = cause("WG723", __name__, __doc__, severity="warning", effect="broken")

_MEMORY = frozenset({"OutOfMemoryError", "ResourceExhaustedError", "CUDAOutOfMemoryError"})
_FREES = late(
    r"empty_cache|gc\.collect|clear_session|\bdel\b|reset_default_graph|\.cpu\(|['\"]cpu['\"]"
)
"""The handler frees memory, or goes on with the CPU."""

_WORK = late(
    r"fit|train|predict|forward|backward|model|net|step|infer|generat|evaluat|run|loss|comput"
    r"|encod|decod|batch|process",
    re.IGNORECASE,
)


@CAUSE.on_code("out of memory", "OutOfMemoryError", "ResourceExhaustedError")
def detect(program: Program) -> Iterator[CodeFinding]:
    if not program.imports & {"tensorflow", "torch", "keras"}:
        return
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.Try):
            continue
        tried = {ast.unparse(call.func): call for part in node.body for call in _calls(part)}
        for handler in node.handlers:
            if not _for_memory(program, handler) or _FREES.search(program.source(handler)):
                continue
            again = next(
                (
                    call
                    for part in handler.body
                    for call in _calls(part)
                    if ast.unparse(call.func) in tried and _is_work(call)
                ),
                None,
            )
            if again is not None:
                first = tried[ast.unparse(again.func)]
                yield _finding(program, again, is_same=ast.unparse(first) == ast.unparse(again))
            elif only_reports(handler):
                again = _tried_until_it_works(program, node)
                if again is not None:
                    yield _finding(program, again, in_loop=True)


def _tried_until_it_works(program: Program, tried: ast.Try) -> ast.Call | None:
    """while True: try: return model(x) ..., with no change before the next attempt."""
    loop = program.parent(tried)
    if not isinstance(loop, ast.While) or not isinstance(loop.test, ast.Constant):
        return None
    if len(loop.body) > 1 or not any(
        isinstance(inner, (ast.Return, ast.Break))
        for part in tried.body
        for inner in ast.walk(part)
    ):
        return None
    return next((call for part in tried.body for call in _calls(part) if _is_work(call)), None)


def _finding(
    program: Program, again: ast.Call, *, in_loop: bool = False, is_same: bool = True
) -> CodeFinding:
    name = ast.unparse(again.func)
    torch = "torch" in program.imports
    return CAUSE.in_code(
        program,
        again,
        subject="torch" if torch else "tensorflow",
        message=f"{name} is repeated until it has enough memory, but nothing frees memory between "
        "two attempts or makes the next one smaller"
        if in_loop
        else f"{name} is repeated inside the except clause: the exception still holds the "
        "tensors of the attempt that ran out of memory, and nothing has freed them",
        fix="Leave the except clause first, free memory with "
        + ("torch.cuda.empty_cache()" if torch else "tf.keras.backend.clear_session()")
        + ", then try again.",
        # With other arguments, it may need less memory.
        severity=None if is_same else "info",
    )


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """Those of a statement, without the exceptions that it makes."""
    waiting = [node]
    while waiting:
        inner = waiting.pop(0)
        if isinstance(inner, ast.Call):
            yield inner
        if not isinstance(inner, ast.Raise):
            waiting += ast.iter_child_nodes(inner)


def _is_work(call: ast.Call) -> bool:
    """By its name, a call that computes, not logging or an operation on a list."""
    name = call.func
    word = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
    return bool(_WORK.search(word))


def _for_memory(program: Program, handler: ast.ExceptHandler) -> bool:
    names = caught(handler)
    if _MEMORY & set(names):
        return True
    return "RuntimeError" in names and "out of memory" in program.source(handler)
