"""A GPU is connected by fewer PCIe lanes than both it and its slot have.

## Why it happens

The link is negotiated when the machine starts. A card that is not seated well, a bad riser or
cable, or dirty contacts leave some lanes unused. Everything works, and copies between main memory
and the GPU take a multiple of the time.

## What it looks like

Training is slower than on another machine with the same GPU, especially if it often copies data.
The GPU waits for the copies.

## Fix

Seat the card again, or exchange the riser, and start the machine again.

## Fires on (machine)

```toml
[driver.gpus.0.health.pcie]
width = 4
```

## Quiet on (machine)

A slot with fewer lanes than the card: the link has all that there are.

```toml
[driver.gpus.0.health.pcie]
width = 8
max_width = 8
```

A GPU in one chip with the processor, where nothing goes over PCIe.

```toml
[driver.gpus.0]
compute_capability = "12.1"
[driver.gpus.0.health.pcie]
width = 1
```

An idle GPU has lowered its generation to save power.

```toml
[driver.gpus.0.health.pcie]
generation = 1
```

## Cannot tell on (machine)

```toml
[driver.gpus.0.health]
pcie = {unknown = "NVML: Unknown Error"}
```

## Sources

- <https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.gpu_health import of_each_gpu
from whygpu.model.cause import cause
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.remedy import a_number, command_line
from whygpu.model.snapshot import Snapshot
from whygpu.tables.architectures import shares_main_memory

CAUSE = cause("WG113", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for item in of_each_gpu(machine, "the PCIe link", lambda health: health.pcie):
        if isinstance(item, Gap):
            yield item
            continue
        gpu, link = item
        if link.value.width >= link.value.max_width or shares_main_memory(gpu):
            continue
        lanes = f"{link.value.width} of {link.value.max_width} PCIe lanes"
        yield CAUSE.finding(
            subject=MACHINE,
            message=f"GPU {gpu.number} ({gpu.name}) uses {lanes}: copies to and from main memory "
            "are slower than they could be",
            evidence=(seen(link, lanes),),
            remedies=(
                Remedy(
                    "Look at the link while a program copies data to the GPU.",
                    command_line(
                        "nvidia-smi --query-gpu=pcie.link.width.current,pcie.link.width.max "
                        "--format=csv -i",
                        a_number(gpu.number),
                    ),
                ),
                Remedy("If it stays so: seat the card again, or exchange its riser, and restart."),
            ),
            confidence="likely",
        )
