"""A GPU has fewer active NVLinks than its neighbours, or NVLinks over which it reaches nobody.

## Why it happens

Each NVLink is trained when the machine starts. A bad cable, bridge or connector, a defect of the
GPU or of an NVSwitch, or a fabric manager that has taken a link out of use leaves some inactive.
Where links are active and the GPUs do not reach each other all the same, the driver was told to
switch this off, or a virtual machine does not pass it on.

## What it looks like

Training on several GPUs is slower than on another machine of the same kind, or NCCL falls back to
PCIe and main memory, or hangs. The kernel log often has Xid 74.

## Fix

Look at the state and the errors of the links, restart the fabric manager, reset the GPUs, and have
the bridge or the board checked.

## Fires on (machine)

Of two GPUs with NVLink, one has lost links.

```toml
[driver.gpus.0.health]
nvlinks = 4

[driver.gpus.1]
pci_address = "0000:42:00.0"

[driver.gpus.1.health]
nvlinks = 3
```

Two GPUs are connected, and do not reach each other.

```toml
[driver.gpus.0.health]
nvlinks = 4

[driver.gpus.1]
pci_address = "0000:42:00.0"

[driver.gpus.1.health]
nvlinks = 4

[driver]
pairs = [{first = 0, second = 1, path = "host-bridge", peer_access = "switched-off", nvlinks = 4}]
```

## Quiet on (machine)

A bridge connects two of three GPUs; the third has no active link.

```toml
[driver.gpus.0.health]
nvlinks = 4

[driver.gpus.1]
pci_address = "0000:42:00.0"

[driver.gpus.1.health]
nvlinks = 4

[driver.gpus.2]
pci_address = "0000:43:00.0"

[driver.gpus.2.health]
nvlinks = 0
```

GPUs without NVLink, of which the driver allows no peer access: so are all GeForce cards.

```toml
[driver.gpus.1]
pci_address = "0000:42:00.0"

[driver]
pairs = [{first = 0, second = 1, path = "host-bridge", peer_access = "not-supported", nvlinks = 0}]
```

## Cannot tell on (machine)

```toml
[driver.gpus.0.health]
nvlinks = {unknown = "NVML: Unknown Error"}

[driver.gpus.1]
pci_address = "0000:42:00.0"
```

## Sources

- <https://docs.nvidia.com/deploy/nvml-api/group__NvLink.html>
- <https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html>
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from whygpu.causes.evidence.gpu_health import reported
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.driver import Gpu, PeerAccess
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.observed import Known, NotApplicable, need, need_or
from whygpu.model.remedy import a_number, command_line
from whygpu.model.snapshot import Snapshot

CAUSE = cause("WG117", __name__, __doc__, severity="warning", effect="none")

Links = tuple[Gpu, Known[int]]

_WHY: dict[PeerAccess, str] = {
    "chipset": "the chipset does not allow it",
    "gpu": "one of the GPUs does not allow it",
    "topology": "the way between them does not allow it",
    "switched-off": "it is switched off in the settings of the driver",
    "not-supported": "the driver does not allow it",
    "unknown": "the driver does not say why",
}


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    gpus = need_or(machine.driver.gpus, ())
    if len(gpus) < 2:
        raise NotApplicable("a second GPU")
    by_model: dict[str, list[Links]] = defaultdict(list)
    for item in reported(machine, "the NVLinks", lambda health: health.nvlinks):
        if isinstance(item, Gap):
            yield item
        elif not _is_split(item[0]):
            by_model[item[0].name].append(item)
    for found in by_model.values():
        yield from _fewer_than_others(found)
    yield from _without_access(machine)


def _is_split(gpu: Gpu) -> bool:
    """MIG switches the links of a GPU off: that is no fault of theirs."""
    return isinstance(gpu.mig, Known) and gpu.mig.value


def _fewer_than_others(found: list[Links]) -> Iterator[Finding]:
    most = max(links.value for _, links in found)
    for gpu, links in found:
        # A bridge connects some GPUs only. On NVSwitches all have the same links.
        if links.value < most and (links.value or _is_on_switches(found)):
            text = f"{links.value} active NVLinks"
            yield CAUSE.finding(
                subject=MACHINE,
                message=f"GPU {gpu.number} ({gpu.name}) has {text}, and others of its model in this "
                f"machine have {most}: work on several GPUs is slower, or hangs",
                evidence=(seen(links, text),),
                remedies=_remedies(gpu.number),
                confidence="likely",
            )


def _is_on_switches(found: list[Links]) -> bool:
    return any(
        isinstance(gpu.health, Known) and isinstance(gpu.health.value.fabric, Known)
        for gpu, _ in found
    )


def _without_access(machine: Snapshot) -> Iterator[Finding]:
    """GPUs that are linked and do not reach each other. Older snapshots do not have this."""
    pairs = machine.driver.pairs
    for pair in pairs.value if isinstance(pairs, Known) else ():
        links, access = pair.nvlinks, pair.peer_access
        if not isinstance(links, Known) or not links.value or not isinstance(access, Known):
            continue
        if access.value != "yes":
            yield CAUSE.finding(
                subject=MACHINE,
                message=f"GPU {pair.first} and GPU {pair.second} are connected by {links.value} "
                f"NVLinks and cannot read each other's memory: {_WHY[access.value]}",
                evidence=(seen(links, f"{links.value} NVLinks"), seen(access)),
                remedies=(
                    Remedy(
                        "Look at which GPUs reach each other.",
                        command_line("nvidia-smi topo -p2p r"),
                    ),
                    *_remedies(pair.first),
                ),
                confidence="likely",
            )


def _remedies(number: int) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Look at the state of the links.",
            command_line("nvidia-smi nvlink --status -i", a_number(number)),
        ),
        Remedy(
            "Look at their errors.",
            command_line("nvidia-smi nvlink --errorcounters -i", a_number(number)),
        ),
        Remedy(
            "On a machine with NVSwitches: look at the fabric manager, and restart it.",
            command_line("systemctl status nvidia-fabricmanager"),
        ),
        Remedy("End all programs on the GPUs, and restart the machine: links are trained anew."),
    )
