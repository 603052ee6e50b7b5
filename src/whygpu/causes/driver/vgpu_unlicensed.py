"""A virtual GPU has no licence, so its driver restricts it.

## Why it happens

NVIDIA's virtual GPUs (vGPU, formerly GRID) need a licence that the driver in the virtual machine
gets from a licence server. Without one, the GPU works at full speed for 20 minutes; then the driver
reduces it to the level of an idle GPU and limits what programs may allocate. So a program may
start, become very slow, and fail later. The usual reasons are a server that the virtual machine
does not reach, a missing token, and a wrong clock.

## What it looks like

`nvidia-gridd` writes that it did not get a licence, `nvidia-smi -q` shows `License Status :
Unlicensed`, and CUDA may report that the "device doesn't have valid Grid license" (code 102).

## Fix

Put the token of the licence server into `/etc/nvidia/ClientConfigToken`, make sure that the virtual
machine reaches the server and has the right time, and restart `nvidia-gridd`. On a cloud machine,
ask its provider.

## Fires on (log)

```
Nov 12 04:44:01 vm nvidia-gridd[1071]: Failed to acquire license from dls.example.com (Info: NVIDIA Virtual Compute Server - Error: Timeout was reached)
```

```
    vGPU Software Licensed Product
        Product Name                      : NVIDIA RTX Virtual Workstation
        License Status                    : Unlicensed (Restricted)
```

```
RuntimeError: CUDA error: device doesn't have valid Grid license
```

## Quiet on (log)

```
Nov 12 04:44:01 vm nvidia-gridd[1071]: License acquired successfully. (Info: dls.example.com, NVIDIA RTX Virtual Workstation)
```

The time without a licence has just begun, or nothing is restricted on this card.

```
        License Status                    : Unlicensed (Unrestricted)
```

The licence is that of another program.

```
Failed to acquire license from server 27000@flex.example.com for MATLAB
RuntimeError: CUDA error: unspecified launch failure
```

## Sources

- <https://docs.nvidia.com/ai-enterprise/release-8/latest/infra-software/vgpu/licensing.html>
- <https://docs.nvidia.com/vgpu/latest/grid-licensing-user-guide/index.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.driver_state import CONSEQUENCES
from whygpu.causes.evidence.log_cuda_start import failed_at, lines_of, lines_with
from whygpu.model.cause import cause
from whygpu.model.finding import MACHINE, Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import command_line, shell_script

CAUSE = cause(
    "WG119",
    __name__,
    __doc__,
    severity="error",
    effect="none",
    explains=(*CONSEQUENCES, "nvidia-kernel-module-state", "kernel-bug-illegal-access"),
)

_CODE = ("CUDA_ERROR_DEVICE_NOT_LICENSED", "cudaErrorDeviceNotLicensed")
_STATEMENTS = late(
    r"[Ff]ailed to (?:acquire|renew|acquire/renew|check ?out|obtain)[\w ]{0,20} license"
    r"|[Ll]icense (?:acquisition|checkout|renewal|request) failed|Valid GRID license not found"
    r"|License Status\s{0,60}: ?Unlicensed(?! \(Unrestricted)|Unlicensed \(Restricted\)"
    r"|vGPU[^\n]{0,60}(?:[Uu]nlicensed|(?:no|without a|not have a) (?:valid )?license)"
)
_OF_NVIDIA = late(
    r"nvidia-gridd|\bGRID\b|\bvGPU\b|\bvWS\b|\bvCS\b|NVIDIA (?:RTX )?Virtual|NVIDIA AI Enterprise"
)
_MOST_LINES = 4


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    codes = lines_of(log.status_named(*_CODE))
    stated = lines_with(log, _STATEMENTS) if log.says(_OF_NVIDIA) else ()
    if not codes and not stated:
        return
    ends = tuple(failure.line for failure in log.failures if failure.about_gpu)
    yield CAUSE.finding(
        subject=MACHINE,
        message="the virtual GPU has no licence: after 20 minutes its driver reduces it to the "
        "level of an idle GPU and limits what programs may allocate",
        evidence=log.evidence(*codes, *stated[:_MOST_LINES], *ends),
        remedies=(
            Remedy(
                "Look at the licence, and at the reason why there is none.",
                shell_script("nvidia-smi -q | grep -i licen; journalctl -u nvidia-gridd | tail"),
            ),
            Remedy(
                "Put the token of the licence server into /etc/nvidia/ClientConfigToken, make sure "
                "that the machine reaches the server and has the right time, and restart the "
                "service. On a cloud machine, ask the provider.",
                command_line("sudo systemctl restart nvidia-gridd"),
            ),
        ),
        confidence="certain" if codes else "likely",
        effect="broken" if failed_at(log, (*codes, *ends)) else None,
        ask=None if codes else "Does `nvidia-smi -q` show License Status: Licensed now?",
        kind_of="nvidia-kernel-module-state",
    )
