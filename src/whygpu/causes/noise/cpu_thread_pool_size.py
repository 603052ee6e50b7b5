"""TensorFlow reports how many operations it runs at the same time on the CPU: harmless.

## Why it happens

Builds of TensorFlow with Intel's MKL or oneDNN choose the number of threads for the CPU, and say so
when the first session starts. It is a default like any other, and has nothing to do with the GPU.

## What it looks like

`Creating new thread pool with default inter op setting: 2. Tune using
inter_op_parallelism_threads for best performance.`

## Fix

None is needed. Where the CPU does the work, `tf.config.threading` or the session's `ConfigProto`
sets another number.

## Fires on (log)

```
2020-11-10 18:10:20.550000: I tensorflow/core/common_runtime/process_util.cc:146] Creating new thread pool with default inter op setting: 2. Tune using inter_op_parallelism_threads for best performance.
```

## Quiet on (log)

```
RuntimeError: Inter op parallelism cannot be modified after initialization.
```

## Sources

- <https://github.com/tensorflow/tensorflow/pull/17931>
- <https://github.com/tensorflow/models/issues/5312>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG928", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(r"Tune using inter_op_parallelism_threads")

harmless(
    CAUSE,
    MESSAGE,
    "TensorFlow says how many operations it runs at the same time on the CPU; this is unrelated to "
    "the GPU",
)
