"""The computer's memory, or its shared memory, is too small for the framework.

## Why it happens

Importing a framework with CUDA takes one to several gigabytes of the computer's own memory. Where
a container, a scheduler or a small machine allows less, the kernel ends the process with SIGKILL,
and nobody gets to write a message.

Shared memory is another limit: PyTorch's data-loader workers hand their batches over through
/dev/shm, and Docker gives a container 64 MB of it.

## What it looks like

- `Killed`, exit code 137, and "Out of memory: Killed process" in the kernel's log.
- `DataLoader worker (pid ...) is killed by signal: Bus error. It is possible that dataloader's
  workers are out of shared memory`.

## Fix

Give the process more memory. Start containers with `--shm-size=8g` or `--ipc=host`.

## Fires on (machine)

A container with Docker's default for shared memory.

```toml
[system.container]
runtime = "docker"
driver_mounts = ["/dev/nvidia0"]
[system.memory]
shared_bytes = 67108864
```

A probe that the kernel ended for want of memory.

```toml
only = ["tensorflow"]
[system.memory]
total_bytes = 2147483648
available_bytes = 1073741824
[probes.tensorflow]
ended = "signal"
how = "SIGKILL"
stage = "import"
```

## Quiet on (machine)

Little shared memory matters only where PyTorch is.

```toml
only = ["jax"]
[system.container]
runtime = "docker"
driver_mounts = ["/dev/nvidia0"]
[system.memory]
shared_bytes = 67108864
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[system.memory]
available_bytes = {unknown = "/proc/meminfo: permission denied"}
[probes.tensorflow]
ended = "signal"
how = "SIGKILL"
stage = "import"
```

## Sources

- <https://docs.docker.com/engine/containers/run/>
- <https://docs.pytorch.org/docs/stable/multiprocessing.html>
- <https://docs.kernel.org/admin-guide/mm/concepts.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_memory import GIB, gibibytes
from whygpu.causes.shared_probes import own_probes
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.probe import Probe
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG502",
    __name__,
    __doc__,
    severity="warning",
    effect="none",
    explains=("framework-crashes",),
)

_LITTLE = 4 * GIB
"""Frameworks with CUDA libraries take 1 to 3 GiB until their first operation is done."""

_KILLED = ("signal", "SIGKILL")

_SHARED_FLOOR = 64 << 20
"""Docker's default. Real work passes single batches larger than this."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    yield from _shared(machine)
    for _, probe in own_probes(machine):
        if isinstance(probe, Known) and (probe.value.ended, probe.value.how) == _KILLED:
            yield from _killed(machine, probe.value)


def _killed(machine: Snapshot, probe: Probe) -> Iterator[Finding | Gap]:
    name = display_name(probe.name)
    available = machine.system.memory.available_bytes
    if isinstance(available, Unknown):
        yield Gap(f"whether {name} was killed for want of memory: {available.reason}")
    elif isinstance(available, Known) and available.value < _LITTLE:
        yield CAUSE.finding(
            subject=probe.name,
            message=f"{name} was killed (SIGKILL, at: {probe.stage}) on a machine that had "
            f"{gibibytes(available.value)} of memory left; it needs up to {gibibytes(_LITTLE)}",
            evidence=(
                Evidence("probe", f"{name} probe", f"ended by {probe.how} at {probe.stage}"),
                seen(available, f"{gibibytes(available.value)} available"),
            ),
            remedies=(
                Remedy("See whether the kernel says so.", "sudo dmesg | grep -i 'out of memory'"),
                Remedy(
                    "Give it more: end other programs, raise the container's limit (docker run "
                    "--memory), or ask the scheduler for more (srun --mem)."
                ),
            ),
            confidence="likely",
            severity="error",
            effect="broken",
        )


def _shared(machine: Snapshot) -> Iterator[Finding | Gap]:
    """Only for people who train: on a machine without a GPU a note on batches would be noise."""
    torch = machine.framework("torch")
    if isinstance(torch, Absent) or isinstance(nvidia_gpu(machine), Absent):
        return
    size = machine.system.memory.shared_bytes
    if isinstance(size, Unknown):
        yield Gap(f"the size of /dev/shm: {size.reason}")
    elif isinstance(size, Known) and size.value <= _SHARED_FLOOR:
        yield CAUSE.finding(
            subject="torch",
            message=f"/dev/shm has {size.value >> 20} MB here; PyTorch's data-loader workers pass "
            "their batches through it and die of a bus error when it is full",
            evidence=(seen(size, f"{size.value >> 20} MB"),),
            remedies=(
                Remedy(
                    "Start the container with more; in Kubernetes, mount an emptyDir of medium "
                    "Memory at /dev/shm.",
                    "docker run --shm-size=8g ...",
                ),
                Remedy("Or share the host's.", "docker run --ipc=host ..."),
                Remedy("Without a new container: load data in the main process, num_workers=0."),
            ),
            confidence="likely",
        )
