"""TensorFlow reports that it cannot register a cuDNN, cuFFT or cuBLAS factory: harmless.

## Why it happens

Releases 2.10 to 2.19 contain the code that registers these libraries twice. The second registration
is refused and printed as an error. The first one remains valid, and the libraries are used.

## What it looks like

`Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has
already been registered`, usually three of them in a row, each marked with an E. Releases 2.18 and
2.19 add `computation placer already registered`.

## Fix

None is needed. The lines appear on machines with and without a GPU.

## Fires on (log)

```
2024-05-21 10:12:44.501873: E external/local_xla/xla/stream_executor/cuda/cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered
```

```
W0000 00:00:1745000000.640000   91820 computation_placer.cc:177] computation placer already registered. Please check linkage and avoid linking the same target more than once.
```

## Quiet on (log)

```
2021-04-12 18:05:31.402117: I tensorflow/stream_executor/cuda/cuda_dnn.cc:359] Loaded cuDNN version 8100
```

## Sources

- <https://github.com/tensorflow/tensorflow/issues/62075>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG901", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"Unable to register cu\w{2,8} factory|Attempting to register factory for plugin"
    r"|computation placer already registered"
)


harmless(
    CAUSE,
    MESSAGE,
    "TensorFlow registers its CUDA plugins twice and prints that the second registration is "
    "refused; the first one is valid",
)
