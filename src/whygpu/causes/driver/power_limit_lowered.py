"""The power limit of a GPU is below its default, so that it is slower under full load.

## Why it happens

Somebody has lowered the limit, with `nvidia-smi -pl` or a tool of the server, to save power or
because the room, the rack or the power supply cannot do more. The setting stays until the machine
is started again, or a service sets it at each start.

## What it looks like

The GPU works, but its clocks fall under load. A tenth less power usually costs a few percent of
speed; half the power costs a third or more.

## Fix

If this was not intended, set the default again.

## Fires on (machine)

```toml
[driver.gpus.0.health]
power_limit_watts = 200
```

## Quiet on (machine)

A limit that was raised.

```toml
[driver.gpus.0.health]
power_limit_watts = 310
```

## Cannot tell on (machine)

```toml
[driver.gpus.0.health]
power_limit_watts = {unknown = "NVML: Unknown Error"}
```

## Sources

- <https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html>
- <https://docs.nvidia.com/deploy/nvidia-smi/index.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.gpu_health import of_each_gpu
from whygpu.model.cause import cause
from whygpu.model.driver import GpuHealth
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.observed import Known, Observed, transform
from whygpu.model.remedy import a_number, command_line
from whygpu.model.snapshot import Snapshot

# Information: most limits were lowered on purpose. A fleet names the nodes that have another one.
CAUSE = cause("WG116", __name__, __doc__, severity="info", effect="none")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for item in of_each_gpu(machine, "the power limit", _limits):
        if isinstance(item, Gap):
            yield item
            continue
        gpu, limits = item
        limit, default = limits.value
        if limit >= default:
            continue
        text = f"{limit} W of {default} W"
        yield CAUSE.finding(
            subject=MACHINE,
            message=f"the power limit of GPU {gpu.number} ({gpu.name}) is {text}, "
            f"{limit / default:.0%} of its default: it is slower under full load",
            evidence=(seen(limits, text),),
            remedies=(
                Remedy(
                    "If nobody wants it, set the default again.",
                    command_line(
                        "sudo nvidia-smi -i", a_number(gpu.number), "-pl", a_number(default)
                    ),
                ),
            ),
        )


def _limits(health: GpuHealth) -> Observed[tuple[int, int]]:
    """The limit and its default."""
    limit, default = health.power_limit_watts, health.power_default_watts
    if not isinstance(limit, Known):
        return limit
    return transform(default, lambda watts: (limit.value, watts))
