"""The program loads a checkpoint onto the device that it was saved from, which may not exist.

## Why it happens

`torch.save` stores the device of each tensor, and `torch.load` without `map_location` puts each
tensor back on that device. A program that chooses between the GPU and the CPU then still needs the
GPU to load a checkpoint that was saved on one, and a checkpoint of `cuda:3` needs four GPUs. With a
GPU, the checkpoint takes memory on it in addition to the model.

## What it looks like

`RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is
False`, or `Attempting to deserialize object on CUDA device 3 but torch.cuda.device_count() is 1`.

## Fix

Pass the device that the program has chosen: `torch.load(path, map_location=device)`. For
`load_state_dict`, `map_location="cpu"` is right as well, and needs no memory on the GPU.

## Fires on (code)

```python
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
model.load_state_dict(torch.load("model.pth"))
```

## Quiet on (code)

```python
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net().to(device)
model.load_state_dict(torch.load("model.pth", map_location=device))
```

```python
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
model.load_state_dict(torch.load("model.pth", device))
```

The program needs a GPU anyway.

```python
import torch

model = Net().cuda()
model.load_state_dict(torch.load("model.pth"))
```

It is loaded only with a GPU.

```python
import torch

use_cuda = torch.cuda.is_available()
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if use_cuda and saved_there:
    model.load_state_dict(torch.load("model.pth"))
```

The checkpoint contains no tensors of a GPU.

```python
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.save(model.cpu().state_dict(), "model.pth")
model.load_state_dict(torch.load("model.pth"))
```

## Sources

- <https://docs.pytorch.org/docs/stable/generated/torch.load.html>
- <https://docs.pytorch.org/tutorials/recipes/recipes/save_load_across_devices.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program

CAUSE = cause("WG732", __name__, __doc__, severity="info", effect="broken")

_CHOICE = late(
    r"""['"]cuda(?::\d+)?['"]\s{0,9}if\s[^\n]{0,60}is_available\(\)\s{0,9}else\s{0,9}['"]cpu['"]"""
)
_SAVED_FROM_CPU = late(
    r"torch\.save\([^\n]{0,80}(?:\.cpu\(|to\(['\"]cpu)|torch\.load\s{0,3}="
    r"|set_default_device|default_restore_location"
)
_ASKS_FOR_GPU = late(r"^(?!not\b)[^\n]{0,200}(?:cuda|gpu|is_available)", 2)
_OF_WEIGHTS = late(r"\.pth?\b|\.pth\.tar|\.ckpt|\.bin\b|model|weight|checkpoint|ckpt|state", 2)
_OF_DATA = late(r"data|dataset|feature|embed|graph|processed|\bargs\s*=|_args\b|vocab|tokeniz", 2)


@CAUSE.on_code("torch.load", "import load", needs=("is_available()",))
def detect(program: Program) -> Iterator[CodeFinding]:
    if not _CHOICE.search(program.text) or _SAVED_FROM_CPU.search(program.text):
        return
    for call in program.calls("torch.load"):
        if _names_device(call) or not _loads_weights(program, call) or _with_gpu(program, call):
            continue
        yield CAUSE.in_code(
            program,
            call.node,
            subject="torch",
            message="without map_location the tensors go back to the device that they were saved "
            "from: a checkpoint of a GPU cannot be loaded on a machine without one, although the "
            "program chooses its device",
            fix="Write torch.load(..., map_location=...) with the device of the program.",
            confidence="likely",
        )


def _with_gpu(program: Program, call: Call) -> bool:
    """Below a condition that holds only with a GPU: if use_cuda and ..."""
    return any(
        frame.kind == "if"
        and frame.arm == 0
        and frame.test is not None
        and _ASKS_FOR_GPU.search(program.source(frame.test))
        for frame in call.context
    )


def _names_device(call: Call) -> bool:
    """Whether it has a map_location, or arguments that the source does not show."""
    keywords = {keyword.arg for keyword in call.node.keywords}
    return "map_location" in keywords or None in keywords or len(call.node.args) != 1


def _loads_weights(program: Program, call: Call) -> bool:
    """Data sets in PyTorch's format mostly hold tensors of the CPU, and options hold none."""
    text = program.source(program.statement(call.node))
    return bool(_OF_WEIGHTS.search(text)) and not _OF_DATA.search(text)
