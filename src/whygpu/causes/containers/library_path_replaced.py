"""An image replaces LD_LIBRARY_PATH of its base, with the folders of CUDA and the driver.

## Why it happens

NVIDIA's images set LD_LIBRARY_PATH to `/usr/local/nvidia/lib:/usr/local/nvidia/lib64`, and those of
TensorFlow add the folders of CUDA. `ENV LD_LIBRARY_PATH=/my/lib` replaces all of them. With the
NVIDIA runtime of Docker this mostly goes unnoticed, because that runtime registers the driver with
the loader. Google Kubernetes Engine mounts the driver at `/usr/local/nvidia/lib64` instead, where
only this variable finds it.

## What it looks like

The image works with Docker; on such a cluster `libcuda.so.1` is not found: "Found no NVIDIA driver
on your system", `Could not load dynamic library 'libcuda.so.1'`.

## Fix

Prepend: `ENV LD_LIBRARY_PATH=/my/lib:${LD_LIBRARY_PATH}`.

## Fires on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
ENV LD_LIBRARY_PATH=/opt/mine/lib
```

## Quiet on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
ENV LD_LIBRARY_PATH=/opt/mine/lib:${LD_LIBRARY_PATH}
```

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
ENV LD_LIBRARY_PATH=/opt/mine/lib:/usr/local/nvidia/lib64
```

The base has no CUDA.

```
==> Dockerfile <==
FROM python:3.11
ENV LD_LIBRARY_PATH=/opt/mine/lib
```

## Sources

- <https://gitlab.com/nvidia/container-images/cuda>
- <https://cloud.google.com/kubernetes-engine/docs/how-to/gpus#cuda>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding, VariableSetting
from whygpu.model.finding import MACHINE
from whygpu.model.requirement_file import LineEdit

CAUSE = cause("WG817", __name__, __doc__, severity="info", effect="none")

_NAME = "LD_LIBRARY_PATH"
_DRIVER_FOLDER = "/usr/local/nvidia/lib"


@CAUSE.on_setup
def detect(setup: Setup) -> Iterator[SetupFinding]:
    base = setup.base
    if setup.kind != "image" or base is None or not base.name.endswith("nvidia/cuda"):
        return
    first = next((setting for setting in setup.variables if setting.name == _NAME), None)
    value = first.value if first is not None else None
    if first is None or not value or "$" in value or _DRIVER_FOLDER in value:
        return
    yield CAUSE.in_setup(
        first.place,
        subject=MACHINE,
        message=f"this replaces the LD_LIBRARY_PATH of {base.reference}, which has the folder in "
        "which some clusters (GKE) put the driver",
        fix=f"Write {_NAME}={value}:${{{_NAME}}}.",
        rests_on=("arguments",),
        edits=tuple(_edits(first, value)),
    )


def _edits(setting: VariableSetting, value: str) -> Iterator[LineEdit]:
    """Only for a line in which the value is written as it is, without quotes or a second one."""
    written = setting.place.text
    if written.count(value) == 1 and written.endswith(f"{_NAME}={value}"):
        yield LineEdit(setting.place, f"{written}:${{{_NAME}}}")
