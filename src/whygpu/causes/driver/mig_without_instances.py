"""MIG is on, and no GPU instance was created, so CUDA finds no GPU.

## Why it happens

MIG (Multi-Instance GPU) divides a data-centre GPU into instances. While it is on, CUDA programs see
instances only. Instances do not survive a restart of the machine, but the mode does: after a
restart, the mode is on and there is nothing to use.

## What it looks like

`nvidia-smi` lists the GPU, with `Enabled` in the column MIG M. and `No MIG devices found` below.
Programs report `No CUDA GPUs are available` or `CUDA_ERROR_NO_DEVICE`.

## Fix

Create an instance, or turn the mode off to use the whole GPU.

## Fires on (log)

```
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                   On |
|                                         |                      |              Enabled |
| MIG devices:                                                                          |
|  No MIG devices found                                                                 |
$ python -c "import torch; torch.zeros(1).cuda()"
RuntimeError: No CUDA GPUs are available
```

## Quiet on (log)

```
$ nvidia-smi -L
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-11111111-2222-3333-4444-555555555555)
  MIG 3g.20gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-555555555555)
```

Another GPU of the machine does the work.

```
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                   On |
|                                         |                      |              Enabled |
|   1  NVIDIA A100-SXM4-40GB          On  | 00000000:0F:00.0 Off |                    0 |
|                                         |                      |             Disabled |
|  No MIG devices found                                                                 |
I tensorflow/core/common_runtime/gpu/gpu_device.cc:1929] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 38000 MB memory:  -> device: 0, name: NVIDIA A100-SXM4-40GB, pci bus id: 0000:0f:00.0, compute capability: 8.0
```

MIG is off: this command lists instances of GPUs on which it is on.

```
$ sudo nvidia-smi mig -lgi
No MIG-enabled devices found.
RuntimeError: No CUDA GPUs are available
```

## Sources

- <https://docs.nvidia.com/datacenter/tesla/mig-user-guide/>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.cuda_start_suspects import suspects
from whygpu.causes.evidence.driver_state import CONSEQUENCES
from whygpu.causes.evidence.log_cuda_start import failed_at, lines_with, weight
from whygpu.model.cause import cause
from whygpu.model.finding import MACHINE, Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import command_line

CAUSE = cause(
    "WG120",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        *CONSEQUENCES,
        "visible-devices-hides-gpu",
        "nvidia-kernel-module-state",
        "no-nvidia-driver",
    ),
)

_NO_INSTANCES = late(r"No MIG devices found|No GPU instances found")

_WITHOUT_MIG = late(r"(?:Disabled|N/A) \|[ \t]{0,4}$", re.MULTILINE)
"""The last column of nvidia-smi, for a GPU that programs can use as a whole."""


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    stated = lines_with(log, _NO_INSTANCES)
    if not stated or log.reports_gpu_at_work():
        return
    others = log.says(_WITHOUT_MIG)
    without = [line for suspect in suspects(log) for line in suspect.lines]
    lines = (*stated, *without)
    yield CAUSE.finding(
        subject=MACHINE,
        message="MIG is on for a GPU and no GPU instance was created; of such a GPU, CUDA programs see "
        "instances only"
        if others
        else "MIG is on and no GPU instance was created; CUDA programs see instances only",
        evidence=log.evidence(*lines),
        remedies=(
            Remedy(
                "To use the whole GPU, turn MIG off while no program uses it.",
                command_line("sudo nvidia-smi -mig 0"),
            ),
            Remedy(
                "Or create instances; the first command lists the sizes, the second makes the "
                "largest one.",
                command_line("sudo nvidia-smi mig -lgip"),
            ),
            Remedy(
                "The largest instance, with its compute instance:",
                command_line("sudo nvidia-smi mig -cgi 0 -C"),
            ),
        ),
        confidence="certain" if without and not others else "likely",
        severity=weight(log, lines, "warning"),
        effect="broken" if failed_at(log, lines) else "cpu",
        kind_of="nvidia-kernel-module-state",
    )
