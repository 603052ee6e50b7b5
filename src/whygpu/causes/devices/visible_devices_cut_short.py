"""CUDA_VISIBLE_DEVICES lists GPUs that CUDA then ignores.

## Why it happens

CUDA reads the list from left to right and stops at the first entry that it cannot use. On a machine
with two GPUs, `0,7,1` means only GPU 0: 7 does not exist, and the entries after it are ignored.
Text after a number is also ignored.

## What it looks like

The program runs on fewer GPUs than intended, without a message.

## Fix

List only GPUs that exist, as numbers or as UUIDs (`nvidia-smi -L` lists both), not mixed.

## Fires on (machine)

```toml
[driver.gpus.1]
name = "NVIDIA RTX A6000"
[environment.visible_gpus]
text = "0,7,1"
visible = [0]
ignored = [
    {text = "7", reason = "there is no GPU 7: this machine has 2 GPUs, numbers 0 to 1"},
    {text = "1", reason = "it comes after '7', which ends the list"},
]
```

## Quiet on (machine)

If no GPU is left visible, visible-devices-hides-gpu reports it.

```toml
[environment.visible_gpus]
text = "7"
visible = []
ignored = [{text = "7", reason = "there is no GPU 7: this machine has one GPU, number 0"}]
```

## Cannot tell on (machine)

```toml
[environment.visible_gpus]
text = "0,1"
visible = {unknown = "NVML could not tell: Unknown Error"}
ignored = []
```

## Sources

- <https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy
from whygpu.model.observed import need
from whygpu.model.remedy import SetVariable, command_line
from whygpu.model.snapshot import Snapshot

CAUSE = cause("WG402", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    observed = machine.environment.visible_gpus
    selection = need(observed)
    visible = need(selection.visible)
    if not visible or not selection.ignored:
        return
    numbers = ", ".join(str(index) for index in visible)
    first = selection.ignored[0]
    yield CAUSE.finding(
        subject=MACHINE,
        message=f'CUDA_VISIBLE_DEVICES="{selection.text}" shows CUDA only GPU {numbers}: '
        f"{first.text!r} is ignored, because {first.reason}",
        evidence=tuple(
            Evidence(
                "machine",
                "environment variable CUDA_VISIBLE_DEVICES",
                f"{entry.text!r} is ignored: {entry.reason}",
            )
            for entry in selection.ignored
        ),
        remedies=(
            Remedy("Check which GPUs there are.", command_line("nvidia-smi -L")),
            Remedy(
                "List only those; this has the same effect as now, without the ignored entries.",
                SetVariable("CUDA_VISIBLE_DEVICES", ",".join(str(index) for index in visible)),
            ),
        ),
    )
