"""Two GPUs cannot read each other's memory directly: harmless.

## Why it happens

Consumer cards, GPUs on different processor sockets and most virtual machines have no direct path
between GPUs. Data is then copied through main memory.

## What it looks like

`Peer access not supported between device ordinals 0 and 1`, or `cannot enable peer access from
device ordinal 0 to device ordinal 1`; also the matrix of `N` under `Device interconnect
StreamExecutor with strength 1 edge matrix`.

## Fix

None is needed. Training on several GPUs works, but the exchange of gradients is slower.

## Fires on (log)

```
I tensorflow/core/common_runtime/gpu/gpu_device.cc:777] Peer access not supported between device ordinals 0 and 1
```

## Quiet on (log)

```
I tensorflow/core/common_runtime/gpu/gpu_device.cc:906] DMA: 0 1
RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:859, invalid usage, NCCL version 2.7.8
```

## Sources

- <https://github.com/tensorflow/tensorflow/tree/master/tensorflow/core/common_runtime/gpu>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG920", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"Peer access not supported between device ordinals|cannot enable peer access from device ordinal"
)


harmless(
    CAUSE,
    MESSAGE,
    "these GPUs cannot read each other's memory directly; data is copied through main memory, "
    "which works",
)
