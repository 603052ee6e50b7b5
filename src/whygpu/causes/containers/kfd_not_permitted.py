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

from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import shell_script

CAUSE = cause(
    "WG805",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused", "non-nvidia-backend"),
)

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
                "Join the groups that own /dev/kfd, and log in again.",
                shell_script('sudo usermod -aG render,video "$USER"'),
            ),
            Remedy(
                "In a container: give it both device files and the groups.",
                shell_script(
                    "docker run --device /dev/kfd --device /dev/dri --group-add video "
                    "--group-add render IMAGE"
                ),
            ),
        ),
        kind_of="non-nvidia-backend",
    )
