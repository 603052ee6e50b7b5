"""XLA found no algorithm that can run an operation on this GPU.

## Why it happens

XLA, the compiler of JAX and of Keras on TensorFlow, runs every candidate for a convolution or a
matrix product once, in memory that is free, and keeps the fastest. If all of them fail, it stops.
The message says which operation it was, and mostly not why. The usual reasons:

- Too little memory is free to try them in: the arrays of one operation are too large, or other
  processes hold the GPU (each JAX process reserves 75 % of what is free when it starts).
- cuDNN has no algorithm for this shape or type, such as a kernel of width 1 over a single position,
  float64, or complex numbers.
- cuDNN 9.11 and later have none for GPUs before Turing (compute capability below 7.5).
- A bug in this release of XLA or cuDNN.

## What it looks like

- `Autotuning failed for HLO: %cudnn-conv-bw-filter.2 = ... NOT_FOUND: No valid config found!`
- `Autotuner could not find any supported configs for HLO: %cudnn-conv-bias-activation.6 = ...`
- `All algorithms tried for %cudnn-conv = ... failed. Falling back to default algorithm.`

If the log also has a refused request for memory, that is the reason, and another cause says so.

## Fix

Find out whether memory is the reason: run a quarter of the batch, with no other program on the GPU.
If that works, use a smaller batch or free memory. If it fails with any batch, change the operation
(a linear layer in place of a convolution of width 1, float32 in place of float64), run it without
XLA (`model.compile(jit_compile=False)`), or use another release. On a GPU before Turing, install
cuDNN 9.10.

## Fires on (log)

```
Traceback (most recent call last):
  File "unet_train.py", line 173, in <module>
    loss = train_step(model, images)
jax.errors.JaxRuntimeError: INTERNAL: Autotuning failed for HLO: %cudnn-conv-bw-filter.2 = (f32[64,32,3,3]{3,2,1,0}, u8[0]{0}) custom-call(%a, %b), window={size=3x3 pad=1_1x1_1}, custom_call_target="__cudnn$convBackwardFilter" with error: NOT_FOUND: No valid config found!
```

```
W0000 00:00:1779653752.532795 2476980 local_rendezvous.cc:412] Local rendezvous is aborting with status: INTERNAL: Autotuner could not find any supported configs for HLO: %cudnn-conv-bias-activation.6 = (f32[128,16,12,12]{3,2,1,0}, u8[0]{0}) custom-call(%divide.3, %multiply.72, %multiply.6), window={size=3x3}, custom_call_target="__cudnn$convBiasActivationForward"
Traceback (most recent call last):
  File "train.py", line 188, in <module>
    history = model.fit(x, y)
tensorflow.python.framework.errors_impl.InternalError: Graph execution error:

Autotuner could not find any supported configs for HLO: %cudnn-conv-bias-activation.6 = (f32[128,16,12,12]{3,2,1,0}, u8[0]{0}) custom-call(%divide.3, %multiply.72, %multiply.6)
```

A GPU that this cuDNN no longer supports.

```
I0000 00:00:1779653751.718176   15886 service.cc:161]   StreamExecutor [0]: NVIDIA GeForce GTX 1050 Ti, Compute Capability 6.1 (Driver: 12.2.0; Runtime: 12.5.0; Toolkit: 12.5.0; DNN: 9.22.0)
I0000 00:00:1779653752.544007   15886 cuda_dnn.cc:461] Loaded cuDNN version 92200
Traceback (most recent call last):
  File "train.py", line 20, in <module>
    model.fit(x, y)
tensorflow.python.framework.errors_impl.NotFoundError: Graph execution error:

Autotuning failed for HLO: %cudnn-conv-bw-filter.2 = (f32[3,3,3,16]{3,2,1,0}, u8[0]{0}) custom-call(%a, %b), custom_call_target="__cudnn$convBackwardFilter" with error: NOT_FOUND: No valid config found!
```

## Quiet on (log)

Memory ran out, and the log says so.

```
W0000 00:00:1794848597.096987   15886 bfc_allocator.cc:311] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.50GiB with freed_by_count=0.
tensorflow.python.framework.errors_impl.InternalError: Graph execution error: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 3759489792 bytes.
Autotuning failed for HLO: %cudnn-conv-bw-input.2 = (f32[768,124,124,64]{3,2,1,0}, u8[0]{0}) custom-call(%broadcast.19, %transpose.7)
```

It was only a warning: XLA took another algorithm, and the program went on.

```
W external/xla/xla/service/gpu/autotuning/conv_algorithm_picker.cc:1077] All algorithms tried for %cudnn-conv = (f32[8,16]{1,0}) custom-call failed. Falling back to default algorithm.
Epoch 1/5 loss: 0.5
```

## Sources

- <https://github.com/jax-ml/jax/issues/33715>
- <https://github.com/tensorflow/tensorflow/issues/57748>
- <https://github.com/jax-ml/jax/issues/10989>
- <https://docs.nvidia.com/deeplearning/cudnn/backend/latest/release-notes.html>
- <https://openxla.org/xla/persisted_autotuning>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_gpu_generations import LogGpu, gpus_of
from whygpu.causes.evidence.log_out_of_memory import shortage
from whygpu.causes.evidence.log_subjects import (
    framework_title,
    gpu_ends_after,
    is_tensorflow,
    subject_of,
)
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.remedy import SetVariable, command_line, shell_script
from whygpu.tables.out_of_memory import HANDLE_FAILED

CAUSE = cause(
    "WG213",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-crashes", "kernel-bug-illegal-access"),
)

_NO_ALGORITHM = late(
    r"(?:Autotuning failed for HLO:|Autotuner could not find any supported configs for HLO:"
    r"|All algorithms tried for(?: convolution)?) ?(?P<operation>%[\w.\-]{1,80})?"
)
_CUDNN = late(r"Loaded cuDNN version (?P<number>\d{4,6})|\bDNN: (?P<dotted>\d{1,2}\.\d{1,2})")
_WITHOUT_OLD_GPUS = (9, 11)
"""From this release on, cuDNN has no code for GPUs before Turing."""
_TURING = (7, 5)
_MOST_LINES = 6
_NEXT_PARAGRAPH = 3
"""Lines, with the empty one between."""


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    found = list(log.find(_NO_ALGORITHM))
    if not found or log.says(HANDLE_FAILED) or shortage(log) is not None:
        return
    ends = gpu_ends_after(log, found[0].line) or _graph_errors_before(log, found[0].line)
    if not ends:
        return
    lines = [match.line for match in found]
    old = _unsupported_gpu(log)
    reason = (
        f"cuDNN {_text(old[1])} has no code for {old[0]}; 9.11 and later need 7.5 or more"
        if old
        else "too little memory was free to try them in, or its libraries have none for this "
        "shape, type or GPU"
    )
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{framework_title(log)} stopped because XLA found no algorithm for "
        f"{_operation(found)}: {reason}",
        evidence=log.evidence(
            *([old[0].line] if old else ()), *lines[:_MOST_LINES], *ends[:_MOST_LINES]
        ),
        remedies=(_OLDER_CUDNN,) if old else _remedies(log),
        confidence="likely",
        ask=""
        if old
        else "Does a quarter of the batch work, with no other program on the GPU (nvidia-smi)? "
        "If it does, memory was short; if not, the operation or the release is the reason.",
    )


def _graph_errors_before(log: Log, line: int) -> tuple[int, ...]:
    """TensorFlow's error for a graph has the reason in a paragraph of its own below it."""
    return tuple(
        failure.line
        for failure in log.failures
        if 0 < line - failure.line <= _NEXT_PARAGRAPH and "Graph execution error" in failure.text
    )


def _operation(found: list[Match]) -> str:
    """The operation in XLA's words; they have the name of the operation of cuDNN in them."""
    names = [match.groups["operation"] for match in found if match.groups["operation"]]
    return names[0] if names else "an operation"


def _unsupported_gpu(log: Log) -> tuple[LogGpu, tuple[int, int]] | None:
    """The GPU of the log and the cuDNN that it loaded, if that has dropped the GPU."""
    version = next((_release(match) for match in log.find(_CUDNN)), None)
    if version is None or version < _WITHOUT_OLD_GPUS:
        return None
    gpus = list(gpus_of(log))
    old = [gpu for gpu in gpus if gpu.capability < _TURING]
    return (old[0], version) if gpus and len(old) == len(gpus) else None


def _release(match: Match) -> tuple[int, int]:
    """9.22 from 92200 or 9.22; 8.9 from 8907, which has one digit less for each part."""
    dotted = match.groups["dotted"]
    if dotted:
        major, _, minor = dotted.partition(".")
        return int(major), int(minor)
    number = int(match.groups["number"] or 0)
    return (number // 10_000, number // 100 % 100) if number >= 10_000 else (number // 1000, 0)


def _text(release: tuple[int, int]) -> str:
    return ".".join(map(str, release))


_OLDER_CUDNN = Remedy(
    "Install the last cuDNN that supports this GPU.",
    command_line('python -m pip install "nvidia-cudnn-cu12<9.11"'),
)


def _remedies(log: Log) -> tuple[Remedy, ...]:
    tensorflow = is_tensorflow(log)
    without = (
        Remedy("Or let Keras run the model without XLA: model.compile(..., jit_compile=False).")
        if tensorflow
        else Remedy(
            "To see whether only the search fails, let XLA take the first algorithm untested. "
            "Steps are then much slower.",
            shell_script("XLA_FLAGS=--xla_gpu_autotune_level=0 python ..."),
        )
    )
    share = (
        SetVariable("TF_FORCE_GPU_ALLOW_GROWTH", "true")
        if tensorflow
        else SetVariable("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    )
    return (
        Remedy("Make the batch smaller, a quarter at first."),
        Remedy("If other programs use the GPU, let none of them reserve most of it.", share),
        without,
        Remedy("If it fails with any batch, try the next or the previous release."),
    )
