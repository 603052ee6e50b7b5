"""A logging library reports that it has not been initialised yet: harmless.

## Why it happens

TensorFlow, JAX and PyTorch use logging libraries from Google that a program may initialise.
Messages before that go to standard error, and the library announces this once.

## What it looks like

`WARNING: All log messages before absl::InitializeLog() is called are written to STDERR`; in older
releases `WARNING: Logging before flag parsing goes to stderr.` or `WARNING: Logging before
InitGoogleLogging() is written to STDERR`.

## Fix

None is needed. It tells where the following lines are written, and nothing about their content.

## Fires on (log)

```
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
E0000 00:00:1751022113.204518    4711 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered
```

```
WARNING: Logging before flag parsing goes to stderr.
W0612 14:02:58.551010 140012341131072 deprecation_wrapper.py:119] The name tf.Session is deprecated. Please use tf.compat.v1.Session instead.
```

## Quiet on (log)

```
WARNING:tensorflow:Entity <bound method Dense.call> could not be transformed and will be executed as-is.
```

## Sources

- <https://abseil.io/docs/cpp/guides/logging>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG906", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"All log messages before absl::InitializeLog\(\)|Logging before flag parsing goes to"
    r"|Logging before InitGoogleLogging\(\)"
)


harmless(
    CAUSE,
    MESSAGE,
    "the logging library announces that it writes to standard error; this means nothing for "
    "the lines that follow",
)
