"""GPU memory leaks or becomes fragmented until a request no longer fits.

## Why it happens

A leak: something keeps memory that is no longer needed. In PyTorch, a loss that is summed up
without `.item()` keeps the graph of every step. In TensorFlow, models that are built in a loop stay
until `clear_session()`. A second copy of a large buffer, which exists while the first is converted,
has the same effect at once.

Fragmentation: requests of changing size leave gaps. Each gap is too small for the next large
request, although together they would be large enough.

## What it looks like

It works at first, and fails after epochs of the same work. With fragmentation, PyTorch's message
shows much more memory "reserved" than "allocated", and a request that is smaller than the
difference. `whygpu run` monitors the memory that stays in use, and distinguishes a leak from a
program that is too big.

## Fix

Leak: keep numbers, not tensors; evaluate under `torch.no_grad()`; delete what a loop no longer
needs. Fragmentation: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PyTorch 2.1 and newer, on
Linux; otherwise max_split_size_mb:128), or TF_GPU_ALLOCATOR=cuda_malloc_async.

## Fires on (log)

```
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 0 has a total capacity of 39.56 GiB of which 310.56 MiB is free. Including non-PyTorch memory, this process has 39.25 GiB memory in use. Of the allocated memory 24.10 GiB is allocated by PyTorch, and 14.62 GiB is reserved by PyTorch but unallocated.
```

```
Epoch 1: loss 0.912
Epoch 2: loss 0.744
Epoch 3: loss 0.701
Epoch 4: loss 0.688
Traceback (most recent call last):
  File "train.py", line 88, in <module>
    loss.backward()
RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58
```

## Quiet on (log)

The first step fails, and nearly all reserved memory is in use.

```
RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 7.93 GiB total capacity; 6.91 GiB already allocated; 201.50 MiB free; 7.10 GiB reserved in total by PyTorch)
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/faq.html>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>
- <https://www.tensorflow.org/api_docs/python/tf/keras/backend/clear_session>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_out_of_memory import how_far, seen_in
from whygpu.causes.evidence.log_subjects import framework_title, subject_of
from whygpu.causes.evidence.log_tensorflow_api import api_of
from whygpu.causes.evidence.memory_remedies import for_leaks, maker_of, shown_by
from whygpu.causes.evidence.watched_memory import by_watching
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import SetVariable
from whygpu.tables.versions import release_numbers


def _question(log: Log) -> str:
    return (
        f"Does the memory in use grow from step to step{shown_by(log)}? Then it is a leak. If it "
        "stays level, the program is too big. `whygpu run` monitors it."
    )


CAUSE = cause(
    "WG505",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-crashes",),
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    fragmented = seen_in(log, "fragmentation")
    found = fragmented or seen_in(log, "leak")
    if found is None:
        return
    asked = how_far(found)
    failure = f"{framework_title(log)} ran out of GPU memory"
    first = f"{failure}: it {asked}" if asked else failure
    remedies = (*_for_fragments(log), *for_leaks(log))
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{first}; {found.because}",
        evidence=log.evidence(*found.lines),
        remedies=remedies if fragmented else (*for_leaks(log), *_for_fragments(log)),
        confidence=found.confidence,
        severity=found.severity,
        effect="broken" if found.severity == "error" else "none",
        ask=None if by_watching(log) is not None else _question(log),
    )


_SINCE_2_1 = late(r"expandable_segments|GPU \d{1,2} has a total capac|\btorch\.OutOfMemoryError")
"""What PyTorch writes since 2.1, the first release with expandable segments."""
_NEW_VARIABLE = late(r"PYTORCH_ALLOC_CONF")


def _for_torch(log: Log) -> tuple[Remedy, ...]:
    maker, release = maker_of(log), release_numbers(log.version_of("torch") or "")
    if maker in ("apple", "intel"):
        return (Remedy("Free large tensors before creating the next one; reuse them."),)
    variable = "PYTORCH_HIP_ALLOC_CONF" if maker == "amd" else "PYTORCH_CUDA_ALLOC_CONF"
    if log.says(_NEW_VARIABLE):
        variable = "PYTORCH_ALLOC_CONF"
    # On Windows and with ROCm there is no such setting, and PyTorch 2.0 refuses it.
    there = log.says(_SINCE_2_1) if not release else release >= (2, 1)
    if there and maker == "nvidia" and log.platform != "windows":
        return (
            Remedy(
                "Let segments of the memory grow instead of splitting them.",
                SetVariable(variable, "expandable_segments:True"),
            ),
        )
    newer = (
        " PyTorch 2.1 and newer have a better setting on Linux: expandable_segments:True."
        if maker == "nvidia" and log.platform != "windows"
        else ""
    )
    return (
        Remedy(
            f"Do not split large blocks of memory.{newer}",
            SetVariable(variable, "max_split_size_mb:128"),
        ),
    )


def _for_fragments(log: Log) -> tuple[Remedy, ...]:
    if log.framework == "tensorflow" and api_of(log) != "sessions":
        return (
            Remedy(
                "Let the driver manage the memory, which avoids fragmentation.",
                SetVariable("TF_GPU_ALLOCATOR", "cuda_malloc_async"),
            ),
        )
    if log.framework == "torch":
        return _for_torch(log)
    return (Remedy("Free large buffers before creating the next one; reuse or donate them."),)
