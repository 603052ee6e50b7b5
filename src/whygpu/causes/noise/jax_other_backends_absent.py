"""JAX lists backends that this machine does not have: harmless.

## Why it happens

JAX tries every kind of device that it supports, such as TPUs and AMD GPUs, and prints those that
are missing. Only the backend that the program needs matters.

## What it looks like

`Unable to initialize backend 'tpu_driver': NOT_FOUND: ...`, `Unable to initialize backend 'rocm':
...` or `Unable to initialize backend 'tpu': ...`. The same message about `'cuda'` or `'gpu'` is not
harmless.

## Fix

None is needed. With `JAX_PLATFORMS=cuda` JAX does not try the others, and raises an error if CUDA
does not start.

## Fires on (log)

```
I0611 09:14:03.118204 139872214411072 xla_bridge.py:353] Unable to initialize backend 'tpu_driver': NOT_FOUND: Unable to find driver in registry given worker:
I0611 09:14:03.240917 139872214411072 xla_bridge.py:353] Unable to initialize backend 'rocm': NOT_FOUND: Could not find registered platform with name: "rocm". Available platform names are: Interpreter CUDA Host
```

```
INFO:jax._src.xla_bridge:Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file: No such file or directory
```

## Quiet on (log)

```
RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices.
```

## Sources

- <https://github.com/jax-ml/jax/blob/main/jax/_src/xla_bridge.py>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG913", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"Unable to initialize backend '(?:tpu|tpu_driver|rocm|interpreter|plugin|metal|iree|oneapi)'"
    r"|No TPU platform was found|libtpu\.so: cannot open shared object"
)


harmless(
    CAUSE,
    MESSAGE,
    "JAX names backends that this machine does not have; an NVIDIA GPU does not need them",
)
