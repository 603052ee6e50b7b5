"""The GPU is newer than the framework's GPU code, which has no PTX to compile for it.

## Why it happens

Machine code for `sm_90` runs only on compute capability 9.x. Old binaries can run on new GPUs only
if they contain intermediate code (PTX), which the driver compiles at first use. Most PyTorch wheels
contain none. Code for one exact architecture (`sm_90a`, `compute_90a`) never runs on another.

## What it looks like

PyTorch warns that the GPU `with CUDA capability sm_120 is not compatible with the current PyTorch
installation`, then fails with `CUDA error: no kernel image is available for execution on the
device`.

## Fix

Install a release that was built after the GPU was released, for a newer CUDA release.

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

PTX can be compiled for any later GPU.

```toml
only = ["tensorflow"]
[driver.gpus.0]
name = "NVIDIA GeForce RTX 5090"
compute_capability = "12.0"
```

## Cannot tell on (machine)

NVIDIA does not guarantee that code for other GPUs runs on a Jetson, even if the numbers match.

```toml
only = ["torch"]
[driver.gpus.0]
name = "Orin"
compute_capability = "8.7"
[target.frameworks.torch.build]
architectures = ["sm_80", "sm_90"]
```

## Fires on (log)

```
UserWarning: NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.
RuntimeError: CUDA error: no kernel image is available for execution on the device
```

A build for CUDA 10 on an Ampere GPU:

```
2020-11-01 10:00:00.100000: I tensorflow/stream_executor/platform/default/dso_loader.cc:48] Successfully opened dynamic library cudart64_101.dll
2020-11-01 10:00:00.200000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1402] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 8000 MB memory) -> physical GPU (device: 0, name: GeForce RTX 3080, pci bus id: 0000:01:00.0, compute capability: 8.6)
2020-11-01 10:09:00.100000: E tensorflow/stream_executor/cuda/cuda_blas.cc:428] failed to run cuBLAS routine: CUBLAS_STATUS_EXECUTION_FAILED
tensorflow.python.framework.errors_impl.InternalError: Blas GEMM launch failed : a.shape=(32, 784), b.shape=(784, 128), m=32, n=128, k=784 [Op:MatMul]
```

```
RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch)
```

```
ValueError: Unknown CUDA arch (12.0) or GPU not supported
```

## Quiet on (log)

The GPU is older than the build, not newer:

```
    Found GPU0 Quadro K4000 which is of cuda capability 3.0.
    PyTorch no longer supports this GPU because it is too old.
```

cuBLAS prints the same status on a GPU that the build supports:

```
2018-11-01 10:00:00.200000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1115] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 8000 MB memory) -> physical GPU (device: 0, name: GeForce GTX 1080, pci bus id: 0000:01:00.0, compute capability: 6.1)
2018-11-01 10:00:09.100000: E tensorflow/stream_executor/cuda/cuda_blas.cc:698] failed to run cuBLAS routine cublasSgemm_v2: CUBLAS_STATUS_EXECUTION_FAILED
```

## Fires on (setup)

The machine is given by `whygpu lint --gpu`.

```
==> machine <==
gpu = "12.0"
==> requirements.txt <==
torch==2.4.1
```

## Quiet on (setup)

```
==> machine <==
gpu = "12.0"
==> requirements.txt <==
torch==2.8.0
```

## Sources

- <https://docs.nvidia.com/cuda/ada-compatibility-guide/index.html>
- <https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html>
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.framework_builds import (
    CodeFit,
    choose_gpus,
    code_fits,
    fails_without_code,
    gpu_names,
    titled,
)
from whygpu.causes.evidence.framework_installs import gpu_build, gpu_build_of, plan_for
from whygpu.causes.evidence.log_gpu_generations import (
    INVALID_IMAGE,
    NO_KERNELS_FOR,
    REFUSED_AND_OLD,
    Age,
    LogGpu,
    age_for,
    age_of,
    age_of_unnamed,
    cuda_of,
    dropped_by_compiler,
    gpus_of,
    judged_by_list,
)
from whygpu.causes.evidence.log_subjects import ended_after, excerpt, framework_title, subject_of
from whygpu.causes.evidence.log_triton import outdated_compiler
from whygpu.causes.evidence.log_unmet_requirements import unmet_requirement
from whygpu.causes.evidence.memory_remedies import maker_of
from whygpu.causes.evidence.own_words import of_a_gpu_in_use
from whygpu.causes.evidence.setup_requirements import unfit_requirements
from whygpu.causes.evidence.stated_releases import age_for_named_release
from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.derived import display_name
from whygpu.model.finding import Confidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import LOGS_OF_TENSORFLOW, Log
from whygpu.model.remedy import Action
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.architectures import parse_capability
from whygpu.tables.releases import versions_of
from whygpu.tables.reported_failures import reported_failure

CAUSE = cause(
    "WG303",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        "gpu-unused",
        "gpu-index-unchecked",
        "keras-backend-without-gpu",
        "framework-crashes",
    ),
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
            yield _finding(machine, framework, fits, new)
        for fit in fits:
            if fit.fit == "undocumented":
                yield Gap(
                    f"whether the code of {titled(framework)} ({', '.join(fit.codes)}) runs on "
                    f"{fit.gpu.name}: NVIDIA guarantees nothing between Jetson and other GPUs"
                )


def _finding(
    machine: Snapshot, framework: Framework, fits: Sequence[CodeFit], new: list[CodeFit]
) -> Finding:
    codes = ", ".join(new[0].codes)
    every = len(new) == len(fits)
    fails = every or fails_without_code(machine, framework)
    others = () if every or not fails else (choose_gpus(fits, new),)
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} has no code for {gpu_names(new)}: its binaries have {codes}, "
            "and no PTX that could be compiled for it"
            + ("" if every else "; it has code for other GPUs of this machine")
        ),
        evidence=(
            seen(framework.build.architectures, codes),
            *(seen(fit.gpu.compute_capability, f"{fit.gpu.name}: {fit.capability}") for fit in new),
        ),
        remedies=(*others, _newer_release(framework)),
        confidence="likely" if framework.name == "jax" else "certain",
        severity=None if fails else "warning",
        effect=None if fails else "none",
    )


def _newer_release(framework: Framework) -> Remedy:
    return Remedy(
        f"Install a newer release of {display_name(framework.name)} that was built for this GPU.",
        gpu_build_of(framework),
    )


STATEMENTS = late(
    r"which requires CUDA_VERSION >= \d+ to work properly, but your PyTorch was compiled with"
    r"|invalid value for --gpu-architecture|nvcc fatal {0,4}: Unsupported gpu architecture "
    r"'(?:compute|sm)_(?:[6-9]\d|1[0-2]\d)"
    r"|Value '(?:sm|compute)_(?:[6-9]\d|1[0-2]\d)\w?' is not defined for option 'gpu-(?:name|architecture)'"
    r"|PTX version [\d.]{1,5} does not support target 'sm_\d{2,3}\w?'|Unknown compute capability \(?\d{1,2}[., ]{1,2}\d"
    r"|GPU, which (?:is not yet|may not yet be) supported in this version of the container"
    r"|no kernel image is available for execution on the device[^\n]{0,80}sm_(?:8\d|9\d|1\d\d)"
    r"|current machine is (?:Turing|Ampere|Ada|Hopper|Blackwell)\w{0,12}, which is not compatible with Paddle"
    r"|'sm_\d{2,3}\w?' is not a recognized processor for this target"
    r"|Unsupported \.target '?sm_(?:[89]\d|1[0-2]\d)"
    r"|Feature '[^'\n]{1,80}'\s{1,4}not supported on \.target '?sm_(?:[89]\d|1[0-2]\d)"
    r"|\bno kernels? (?:found )?for sm_(?:9\d|1\d\d)"
    r"|Unknown CUDA arch \(\d{1,2}\.\d\+?(?:PTX)?\) or GPU not supported"
)
NO_CODE = (
    "cudaErrorNoKernelImageForDevice",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUDA_ERROR_INVALID_PTX",
    INVALID_IMAGE,
)
_NO_FUNCTION = "cudaErrorInvalidDeviceFunction"
_FAILS_ON_NEW = (
    "CUBLAS_STATUS_EXECUTION_FAILED",
    "CUBLAS_STATUS_ARCH_MISMATCH",
    "CUDNN_STATUS_EXECUTION_FAILED",
    "CUDNN_STATUS_MAPPING_ERROR",
    "CUDNN_STATUS_ARCH_MISMATCH",
    _NO_FUNCTION,
)
"""Statuses that the libraries of a CUDA release return on a GPU newer than that release."""
_OLD_TORCH = late(
    r"cublas runtime error : (?:the GPU program failed to execute|an internal op)"
    r"|THCGeneral\.cpp line=\d{1,4} error=11 : invalid argument"
    r"|runtime error \(11\) : invalid argument at [^\n]{0,160}THCGeneral"
    # Thrust passes these codes on if it has no code for the GPU.
    r"|(?:radix_sort|merge_sort|parallel_for|reduce|scan|unique\w{0,20})[:\s]{1,2}failed[^\n]{0,40}"
    r"cudaErrorInvalidDevice\b"
)
_ASK = "Which GPU is it, and which CUDA was the build made for? `nvidia-smi -L`;"
_TORCH = "python -c 'import torch; print(torch.version.cuda, torch.cuda.get_arch_list())'"
_BUILD_OF = {
    "tensorflow": "python -c 'import tensorflow as tf; print(tf.sysconfig.get_build_info())'",
    "jax": "python -m pip list | grep -i -E 'jax|nvidia'",
}
_REPORT_THIS = ("torch", "tensorflow", "keras", "")
_CRASHED = ("CUDA_ERROR_LAUNCH_FAILED", "cudaErrorLaunchFailure", "CUDA_ERROR_ILLEGAL_ADDRESS")
"""A kernel ran and crashed, so it had code for the GPU."""
_GEMM = late(r"Blas [A-Z]?GEMM launch failed|Blas xGEMM launch failed|Blas GEMV launch failed")
_MEMORY = late(r"CUBLAS_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED)|[Oo]ut of memory|OOM")
_NOT_STARTED = late(r"CU(?:BLAS|DNN)_STATUS_NOT_INITIALIZED")
_TAKES_LONG = late(
    r"Found device \d{1,2} with properties|Adding visible gpu devices|Created (?:TensorFlow )?device"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    listed = judged_by_list(log)
    if listed is not None:
        if listed.age == "too-new":
            yield _from_log(log, [listed.line], str(listed), "certain")
        return
    compiler = outdated_compiler(log)
    if compiler is not None and compiler.refuses == "gpu":
        # Triton's compiler does not know the GPU, which says nothing about the framework's code.
        return
    statement = log.first(STATEMENTS)
    if statement is not None and dropped_by_compiler(log) is not None:
        return
    if statement is not None and not log.says(REFUSED_AND_OLD):
        what = f"this GPU is newer than the build: {excerpt(statement.text)}"
        yield _from_log(log, [statement.line], what, "likely")
        return
    unmet = unmet_requirement(log)
    if unmet is not None and unmet.of == "capability" and not unmet.too_old:
        what = f"{framework_title(log)} needs another GPU: {excerpt(unmet.text)}"
        yield _from_log(log, [unmet.line], what, "likely")
        return
    compiled = log.first(NO_KERNELS_FOR)
    if compiled is not None and not _works(log, compiled.line):
        capability = compiled.groups["capability"]
        what = (
            f"{framework_title(log)} has no code for compute capability {capability}; the driver "
            "has to compile every kernel, which takes long or fails"
        )
        yield _from_log(log, [compiled.line], what, "certain")
        return
    yield from _by_generation(log)


def _works(log: Log, line: int) -> bool:
    return any(number > line for number in log.progress) and not ended_after(log, line)


def _by_generation(log: Log) -> Iterator[Finding]:
    """No message states it: judge by the GPU's generation and the failure."""
    if maker_of(log) == "amd":
        # Its architectures are named differently, and non-nvidia-backend is about them.
        return
    missing = [status.line for status in log.status_named(*NO_CODE)]
    no_function = [status.line for status in log.status_named(_NO_FUNCTION)]
    failing = [status.line for status in log.status_named(*_FAILS_ON_NEW)]
    failing += [match.line for match in log.find(_OLD_TORCH)]
    gemm = [match.line for match in log.find(_GEMM)]
    if not (missing or no_function or failing or gemm) and (log.failures or log.progress):
        # Searching the names of GPUs takes long, and here the age of one would decide nothing.
        yield from _beside_work(log)
        return
    age, gpu = age_of(log)
    new = age == "too-new" or (age == "unknown" and gpu is not None and gpu.capability >= _TURING)
    if gpu is not None and missing and gpu.capability >= _TURING:
        new = True
    elif age in ("too-old", "fits") or (age == "unknown" and gpu is not None and not new):
        return
    if log.status_named(*_CRASHED):
        return
    lines = missing or failing or gemm
    if lines and new:
        # Turing needs CUDA 10, which nearly all builds of its time use. Later GPUs need CUDA 11.
        doubtful = age == "unknown" and gpu is not None and gpu.capability < (8, 0) and not missing
        yield _from_log(
            log, [*lines, *gemm], _newer(log, gpu), "possible" if doubtful else "likely"
        )
    elif missing or (gpu is None and no_function):
        likely = age_of_unnamed(log) == "too-new"
        what = f"{framework_title(log)} has no code for this GPU, which may be newer than the build"
        yield _from_log(log, missing or no_function, what, "likely" if likely else "possible")
    elif gpu is None and failing and log.framework in _REPORT_THIS and not log.says(_MEMORY):
        what = (
            "CUDA libraries report this on a GPU that is newer than they are: "
            f"{log.line(failing[0]).text.strip()[:140]}"
        )
        yield _from_log(log, [*failing, *gemm], what, "possible")
    elif gpu is None and gemm and not log.says(_MEMORY):
        what = "cuBLAS could not start a kernel; the GPU may be newer than the CUDA of this build"
        yield _from_log(log, gemm, what, "possible")
    elif gpu is not None and not log.failures and not log.progress:
        yield from _at_start_or_told(log, age, gpu)
    elif not lines:
        yield from _beside_work(log)


def _at_start_or_told(log: Log, age: Age, gpu: LogGpu) -> Iterator[Finding]:
    what = f"{_newer(log, gpu)}; it compiles its kernels for many minutes, or fails"
    started = log.first(_TAKES_LONG) or log.first(_NOT_STARTED)
    if age == "too-new" and started is not None:
        yield _from_log(log, [gpu.line, started.line], what, "likely")
    elif age_for_named_release(log, gpu) == "too-new" and (said := of_a_gpu_in_use(log)):
        # A person names the versions and the GPU; the program may use others.
        yield _from_log(log, sorted({gpu.line, said[0]}), what, "possible")
    else:
        yield from _beside_work(log)


def _beside_work(log: Log) -> Iterator[Finding]:
    """A program that works on a GPU that its CUDA libraries do not know, as both are shown."""
    opened = next((e for e in log.library_events("opened", _OLD_LIBRARIES) if e.version), None)
    if opened is None or log.failures or log.framework not in LOGS_OF_TENSORFLOW:
        return
    for device in log.devices:
        capability = parse_capability(device.capability)
        if capability is not None and age_for(capability, opened.version) == "too-new":
            gpu = LogGpu(device.line, device.name, capability)
            what = (
                f"{framework_title(log)} runs on {gpu}, which is newer than the CUDA "
                f"{opened.version} that it loads: it compiles its kernels for minutes, and the "
                "libraries may fail or compute wrong values there"
            )
            yield _from_log(log, [device.line, opened.line], what, "likely")
            return


_OLD_LIBRARIES = ("cudart", "cublas")
_TURING = (7, 5)


def _newer(log: Log, gpu: LogGpu | None) -> str:
    cuda = cuda_of(log)
    build = f"its CUDA {cuda}" if cuda else "the CUDA of this build"
    return f"{framework_title(log)} runs on {gpu}, which is newer than {build}"


def _newest(log: Log) -> Action | None:
    """The plan for this GPU; without it the newest release, as the installed one cannot do it."""
    name = "tensorflow" if log.framework == "keras" else log.framework
    capability = _capability(log)
    if capability is not None and gpu_build(name) is not None:
        return plan_for(name, capability)
    return gpu_build(name)


def _capability(log: Log) -> tuple[int, int] | None:
    listed = judged_by_list(log)
    gpu = next(gpus_of(log), None)
    stated = log.first(NO_KERNELS_FOR)
    if listed is not None:
        return listed.own
    if stated is not None:
        return parse_capability(stated.groups["capability"] or "")
    return gpu.capability if gpu else None


def _remedy(log: Log) -> Remedy:
    name = "tensorflow" if log.framework == "keras" else log.framework
    capability = _capability(log)
    newest = versions_of(name)[-1:] if capability is not None and gpu_build(name) else ()
    report = (
        reported_failure(name, newest[0].version, capability, None)
        if newest and capability is not None
        else None
    )
    if report is not None:
        return Remedy(
            f"The newest release of {display_name(name)}, {newest[0].version}, is reported not to "
            f"work on this GPU either; {report.instead} ({report.sources[0]}).",
            _newest(log),
        )
    return Remedy(
        "Install a release that was built with a CUDA that supports this GPU (Turing: CUDA 10, "
        "Ampere: 11, Ada and Hopper: 11.8, Blackwell: 12.8).",
        _newest(log),
    )


def _from_log(log: Log, lines: list[int], what: str, confidence: Confidence) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        effect="broken" if log.failures else None,
        message=what,
        evidence=log.evidence(*lines, *ended_after(log, min(lines))),
        remedies=(_remedy(log),),
        confidence=confidence,
        ask=None if confidence == "certain" else f"{_ASK} `{_BUILD_OF.get(log.framework, _TORCH)}`",
    )


@CAUSE.on_setup
def detect_in_setup(setup: Setup) -> Iterator[SetupFinding]:
    yield from unfit_requirements(CAUSE, setup, "gpu-too-new")
