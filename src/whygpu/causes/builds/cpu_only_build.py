"""The installed framework build has no GPU support, on a machine that has a GPU.

## Why it happens

A package without GPU code was installed: `tensorflow-cpu`, `jax` without its CUDA plugin, a
PyTorch wheel from the CPU index, `onnxruntime` instead of `onnxruntime-gpu`. No driver, no CUDA
installation and no setting can make such a build use a GPU.

## What it looks like

Nothing fails. The list of GPUs is empty and everything runs on the CPU.

## Fix

Install the GPU build in place of the CPU build. Uninstall the CPU package first where it has
another name: both write the same folder, and the second to be removed takes the files of the
first with it.

## Fires on (machine)

```toml
only = ["torch"]
[target.frameworks.torch]
version = "2.8.0+cpu"
[target.frameworks.torch.build]
kind = "cpu"
```

## Quiet on (machine)

A CPU build on a machine without a GPU is what belongs there.

```toml
start = "no-gpu"
[target.frameworks.torch.build]
kind = "cpu"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.build]
kind = {unknown = "build_info.py: permission denied"}
```

## Sources

- <https://pytorch.org/get-started/locally/>
- <https://docs.jax.dev/en/latest/installation.html>
- <https://www.tensorflow.org/install/pip>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.observed import Absent, Unknown, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

CAUSE = cause(
    "WG301",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused",),
)

_BESIDE_THE_POINT = ("onnxruntime", "cupy", "numba")
"""Installed for other purposes as often as not: a CPU build of these is worth a word, no more."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    gpu = nvidia_gpu(machine)
    need(gpu)
    for framework in need(machine.target.frameworks):
        kind = framework.build.kind
        if isinstance(kind, Absent):
            continue
        if isinstance(kind, Unknown):
            name = display_name(framework.name)
            yield Gap(f"whether {name} {framework.version} has GPU support: {kind.reason}")
        elif kind.value == "cpu":
            yield CAUSE.finding(
                subject=framework.name,
                message=(
                    f"{display_name(framework.name)} {framework.version} (package "
                    f"{framework.distribution}) is a build without GPU support; this machine "
                    "has a GPU that it cannot use"
                ),
                evidence=(seen(kind, f"built for {kind.value}"), seen(gpu)),
                remedies=_remedies(framework),
                severity="info" if framework.name in _BESIDE_THE_POINT else None,
            )


def _remedies(framework: Framework) -> tuple[Remedy, ...]:
    if framework.name == "tensorflow":
        return (
            Remedy(
                "Replace it with the GPU build and its CUDA libraries.",
                f"python -m pip uninstall -y {framework.distribution} && "
                "python -m pip install 'tensorflow[and-cuda]'",
            ),
        )
    if framework.name == "jax":
        return (
            Remedy(
                "Add JAX's CUDA plugin of the same version.",
                f"python -m pip install 'jax[cuda12]=={framework.version}'",
            ),
        )
    if framework.name == "torch":
        return (
            Remedy(
                "Reinstall PyTorch from its CUDA index; the default index has CUDA builds for "
                "Linux on x86_64.",
                "python -m pip uninstall -y torch && python -m pip install torch",
            ),
        )
    if framework.name == "onnxruntime":
        return (
            Remedy(
                "If its GPU provider is wanted, install that build instead.",
                f"python -m pip uninstall -y {framework.distribution} && "
                "python -m pip install onnxruntime-gpu",
            ),
        )
    return (Remedy(f"Install a build of {display_name(framework.name)} with CUDA support."),)
