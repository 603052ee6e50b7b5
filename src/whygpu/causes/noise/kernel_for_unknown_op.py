"""A kernel is registered for an operation that this TensorFlow does not have: harmless.

## Why it happens

Builds with extra kernels (MKL, ZenDNN, plugins) register some for operations that the installed
TensorFlow does not have. TensorFlow ignores these kernels.

## What it looks like

`OpKernel ('op: "_Name" device_type: "CPU"') for unknown op: _Name`, often in long lists at
start-up, each marked with an E.

## Fix

None is needed. If the model uses an unknown operation, the error names the operation and ends the
program.

## Fires on (log)

```
2019-02-02 11:11:11.111111: E tensorflow/core/framework/op_kernel.cc:1325] OpKernel ('op: "_MklRelu" device_type: "CPU"') for unknown op: _MklRelu
```

## Quiet on (log)

```
tensorflow.python.framework.errors_impl.NotFoundError: Op type not registered 'DecodeBlob' in binary running on host.
```

## Sources

- <https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/framework/op_kernel.cc>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG922", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(r"OpKernel \('op: [^\n]{1,300} for unknown op: ")


harmless(
    CAUSE,
    MESSAGE,
    "kernels for operations that this TensorFlow does not have are ignored",
)
