"""A DataLoader without workers reads files in the process that trains, while the GPU waits.

## Why it happens

`num_workers` is 0 unless it is given: the DataLoader then reads and decodes each batch itself, when
the training loop asks for it. The GPU has nothing to do meanwhile.

## What it looks like

The use of the GPU in nvidia-smi jumps between 0 and 100 %, or stays low, and one core of the
processor is busy. `whygpu run --profile` measures how long the steps wait.

## Fix

Read in other processes, ahead of the step: `DataLoader(..., num_workers=4, pin_memory=True)`. On
Windows and macOS the program then needs `if __name__ == "__main__":`.

## Fires on (code)

```python
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

class Pictures(Dataset):
    def __getitem__(self, number):
        return to_tensor(Image.open(self.paths[number]))

for x in DataLoader(Pictures("photos"), batch_size=64):
    loss = model(x.cuda())
    loss.backward()
```

```python
import torch
import torchvision

data = torchvision.datasets.ImageFolder("photos")
loader = torch.utils.data.DataLoader(data, batch_size=64, num_workers=0)
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
```

## Fires on (log)

```
/venv/lib/python3.12/site-packages/lightning/pytorch/trainer/connectors/data_connector.py:425: The 'train_dataloader' does not have many workers which may be a bottleneck. Consider increasing the value of the `num_workers` argument` to `num_workers=23` in the `DataLoader` to improve performance.
```

```
UserWarning: The dataloader, train_dataloader, does not have many workers which may be a bottleneck. Consider increasing the value of the `num_workers` argument` (try 8 which is the number of cpus on this machine) in the `DataLoader` init to improve performance.
```

## Quiet on (log)

Validation comes rarely.

```
UserWarning: The 'val_dataloader' does not have many workers which may be a bottleneck. Consider increasing the value of the `num_workers` argument` to `num_workers=23` in the `DataLoader` to improve performance.
```

## Quiet on (code)

```python
import torch
import torchvision

data = torchvision.datasets.ImageFolder("photos")
loader = torch.utils.data.DataLoader(data, batch_size=64, num_workers=4)
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
```

The data is in memory, and workers would only copy it.

```python
import torch

data = torch.utils.data.TensorDataset(x, y)
loader = torch.utils.data.DataLoader(data, batch_size=64)
for x, y in loader:
    loss = criterion(model(x.cuda()), y.cuda())
    loss.backward()
```

## Sources

- <https://docs.pytorch.org/docs/stable/data.html>
- <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.training_loops import may_train, statements, training_loops, uses_gpu
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.events import Call
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.program import Program
from whygpu.model.remedy import command_line
from whygpu.model.values import Constant

CAUSE = cause("WG736", __name__, __doc__, severity="info", effect="none")

_LOADER = "torch.utils.data.DataLoader"
_READS_FILES = frozenset({"ImageFolder", "DatasetFolder"})
_READERS = frozenset({"open", "imread", "read_image", "decode_image", "imdecode", "decode_jpeg"})


_LOADS = frozenset({"load", "loadtxt", "loadmat", "read", "read_csv", "dcmread"})
_LIBRARIES = frozenset(
    {
        "np",
        "numpy",
        "torch",
        "torchaudio",
        "librosa",
        "nib",
        "nibabel",
        "sio",
        "sf",
        "pd",
        "pydicom",
    }
)


_FEW_WORKERS = late(
    r"(?:'train_dataloader'|dataloader, train[ _]dataloader,) does not have many workers"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    told = log.first(_FEW_WORKERS)
    if told is None or log.failures:
        return
    yield CAUSE.finding(
        subject="torch",
        # Lightning itself says it, so a log with it is not one without anything to report.
        severity="warning",
        message="the GPU may wait for the next batch: the DataLoader for training has few workers, "
        "as Lightning says",
        evidence=log.evidence(told.line),
        remedies=(
            Remedy(
                "See for how long the steps wait for their input.",
                command_line("whygpu run --profile -- python PROGRAM.py"),
            ),
            Remedy(
                "Prepare batches ahead: DataLoader(..., num_workers=4, persistent_workers=True)."
            ),
        ),
        confidence="possible",
        ask="Does the training wait for its input? Small data in memory needs no workers.",
    )


@CAUSE.on_code("DataLoader", needs=("backward",), possible=may_train)
def detect(program: Program) -> Iterator[CodeFinding]:
    if not uses_gpu(program) or not training_loops(program):
        return
    serial = [call for call in program.calls(_LOADER) if _is_serial(call)]
    if not serial:
        return
    reading = _READS_FILES | set(_reading_classes(program))
    for call in serial:
        made_by = _class_of(program, _data_set(call))
        if made_by in reading:
            yield CAUSE.in_code(
                program,
                call.node,
                subject="torch",
                message=f"{made_by} reads files, and this DataLoader has no workers: the GPU waits "
                "while this process reads the next batch",
                fix="Read ahead in other processes: num_workers=4, pin_memory=True",
            )


def _is_serial(call: Call) -> bool:
    """It has no workers, and no **options that may give it some."""
    workers = call.keywords.get("num_workers")
    none = workers is None or (isinstance(workers, Constant) and workers.value == 0)
    spreads = any(keyword.arg is None for keyword in call.node.keywords)
    return none and not spreads and (bool(call.node.args) or "dataset" in call.keywords)


def _data_set(call: Call) -> ast.expr:
    given = [keyword.value for keyword in call.node.keywords if keyword.arg == "dataset"]
    return [*call.node.args[:1], *given][0]


def _reading_classes(program: Program) -> Iterator[str]:
    """The data sets of the file whose __getitem__ opens files or decodes images."""
    for node in statements(program.tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__getitem__":
                calls = (each for each in ast.walk(method) if isinstance(each, ast.Call))
                if any(map(_reads, calls)):
                    yield node.name


def _reads(call: ast.Call) -> bool:
    """open(path), Image.open(path), np.load(path); not self.load(index)."""
    name, function = _last_name(call.func), call.func
    of = function.value if isinstance(function, ast.Attribute) else None
    return name in _READERS or (name in _LOADS and isinstance(of, ast.Name) and of.id in _LIBRARIES)


def _class_of(program: Program, node: ast.expr) -> str:
    """The class that a data set was made from; empty if that is not clear."""
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if not isinstance(node, ast.Name):
        return ""
    values = [
        each.value
        for each in statements(program.tree)
        if isinstance(each, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == node.id for target in each.targets)
    ]
    return (
        _last_name(values[0].func) if len(values) == 1 and isinstance(values[0], ast.Call) else ""
    )


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
