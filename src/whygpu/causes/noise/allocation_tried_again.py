"""A faster algorithm could not be used, most often for lack of memory, so another was: harmless.

## Why it happens

cuDNN and XLA request extra memory to use faster algorithms. If it is not available, they use
another algorithm, and TensorFlow reports that this is not a failure. PyTorch (2.1 and newer) prints
a warning for each algorithm of cuDNN that it tries and that does not work for this operation.

## What it looks like

`ran out of memory trying to allocate 2.17GiB with freed_by_count=0. The caller indicates that this
is not a failure, but this may mean that there could be performance gains if more memory were
available.` Or, from PyTorch, `UserWarning: Plan failed with a cudnnException`.

## Fix

None is needed. With a smaller batch there is enough memory for the faster algorithm. If the program
then ends with an error, that error matters.

## Fires on (log)

```
2020-07-07 16:20:00.500000: W tensorflow/core/common_runtime/bfc_allocator.cc:243] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.17GiB with freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory were available.
step 100 loss = 2.31 (0.412 sec/step)
step 200 loss = 1.87 (0.409 sec/step)
```

PyTorch tried a plan of cuDNN, and used another:

```
/opt/env/lib/python3.10/site-packages/torch/nn/modules/conv.py:456: UserWarning: Plan failed with a cudnnException: CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: cudnnFinalizeDescriptor Failed cudnn_status: CUDNN_STATUS_NOT_SUPPORTED (Triggered internally at ../aten/src/ATen/native/cudnn/Conv_v8.cpp:919.)
Epoch 1 loss 0.31
```

## Quiet on (log)

```
2020-07-07 16:20:00.500000: W tensorflow/core/common_runtime/bfc_allocator.cc:431] Allocator (GPU_0_bfc) ran out of memory trying to allocate 512.00MiB (rounded to 536870912)
```

## Sources

- <https://github.com/openxla/xla/tree/main/xla/tsl/framework>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG911", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(r"The caller indicates that this is not a failure|\bPlan failed with an? \w")


harmless(
    CAUSE,
    MESSAGE,
    "a faster algorithm could not be used, most often for lack of extra memory; another one was used",
)
