"""The profiler may not use the GPU's counters: harmless for the computation.

## Why it happens

TensorBoard's callback and the profilers of the frameworks use NVIDIA's CUPTI library. By default
the driver allows only administrators to use the counters, and the library is often missing.

## What it looks like

`CUPTI_ERROR_INSUFFICIENT_PRIVILEGES`, `CUPTI could not be loaded or symbol could not be found`,
`Could not load dynamic library 'libcupti.so.11.2'`, `Profiler session started.`

## Fix

None is needed for training. To profile, load the driver's module with
`NVreg_RestrictProfilingToAdminUsers=0` (or give a container the capability SYS_ADMIN), and add
CUPTI to the loader's search path.

## Fires on (log)

```
2021-06-06 06:06:06.600000: E tensorflow/core/profiler/internal/gpu/cupti_tracer.cc:1666] function cupti_interface_->Subscribe( &subscriber_, (CUpti_CallbackFunc)ApiCallback, this)failed with error CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
```

```
2020-06-06 06:06:06.600000: W tensorflow/stream_executor/platform/default/dso_loader.cc:55] Could not load dynamic library 'cupti64_101.dll'; dlerror: cupti64_101.dll not found
2020-06-06 06:06:06.610000: E tensorflow/core/profiler/internal/gpu/cupti_tracer.cc:1408] function cupti_interface_->Subscribe( &subscriber_, (CUpti_CallbackFunc)ApiCallback, this)failed with error CUPTI could not be loaded or symbol could not be found.
```

## Quiet on (log)

```
2021-06-06 06:06:06.600000: I tensorflow/stream_executor/platform/default/dso_loader.cc:53] Successfully opened dynamic library libcupti.so.11.0
```

## Sources

- <https://developer.nvidia.com/ERR_NVGPUCTRPERM>
"""

from __future__ import annotations

from whygpu.causes.evidence.log_subjects import harmless
from whygpu.model.cause import cause
from whygpu.model.lazy_regex import late

CAUSE = cause("WG915", __name__, __doc__, severity="info", effect="none")

MESSAGE = late(
    r"CUPTI_ERROR_\w{1,60}|CUPTI could not be loaded|Could not load dynamic library '(?:lib)?cupti"
    r"|[Pp]rofiler session (?:started|initializing|tear down)"
)


harmless(
    CAUSE,
    MESSAGE,
    "the profiler cannot read the GPU's counters; training does not need it",
)
