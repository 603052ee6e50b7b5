"""The GPU is older than every GPU code in the framework's binaries.

## Why it happens

A framework's binaries hold GPU code for a list of architectures, and each release drops some at
the old end of it. Machine code for `sm_60` runs on compute capability 6.0 and later ones of the
same major number, 6.1 and 6.2; intermediate code (PTX) for `compute_60` runs on 6.0 and everything
later. Nothing runs on a GPU that is older than the code.

## What it looks like

PyTorch warns that the GPU `is of cuda capability 5.0` and is no longer supported, then fails with
`CUDA error: no kernel image is available for execution on the device`. TensorFlow announces that it
will compile kernels from PTX, `which could take 30 minutes or longer`, which is not so: there is no
PTX that old. Below 3.5 it says `Ignoring visible gpu device`.

## Fix

Install the last release whose binaries have code for this GPU, or build the framework for it.

## Fires on (machine)

```toml
only = ["tensorflow"]
[driver.gpus.0]
name = "Quadro M2000"
compute_capability = "5.2"
```

## Quiet on (machine)

Machine code for the same major number and a lower minor number runs.

```toml
only = ["tensorflow"]
[driver.gpus.0]
name = "GeForce GTX 1080"
compute_capability = "6.1"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[driver.gpus.0]
compute_capability = {unknown = "NVML: not supported"}
```

## Sources

- <https://docs.nvidia.com/cuda/ada-compatibility-guide/index.html>
- <https://developer.nvidia.com/cuda-gpus>
- <https://github.com/pytorch/pytorch/issues/157517>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_builds import CodeFit, code_fits, gpu_names, titled
from whygpu.causes.shared_installs import tensorflow_release
from whygpu.model.cause import cause
from whygpu.model.derived import display_name
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.architectures import parse_capability
from whygpu.tables.tensorflow_architectures import newest_release_for

CAUSE = cause(
    "WG302",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused", "keras-backend-without-gpu", "framework-crashes"),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for item in code_fits(machine):
        if isinstance(item, Gap):
            yield item
            continue
        framework, fits = item
        old = [fit for fit in fits if fit.fit == "too-old"]
        if old:
            yield _finding(framework, old, every=len(old) == len(fits))


def _finding(framework: Framework, old: list[CodeFit], *, every: bool) -> Finding:
    codes = ", ".join(old[0].codes)
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} has no code for {gpu_names(old)}: its binaries have {codes}, "
            "all for newer GPUs" + ("" if every else "; other GPUs of this machine are served")
        ),
        evidence=(
            seen(framework.build.architectures, codes),
            *(seen(fit.gpu.compute_capability, f"{fit.gpu.name}: {fit.capability}") for fit in old),
        ),
        remedies=_remedies(framework, old[0].capability),
        # JAX brings few kernels of its own; most are compiled for the GPU at hand.
        confidence="likely" if framework.name == "jax" else "certain",
        severity=None if every else "warning",
    )


def _remedies(framework: Framework, capability: str) -> tuple[Remedy, ...]:
    numbers = parse_capability(capability)
    build = Remedy(f"Or build it from source for compute capability {capability}.")
    if framework.name == "tensorflow" and numbers is not None:
        release = newest_release_for(numbers)
        if release is not None:
            text = f"Install TensorFlow {release}, the newest release with code for this GPU."
            return (Remedy(text, tensorflow_release(release)), build)
    if framework.name == "torch" and numbers is not None and (5, 0) <= numbers < (7, 5):
        text = (
            "Install the PyTorch build for CUDA 12.6, which kept code for GPUs before Turing "
            "when the builds for newer CUDA dropped it."
        )
        command = (
            "python -m pip uninstall -y torch && python -m pip install torch "
            "--index-url https://download.pytorch.org/whl/cu126"
        )
        return (Remedy(text, command), build)
    name = display_name(framework.name)
    text = f"Install an older release of {name}, with code for compute capability {capability}."
    return (Remedy(text), build)
