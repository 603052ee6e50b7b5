"""AutoGraph does not convert a function, or traces it often: harmless.

## Why it happens

tf.function converts Python code into graphs. Code that it cannot or need not convert is called
unchanged. A function that is called with new Python values each time is traced each time.

## What it looks like

`AutoGraph could not transform <function ...> and will run it as-is.`, `Entity ... could not be
transformed and will be executed as-is`, `5 out of the last 5 calls to <function ...> triggered
tf.function retracing`.

## Fix

None is needed. Retracing takes time: pass tensors of one shape instead of Python numbers.

## Fires on (log)

```
WARNING:tensorflow:AutoGraph could not transform <function normalize at 0x7f1c2c0d9b70> and will run it as-is.
Please report this to the TensorFlow team. When filing the bug, set the verbosity to 10.
Cause: module 'gast' has no attribute 'Index'
```

```
WARNING:tensorflow:5 out of the last 5 calls to <function Model.make_predict_function.<locals>.predict_function at 0x7f> triggered tf.function retracing.
```

## Quiet on (log)

```
AttributeError: module 'gast' has no attribute 'Num'
```

## Sources

- <https://www.tensorflow.org/guide/function>
"""

from __future__ import annotations

import re

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG923", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"AutoGraph could not (?:transform|be transformed)|could not be transformed and will be executed as-is"
    r"|triggered tf\.function retracing|^Please report this to the (?:TensorFlow|AutoGraph) team",
    re.MULTILINE,
)


harmless(
    CAUSE,
    MESSAGE,
    "functions are run unchanged, or traced again; this can take time but changes no result",
)
