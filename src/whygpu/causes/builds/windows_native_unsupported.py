"""TensorFlow on native Windows has no GPU support in this release.

## Why it happens

TensorFlow 2.10 was the last release that used a GPU on Windows itself. From 2.11 on the Windows
packages are built for the CPU only, whatever CUDA installation the machine has.

## What it looks like

The list of GPUs is empty, and recent releases say so: `TensorFlow GPU support is not available on
native Windows for TensorFlow >= 2.11`.

## Fix

Run TensorFlow in WSL2, where the Linux packages use the Windows driver; or stay with 2.10 and an
old Python; or use another framework, such as PyTorch, that supports Windows.

## Fires on (machine)

```toml
only = ["tensorflow"]
[system]
os = "windows"
```

## Quiet on (machine)

```toml
only = ["tensorflow"]
[system]
os = "windows"
[target.frameworks.tensorflow]
version = "2.10.1"
```

## Cannot tell on (machine)

```toml
[system]
os = "windows"
[target.frameworks]
unknown = "the target does not start"
```

## Sources

- <https://www.tensorflow.org/install/pip#windows-native>
- <https://www.tensorflow.org/install/pip#windows-wsl2>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_builds import titled
from whygpu.causes.shared_packages import package_named
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.observed import need
from whygpu.model.snapshot import Snapshot
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG317",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("cpu-only-build", "gpu-unused"),
)

_FIRST_WITHOUT_GPU = (2, 11)
_DIRECTML = "tensorflow-directml-plugin"
"""Microsoft's way to the GPU, for TensorFlow 2.10 and not developed further."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    if machine.system.os != "windows":
        return
    gpu = nvidia_gpu(machine)
    need(gpu)
    framework = need(machine.framework("tensorflow"))
    if release_numbers(framework.version) < _FIRST_WITHOUT_GPU:
        return
    if package_named(machine, _DIRECTML) is not None:
        return
    yield CAUSE.finding(
        subject="tensorflow",
        message=(
            f"{titled(framework)} does not use a GPU on native Windows; 2.10 was the last "
            "release that did"
        ),
        evidence=(
            Evidence("machine", "operating system", f"Windows {machine.system.kernel}"),
            seen(machine.target.frameworks, titled(framework)),
            seen(gpu),
        ),
        remedies=(
            Remedy(
                "Use WSL2: install it, then TensorFlow for Linux inside it.",
                "wsl --install",
            ),
            Remedy(
                "Or, with Python 3.10 or older and CUDA 11.2 with cuDNN 8.1, install 2.10.",
                "python -m pip install 'tensorflow<2.11' 'numpy<2'",
            ),
        ),
    )
