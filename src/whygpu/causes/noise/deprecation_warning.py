"""The program uses a function that a later release will remove: harmless for now.

## Why it happens

Python packages announce what they will remove. The call still works in the installed release. The
warning is for the maintainer of the calling code, which is often a package and not the program.

## What it looks like

`DeprecationWarning`, `FutureWarning`, `... is deprecated and will be removed in a future version`
with `Instructions for updating:`, or `The name tf.Session is deprecated. Please use
tf.compat.v1.Session instead.`

## Fix

None is needed with the installed versions. An *error* about the same name means that the installed
release has already removed it.

## Fires on (log)

```
WARNING:tensorflow:From train.py:31: The name tf.ConfigProto is deprecated. Please use tf.compat.v1.ConfigProto instead.
```

```
/usr/lib/python3.7/site-packages/tensorflow/python/framework/dtypes.py:516: FutureWarning: Passing (type, 1) or '1type' as a synonym of type is deprecated; in a future version of numpy, it will be understood as (type, (1,)) / '(1,)type'.
```

```
WARNING:tensorflow:From model.py:12: dense (from tensorflow.python.layers.core) is deprecated and will be removed in a future version.
Instructions for updating:
Use keras.layers.dense instead.
```

## Quiet on (log)

```
AttributeError: module 'numpy' has no attribute 'bool'.
`np.bool` was a deprecated alias for the builtin `bool`.
```

## Sources

- <https://docs.python.org/3/library/warnings.html#warning-categories>
"""

from __future__ import annotations

import re

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG907", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"\b(?:Pending)?DeprecationWarning\b|\bFutureWarning\b|is deprecated and will be removed"
    r"|The name \S{1,80} is deprecated\. Please use|^Instructions for updating:|is deprecated, use ",
    re.MULTILINE,
)


harmless(
    CAUSE,
    MESSAGE,
    "the program uses functions that a later release will remove; the installed release has them",
)
