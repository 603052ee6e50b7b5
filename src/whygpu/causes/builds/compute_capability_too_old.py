"""The GPU is older than all GPU code in the framework's binaries.

## Why it happens

A framework's binaries contain GPU code for a list of architectures, and new releases drop the
oldest ones. Machine code for `sm_60` runs on compute capability 6.0 and later minor numbers of the
same major number, 6.1 and 6.2. Intermediate code (PTX) for `compute_60` runs on 6.0 and everything
later. No code runs on a GPU older than the code.

## What it looks like

PyTorch warns that the GPU `is of cuda capability 5.0` and is no longer supported, then fails with
`CUDA error: no kernel image is available for execution on the device`. TensorFlow prints that it
will compile kernels from PTX, `which could take 30 minutes or longer`, but it has no PTX for such
an old GPU. Below compute capability 3.5 it prints `Ignoring visible gpu device`.

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

## Fires on (log)

```
2019-05-01 10:00:00.100000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1480] Ignoring visible gpu device (device: 0, name: GeForce GT 630, pci bus id: 0000:01:00.0, compute capability: 2.1) with Cuda compute capability 2.1. The minimum required Cuda capability is 3.0.
```

```
    Found GPU0 GeForce GTX 660 which is of cuda capability 3.0.
    PyTorch no longer supports this GPU because it is too old.
    The minimum cuda capability supported by this library is 3.5.
```

```
NVIDIA TITAN V with CUDA capability sm_70 is not compatible with the current PyTorch installation.
The current PyTorch install supports CUDA capabilities sm_75 sm_80 sm_86 sm_90 sm_100 sm_120.
```

```
2018-03-01 10:00:00.100000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1200] Ignoring visible gpu device (device: 1, name: Quadro K420, pci bus id: 0000:02:00.0, compute capability: 3.0) with Cuda multiprocessor count: 1. The minimum required count is 8. You can adjust this requirement with the env var TF_MIN_GPU_MULTIPROCESSOR_COUNT.
InvalidArgumentError (see above for traceback): Cannot assign a device for operation 'a': Operation was explicitly assigned to /device:GPU:0 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ].
```

```
ptxas /tmp/kernel.ptx, line 212; error   : Feature '.bf16' requires .target sm_80 or higher
ptxas fatal   : Ptx assembly aborted due to errors
```

## Quiet on (log)

TensorFlow ignores the small GPU of the display and uses the large one.

```
2019-05-01 10:00:00.100000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1480] Ignoring visible gpu device (device: 1, name: Quadro K600, pci bus id: 0000:02:00.0, compute capability: 3.0) with Cuda compute capability 3.0. The minimum required Cuda capability is 3.5.
2019-05-01 10:00:00.200000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1115] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 10000 MB memory) -> physical GPU (device: 0, name: GeForce GTX 1080 Ti, pci bus id: 0000:01:00.0, compute capability: 6.1)
step 100 loss 0.5
```

## Fires on (setup)

The machine is given by `whygpu lint --gpu`.

```
==> machine <==
gpu = "6.1"
==> requirements.txt <==
torch==2.9.1
```

## Quiet on (setup)

```
==> machine <==
gpu = "6.1"
==> requirements.txt <==
torch==2.4.1
```

## Sources

- <https://docs.nvidia.com/cuda/ada-compatibility-guide/index.html>
- <https://developer.nvidia.com/cuda-gpus>
- <https://github.com/pytorch/pytorch/issues/157517>
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.framework_builds import (
    CodeFit,
    choose_gpus,
    code_fits,
    fails_without_code,
    gpu_names,
    titled,
)
from whygpu.causes.evidence.framework_installs import gpu_build_of, plan_for
from whygpu.causes.evidence.log_gpu_generations import (
    INVALID_IMAGE,
    REFUSED_AND_OLD,
    LogGpu,
    age_of,
    age_of_unnamed,
    dropped_by_compiler,
    gpus_of,
    judged_by_list,
)
from whygpu.causes.evidence.log_libraries import WITHOUT_GPU
from whygpu.causes.evidence.log_subjects import ended_after, excerpt, framework_title, subject_of
from whygpu.causes.evidence.log_unmet_requirements import unmet_requirement
from whygpu.causes.evidence.setup_requirements import unfit_requirements
from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.derived import display_name
from whygpu.model.finding import Confidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import LOGS_OF_TENSORFLOW, Log, Match
from whygpu.model.remedy import SetVariable
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.architectures import parse_capability

CAUSE = cause(
    "WG302",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        "gpu-unused",
        "gpu-index-unchecked",
        "keras-backend-without-gpu",
        "framework-crashes",
        "device-placement-nonexistent",
        "device-placement-no-gpu-kernel",
    ),
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
            yield _finding(machine, framework, fits, old)


def _finding(
    machine: Snapshot, framework: Framework, fits: Sequence[CodeFit], old: list[CodeFit]
) -> Finding:
    codes = ", ".join(old[0].codes)
    every = len(old) == len(fits)
    fails = every or fails_without_code(machine, framework)
    others = () if every or not fails else (choose_gpus(fits, old),)
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} has no code for {gpu_names(old)}: its binaries have {codes}, "
            "all for newer GPUs" + ("" if every else "; it has code for other GPUs of this machine")
        ),
        evidence=(
            seen(framework.build.architectures, codes),
            *(seen(fit.gpu.compute_capability, f"{fit.gpu.name}: {fit.capability}") for fit in old),
        ),
        remedies=(*others, *_remedies(framework, old[0].capability)),
        # JAX contains few kernels of its own; it compiles most of them for the GPU in use.
        confidence="likely" if framework.name == "jax" else "certain",
        severity=None if fails else "warning",
        effect=None if fails else "none",
    )


def _remedies(framework: Framework, capability: str) -> tuple[Remedy, ...]:
    numbers = parse_capability(capability)
    build = Remedy(f"Or build it from source for compute capability {capability}.")
    if framework.name == "tensorflow":
        text = "Install the newest release that has code for this GPU."
        return (Remedy(text, gpu_build_of(framework)), build)
    if framework.name == "torch" and numbers is not None and (5, 0) <= numbers < (7, 5):
        text = (
            "Install the newest release that has code for this GPU. PyTorch's builds for CUDA 12.6 "
            "(https://download.pytorch.org/whl/) have it longer than those for newer CUDA."
        )
        return (Remedy(text, gpu_build_of(framework, removes=("torch",))), build)
    if framework.name == "jax":
        text = (
            "Install the newest release that has code for this GPU. JAX's plug-in for CUDA 12 has "
            "it longer than that for CUDA 13, which has to be removed."
        )
        plugins = tuple(plugin.name for plugin in framework.plugins)
        return (Remedy(text, gpu_build_of(framework, removes=plugins)), build)
    name = display_name(framework.name)
    text = f"Install an older release of {name} that has code for compute capability {capability}."
    return (Remedy(text), build)


STATEMENTS = late(
    r"Value '(?:sm|compute)_[2-5]\d\w?' is not defined for option 'gpu-(?:name|architecture)'|"
    r"The minimum required (?:Cuda capability|count) is (?P<minimum>[\d.]*\d)"
    r"|(?:Found GPU\d+ (?P<name>[^\n]{1,60}?) which is of cuda capability (?P<own>[\d.]*\d)\.?\s{1,20})?"
    r"PyTorch no longer supports this GPU because it is too old"
    r"|has CUDA compute capability (?P<jax>[\d.]*\d),? which is lower than the minimum"
    r"|Triton only supports devices of CUDA Capability >= [\d.]+"
    r"|which is too old to be supported by the triton GPU compiler"
    r"|FlashAttention only supports \w+ GPUs or newer"
    r"|requires device with capability >=? ?\(\d+, \d\) but your GPU has capability \(\d+, \d\) \(too old"
    r"|architecture or newer is required\.\s{1,8}Detected GPU"
    r"|\(Compute Capability [\d.]{1,4}\) or newer architecture is required"
    r"|[Dd]evice with compute capability lower than"
    r"|is only supported on (?:GPUs|devices) with compute capability (?:of at least|>=) ?[\d.]+"
    r"|requires? (?:an? )?(?:GPU|device)s? with (?:compute capability (?:of )?(?:at least |>=? ?)|sm_?)\d"
    r"|compute capability \S{1,12} is (?:not supported|too low|lower than)"
    r"|is of insufficient compute capability: [\d.]+ required"
    r"|\bGPU is too old\b[^\n]{0,20}Compute Capability"
    r"|nvcc fatal {0,4}: Unsupported gpu architecture '(?:compute|sm)_(?:[1-4]\d|5\d)'"
    r"|CUDNN_STATUS_(?:NOT_SUPPORTED_)?ARCH_MISMATCH"
    r"|(?:Feature|Instruction|Modifier) '[^'\n]{1,60}' requires \.target sm_\d{2,3}\w? or higher"
    r"|Expected is_sm\d{2}\w? ?(?:\|\|[^\n]{1,80})?to be true"
    r"|(?:un|not )supported on this GPU (?:generation|architecture)"
    # Triton. Processors have architectures as well.
    r"|\btype fp8\w{1,12} not supported in this architecture"
    r"|[Kk]ernels? requires? (?:a )?(?:GPU with )?compute capability (?:>=|of at least|at least) ?\d"
    r"|\bSM\d{2} kernel is not available|need a GPU with NVIDIA \w{4,12}\W{0,4}(?:TM\) )?or newer architecture"
    r"|-arch=compute_[1-5]\d is an unsupported option"
    r"|kernel requires [\d.]+ capability|minimum required compute capability [\d.]+|ERROR: Arch mismatch"
    r"|current machine is (?:Fermi|Kepler|Maxwell|Pascal|Volta), which is not compatible with Paddle"
    r"|Minimum capability: \d{2,3}\. Current capability: \d{2,3}"
    r"|LLVM ERROR: Cannot select: intrinsic %llvm\.nvvm\."
    r"|[Cc]an ?not use cuDNN on context \S{1,20}: Device not supported"
    r"|Could not find compatible tinycudann extension for compute capability \d"
)
NO_CODE = (
    "cudaErrorNoKernelImageForDevice",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "cudaErrorInvalidDeviceFunction",
    INVALID_IMAGE,
)
_OF_AMD = late(r"\bHIP error|hipError|\bROCm\b")
_UNSUPPORTED = (
    "CUBLAS_STATUS_NOT_SUPPORTED",
    "CUBLAS_STATUS_ARCH_MISMATCH",
    "CUDNN_STATUS_NOT_SUPPORTED",
)
_VOLTA = (7, 0)
"""The first GPUs with tensor cores, which many operations of cuBLAS and cuDNN need."""
_OLDEST = (3, 0)
"""No framework binary has ever run on an older GPU."""


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    listed = judged_by_list(log)
    if listed is not None:
        if listed.age == "too-old":
            yield _from_log(log, [listed.line], str(listed), "certain")
        return
    statement = log.first(STATEMENTS) or log.first(REFUSED_AND_OLD)
    statement = statement or dropped_by_compiler(log)
    if statement is not None and log.says(_WITHOUT_CUDA) and _ONE_OPERATOR.search(statement.text):
        # xFormers lists for each of its operators why it cannot be used; it was built for no GPU.
        return
    if statement is not None and _ONE_OPERATOR.search(statement.text):
        what = f"an operator of a library needs a newer GPU: {excerpt(statement.text, 200)}"
        yield _from_log(log, [statement.line], what, "likely")
        return
    if statement is not None and (lacking := _DATA_TYPE.search(statement.text)) is not None:
        yield _lacks_type(log, statement, lacking["type"])
        return
    if statement is not None and (part := _part_of_it(statement)) is not None:
        yield _for_newer_gpus(log, statement, *part)
        return
    if statement is not None:
        ready = any(device.event == "ready" for device in log.devices)
        used = ready and not ended_after(log, statement.line)
        yield _ignored(log, statement, used=used)
        return
    unmet = unmet_requirement(log)
    if unmet is not None and unmet.of == "capability" and unmet.too_old:
        what = f"{framework_title(log)} needs another GPU: {excerpt(unmet.text)}"
        yield _from_log(log, [unmet.line], what, "likely")
        return
    lacking_operation = log.status_named(*_UNSUPPORTED)
    statuses = log.status_named(*NO_CODE)
    if not (lacking_operation or statuses or log.failures):
        # Searching the names of GPUs takes long, and here the age of one would decide nothing.
        return
    age, gpu = age_of(log)
    if gpu is not None and gpu.capability < _OLDEST and log.failures:
        yield _from_log(log, [gpu.line], f"{gpu} is too old for any release", "likely")
        return
    if lacking_operation and gpu is not None and gpu.capability < _VOLTA:
        lines = [gpu.line, *(status.line for status in lacking_operation)]
        what = f"a CUDA library does not support an operation on {gpu}"
        yield _from_log(log, lines, what, "likely")
        return
    if statuses and not log.says(_OF_AMD):
        yield from _no_code(log, [status.line for status in statuses], age, gpu)


_WITHOUT_CUDA = late(r"xFormers wasn't build with CUDA support")
_ONE_OPERATOR = late(r"requires device with capability")
_DATA_TYPE = late(
    r"\b(?P<type>bfloat16|bf16|float8\w{0,12}|fp8|float16|fp16|half)\b[^\n]{0,60}"
    r"(?:only supported on|requires?\b)",
    re.IGNORECASE,
)


def _lacks_type(log: Log, statement: Match, name: str) -> Finding:
    """The GPU works, but has no instructions for the data type that the program uses."""
    of_16_bits = name.lower() in ("bfloat16", "bf16")
    other = (
        "float16 (half): --dtype=half in vLLM, torch_dtype=torch.float16 and fp16=True (not "
        "bf16=True) in Transformers"
        if of_16_bits
        else "a wider type, such as float16 or float32"
    )
    return CAUSE.finding(
        subject=subject_of(log),
        effect="broken" if log.failures else "none",
        message=f"this GPU does not support {name}, which the program uses: "
        f"{excerpt(statement.text, 200)}",
        evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
        remedies=(Remedy(f"Make the program compute with {other}."),),
        confidence="likely",
        ask="Does the program work with the other data type?",
    )


_TRITON_NEEDS = late(r"[Tt]riton")
_COMPILED_FOR_NEWER = late(
    r"compatible tinycudann extension for compute capability (?P<own>\d{2,3})"
)
_ATTENTION_NEEDS = late(r"FlashAttention only supports")


def _part_of_it(statement: Match) -> tuple[str, tuple[Remedy, ...]] | None:
    """A part of the program that needs a newer GPU, while the framework itself can use this one."""
    if _TRITON_NEEDS.search(statement.text):
        return "torch.compile (its compiler Triton)", (
            Remedy(
                "Run without torch.compile; everything else works on this GPU.",
                SetVariable("TORCHDYNAMO_DISABLE", "1"),
            ),
        )
    compiled = _COMPILED_FOR_NEWER.search(statement.text)
    if compiled is not None:
        return "tiny-cuda-nn as it was compiled", (
            Remedy(
                "Compile it again for this GPU, in an environment with this variable.",
                SetVariable("TCNN_CUDA_ARCHITECTURES", compiled["own"]),
            ),
        )
    if _ATTENTION_NEEDS.search(statement.text):
        return "FlashAttention", (
            Remedy(
                "Choose another implementation of attention: attn_implementation='sdpa' in "
                "Transformers, or the option for it of the program."
            ),
        )
    return None


def _for_newer_gpus(log: Log, statement: Match, what: str, remedies: tuple[Remedy, ...]) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"this GPU is too old for {what}: {excerpt(statement.text, 200)}",
        evidence=log.evidence(statement.line, *ended_after(log, statement.line)),
        remedies=remedies,
        effect="broken",
    )


def _ignored(log: Log, statement: Match, *, used: bool) -> Finding:
    lines = [match.line for match in log.find(STATEMENTS)]
    return CAUSE.finding(
        subject=subject_of(log),
        severity="info" if used else None,
        effect="none" if used else None,
        message=f"{framework_title(log)} does not use a GPU because it is too old or too small for "
        f"this build: {excerpt(statement.text, 200)}" + ("; it uses another GPU" if used else ""),
        evidence=log.evidence(
            *lines,
            *(device.line for device in log.devices if device.event == "ignored"),
            *(match.line for match in log.find(WITHOUT_GPU) if match.line > statement.line),
            *(() if used else ended_after(log, statement.line)),
        ),
        remedies=_limit_remedies(statement) or _old_remedies(log),
    )


_MULTIPROCESSORS = late(r"with Cuda multiprocessor count: (?P<count>\d{1,4})\b")


def _limit_remedies(statement: Match) -> tuple[Remedy, ...]:
    """TensorFlow leaves a GPU out that is much smaller than another; that is only a setting."""
    small = _MULTIPROCESSORS.search(statement.text)
    if small is None:
        return ()
    return (
        Remedy(
            "If TensorFlow should use this GPU too, lower its limit; otherwise nothing needs to be "
            "done.",
            SetVariable("TF_MIN_GPU_MULTIPROCESSOR_COUNT", small["count"]),
        ),
    )


def _no_code(log: Log, lines: list[int], age: str, gpu: LogGpu | None) -> Iterator[Finding]:
    """No code for this GPU: its generation shows whether it is too new or too old."""
    old = age == "too-old" or (gpu is not None and gpu.capability < _TURING)
    what = f"{framework_title(log)} has no code for {gpu or 'this GPU'}"
    if old:
        yield _from_log(log, lines, what, "likely")
    elif gpu is None:
        likely = age_of_unnamed(log) == "too-old"
        what = f"{what}, which may be too old for this build"
        yield _from_log(log, lines, what, "likely" if likely else "possible")


_TURING = (7, 5)


def _from_log(log: Log, lines: list[int], what: str, confidence: Confidence) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        effect="broken" if log.failures else None,
        message=what,
        evidence=log.evidence(*lines, *ended_after(log, min(lines))),
        remedies=_old_remedies(log),
        confidence=confidence,
        ask=None
        if confidence == "certain"
        else "Which GPU is it? `nvidia-smi --query-gpu=name,compute_cap --format=csv`",
    )


def _own_capability(log: Log) -> tuple[int, int] | None:
    listed, gpu = judged_by_list(log), next(gpus_of(log), None)
    return listed.own if listed else gpu.capability if gpu else None


def _old_remedies(log: Log) -> tuple[Remedy, ...]:
    if log.framework == "torch":
        return (
            Remedy(
                "Install a release that has code for this GPU. PyTorch's builds for CUDA 12.6 have "
                "it from Maxwell to Volta; older GPUs need an older release.",
                plan_for("torch", _own_capability(log)),
            ),
            Remedy("Or build it from source for this GPU."),
        )
    capability = _own_capability(log)
    if log.framework in LOGS_OF_TENSORFLOW and capability is not None:
        first = Remedy(
            "Install a release of TensorFlow that has code for this GPU.",
            plan_for("tensorflow", capability),
        )
    else:
        first = Remedy(
            f"Install an older release of {framework_title(log)} that was built for such GPUs."
        )
    return (
        first,
        Remedy("Or build it from source for this GPU's compute capability."),
        Remedy("Or run on the CPU."),
    )


@CAUSE.on_setup
def detect_in_setup(setup: Setup) -> Iterator[SetupFinding]:
    yield from unfit_requirements(CAUSE, setup, "gpu-too-old")
