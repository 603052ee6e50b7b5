"""oneDNN or ZenDNN is on, and results may differ in the last digits: harmless.

## Why it happens

Since release 2.9 TensorFlow for x86 computes on the CPU with Intel's oneDNN (AMD's build with
ZenDNN). It adds numbers in another order, so the last digits can differ from earlier releases.

## What it looks like

`oneDNN custom operations are on. You may see slightly different numerical results due to
floating-point round-off errors from different computation orders.`

## Fix

None is needed. To reproduce old results exactly, set `TF_ENABLE_ONEDNN_OPTS=0` before TensorFlow is
imported.

## Fires on (log)

```
2023-09-12 19:40:07.447120: I tensorflow/core/util/port.cc:111] oneDNN custom operations are on. You may see slightly different numerical results due to floating-point round-off errors from different computation orders. To turn them off, set the environment variable `TF_ENABLE_ONEDNN_OPTS=0`.
```

## Quiet on (log)

```
2023-09-12 19:40:07.447120: I tensorflow/core/util/port.cc:111] something else
```

## Sources

- <https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/util/port.cc>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG904", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"(?:oneDNN|ZenDNN) custom operations are on"
    r"|set the environment variable `TF_ENABLE_(?:ONEDNN|ZENDNN)_OPTS"
)


harmless(
    CAUSE,
    MESSAGE,
    "operations on the CPU use oneDNN (or ZenDNN), whose last digits can differ; this is "
    "unrelated to the GPU",
)
