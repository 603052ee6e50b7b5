"""TF_FORCE_GPU_ALLOW_GROWTH sets how GPU memory is allocated: harmless.

## Why it happens

The variable overrides the program's configuration: memory is allocated as needed. Colab and several
container images set it.

## What it looks like

`Overriding allow_growth setting because the TF_FORCE_GPU_ALLOW_GROWTH environment variable is set.
Original config value was 0.`

## Fix

None is needed. Unset the variable to let the program decide.

## Fires on (log)

```
2022-02-02 02:02:02.020202: W tensorflow/core/common_runtime/gpu/gpu_bfc_allocator.cc:39] Overriding allow_growth setting because the TF_FORCE_GPU_ALLOW_GROWTH environment variable is set. Original config value was 0.
```

## Quiet on (log)

```
2022-02-02 02:02:02.020202: I tensorflow/core/common_runtime/gpu/gpu_process_state.cc:201] Using CUDA malloc Async allocator for GPU: 0
```

## Sources

- <https://github.com/tensorflow/tensorflow/tree/master/tensorflow/core/common_runtime/gpu>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG921", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(r"Overriding (?:allow_growth|orig_value) setting because")


harmless(
    CAUSE,
    MESSAGE,
    "an environment variable lets GPU memory grow as needed, whatever the program configures",
)
