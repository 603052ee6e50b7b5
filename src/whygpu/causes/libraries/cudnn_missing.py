"""cuDNN, which the framework needs, is nowhere on this machine.

## Why it happens

cuDNN is not part of a CUDA toolkit: it is a download and a package of its own, and easily
forgotten after installing CUDA by hand. Two packages that share a folder (`nvidia-cudnn-cu11` and
`nvidia-cudnn-cu12`) take each other's files away when one of them is removed.

## What it looks like

TensorFlow prints `Cannot dlopen some GPU libraries` and runs on the CPU, convolutions or not:
without cuDNN it gives up the GPU altogether. PyTorch does not import.

## Fix

Install the cuDNN of the framework's release.

## Fires on (machine)

```toml
only = ["tensorflow"]
[cuda.copies.cudnn]
remove = true
[target.packages.nvidia-cudnn-cu12]
remove = true
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "not-found"
path = ""
chain = ["libcudnn.so.9"]
detail = "libcudnn.so.9: cannot open shared object file: No such file or directory"
```

## Quiet on (machine)

cuDNN is there, but not where the loader looks: that is another cause.

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "not-found"
chain = ["libcudnn.so.9"]
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow]
libraries = {unknown = "libtensorflow_framework.so.2: permission denied"}
```

## Sources

- <https://docs.nvidia.com/deeplearning/cudnn/installation/latest/linux.html>
- <https://www.tensorflow.org/install/pip>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_builds import titled
from whygpu.causes.shared_installs import install_remedies
from whygpu.causes.shared_libraries import consequence, effect_on, failures, no_copy, to_install
from whygpu.causes.shared_search import dlopen_warning, listed, requests_seen
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Gap
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG202",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused", "keras-backend-without-gpu", "framework-import-fails"),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for item in failures(machine, "cudnn-missing"):
        if isinstance(item, Gap):
            yield item
            continue
        framework, failing = item
        where, confidence = no_copy(machine, failing)
        yield CAUSE.finding(
            subject=framework.name,
            effect=effect_on(framework),
            message=(
                f"{titled(framework)} needs {listed(failing)}, and {where}; "
                f"{consequence(framework, failing)}"
            ),
            evidence=requests_seen(failing) + dlopen_warning(machine, framework),
            remedies=install_remedies(machine, framework, to_install(machine, framework)),
            confidence=confidence,
        )
