"""Python reports an exception during its cleanup at exit, and ignores it: harmless.

## Why it happens

When a program ends, Python deletes modules in no fixed order. Destructors that still need one of
them fail. Python prints the exception and continues.

## What it looks like

`Exception ignored in: <bound method BaseSession.__del__ of ...>` or `<function ... .__del__>`,
followed by a traceback, at the end of a run. Old TensorFlow releases print `'NoneType' object has
no attribute 'TF_DeleteStatus'`.

## Fix

None is needed: the work is finished by then. An exception *above* it is the one that matters.

## Fires on (log)

```
Step 900: accuracy = 0.98
Exception ignored in: <bound method BaseSession.__del__ of <tensorflow.python.client.session.Session object at 0x7f6c>>
Traceback (most recent call last):
  File "/usr/lib/python3.5/site-packages/tensorflow/python/client/session.py", line 587, in __del__
AttributeError: 'NoneType' object has no attribute 'TF_NewStatus'
```

## Quiet on (log)

```
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    x.size
AttributeError: 'NoneType' object has no attribute 'size'
```

## Sources

- <https://docs.python.org/3/library/sys.html#sys.unraisablehook>
"""

from __future__ import annotations

import re

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG924", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"^Exception ignored (?:in|on)\b"
    # An object that lacks its own attribute was never completed: something failed before.
    r"(?!(?:[^\n]{0,300}\n){1,8}?AttributeError: '(?!NoneType)\w{1,80}' object has no attribute)",
    re.MULTILINE,
)


harmless(
    CAUSE,
    MESSAGE,
    "Python could not clean up an object at exit and ignored this; the work was finished by then",
)
