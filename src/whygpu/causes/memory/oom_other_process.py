"""Other processes hold nearly all of the GPU's memory.

## Why it happens

When it starts, TensorFlow reserves almost all free memory of a GPU, and JAX three quarters of the
GPU's memory. Both keep it until they end. An open notebook, a run that did not end, or another
user's job therefore leaves almost nothing, even if it does not compute.

## What it looks like

Often nothing at first: TensorFlow creates its device with the few hundred megabytes that are left,
and the first large batch fails with `ResourceExhaustedError`. JAX prints a series of "Failed to
allocate" lines, PyTorch raises `torch.cuda.OutOfMemoryError`, and cuDNN or cuBLAS may fail to
start.

## Fix

End the process, or choose another GPU. To share one, make every program allocate memory as needed:
TF_FORCE_GPU_ALLOW_GROWTH=true, XLA_PYTHON_CLIENT_PREALLOCATE=false.

## Fires on (machine)

```toml
[driver.gpus.0]
memory_used_bytes = 50000000000
processes = [{pid = 4711, name = "python", memory_bytes = 49000000000}]
```

A GPU in one chip with the processor has main memory only.

```toml
[driver.gpus.0]
name = "NVIDIA GB10"
compute_capability = "12.1"
memory_total_bytes = 130000000000
memory_used_bytes = 125000000000
```

The kernel of a notebook that asks about itself is no other process, and is not to be killed.

```toml
[driver.gpus.0]
memory_used_bytes = 50000000000
processes = [{pid = 4711, name = "python", memory_bytes = 49000000000, is_asking = true}]
```

## Quiet on (machine)

A full GPU that this program cannot see.

```toml
[[driver.gpus]]
number = 0
[[driver.gpus]]
number = 1
memory_used_bytes = 50000000000
[environment.visible_gpus]
text = "0"
visible = [0]
ignored = []
```

## Cannot tell on (machine)

```toml
[driver.gpus.0]
memory_used_bytes = {unknown = "NVML: Not Supported"}
```

## Fires on (log)

```
2020-06-01 09:12:40.000000: E tensorflow/stream_executor/cuda/cuda_driver.cc:825] failed to allocate 3.79G (4072144896 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory
2020-06-01 09:12:40.010000: E tensorflow/stream_executor/cuda/cuda_driver.cc:825] failed to allocate 3.41G (3664930304 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory
```

```
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 34.00 MiB (GPU 0; 23.65 GiB total capacity; 612.00 MiB already allocated; 12.06 MiB free; 640.00 MiB reserved in total by PyTorch)
```

```
2023-08-08 08:00:01.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1639] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 216 MB memory:  -> device: 0, name: NVIDIA A40, pci bus id: 0000:61:00.0, compute capability: 8.6
tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[64,512,1024] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:MatMul]
```

## Quiet on (log)

The whole GPU was free at the start.

```
2023-08-08 08:00:01.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1639] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 43216 MB memory:  -> device: 0, name: NVIDIA A40, pci bus id: 0000:61:00.0, compute capability: 8.6
tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[64,512,1024,1024] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:MatMul]
```

## Sources

- <https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth>
- <https://docs.jax.dev/en/latest/gpu_memory_allocation.html>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.driver_state import selected_gpus
from whygpu.causes.evidence.gpu_memory import (
    described,
    holders,
    is_asking,
    named_holders,
    share_used,
)
from whygpu.causes.evidence.log_out_of_memory import how_far, seen_in
from whygpu.causes.evidence.log_subjects import framework_title, subject_of
from whygpu.causes.evidence.memory_remedies import (
    another_gpu,
    see_holders,
    share_remedy,
    shown_by,
)
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.driver import Gpu, GpuProcess
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.log import Log
from whygpu.model.observed import Known, Unknown, need
from whygpu.model.remedy import a_number, command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.units import size_text
from whygpu.tables.architectures import shares_main_memory

CAUSE = cause("WG501", __name__, __doc__, severity="warning", effect="none")

_NEARLY_ALL = 0.9
"""Above this share a framework still starts, but fails with the first real batch."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    for gpu in selected_gpus(machine):
        share = share_used(gpu)
        if isinstance(share, Unknown):
            yield Gap(f"how much memory of GPU {gpu.number} ({gpu.name}) is used: {share.reason}")
        elif isinstance(share, Known) and share.value >= _NEARLY_ALL:
            yield _finding(gpu)


def _finding(gpu: Gpu) -> Finding:
    used, total = need(gpu.memory_used_bytes), need(gpu.memory_total_bytes)
    who = named_holders(gpu)
    by = f"held by {who}" if who else "held by processes that are not visible from here"
    of_all = shares_main_memory(gpu)
    if of_all:
        by = "in use, by any programs: it has no memory but main memory"
    stuck = holders(gpu)
    return CAUSE.finding(
        subject=MACHINE,
        message=f"GPU {gpu.number} ({gpu.name}) has {size_text(total - used)} of its "
        f"{size_text(total)} left: {size_text(used)} are {by}",
        evidence=(
            seen(gpu.memory_used_bytes, f"{size_text(used)} of {size_text(total)} in use"),
            *(Evidence("machine", f"pid {item.pid}", described(item)) for item in stuck[:3]),
        ),
        severity="info" if stuck and is_asking(stuck[0]) else None,
        remedies=_FREE_MAIN_MEMORY
        if of_all
        else (
            *_release(stuck),
            Remedy(
                "Or choose a GPU with more free memory, by its number in CUDA_VISIBLE_DEVICES.",
                command_line("nvidia-smi --query-gpu=index,memory.free --format=csv"),
            ),
        ),
    )


_FREE_MAIN_MEMORY = (
    Remedy(
        "Check which programs hold main memory, and end those that are yours and not needed.",
        shell_script("ps aux --sort=-rss | head"),
    ),
)


def _release(stuck: tuple[GpuProcess, ...]) -> tuple[Remedy, ...]:
    """How to get the memory back from the process that holds the most."""
    if stuck and is_asking(stuck[0]):
        return (
            Remedy(
                "The program that asks holds it itself, so other programs cannot use this GPU "
                "meanwhile. To give it back, restart the kernel of the notebook, or end the "
                "program."
            ),
        )
    return (
        Remedy("Check which processes hold it.", command_line("nvidia-smi")),
        Remedy(
            "If the process is yours and not needed, end it.",
            command_line("kill", a_number(stuck[0].pid)) if stuck else None,
        ),
    )


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    found = seen_in(log, "other-process")
    if found is None:
        return
    asked = how_far(found)
    what = f"it {asked}; " if asked else ""
    because = found.because if found.reason == "other-process" else "the log does not show by which"
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{framework_title(log)} cannot get GPU memory that other processes hold: {what}"
        f"{because}",
        evidence=log.evidence(*found.lines),
        remedies=(see_holders(log), *another_gpu(log), share_remedy(log)),
        confidence=found.confidence,
        severity=found.severity,
        effect="broken" if found.severity == "error" else "none",
        ask=f"How much memory is in use before the program starts{shown_by(log)}? If much, another "
        "process holds it; if almost none, the program itself is too big.",
    )
