"""A recurrent layer does not use cuDNN's kernel: it runs on the GPU, only slower.

## Why it happens

cuDNN computes LSTM and GRU layers only with their standard settings: tanh and sigmoid, no recurrent
dropout, a bias. With other settings, or with a mask that is padded on the left, Keras uses general
operations.

## What it looks like

`Layer lstm will not use cuDNN kernels since it doesn't meet the criteria. It will use a generic GPU
kernel as fallback when running on GPU.` This does not mean that cuDNN is missing.

## Fix

None is needed. For the faster kernel keep activation="tanh", recurrent_activation="sigmoid",
recurrent_dropout=0, unroll=False and use_bias=True.

## Fires on (log)

```
WARNING:tensorflow:Layer lstm will not use cuDNN kernels since it doesn't meet the criteria. It will use a generic GPU kernel as fallback when running on GPU.
```

## Quiet on (log)

```
tensorflow.python.framework.errors_impl.UnknownError: Fail to find the dnn implementation.
```

## Sources

- <https://keras.io/api/layers/recurrent_layers/lstm/>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG917", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(r"will not use cuDNN kernel")


harmless(
    CAUSE,
    MESSAGE,
    "the settings of a recurrent layer exclude cuDNN's kernel; on a GPU it uses general operations "
    "there",
)
