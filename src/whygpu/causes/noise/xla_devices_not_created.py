"""TensorFlow reports that it does not create XLA devices: harmless.

## Why it happens

Releases 2.4 and 2.5 no longer list an additional XLA_GPU device for each GPU, and report this at
every start. Compilation with XLA works without these devices.

## What it looks like

`Not creating XLA devices, tf_xla_enable_xla_devices not set`, once for the CPU and once for the
GPU. It is printed with and without a GPU.

## Fix

None is needed; the option that it names is obsolete.

## Fires on (log)

```
2021-02-05 12:00:01.100000: I tensorflow/compiler/jit/xla_gpu_device.cc:99] Not creating XLA devices, tf_xla_enable_xla_devices not set
```

## Quiet on (log)

```
2020-02-05 12:00:01.100000: I tensorflow/compiler/xla/service/service.cc:168] XLA service 0x55d0 initialized for platform CUDA
```

## Sources

- <https://github.com/tensorflow/tensorflow/issues/44683>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG908", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(r"Not creating XLA devices, tf_xla_enable_xla_devices")


harmless(
    CAUSE,
    MESSAGE,
    "TensorFlow no longer lists separate XLA devices; the ordinary GPU devices are not affected",
)
