"""TensorFlow's compilers, XLA or MLIR, report that they have started or are not used: harmless.

## Why it happens

TensorFlow always starts its compiler service, and uses it if a program requests it. It prints both,
and also optimisations that are off by default.

## What it looks like

`XLA service 0x... initialized for platform CUDA (this does not guarantee that XLA will be used)`,
`StreamExecutor device (0): Host, Default Version`, `None of the MLIR Optimization Passes are
enabled`, `(One-time warning): Not using XLA:CPU for cluster`, `disabling MLIR crash reproducer`,
`CPU Frequency: ... Hz`. `You are using ptxas 10.2.300, which is older than 11.1` is a warning about
wrong results; if the program fails on the GPU after it, see WG206.

## Fix

None is needed.

## Fires on (log)

```
2020-05-17 09:30:00.250000: I tensorflow/compiler/xla/service/service.cc:168] XLA service 0x56109f2c8d40 initialized for platform Host (this does not guarantee that XLA will be used). Devices:
2020-05-17 09:30:00.250020: I tensorflow/compiler/xla/service/service.cc:176]   StreamExecutor device (0): Host, Default Version
```

```
2021-08-01 17:45:00.000001: I tensorflow/compiler/mlir/mlir_graph_optimization_pass.cc:185] None of the MLIR Optimization Passes are enabled (registered 2)
```

## Quiet on (log)

```
2024-03-03 03:03:03.000003: W external/local_xla/xla/service/gpu/nvptx_compiler.cc:742] The NVIDIA driver's CUDA version is 12.0 which is older than the ptxas CUDA version (12.3.107).
```

## Sources

- <https://openxla.org/xla/tf2xla>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG909", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"this does not guarantee that XLA will be used|StreamExecutor device \(\d{1,3}\): "
    r"|None of the MLIR [Oo]ptimization [Pp]asses are enabled|MLIR V1 optimization pass is not enabled"
    r"|disabling MLIR crash reproducer|\(One-time warning\): Not using XLA:CPU|CPU Frequency: \d{1,12} Hz"
    r"|XLA service \S{1,40} executing computations on platform|cannot determine CPU frequency"
    r"|Running all optimization passes in grouping"
    r"|You are using ptxas [\d.x]{1,8}, which is (?:in range|older)"
    r"|Compiled cluster using XLA!  This line is logged at most once"
)


harmless(
    CAUSE,
    MESSAGE,
    "TensorFlow's compilers report that they have started or are not used; this has no effect",
)
