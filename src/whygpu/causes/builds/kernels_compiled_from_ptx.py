"""The framework has no machine code for this GPU, so the driver compiles kernels at first use.

## Why it happens

The GPU is newer than the framework's release. The binaries contain intermediate code (PTX), which
the driver compiles for the new GPU, one kernel at a time, at first use. The driver keeps the result
in a cache of limited size in the home directory.

## What it looks like

TensorFlow: `TensorFlow was not built with CUDA kernel binaries compatible with compute capability
12.0. CUDA kernels will be jit-compiled from PTX, which could take 30 minutes or longer.` The first
run seems to hang. Later runs start quickly, unless the cache is lost, as in a container, or is too
small.

## Fix

Install a release with machine code for the GPU. Until then, make the cache larger and keep it in a
permanent folder.

## Fires on (machine)

```toml
only = ["tensorflow"]
[driver.gpus.0]
name = "NVIDIA GeForce RTX 5090"
compute_capability = "12.0"
```

## Quiet on (machine)

```toml
only = ["tensorflow"]
[driver.gpus.0]
name = "NVIDIA H200"
compute_capability = "9.0"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.build]
architectures = {unknown = "libtensorflow_cc.so.2: permission denied"}
```

## Fires on (log)

The first run is slow, then it works:

```
W0000 00:00:1740000000.100000  4242 gpu_device.cc:2430] TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12.0. CUDA kernels will be jit-compiled from PTX, which could take 30 minutes or longer.
Epoch 1/10
loss: 0.4312
```

## Quiet on (log)

It fails, so this is more than a slow start:

```
W0000 00:00:1740000000.100000  4242 gpu_device.cc:2430] TensorFlow was not built with CUDA kernel binaries compatible with compute capability 12.0. CUDA kernels will be jit-compiled from PTX, which could take 30 minutes or longer.
tensorflow.python.framework.errors_impl.InternalError: 'cuLaunchKernel(function, gridX, gridY, gridZ, blockX, blockY, blockZ, 0, reinterpret_cast<CUstream>(stream), params, nullptr)' failed with 'CUDA_ERROR_INVALID_HANDLE'
```

## Sources

- <https://docs.nvidia.com/cuda/ada-compatibility-guide/index.html>
- <https://developer.nvidia.com/blog/cuda-pro-tip-understand-fat-binaries-jit-caching/>
- <https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import CodeFit, code_fits, gpu_names, titled
from whygpu.causes.evidence.log_gpu_generations import NO_KERNELS_FOR
from whygpu.causes.evidence.log_subjects import ended_after, framework_title, subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Gap, Remedy, seen
from whygpu.model.log import Log
from whygpu.model.observed import Known
from whygpu.model.remedy import SetVariable
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.architectures import parse_capability, parse_code, runs
from whygpu.tables.gpus import find
from whygpu.tables.reported_failures import ReportedFailure, reported_failure
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG304",
    __name__,
    __doc__,
    severity="warning",
    effect="none",
    explains=("framework-hangs",),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for item in code_fits(machine):
        if isinstance(item, Gap):
            yield item
            continue
        framework, fits = item
        compiled = [fit for fit in fits if fit.fit == "compiled"]
        if compiled:
            yield _finding(machine, framework, compiled)


def _finding(machine: Snapshot, framework: Framework, fits: list[CodeFit]) -> Finding:
    ptx = _newest_ptx(fits[0])
    refusal = _driver_may_refuse(machine, framework)
    report = _reported(framework, fits)
    failing = f"; users report that it fails: {report.symptom}" if report else ""
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} has no machine code for {gpu_names(fits)}; the driver compiles "
            f"its kernels from PTX ({ptx}) at first use, which takes minutes{refusal}{failing}"
        ),
        evidence=(
            seen(framework.build.architectures, ", ".join(fits[0].codes)),
            *(seen(f.gpu.compute_capability, f"{f.gpu.name}: {f.capability}") for f in fits),
        ),
        remedies=(
            *(
                (Remedy("Update the NVIDIA driver to one that supports this PTX."),)
                if refusal
                else ()
            ),
            Remedy(
                f"If it fails here, too: {report.instead} ({report.sources[0]})."
                if report
                else "Install a newer release with machine code for this GPU."
            ),
            Remedy(
                "Until then, set the size of the driver's kernel cache to 4 GiB, its maximum. "
                "In a container, set CUDA_CACHE_PATH to a folder that is kept.",
                SetVariable("CUDA_CACHE_MAXSIZE", "4294967296"),
            ),
        ),
        # JAX contains few kernels of its own; it compiles most of them for the GPU in use.
        severity="info" if framework.name == "jax" else None,
    )


def _reported(framework: Framework, fits: list[CodeFit]) -> ReportedFailure | None:
    """What users report about this release on one of these GPUs."""
    for fit in fits:
        capability = parse_capability(fit.capability)
        models = find(fit.gpu.name)
        kind = models[0].kind if models else None
        if capability is not None:
            row = reported_failure(framework.name, framework.version, capability, kind)
            if row is not None:
                return row
    return None


def _newest_ptx(served: CodeFit) -> str:
    """The PTX that the driver compiles: the newest one that the GPU can use."""
    gpu = parse_capability(served.capability)
    usable = [
        (code.capability, name)
        for name in served.codes
        if (code := parse_code(name)) is not None
        and not code.binary
        and gpu is not None
        and runs(code, gpu)
    ]
    return max(usable)[1]


def _driver_may_refuse(machine: Snapshot, framework: Framework) -> str:
    """Minor-version compatibility does not cover PTX: an older driver cannot read newer PTX."""
    driver, built = machine.driver.cuda, framework.build.cuda
    if not isinstance(driver, Known) or not isinstance(built, Known):
        return ""
    wanted = release_numbers(built.value)[:2]
    if len(wanted) < 2 or release_numbers(driver.value)[:2] >= wanted:
        return ""
    return (
        f"; the driver (CUDA {driver.value}) is older than CUDA {built.value}, which wrote the "
        "PTX, and may refuse it (CUDA_ERROR_UNSUPPORTED_PTX_VERSION)"
    )


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statement = log.first(NO_KERNELS_FOR)
    if statement is None or ended_after(log, statement.line):
        return
    if not any(line > statement.line for line in log.progress):
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message=(
            f"{framework_title(log)} has no machine code for compute capability "
            f"{statement.groups['capability']}: the driver compiles each kernel at first use, so "
            "the first run takes long"
        ),
        evidence=log.evidence(*(match.line for match in log.find(NO_KERNELS_FOR))),
        remedies=(
            Remedy("Let it finish once; the driver keeps the result in ~/.nv/ComputeCache."),
            Remedy(
                "Make the cache large enough for all kernels.",
                SetVariable("CUDA_CACHE_MAXSIZE", "4294967296"),
            ),
            Remedy("Or install a release that was built for this GPU."),
        ),
    )
