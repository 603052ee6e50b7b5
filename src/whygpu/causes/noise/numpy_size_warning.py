"""An extension was compiled with an older NumPy with smaller structures: harmless.

## Why it happens

At import, extensions check whether NumPy's structures have the size that they were compiled with.
Newer NumPy releases have larger structures on purpose, and old extensions work with them.

## What it looks like

`RuntimeWarning: numpy.dtype size changed, may indicate binary incompatibility. Expected 96, got
88`, from h5py, scipy, pandas or scikit-learn.

## Fix

None is needed for the warning. The same message as a *ValueError* ends the import: then reinstall
the package that raised it, or install the NumPy release that it was built for.

## Fires on (log)

```
/usr/lib/python3.6/importlib/_bootstrap.py:219: RuntimeWarning: numpy.dtype size changed, may indicate binary incompatibility. Expected 96, got 88
  return f(*args, **kwds)
```

## Quiet on (log)

```
ValueError: numpy.ndarray size changed, may indicate binary incompatibility. Expected 88 from C header, got 80 from PyObject
```

## Sources

- <https://numpy.org/doc/stable/user/troubleshooting-importerror.html>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG925", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(r"RuntimeWarning: numpy\.\w{1,40} size changed")


harmless(
    CAUSE,
    MESSAGE,
    "an extension was compiled with an older NumPy with smaller structures; it works with this one",
)
