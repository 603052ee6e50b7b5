"""TensorFlow prints which instructions of the CPU it uses or could use: harmless.

## Why it happens

Wheels are compiled for processors that nearly every machine has. At its first use TensorFlow
compares this with the actual processor, and reports newer instructions that it does not use. This
is unrelated to the GPU.

## What it looks like

`Your CPU supports instructions that this TensorFlow binary was not compiled to use: AVX2 FMA`, `The
TensorFlow library wasn't compiled to use SSE4.1 instructions`, or `This TensorFlow binary is
optimized to use available CPU instructions`, from cpu_feature_guard.cc.

## Fix

None is needed. `TF_CPP_MIN_LOG_LEVEL=1` hides it together with all other lines marked I.

The opposite message, that the library *was* compiled to use instructions which are *not* available,
is not harmless: the program ends there.

## Fires on (log)

```
2019-08-20 11:02:33.101010: I tensorflow/core/platform/cpu_feature_guard.cc:142] Your CPU supports instructions that this TensorFlow binary was not compiled to use: AVX2 FMA
```

```
W tensorflow/core/platform/cpu_feature_guard.cc:45] The TensorFlow library wasn't compiled to use SSE4.1 instructions, but these are available on your machine and could speed up CPU computations.
```

```
2024-06-01 09:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary is optimized to use available CPU instructions in performance-critical operations.
To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.
```

## Quiet on (log)

```
F tensorflow/core/platform/cpu_feature_guard.cc:36] The TensorFlow library was compiled to use AVX instructions, but these aren't available on your machine.
```

## Sources

- <https://github.com/tensorflow/tensorflow/tree/master/tensorflow/core/platform>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG903", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"this TensorFlow binary was not compiled to use: "
    r"|TensorFlow library wasn't compiled to use [A-Z]"
    r"|CPU feature \w{2,12} is present on your machine, but the Caffe2 binary is not compiled with it"
    r"|TensorFlow binary is optimized (?:with|to use)"
    r"|To enable (?:them|the following instructions)[^\n]{0,120} in other operations"
)


harmless(
    CAUSE,
    MESSAGE,
    "TensorFlow names instructions of the CPU that it uses or does not use; this is unrelated "
    "to the GPU",
)
