"""ROCm may not open /dev/kfd, through which programs use an AMD GPU.

## Why it happens

On Linux, programs compute on an AMD GPU through the device file `/dev/kfd` and one file for each
GPU, `/dev/dri/renderD128` and following. They belong to the groups `render` and, on some systems,
`video`. A user who is in neither group, or a container that was started without these files, sees
no GPU.

## What it looks like

`rocminfo` says that it cannot open `/dev/kfd`, and which group is missing. The framework lists no
GPU and computes on the CPU, or raises `RuntimeError: No HIP GPUs are available`.

## Fix

Join the groups that own the files, then log in again: `id` must show them. Give a container both
files and the groups.

This follows AMD's documentation. It was not measured.

## Fires on (machine)

A user who is not in the group `render`.

```toml
start = "amd"
[amd]
device_nodes = [{path = "/dev/kfd", mode = "crw-rw----", group = "render", usable = false}, {path = "/dev/dri/renderD128", mode = "crw-rw----", group = "render", usable = false}]
```

A container without `/dev/kfd`.

```toml
start = "amd"
[system.container]
runtime = "docker"
driver_mounts = {absent = "/proc/self/mountinfo"}
[amd]
device_nodes = {absent = "/dev/kfd, /dev/dri/renderD*"}
rocm = {absent = "/opt/rocm/.info/version"}
```

## Quiet on (machine)

```toml
start = "amd"
```

## Cannot tell on (machine)

```toml
start = "amd"
[amd]
device_nodes = {unknown = "/dev/dri: permission denied"}
```

## Fires on (log)

```
ROCk module is loaded
Unable to open /dev/kfd read-write: Permission denied
kim is not member of "render" group, the default DRM access group.
```

```
ROCk module is loaded
Failed to get user name to check for video group membership
Unable to open /dev/kfd read-write: Permission denied
```

## Quiet on (log)

Without the kernel module, there is no such file, and no group helps.

```
ROCk module is NOT loaded, possibly no GPU devices
```

```
Unable to open /dev/kfd read-write: No such file or directory
```

## Sources

- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/install/prerequisites.html>
- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/how-to/docker.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.amd_gpus import KFD, amd_driver, rocm_frameworks
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.causes.evidence.render_nodes import DOCKER, access_remedies, unusable
from whygpu.model.cause import cause
from whygpu.model.derived import display_name
from whygpu.model.driver import DeviceNode
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, Unknown
from whygpu.model.remedy import shell_script
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG805",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused", "non-nvidia-backend"),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    frameworks = rocm_frameworks(machine)
    found = amd_driver(machine).device_nodes
    if isinstance(found, Unknown):
        yield Gap(f"who may use the AMD GPU: {found.reason}")
        return
    nodes = found.value if isinstance(found, Known) else ()
    in_container = isinstance(machine.system.container, Known)
    reason = _closed(nodes) or (_missing(nodes) if in_container else None)
    if reason is None:
        return
    for framework in frameworks:
        yield CAUSE.finding(
            subject=framework.name,
            message=f"{reason}, so {display_name(framework.name)} {framework.version} cannot use "
            "the AMD GPU",
            evidence=(seen(found, reason),),
            remedies=tuple(access_remedies(machine, nodes, "amd")),
            confidence="likely",
        )


def _closed(nodes: tuple[DeviceNode, ...]) -> str | None:
    kfd = [node for node in nodes if node.path == KFD]
    return unusable(kfd) or unusable([node for node in nodes if node.path != KFD])


def _missing(nodes: tuple[DeviceNode, ...]) -> str | None:
    if all(node.path != KFD for node in nodes):
        return f"this container has no {KFD}"
    if all(node.path == KFD for node in nodes):
        return "this container has no /dev/dri/renderD*"
    return None


_REFUSED = late(r"[Uu]nable to open /dev/kfd[^\n]{0,40}Permission denied")
_GROUP = late(r"is not (?:a )?member of \"?(?P<group>render|video)\"? group")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    refused = log.first(_REFUSED)
    if refused is None:
        return
    group = log.first(_GROUP)
    named = f" (not in the group {group.groups['group']})" if group else ""
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"the user who ran this may not open /dev/kfd{named}; ROCm reaches AMD GPUs "
        "through that file",
        evidence=log.evidence(refused.line, *((group.line,) if group else ())),
        remedies=(
            Remedy(
                "Join the group that owns /dev/kfd, and log in again.",
                shell_script('sudo usermod -aG "$(stat -c %G /dev/kfd)" "$USER"'),
            ),
            Remedy(
                "In a container: start it with both device files and the numbers of their groups.",
                DOCKER["amd"],
            ),
        ),
        kind_of="non-nvidia-backend",
    )
