"""A CUDA library that the framework needs is nowhere on this machine.

## Why it happens

The framework's own package brings no CUDA libraries (`pip install tensorflow` without
`[and-cuda]`), one of the `nvidia-*` packages was removed, or an old release expects a CUDA
toolkit that was never installed. The NVIDIA driver does not bring these libraries.

## What it looks like

TensorFlow from 1.14 on and JAX go on without the GPU; newer TensorFlow says `Could not find cuda
drivers on your machine` (which is about `libcudart`, not about the driver) or `Cannot dlopen some
GPU libraries`. TensorFlow up to 1.13 and PyTorch do not import:
`ImportError: libcublas.so.9.0: cannot open shared object file: No such file or directory`.

## Fix

Install the libraries of the release that the framework was built for, with the framework's own
extra where it has one: it picks the versions that fit.

## Fires on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcusparse.so.12"]
outcome = "dependency-missing"
chain = ["libcusparse.so.12", "libnvJitLink.so.12"]
detail = "libnvJitLink.so.12: cannot open shared object file: No such file or directory"
```

## Quiet on (machine)

A library that only one feature needs does not keep a framework off the GPU.

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libnccl.so.2"]
required = false
outcome = "not-found"
chain = ["libnccl.so.2"]
```

A library that is there in another major version is another cause.

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudart.so.12"]
outcome = "not-found"
chain = ["libcudart.so.12"]
[cuda.copies.cudart]
soname = "libcudart.so.11.0"
path = "/usr/local/cuda-11.8/lib64/libcudart.so.11.0"
```

## Cannot tell on (machine)

```toml
only = ["jax"]
[target.frameworks.jax]
libraries = {unknown = "xla_cuda_plugin.so: permission denied"}
```

## Sources

- <https://www.tensorflow.org/install/pip>
- <https://docs.jax.dev/en/latest/installation.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_builds import titled
from whygpu.causes.shared_installs import install_remedies
from whygpu.causes.shared_libraries import consequence, effect_on, failures, no_copy, to_install
from whygpu.causes.shared_search import dlopen_warning, listed, requests_seen
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Gap
from whygpu.model.observed import Known
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

CAUSE = cause(
    "WG201",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    # Whatever brings the CUDA libraries of a release brings its cuDNN as well.
    explains=(
        "cudnn-missing",
        "gpu-unused",
        "keras-backend-without-gpu",
        "framework-import-fails",
    ),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for item in failures(machine, "cuda-runtime-missing"):
        if isinstance(item, Gap):
            yield item
            continue
        framework, failing = item
        where, confidence = no_copy(machine, failing)
        yield CAUSE.finding(
            subject=framework.name,
            effect=effect_on(framework),
            message=(
                f"{titled(framework)}{_built_for(framework)} needs {listed(failing)}, and "
                f"{where}; {consequence(framework, failing)}"
            ),
            evidence=requests_seen(failing) + dlopen_warning(machine, framework),
            remedies=install_remedies(machine, framework, to_install(machine, framework)),
            confidence=confidence,
        )


def _built_for(framework: Framework) -> str:
    cuda = framework.build.cuda
    return f" (built for CUDA {cuda.value})" if isinstance(cuda, Known) else ""
