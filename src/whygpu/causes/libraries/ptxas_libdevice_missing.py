"""XLA may not find the compiler files it needs: ptxas and libdevice.

## Why it happens

XLA compiles GPU code while the program runs. It needs two things that belong to a CUDA toolkit and
not to the CUDA libraries: the assembler `ptxas` and the bitcode file `libdevice.10.bc`. The wheel
`nvidia-cuda-nvcc` brings both, and so does a toolkit or a conda package; a machine with nothing but
the CUDA libraries has neither.

## What it looks like

Work that does not go through XLA is fine. `jit_compile=True`, which Keras chooses by itself on a
GPU, fails with `libdevice not found at ./libdevice.10.bc`, `Can't find libdevice directory
${CUDA_DIR}/nvvm/libdevice` or `No PTX compilation provider is available`.

## Fix

Install the wheel, or tell XLA where a toolkit is with
`XLA_FLAGS=--xla_gpu_cuda_data_dir=/path/to/cuda`.

## Fires on (machine)

```toml
only = ["tensorflow"]
[target.packages.nvidia-cuda-nvcc-cu12]
remove = true
```

## Quiet on (machine)

A toolkit serves as well.

```toml
only = ["tensorflow"]
[target.packages.nvidia-cuda-nvcc-cu12]
remove = true
[cuda.toolkits."/usr/local/cuda-12.5"]
version = "12.5"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target]
packages = {unknown = "site-packages: permission denied"}
```

## Sources

- <https://github.com/tensorflow/tensorflow/issues/60790>
- <https://github.com/jax-ml/jax/issues/6323>
- <https://github.com/tensorflow/tensorflow/pull/43888>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_builds import cuda_builds, titled
from whygpu.causes.shared_libraries import cuda_major
from whygpu.model.cause import cause
from whygpu.model.derived import gpu_proven_by, nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.observed import Known, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, active

CAUSE = cause("WG206", __name__, __doc__, severity="warning", effect="none")

_XLA_USERS = ("tensorflow", "jax")
_COMPILER_PACKAGES = ("nvidia-cuda-nvcc", "cuda-nvcc", "cuda-toolkit", "nvidia-cuda-toolkit")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    users = [item for item in cuda_builds(machine) if _compiles(item)]
    if not users or _toolkit_is_named(machine) or need(machine.cuda).toolkits:
        return
    packages = need(machine.target.packages)
    if any(package.name.startswith(_COMPILER_PACKAGES) for package in active(packages)):
        return
    for framework in users:
        if not _compiled(machine, framework):
            yield _finding(framework)


def _compiles(framework: Framework) -> bool:
    """Releases for older CUDA compile nothing unless told to."""
    return framework.name in _XLA_USERS and (cuda_major(framework) or 12) >= 11


def _toolkit_is_named(machine: Snapshot) -> bool:
    flags = machine.environment.get("XLA_FLAGS")
    return isinstance(flags, Known) and "--xla_gpu_cuda_data_dir" in flags.value


def _compiled(machine: Snapshot, framework: Framework) -> bool:
    """JAX compiles everything with XLA: if it computed on the GPU, it found what it needs."""
    probe = machine.probe("jax")
    return framework.name == "jax" and isinstance(probe, Known) and gpu_proven_by(probe.value)


def _finding(framework: Framework) -> Finding:
    major = cuda_major(framework)
    wheel = "nvidia-cuda-nvcc" if major == 13 else f"nvidia-cuda-nvcc-cu{major or 12}"
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} compiles with XLA, which needs ptxas and libdevice.10.bc; no "
            f"CUDA toolkit was found, and the package {wheel}, which has both, is not installed. "
            "Models compiled with XLA (Keras does that by itself on a GPU) may fail"
        ),
        evidence=(
            Evidence("machine", "CUDA toolkits", "none found"),
            Evidence("machine", "the target's packages", f"no {wheel}"),
        ),
        remedies=(Remedy("Install the compiler's wheel.", f"python -m pip install {wheel}"),),
        confidence="possible",
    )
