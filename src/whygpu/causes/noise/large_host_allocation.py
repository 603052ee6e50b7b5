"""A tensor takes more than a tenth of the free main memory: a warning, not an error.

## Why it happens

TensorFlow's allocator for the CPU warns if one tensor is large compared with the free memory. The
allocation succeeds. A typical case is a data set that is converted to one tensor, and copied once
more when it is moved to the GPU.

## What it looks like

`Allocation of 411041792 exceeds 10% of free system memory.`, from cpu_allocator_impl.cc, up to five
times. It is about main memory, never about the GPU's memory.

## Fix

None is needed as long as the program continues. If it is `Killed` afterwards, this line shows what
filled the memory: feed the data in batches (a generator, tf.data, a smaller batch).

## Fires on (log)

```
2021-11-04 20:05:11.660000: W tensorflow/core/framework/cpu_allocator_impl.cc:80] Allocation of 1207959552 exceeds 10% of free system memory.
Epoch 1/10
1563/1563 [==============================] - 14s 9ms/step - loss: 1.5077
```

## Quiet on (log)

```
2021-11-04 20:05:11.660000: W tensorflow/core/common_runtime/bfc_allocator.cc:431] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.13GiB
```

## Sources

- <https://github.com/openxla/xla/tree/main/xla/tsl/framework>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG910", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(r"Allocation of \d{1,20} exceeds \d{1,3}% of (?:free )?system memory")


harmless(
    CAUSE,
    MESSAGE,
    "single tensors take more than a tenth of the free main memory; each was allocated, and "
    "this is not about the GPU's memory",
)
