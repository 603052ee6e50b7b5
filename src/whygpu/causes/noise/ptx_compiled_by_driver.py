"""ptxas is not used, and the driver compiles instead: harmless.

## Why it happens

While it chooses algorithms, TensorFlow checks its kernels for writes out of bounds. For this it
compiles a small kernel with ptxas, a program of the CUDA toolkit. If ptxas is missing, or on
Windows, the driver compiles it.

## What it looks like

From redzone_allocator.cc: `Relying on driver to perform ptx compilation.`, with `Invoking GPU asm
compilation is supported on Cuda non-Windows platforms only` or `ptxas not found` before it. XLA
prints `Falling back to the CUDA driver for PTX compilation`; ptxas itself warns that `Registers are
spilled to local memory`.

## Fix

None is needed for these lines. If XLA's own search for ptxas or libdevice ends in an error, another
cause reports it.

## Fires on (log)

```
2020-12-18 21:01:15.770000: W tensorflow/stream_executor/gpu/redzone_allocator.cc:314] Internal: Invoking GPU asm compilation is supported on Cuda non-Windows platforms only
Relying on driver to perform ptx compilation.
Modify $PATH to customize ptxas location.
This message will be only logged once.
Epoch 1/3
100/100 [==============================] - 3s 12ms/step - loss: 0.6931
```

## Quiet on (log)

```
2024-03-03 03:03:03.000003: F external/local_xla/xla/service/gpu/nvptx_compiler.cc:618] ptxas returned an error during compilation of ptx to sass: 'INTERNAL: ptxas exited with non-zero error code 65280'
```

## Sources

- <https://github.com/openxla/xla/tree/main/xla/stream_executor/gpu>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG912", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"Relying on driver to perform ptx compilation|Falling back to the CUDA driver for PTX compilation"
    r"|Invoking GPU asm compilation is supported on Cuda non-Windows|Registers are spilled to local memory"
)


harmless(
    CAUSE,
    MESSAGE,
    "the driver compiles instead of ptxas; this takes a moment at the start",
)
