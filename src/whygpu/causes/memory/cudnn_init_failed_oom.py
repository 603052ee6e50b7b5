"""Work on the GPU fails because its memory is taken by other processes.

## Why it happens

Before it computes anything, a framework sets up a CUDA context and handles for cuBLAS and cuDNN,
some hundred megabytes in all. When another process holds the memory, that fails, and the error
names cuDNN or cuBLAS and not the memory.

## What it looks like

- `Could not create cudnn handle: CUDNN_STATUS_NOT_INITIALIZED` (or ALLOC_FAILED,
  INTERNAL_ERROR), then "DNN library is not found" or "is not initialized".
- `CUBLAS_STATUS_NOT_INITIALIZED`, `CUBLAS_STATUS_ALLOC_FAILED`.
- `CUDA_ERROR_OUT_OF_MEMORY`, `RESOURCE_EXHAUSTED`, `torch.cuda.OutOfMemoryError`.

## Fix

End the process that holds the memory, or choose another GPU. Reinstalling cuDNN does not help.

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

The same error with all memory free has another reason.

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

## Sources

- <https://github.com/tensorflow/tensorflow/issues/24828>
- <https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/cudnn-graph-library.html>
- <https://docs.nvidia.com/cuda/cublas/index.html#cublasstatus-t>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.shared_driver import selected_gpus
from whygpu.causes.shared_memory import gibibytes, named_holders, share_used
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.driver import Gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.observed import Known, Undetermined, Unknown, need
from whygpu.model.probe import Probe
from whygpu.model.snapshot import Snapshot

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

_WANT_OF_MEMORY = re.compile(
    r"CUDNN_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED|INTERNAL_ERROR)"
    r"|CUBLAS_STATUS_(?:NOT_INITIALIZED|ALLOC_FAILED)"
    r"|DNN library (?:is not found|initialization failed)"
    r"|create cu(?:dnn|blas) handle|CUDA_ERROR_OUT_OF_MEMORY|out of memory|RESOURCE_EXHAUSTED",
    re.IGNORECASE,
)

_MUCH = 0.5
"""Below this share of memory in others' hands, handles of some hundred megabytes do fit."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    if machine.probes_left_out:
        raise Undetermined(f"nothing was run on the GPU: {machine.probes_left_out}")
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
                f"whether {display_name(probe.name)} fails for want of memory ({words}); how full "
                f"it is cannot be told for {unclear[0]}"
            )


def _failure(probe: Probe) -> str | None:
    """The words with which work on the GPU failed, where they speak of memory or a handle."""
    said = [
        operation.ran_on.reason
        for operation in probe.operations
        if operation.kind == "gpu" and isinstance(operation.ran_on, Unknown)
    ]
    if probe.ended == "exception":
        said.append(probe.how)
    return next((words for words in said if _WANT_OF_MEMORY.search(words)), None)


def _finding(probe: Probe, words: str, gpu: Gpu) -> Finding:
    name = display_name(probe.name)
    used, total = need(gpu.memory_used_bytes), need(gpu.memory_total_bytes)
    who = named_holders(gpu)
    by = f", held by {who}" if who else ""
    return CAUSE.finding(
        subject=probe.name,
        message=f"{name} fails on the GPU ({words}) while {gibibytes(used)} of the "
        f"{gibibytes(total)} of GPU {gpu.number} ({gpu.name}) are taken{by}",
        evidence=(
            Evidence("probe", f"{name} probe", words),
            seen(gpu.memory_used_bytes, f"{gibibytes(used)} of {gibibytes(total)} in use"),
        ),
        remedies=(
            Remedy("See who holds the memory, and end what is not needed.", "nvidia-smi"),
            Remedy(
                "Or choose a GPU with more room, by its number in CUDA_VISIBLE_DEVICES.",
                "nvidia-smi --query-gpu=index,memory.free --format=csv",
            ),
            Remedy(
                "To share a GPU, let no program take all of it at start.",
                "export TF_FORCE_GPU_ALLOW_GROWTH=true XLA_PYTHON_CLIENT_PREALLOCATE=false",
            ),
        ),
        confidence="likely",
    )
