"""A step of an image build needs a GPU, and builds have none.

## Why it happens

`docker build` starts its steps without GPUs and without the driver, also on a machine that has
them; `--gpus` is an option of `docker run` only. A RUN instruction with `nvidia-smi`, or one that
requires `torch.cuda.is_available()`, therefore ends the build, on every machine whose default
runtime was not changed.

## What it looks like

`nvidia-smi: not found`, `AssertionError` or `Found no NVIDIA driver on your system` in the output
of the build.

## Fix

Move the check into the program or into CMD. Name the GPUs that code is compiled for with
TORCH_CUDA_ARCH_LIST or CMAKE_CUDA_ARCHITECTURES.

## Fires on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
RUN nvidia-smi
```

```
==> Dockerfile <==
FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime
RUN python -c "import torch; assert torch.cuda.is_available()"
```

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
RUN set -eux; nvidia-smi; apt-get update
```

## Quiet on (setup)

```
==> Dockerfile <==
FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime
RUN nvidia-smi || true
RUN nvidia-smi && echo "a GPU" || echo "no GPU"
RUN nvidia-smi; echo "the shell goes on"
RUN if nvidia-smi; then echo "a GPU"; fi
RUN python -c "import torch; print(torch.cuda.is_available())"
CMD nvidia-smi
```

## Sources

- <https://docs.docker.com/reference/cli/docker/buildx/build/>
- <https://github.com/NVIDIA/nvidia-container-toolkit>
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding, ShellCommand
from whygpu.model.finding import MACHINE

CAUSE = cause("WG814", __name__, __doc__, severity="error", effect="broken")

_CHECKS = frozenset({"is_available", "is_gpu_available", "list_physical_devices"})
_EXITS = frozenset({"exit", "_exit", "SystemExit"})


@CAUSE.on_setup
def detect(setup: Setup) -> Iterator[SetupFinding]:
    if setup.kind != "image":
        return
    for command in setup.commands:
        if not command.may_fail and _needs_gpu(command):
            yield CAUSE.in_setup(
                command.place,
                subject=MACHINE,
                message="this step needs a GPU, but image builds have neither GPU nor driver: the "
                "build ends here",
                fix="Check for the GPU when the container runs.",
                rests_on=("gpus",),
                confidence="likely",
            )


def _needs_gpu(command: ShellCommand) -> bool:
    words = command.plain_words
    if words == ("nvidia-smi",):
        return True
    if not words or "python" not in words[0] or "-c" not in words[:-1]:
        return False
    try:
        program = ast.parse(textwrap.dedent(words[words.index("-c") + 1]))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return False
    return any(map(_ends_without_gpu, program.body))


def _ends_without_gpu(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert):
        return _holds_only_with_gpu(statement.test)
    ending = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(statement, ast.Raise):
        ending = statement.exc
    if not isinstance(ending, ast.Call) or _name(ending.func) not in _EXITS or not ending.args:
        return False
    status = ending.args[0]
    if isinstance(status, ast.IfExp):
        # exit(0 if torch.cuda.is_available() else 1)
        failure = isinstance(status.orelse, ast.Constant) and bool(status.orelse.value)
        return failure and _holds_only_with_gpu(status.test)
    return (
        isinstance(status, ast.UnaryOp)
        and isinstance(status.op, ast.Not)
        and _holds_only_with_gpu(status.operand)
    )


def _holds_only_with_gpu(test: ast.expr) -> bool:
    if isinstance(test, ast.BoolOp):
        parts = [_holds_only_with_gpu(part) for part in test.values]
        return any(parts) if isinstance(test.op, ast.And) else all(parts)
    if isinstance(test, ast.Compare):
        # len(tf.config.list_physical_devices("GPU")) > 0
        return isinstance(test.ops[0], ast.Gt | ast.GtE | ast.NotEq) and _lists(test.left)
    return _lists(test) or (
        isinstance(test, ast.Call) and _name(test.func) in _CHECKS - {"list_physical_devices"}
    )


def _lists(node: ast.expr) -> bool:
    """A list of GPUs, or its length."""
    if isinstance(node, ast.Call) and _name(node.func) == "len" and node.args:
        node = node.args[0]
    if not isinstance(node, ast.Call) or _name(node.func) != "list_physical_devices":
        return False
    return any(isinstance(each, ast.Constant) and each.value == "GPU" for each in node.args)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
