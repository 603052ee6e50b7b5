"""TensorFlow does not find TensorRT, which it does not need: harmless.

## Why it happens

TensorFlow for Linux can convert models to TensorRT, an optimiser by NVIDIA that is installed
separately. It looks for TensorRT at every start and warns if it is missing.

## What it looks like

`TF-TRT Warning: Could not find TensorRT`, or `Could not load dynamic library 'libnvinfer.so.7'`
followed by `Cannot dlopen some TensorRT libraries`. The warning mentions an NVIDIA GPU, but means
its use *with TensorRT*.

## Fix

None is needed, unless the program itself imports tensorrt or converts models with TF-TRT: then
install the TensorRT release that this TensorFlow was built for.

## Fires on (log)

```
2022-08-03 11:40:17.220338: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open shared object file: No such file or directory
2022-08-03 11:40:17.220415: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Cannot dlopen some TensorRT libraries. If you would like to use Nvidia GPU with TensorRT, please make sure the missing libraries mentioned above are installed properly.
```

```
2024-01-20 07:31:11.000001: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT
```

## Quiet on (log)

```
2022-10-11 15:21:50.000000: I tensorflow/stream_executor/platform/default/dso_loader.cc:49] Successfully opened dynamic library libnvinfer.so.7
```

## Sources

- <https://docs.nvidia.com/deeplearning/frameworks/tf-trt-user-guide/index.html>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG905", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"TF-TRT Warning: |Cannot dlopen some TensorRT libraries"
    r"|Could not load dynamic library '(?:lib)?nvinfer\w*|TensorRT version: 0\.0\.0"
)


harmless(
    CAUSE,
    MESSAGE,
    "TensorRT is not installed; TensorFlow uses the GPU without it, unless the program "
    "converts models with TF-TRT",
)
