"""A memory allocator of TensorFlow 1 prints its statistics: harmless.

## Why it happens

Releases before 1.14 print this when the memory pool for copies to the GPU grows. They also list the
size classes of the GPU's allocator.

## What it looks like

`PoolAllocator: After 2424 get requests, put_count=2259 evicted_count=1000 eviction_rate=0.44 and
unsatisfied allocation rate=0.52`, `Raising pool_size_limit_ from 100 to 110`, `Creating bin of max
chunk size 2.00GiB`.

## Fix

None is needed; it stops after the first steps. A list of bins *with* `ran out of memory` above it
belongs to that error.

## Fires on (log)

```
I tensorflow/core/common_runtime/gpu/pool_allocator.cc:247] PoolAllocator: After 3180 get requests, put_count=2943 evicted_count=1000 eviction_rate=0.339789 and unsatisfied allocation rate=0.408805
I tensorflow/core/common_runtime/gpu/pool_allocator.cc:259] Raising pool_size_limit_ from 100 to 110
```

## Quiet on (log)

```
W tensorflow/core/common_runtime/bfc_allocator.cc:273] Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.50GiB.  See logs for memory state.
```

## Sources

- <https://github.com/tensorflow/tensorflow/tree/master/tensorflow/core/common_runtime/gpu>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG926", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"PoolAllocator: After \d{1,12} get requests|Raising pool_size_limit_ from"
    r"|Creating bin of max chunk size"
)


harmless(
    CAUSE,
    MESSAGE,
    "an allocator counts its requests and grows its pool; memory is not lacking",
)
