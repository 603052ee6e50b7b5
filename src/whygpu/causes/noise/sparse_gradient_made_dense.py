"""A sparse gradient is converted to a full tensor: it can use much memory, but is not an error.

## Why it happens

A lookup of table rows has a gradient for these rows only. Some operations need all rows, and
TensorFlow fills the rest with zeros.

## What it looks like

`Converting sparse IndexedSlices to a dense Tensor of unknown shape. This may consume a large amount
of memory.`

## Fix

None is needed. If memory runs out with a large embedding table, this may be the reason.

## Fires on (log)

```
/opt/conda/lib/python3.7/site-packages/tensorflow/python/framework/indexed_slices.py:434: UserWarning: Converting sparse IndexedSlices to a dense Tensor of unknown shape. This may consume a large amount of memory.
```

## Quiet on (log)

```
tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[100000,512]
```

## Sources

- <https://www.tensorflow.org/api_docs/python/tf/IndexedSlices>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG916", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(r"Converting sparse IndexedSlices")


harmless(
    CAUSE,
    MESSAGE,
    "a sparse gradient is converted to a full tensor; it uses memory but is not an error",
)
