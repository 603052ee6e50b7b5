"""The hardware has slowed a GPU down: it is too hot, or its power supply asks for it.

## Why it happens

A GPU that is too hot lowers its clocks by half or more to protect itself. It does the same if the
power supply of the server signals that it is overloaded (the power brake). Both are different from
the driver's own limits on power and temperature, which a GPU under full load reaches every day.

## What it looks like

Everything works. Steps take two to four times as long as on another machine with the same GPU, or
become slower some minutes after the start.

## Fix

Look for blocked air, a fan that has stopped, a full rack or a hot room. For the power brake: check
the power cables and power supplies of the server.

## Fires on (machine)

```toml
[driver.gpus.0.health]
slowdowns = ["thermal", "hardware"]
```

```toml
[driver.gpus.0.health]
slowdowns = ["power-brake"]
```

Old drivers do not say which of both it is.

```toml
[driver.gpus.0.health]
slowdowns = ["hardware"]
```

It is cool while nothing runs, and too hot under load (`whygpu check --stress`).

```toml
[stress.0.test.state]
slowdowns = ["power-cap", "thermal"]
```

## Quiet on (machine)

The limits of the driver itself, under full load.

```toml
[driver.gpus.0.health]
slowdowns = ["power-cap", "software-thermal"]
```

## Cannot tell on (machine)

```toml
[driver.gpus.0.health]
slowdowns = {unknown = "NVML: Unknown Error"}
```

## Sources

- <https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.gpu_health import of_each_gpu
from whygpu.causes.evidence.load_tests import load_tests
from whygpu.model.cause import cause
from whygpu.model.driver import Gpu, Slowdown
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.observed import Known
from whygpu.model.remedy import a_number, command_line
from whygpu.model.snapshot import Snapshot

CAUSE = cause("WG111", __name__, __doc__, severity="warning", effect="none")

_REASONS: dict[Slowdown, str] = {
    "thermal": "it is too hot",
    "power-brake": "the power supply of the server asks for it (power brake)",
    "hardware": "it is too hot, or the power supply of the server asks for it",
}
"""The most specific first: the last one is set together with the others."""


Slowdowns = Known[tuple[Slowdown, ...]]


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    hot = set()
    for gpu, slowdowns in _under_load(machine):
        reason = _reason(slowdowns)
        if reason is not None:
            hot.add(gpu.number)
            yield _finding(gpu, slowdowns, reason, "under load")
    for item in of_each_gpu(machine, "slowdowns", lambda health: health.slowdowns):
        if isinstance(item, Gap):
            yield item
            continue
        gpu, slowdowns = item
        reason = _reason(slowdowns)
        if reason is not None and gpu.number not in hot:
            yield _finding(gpu, slowdowns, reason, "now")


def _under_load(machine: Snapshot) -> Iterator[tuple[Gpu, Slowdowns]]:
    """What was seen while whygpu itself put the GPUs under load, if it did."""
    if not isinstance(machine.stress, Known):
        return
    for item in load_tests(machine):
        if not isinstance(item, Gap):
            gpu, test = item
            if isinstance(test.state.slowdowns, Known):
                yield gpu, test.state.slowdowns


def _reason(slowdowns: Slowdowns) -> Slowdown | None:
    return next((name for name in _REASONS if name in slowdowns.value), None)


def _finding(gpu: Gpu, slowdowns: Slowdowns, reason: Slowdown, when: str) -> Finding:
    return CAUSE.finding(
        subject=MACHINE,
        message=f"the hardware holds the clocks of GPU {gpu.number} ({gpu.name}) down {when}, "
        f"because {_REASONS[reason]}",
        evidence=(seen(slowdowns, f"slowdowns in effect: {', '.join(slowdowns.value)}"),),
        remedies=(
            Remedy(
                "Look at its temperature, its power and how long it has been slowed down.",
                command_line(
                    "nvidia-smi -q -d TEMPERATURE,POWER,PERFORMANCE -i", a_number(gpu.number)
                ),
            ),
            Remedy(
                "Check the power cables and power supplies of the server."
                if reason == "power-brake"
                else "Check fans, air flow and the temperature of the room."
            ),
        ),
    )
