"""An assertion in a GPU kernel failed because of the data: a label or an index is out of range.

## Why it happens

Kernels that look up values check the index: a class label against the number of classes, a token id
against the size of the embedding, a position against the longest sequence. One value out of range
stops the whole GPU context. CUDA reports it late, in one of the next calls, and every later call
fails as well. The cuBLAS, cuDNN and NCCL errors that follow mean nothing.

## What it looks like

Lines of ``Assertion `srcIndex < srcSelectDimSize` failed`` or ``Assertion `t >= 0 && t < n_classes`
failed`` with block and thread numbers, then `CUDA error: device-side assert triggered`.

## Fix

Run the same batch on the CPU: there the exception names the index. Or set CUDA_LAUNCH_BLOCKING=1,
so that the traceback ends at the failing call. Then make labels start at 0, and adjust the number
of classes or the vocabulary to the data.

## Fires on (log)

```
/pytorch/aten/src/THCUNN/ClassNLLCriterion.cu:108: cunn_ClassNLLCriterion_updateOutput_kernel: block: [0,0,0], thread: [5,0,0] Assertion `t >= 0 && t < n_classes` failed.
RuntimeError: CUDA error: device-side assert triggered
```

Later errors are consequences.

```
../aten/src/ATen/native/cuda/Indexing.cu:1141: indexSelectLargeIndex: block: [81,0,0], thread: [32,0,0] Assertion `srcIndex < srcSelectDimSize` failed.
RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`
terminate called after throwing an instance of 'std::runtime_error'
  what():  NCCL error in: /pytorch/torch/lib/c10d/NCCLUtils.hpp:29, unhandled cuda error
```

## Quiet on (log)

An assertion of the program itself, on the CPU.

```
Traceback (most recent call last):
  File "train.py", line 10, in <module>
    assert len(images) == len(labels)
AssertionError
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution>
- <https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#assertion>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.log_subjects import gpu_ends_after, subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import shell_script

CAUSE = cause(
    "WG705",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=(
        "nccl-failure",
        "kernel-bug-illegal-access",
        "cudnn-init-failed-oom",
        "compute-capability-too-new",
        "framework-crashes",
    ),
)

_ASSERTION = late(
    r"(?P<where>[\w./:\\-]{1,200}\.(?:cuh?|cpp"
    r"|h)):\d{1,6}:[^\n]{0,600}?[Tt]hread: ?\[[\d, ]{1,30}\]"
    r"[^\n]{0,20}Assertion [`']?(?P<claim>[^\n]{1,300}?)['`]? failed"
)
_WRAPPED = late(
    r"block: ?\[[\d, ]{1,30}\], ?thread: ?\[[\d, ]{1,30}\] ?Assertion [`']?(?P<claim>[^`'\n]{1,200})"
)
_TRIGGERED = late(r"device-side assert(?:ion)?\b|cudaErrorAssert\b|CUDA_ERROR_ASSERT\b")
_ASSERTED = ("CUDA_ERROR_ASSERT", "cudaErrorAssert")
_MEANINGS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        late(r"n_classes|cur_target|target_val|ClassNLL|NLLLoss|SpatialClassNLL|label"),
        "a class label is outside of 0 ... number of classes - 1",
        "Print the smallest and the largest label; apart from ignore_index they must be in 0 ... "
        "number of classes - 1.",
    ),
    (
        late(r"srcIndex|indexSelect|embedding|vocab|index_select"),
        "an index, such as a token id or a position, is not smaller than the table it looks up",
        "Compare the largest token id (and position) with the size of the embedding; after adding "
        "tokens call resize_token_embeddings.",
    ),
    (
        late(r"input_val|>= ?0(?:\.0*)? ?&& ?\w{1,20} ?<= ?(?:1|zero|one)\b|BCE|\bone\b"),
        "a value that must be between 0 and 1 is not",
        "Put a sigmoid before the binary loss, or use the loss that takes logits; look for NaN.",
    ),
    (
        late(r"probability tensor|\binf\b|\bnan\b|cumdist|multinomial", re.I),
        "probabilities contain inf, nan or negative values",
        "Look for NaN or inf in the logits: half precision or a broken model file are usual "
        "reasons.",
    ),
    (
        late(r"index out of bounds|idx_dim|indexValue|index >= -|ScatterGather|Indexing"),
        "an index is out of bounds",
        "Print the smallest and the largest index and compare them with the indexed dimension.",
    ),
)
_MOST_LINES = 6


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    claims = list(log.find(_ASSERTION)) or list(log.find(_WRAPPED))
    triggered = [match.line for match in log.find(_TRIGGERED)]
    triggered = triggered or [status.line for status in log.status_named(*_ASSERTED)]
    if not claims and not triggered:
        yield from _perhaps(log)
        return
    first = min([match.line for match in claims[:1]] + triggered[:1])
    about = "\n".join(match.text for match in claims[:3]) or _frames(log)
    meaning, advice = next(
        ((what, todo) for pattern, what, todo in _MEANINGS if pattern.search(about)),
        (
            "most often a label or an index is out of range",
            "Print the smallest and the largest label and index of the batch.",
        ),
    )
    claim = claims[0].groups["claim"] if claims else None
    quoted = f" ({claim.strip()})" if claim else ""
    lines = [match.line for match in claims[:3]] + triggered[:_MOST_LINES]
    ends = gpu_ends_after(log, first)
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"an assertion failed in a kernel on the GPU{quoted}: {meaning}; every later "
        "CUDA error is a consequence",
        evidence=log.evidence(*lines, *ends[:_MOST_LINES]),
        remedies=(
            Remedy(advice),
            Remedy(
                "Make the traceback end at the failing call.",
                shell_script("CUDA_LAUNCH_BLOCKING=1 python ..."),
            ),
            Remedy("Or run one batch on the CPU: the exception there names the value."),
        ),
        confidence="certain" if claims else "likely",
    )


_REFUSED = ("CUBLAS_STATUS_NOT_INITIALIZED", "CUBLAS_STATUS_ALLOC_FAILED")
_SAYS_WHY = late(r"[Oo]ut of memory|OUT_OF_MEMORY|Xid|no kernel image|ECC|insufficient", re.I)


def _perhaps(log: Log) -> Iterator[Finding]:
    """A kernel fails after its call has returned, and cuBLAS is the next that notices."""
    refused = log.status_named(*_REFUSED)
    if log.framework != "torch" or not refused or log.says(_SAYS_WHY) or not log.failures:
        return
    lines = [status.line for status in refused[:_MOST_LINES]]
    yield CAUSE.finding(
        subject="torch",
        message="a label or a token id of the batch may be out of range: the kernel that reads it "
        "fails, and cuBLAS, which starts after it, reports the failure as its own",
        evidence=log.evidence(*lines, *gpu_ends_after(log, lines[0])[:_MOST_LINES]),
        remedies=(
            Remedy("Run one batch on the CPU: the exception there names the value."),
            Remedy(
                "Make the traceback end at the failing call.",
                shell_script("CUDA_LAUNCH_BLOCKING=1 python ..."),
            ),
        ),
        confidence="possible",
        ask="Does the same batch work on the CPU? An index out of range fails there as well; lack "
        "of GPU memory does not.",
    )


def _frames(log: Log) -> str:
    """The calls in the traceback, if the assertion itself was not printed."""
    return "\n".join(raised.message for raised in log.raised[:3])
