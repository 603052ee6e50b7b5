"""AutoGraph does not convert a function: harmless.

## Why it happens

tf.function converts Python code into graphs. Code that it cannot or need not convert is called
unchanged.

## What it looks like

`AutoGraph could not transform <function ...> and will run it as-is.`, `Entity ... could not be
transformed and will be executed as-is`.

## Fix

None is needed.

## Fires on (log)

```
WARNING:tensorflow:AutoGraph could not transform <function normalize at 0x7f1c2c0d9b70> and will run it as-is.
Please report this to the TensorFlow team. When filing the bug, set the verbosity to 10.
Cause: module 'gast' has no attribute 'Index'
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
    r"|^Please report this to the (?:TensorFlow|AutoGraph) team",
    re.MULTILINE,
)


harmless(
    CAUSE,
    MESSAGE,
    "functions are run unchanged, which changes no result",
)
