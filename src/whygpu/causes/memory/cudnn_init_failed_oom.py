"""cuDNN or cuBLAS cannot start because the GPU has no free memory.

## Why it happens

Before the first computation a framework creates a CUDA context and handles for cuBLAS and cuDNN,
which need some hundred megabytes. This fails if another process holds the memory, or if TensorFlow
itself has reserved all of it for tensors. The error then names cuDNN or cuBLAS and not the memory.

## What it looks like

- `Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED` (or ALLOC_FAILED,
  INTERNAL_ERROR), then "DNN library is not found" or "is not initialized".
- `Failed to get convolution algorithm. This is probably because cuDNN failed to initialize`.
- `CUBLAS_STATUS_NOT_INITIALIZED`, `CUBLAS_STATUS_ALLOC_FAILED`, `Blas GEMM launch failed`.
- TensorFlow adds `Possibly insufficient driver version`, which is a wrong guess.
- `CUDA_ERROR_OUT_OF_MEMORY`, `RESOURCE_EXHAUSTED`, `torch.cuda.OutOfMemoryError`.

## Fix

End the process that holds the memory, or choose another GPU. Make TensorFlow allocate memory as
needed (TF_FORCE_GPU_ALLOW_GROWTH=true). Reinstalling cuDNN does not help.

## Fires on (machine)

```toml
only = ["tensorflow"]
[driver.gpus.0]
memory_used_bytes = 51000000000
processes = [{pid = 4711, name = "python", memory_bytes = 50500000000}]
[[probes]]
name = "tensorflow"
[[probes.operations]]
operation = "convolution"
requested = "GPU:0"
ran_on = {unknown = "UnimplementedError: DNN library is not found"}
kind = "gpu"
correct = {unknown = "UnimplementedError: DNN library is not found"}
```

## Quiet on (machine)

The same error while all memory is free has another reason.

```toml
only = ["torch"]
[[probes]]
name = "torch"
[[probes.operations]]
operation = "convolution"
requested = "cuda:0"
ran_on = {unknown = "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"}
kind = "gpu"
correct = {unknown = "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"}
```

## Cannot tell on (machine)

```toml
only = ["torch"]
[driver.gpus.0]
memory_used_bytes = {unknown = "NVML: Not Supported"}
[[probes]]
name = "torch"
[[probes.operations]]
operation = "matmul"
requested = "cuda:0"
ran_on = {unknown = "torch.OutOfMemoryError: CUDA out of memory."}
kind = "gpu"
correct = {unknown = "torch.OutOfMemoryError: CUDA out of memory."}
```

## Fires on (log)

```
2020-01-11 17:03:20.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1304] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 4606 MB memory) -> physical GPU (device: 0, name: GeForce GTX 1660 Ti, pci bus id: 0000:01:00.0, compute capability: 7.5)
2020-01-11 17:03:26.000000: E tensorflow/stream_executor/cuda/cuda_dnn.cc:329] Could not create cudnn handle: CUDNN_STATUS_INTERNAL_ERROR
tensorflow.python.framework.errors_impl.UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to initialize, so try looking to see if a warning log message was printed above. [Op:Conv2D]
```

```
2023-04-02 10:10:10.000000: E tensorflow/compiler/xla/stream_executor/cuda/cuda_dnn.cc:417] Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED
2023-04-02 10:10:10.000001: E tensorflow/compiler/xla/stream_executor/cuda/cuda_dnn.cc:426] Possibly insufficient driver version: 525.105.17
UnimplementedError: Graph execution error: DNN library is not found.
```

```
RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`
```

## Quiet on (log)

The versions do not match, and the log reports it.

```
E tensorflow/stream_executor/cuda/cuda_dnn.cc:319] Loaded runtime CuDNN library: 7.1.4 but source was compiled with: 7.4.1.  CuDNN library major and minor version needs to match or have higher minor version in case of CuDNN 7.0 or later version.
UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to initialize, so try looking to see if a warning log message was printed above.
```

An assertion in a kernel failed first; after it nothing works on the GPU.

```
/pytorch/aten/src/ATen/native/cuda/Indexing.cu:699: indexSelectLargeIndex: block: [12,0,0], thread: [64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.
RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`
```

## Sources

- <https://github.com/tensorflow/tensorflow/issues/24828>
- <https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html>
- <https://docs.nvidia.com/cuda/cublas/index.html#cublasstatus-t>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.driver_state import selected_gpus
from whygpu.causes.evidence.gpu_memory import named_holders, share_used
from whygpu.causes.evidence.log_cudnn_engines import (
    OTHER_RELEASE,
    WHICH_OF_THEM,
    WHY_REFUSED,
    WITHOUT_CUDNN,
    every_engine_failed,
)
from whygpu.causes.evidence.log_libraries import cudnn_unusable
from whygpu.causes.evidence.log_out_of_memory import shortage
from whygpu.causes.evidence.log_status_families import decided_by_code
from whygpu.causes.evidence.log_subjects import (
    framework_title,
    gpu_ends_after,
    is_tensorflow,
    subject_of,
)
from whygpu.causes.evidence.log_tensorflow_api import grow_as_needed
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.driver import Gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, Undetermined, Unknown, need
from whygpu.model.probe import Probe
from whygpu.model.remedy import Action, SetVariable, command_line, set_variables
from whygpu.model.snapshot import Snapshot
from whygpu.model.units import size_text
from whygpu.tables.out_of_memory import HANDLE_FAILED

CAUSE = cause(
    "WG503",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=(
        "gpu-unused",
        "keras-backend-without-gpu",
        "oom-other-process",
        "framework-crashes",
        "framework-import-fails",
    ),
)

_MEMORY_LACKING = late(
    r"CUDNN_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED|INTERNAL_ERROR)"
    r"|CUBLAS_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED)"
    r"|DNN library (?:is not found|initialization failed)"
    r"|create cu(?:dnn|blas) handle|CUDA_ERROR_OUT_OF_MEMORY|out of memory|RESOURCE_EXHAUSTED",
    re.IGNORECASE,
)

_START_FAILED = late(
    r"[Ff]ailed to get convolution algorithm|cuDNN launch failure|No algorithm worked!"
    r"|Failed to call (?:Then|Do)Rnn(?:Forward|Backward)"
    r"|CUDNN_STATUS_(?:INTERNAL_ERROR|EXECUTION_FAILED)\b"
    r"|Error: [^\n]{0,40}Failed to determine best cudnn convolution algorithm"
)
"""XLA and TensorFlow print this if they have reserved the memory and cuDNN gets none."""
_INTERNAL_ERROR = late(r"\bCUDNN_STATUS_INTERNAL_ERROR\b")
"""PyTorch and others print this for any reason, memory among them."""
_VERSIONS_DIFFER = late(
    r"Loaded runtime CuDNN library|CUDNN_STATUS_(?:SUBLIBRARY_|VERSION_)\w{0,30}MISMATCH"
    r"|incompatible cuDNN|cuDNN version incompatibility|CUDNN_STATUS_ARCH_MISMATCH"
    r"|Invalid handle\. Cannot load symbol cudnn|CUDA version \S{1,12} (?:is"
    r"|not) [^\n]{0,40}compatible"
)
_GPU_FAULT = late(
    r"device-side assert|Assertion [`'][^\n]{0,200} failed|ILLEGAL_ADDRESS|illegal memory access"
    r"|CUDA_ERROR_LAUNCH_FAILED|unspecified launch failure|NVRM: Xid|no kernel image|GPU sync failed"
    r"|is not compatible with the current PyTorch"
)
_OLD_CUDA = late(r"(?:libcu(?:dart|blas)\.so\.|cu(?:dart|blas)64_)(?:8|9|10)")
_AMPERE = late(
    r"compute capability:? (?:8\.[0-9]|9\.|1[0-9]\.)|computeCapability: (?:8|9|1[0-9])\."
)
_MOST_LINES = 8

_MUCH = 0.5
"""If other processes hold less than this share, the handles still fit."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    if machine.probes_left_out:
        raise Undetermined(machine.probes_left_out)
    failed = [(probe, words) for probe in machine.probes if (words := _failure(probe))]
    if not failed:
        return
    full: list[Gpu] = []
    unclear: list[str] = []
    for gpu in selected_gpus(machine):
        share = share_used(gpu)
        if isinstance(share, Known) and share.value >= _MUCH:
            full.append(gpu)
        elif isinstance(share, Unknown):
            unclear.append(f"GPU {gpu.number} ({gpu.name}): {share.reason}")
    for probe, words in failed:
        if full:
            yield _finding(probe, words, full[0])
        elif unclear:
            yield Gap(
                f"whether {display_name(probe.name)} fails because memory is lacking ({words}); "
                f"the memory in use is unknown for {unclear[0]}"
            )


def _failure(probe: Probe) -> str | None:
    """The message of a failed GPU operation, if it is about memory or a handle."""
    messages = [
        operation.ran_on.reason
        for operation in probe.operations
        if operation.kind == "gpu" and isinstance(operation.ran_on, Unknown)
    ]
    if probe.ended == "exception":
        messages.append(probe.how)
    return next((words for words in messages if _MEMORY_LACKING.search(words)), None)


def _finding(probe: Probe, words: str, gpu: Gpu) -> Finding:
    name = display_name(probe.name)
    used, total = need(gpu.memory_used_bytes), need(gpu.memory_total_bytes)
    who = named_holders(gpu)
    by = f", held by {who}" if who else ""
    return CAUSE.finding(
        subject=probe.name,
        message=f"{name} fails on the GPU ({words}) while {size_text(used)} of the "
        f"{size_text(total)} of GPU {gpu.number} ({gpu.name}) are in use{by}",
        evidence=(
            Evidence("probe", f"{name} probe", words),
            seen(gpu.memory_used_bytes, f"{size_text(used)} of {size_text(total)} in use"),
        ),
        remedies=(
            Remedy(
                "Check which processes hold the memory, and end those that are not needed.",
                command_line("nvidia-smi"),
            ),
            Remedy(
                "Or choose a GPU with more free memory, by its number in CUDA_VISIBLE_DEVICES.",
                command_line("nvidia-smi --query-gpu=index,memory.free --format=csv"),
            ),
            *_sharing(probe),
        ),
        confidence="likely",
    )


def _sharing(probe: Probe) -> tuple[Remedy, ...]:
    """TensorFlow and JAX reserve most of the memory at start; PyTorch does not."""
    variables: dict[str, Action] = {
        "jax": SetVariable("XLA_PYTHON_CLIENT_PREALLOCATE", "false"),
        "tensorflow": SetVariable("TF_FORCE_GPU_ALLOW_GROWTH", "true"),
        "keras": set_variables(
            TF_FORCE_GPU_ALLOW_GROWTH="true", XLA_PYTHON_CLIENT_PREALLOCATE="false"
        ),
    }
    action = variables.get(probe.name)
    text = "To share a GPU, let no program reserve all of it at start."
    return (Remedy(text, action),) if action is not None else ()


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    if log.says(_VERSIONS_DIFFER) or log.says(_GPU_FAULT) or _library_missing(log):
        return
    if cudnn_unusable(log) is not None:
        return
    lines = [match.line for match in log.find(HANDLE_FAILED)]
    lines += [status.line for status in decided_by_code(log, CAUSE.slug)]
    if is_tensorflow(log) or log.framework == "jax":
        found = log.find(_START_FAILED)
        lines += [match.line for match in found if "[cudnn_frontend]" not in match.text]
    else:
        lines += [match.line for match in log.find(_INTERNAL_ERROR)]
    refused = [match.line for match in every_engine_failed(log)]
    if refused and not lines and not _held_by_others(log):
        yield _no_engine_worked(log, refused)
    if not lines:
        return
    if _held_by_others(log):
        return
    lines = sorted(set(lines))
    ends = gpu_ends_after(log, lines[0])
    new_on_old = log.says(_OLD_CUDA) and log.says(_AMPERE)
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{framework_title(log)} cannot start {_libraries(log)} on the GPU, most often "
        f"because no memory is left for {'it' if _only_curand(log) else 'them'}{_reserved(log)}",
        evidence=log.evidence(*lines[:_MOST_LINES], *ends[:_MOST_LINES]),
        remedies=_log_remedies(log),
        confidence="possible" if new_on_old or _only_curand(log) else "likely",
        ask=_question(log),
    )


def _no_engine_worked(log: Log, lines: list[int]) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"{framework_title(log)} tried every algorithm that cuDNN has for an operation, "
        "and none worked: too little memory was left to work in, cuDNN has none for this data type, "
        "shape and GPU, or another cuDNN is loaded than the build needs",
        evidence=log.evidence(*lines[:_MOST_LINES], *gpu_ends_after(log, lines[0])[:_MOST_LINES]),
        remedies=(
            Remedy(
                "See how much memory is free, and who holds the rest.", command_line("nvidia-smi")
            ),
            Remedy("Make the batch smaller: halve it until it works, or is 1."),
            WHY_REFUSED,
            WITHOUT_CUDNN,
            OTHER_RELEASE,
        ),
        confidence="possible",
        ask=WHICH_OF_THEM,
    )


def _only_curand(log: Log) -> bool:
    return bool(log.statuses) and all(status.api == "curand" for status in log.statuses)


def _libraries(log: Log) -> str:
    return "cuRAND" if _only_curand(log) else "cuDNN or cuBLAS"


def _held_by_others(log: Log) -> bool:
    """The log shows that another process holds the memory; that is the cause."""
    found = shortage(log)
    return found is not None and found.reason == "other-process"


def _question(log: Log) -> str:
    if _only_curand(log):
        return (
            "How much memory is free when it fails (`nvidia-smi`)? If much is free, cuRAND is of "
            "another CUDA release than the framework or the driver."
        )
    if log.framework == "torch":
        return (
            "How much memory is free when it fails (nvidia-smi)? If much is free, run the same "
            "batch on the CPU: an index out of range has the same effect."
        )
    variable = ""
    if is_tensorflow(log):
        variable = "TF_FORCE_GPU_ALLOW_GROWTH=true and "
    elif log.framework == "jax":
        variable = "XLA_PYTHON_CLIENT_PREALLOCATE=false and "
    return (
        f"Does it work with {variable}no other program on the GPU (nvidia-smi)? If not, compare "
        "the loaded cuDNN with the one that the build needs."
    )


def _library_missing(log: Log) -> bool:
    parts = ("cudnn", "cublas", "cublasLt", "cusolver", "cusparse", "cufft")
    return any(log.library_events(outcome, parts) for outcome in ("not-found", "broken"))


def _reserved(log: Log) -> str:
    ready = [device for device in log.devices if device.event == "ready" and device.memory]
    if not ready or ready[0].memory is None:
        return ""
    return f"; TensorFlow has reserved {size_text(ready[0].memory)} of {ready[0].name} for tensors"


def _log_remedies(log: Log) -> tuple[Remedy, ...]:
    holders = Remedy(
        "Check which processes hold the memory, and end those that are not needed.",
        command_line("nvidia-smi"),
    )
    if log.framework == "cupy":
        limit = SetVariable("CUPY_GPU_MEMORY_LIMIT", "80%")
        return (holders, Remedy("Leave memory outside of CuPy's pool for cuRAND.", limit))
    if log.framework == "torch" or _only_curand(log):
        return (
            holders,
            Remedy("Let the program use less memory: a smaller batch, or a smaller model."),
            Remedy(
                "If memory is free, check whether a label or a token id is out of range: run it "
                "once on the CPU, or with CUDA_LAUNCH_BLOCKING=1."
            ),
        )
    if log.framework == "jax":
        return (
            Remedy(
                "Leave memory for cuDNN and cuBLAS in addition to what JAX reserves.",
                SetVariable("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5"),
            ),
            holders,
        )
    return (
        grow_as_needed(log, "Let TensorFlow allocate memory as needed, so that cuDNN gets some"),
        holders,
        Remedy(
            "Or choose a GPU with more free memory, by its number in CUDA_VISIBLE_DEVICES.",
            command_line("nvidia-smi --query-gpu=index,memory.free --format=csv"),
        ),
    )
