"""The GPU is newer than the framework's GPU code, and there is no PTX it could be compiled from.

## Why it happens

Machine code for `sm_90` runs on compute capability 9.x and on nothing else. What lets old binaries
run on new GPUs is intermediate code (PTX), from which the driver compiles when it is first used.
PyTorch's wheels mostly come without it. Code for one exact architecture (`sm_90a`, `compute_90a`)
never runs on another.

## What it looks like

PyTorch warns that the GPU `with CUDA capability sm_120 is not compatible with the current PyTorch
installation`, then fails with `CUDA error: no kernel image is available for execution on the
device`.

## Fix

Install a release that was built after the GPU came out: one for a newer CUDA release.

## Fires on (machine)

```toml
only = ["torch"]
[driver.gpus.0]
name = "NVIDIA GeForce RTX 5090"
compute_capability = "12.0"
[target.frameworks.torch]
version = "2.5.1"
[target.frameworks.torch.build]
architectures = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
```

## Quiet on (machine)

With PTX the code can be compiled for any later GPU.

```toml
only = ["tensorflow"]
[driver.gpus.0]
name = "NVIDIA GeForce RTX 5090"
compute_capability = "12.0"
```

## Cannot tell on (machine)

NVIDIA does not promise that code for other GPUs runs on a Jetson, even where the numbers fit.

```toml
only = ["torch"]
[driver.gpus.0]
name = "Orin"
compute_capability = "8.7"
[target.frameworks.torch.build]
architectures = ["sm_80", "sm_90"]
```

## Sources

- <https://docs.nvidia.com/cuda/ada-compatibility-guide/index.html>
- <https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_builds import CodeFit, code_fits, gpu_names, titled
from whygpu.model.cause import cause
from whygpu.model.derived import display_name
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

CAUSE = cause(
    "WG303",
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
        new = [fit for fit in fits if fit.fit == "too-new"]
        if new:
            yield _finding(framework, new, every=len(new) == len(fits))
        for fit in fits:
            if fit.fit == "undocumented":
                yield Gap(
                    f"whether the code of {titled(framework)} ({', '.join(fit.codes)}) runs on "
                    f"{fit.gpu.name}: NVIDIA promises nothing between Jetson and other GPUs"
                )


def _finding(framework: Framework, new: list[CodeFit], *, every: bool) -> Finding:
    codes = ", ".join(new[0].codes)
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} has no code for {gpu_names(new)}: its binaries have {codes}, "
            "and no PTX that could be compiled for it"
            + ("" if every else "; other GPUs of this machine are served")
        ),
        evidence=(
            seen(framework.build.architectures, codes),
            *(seen(fit.gpu.compute_capability, f"{fit.gpu.name}: {fit.capability}") for fit in new),
        ),
        remedies=(_newer_release(framework),),
        confidence="likely" if framework.name == "jax" else "certain",
        severity=None if every else "warning",
    )


def _newer_release(framework: Framework) -> Remedy:
    commands = {
        "torch": "python -m pip install --upgrade torch",
        "tensorflow": "python -m pip install --upgrade 'tensorflow[and-cuda]'",
        "jax": "python -m pip install --upgrade 'jax[cuda12]'",
    }
    return Remedy(
        f"Install a newer release of {display_name(framework.name)}, built for this GPU.",
        commands.get(framework.name),
    )
