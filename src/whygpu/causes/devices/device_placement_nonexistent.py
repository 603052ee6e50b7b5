"""Operations are pinned to a device that this process does not have.

## Why it happens

A program or a saved graph names the device of its operations: `/gpu:0`, `/gpu:1`, a TPU. If the
process has no such device, TensorFlow 1 and distribution strategies refuse to run them. The machine
may have no such device, the driver or the CUDA libraries may not have loaded, the build may have no
GPU support, or the GPU may be hidden. If the log shows the reason, that is the cause, and this
finding is shown below it.

## What it looks like

- `Cannot assign a device for operation ... was explicitly assigned to /device:GPU:0 but available
  devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]`.
- `Could not satisfy explicit device specification '/device:GPU:1' because no devices matching that
  specification are registered in this process`.
- `To call multi_gpu_model with gpus=2, we expect the following devices to be available`.
- `No OpKernel was registered to support Op 'CudnnRNN' ... Registered devices: [CPU]`.

## Fix

Find out why the device is missing (`whygpu check`), or do not require it.

## Fires on (log)

```
tensorflow.python.framework.errors_impl.InvalidArgumentError: Cannot assign a device for operation dense/kernel: node dense/kernel (defined at model.py:31) was explicitly assigned to /device:GPU:1 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0, /job:localhost/replica:0/task:0/device:GPU:0 ]. Make sure the device specification refers to a valid device.
```

```
InvalidArgumentError: Cannot assign a device to node 'Variable': Could not satisfy explicit device specification '/device:GPU:0' because no devices matching that specification are registered in this process; available devices: /job:localhost/replica:0/task:0/cpu:0
```

A program for TPUs.

```
tensorflow.python.framework.errors_impl.InvalidArgumentError: No OpKernel was registered to support Op 'ConfigureDistributedTPU' used by node ConfigureDistributedTPU with these attrs: [is_global_init=false]
Registered devices: [CPU, XLA_CPU]
Registered kernels:
  <no registered kernels>
```

```
ValueError: To call `multi_gpu_model` with `gpus=4`, we expect the following devices to be available: ['/cpu:0', '/gpu:0', '/gpu:1', '/gpu:2', '/gpu:3']. However this machine only has: ['/cpu:0', '/gpu:0']. Try reducing `gpus`.
```

## Quiet on (log)

The reason is further up.

```
2020-01-01 10:00:00.000001: E tensorflow/stream_executor/cuda/cuda_driver.cc:318] failed call to cuInit: UNKNOWN ERROR (303)
2020-01-01 10:00:00.000002: I tensorflow/stream_executor/cuda/cuda_diagnostics.cc:156] kernel driver does not appear to be running on this host (pc): /proc/driver/nvidia/version does not exist
InvalidArgumentError: Cannot assign a device for operation w: node w was explicitly assigned to /device:GPU:0 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]. Make sure the device specification refers to a valid device.
```

## Sources

- <https://www.tensorflow.org/guide/gpu>
- <https://www.tensorflow.org/guide/distributed_training>
- <https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/common_runtime/placer.cc>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.log_cuda_start import failed_at
from whygpu.causes.evidence.log_placement import Placement, misplaced, placements
from whygpu.causes.evidence.log_subjects import excerpt, subject_of
from whygpu.causes.evidence.log_tensorflow_api import soft_placement
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.remedy import command_line, shell_script

CAUSE = cause(
    "WG409",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("gpu-unused", "keras-backend-without-gpu"),
)

_STATEMENTS = late(
    r"expect the following devices to be available: (?P<wanted>\[[^\]\n]{0,200}\])"
    r"|device:(?P<eager>[A-Z_]{2,12}:\d+) unknown device"
    r"|[Uu]nknown device[ :'\"]{1,4}\S{0,60}[GT]PU:\d"
    r"|(?:devices? in|requested) [^\n]{0,60}(?:is"
    r"|are) not visible to TensorFlow: (?P<strategy>\S{3,80})"
    r"|Unknown attribute:? '[^'\n]{0,40}' (?:in|is encountered while parsing the device spec:)"
    r" '(?P<unread>[^'\n]{0,60})'"
    r"|Unable to find any devices for spec (?P<spec>\S{0,60}[GT]PU:[\d*]+)"
    r"|No matching devices found for '(?P<listed>\S{0,60}GPU:\d+)'"
    r"|Device (?P<absent>\S{0,60}(?:GPU|gpu):\d+) (?:is )?not found"
    r"|not find (?:a )?valid device for node"
    r"|No registered '(?:Nccl|Cudnn|Cuda|_CopyFromGpu)\w{0,40}' OpKernel for '?CPU'? devices"
    r"|provide a TPU Name to connect to|KeyError: 'COLAB_TPU_ADDR'|Not connected to a TPU"
    r"|find any TPU cores|No TPU (?:devices? )?(?:was |were )?found|(?:Cannot"
    r"|Could not) find any TPU"
    r"|Failed to connect to (?:the )?TPU|Unable to find (?:a )?TPU"
    r"|Unknown backend:? '?(?P<backend>gpu|cuda|tpu|rocm)'?"
)
_CPU_FORMAT = late(
    r"only supports? (?:the )?NHWC(?: tensor format)? on (?:the |device type )?CPU"
    r"|(?:BiasOp|BiasGradOp|MaxPooling\w{0,4}|AvgPooling\w{0,4}|conv implementation|Conv2D\w{0,24})"
    r"[^\n]{0,40}only supports? (?:the )?NHWC"
)


_HAS_GPU = late(r"(?<!XLA_)\bGPU\b|device:GPU|/gpu:", re.IGNORECASE)
_ONLY_XLA = late(r"XLA_GPU")
_LIBRARIES = (
    Remedy(
        "TensorFlow created the device XLA_GPU but no GPU: the driver works, but a CUDA library or "
        "cuDNN could not be loaded. An earlier line names it (Could not load dynamic library)."
    ),
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    without = [p for p in placements(log) if misplaced(p) == "no-device"]
    statement = log.first(_STATEMENTS)
    form = log.first(_CPU_FORMAT)
    if without:
        lines = [without[0].line, without[0].last, *(p.line for p in without)]
        has = f"; it has {_short(without[0].has)}" if without[0].has else ""
        asked = (
            f"operations are pinned to {_short(without[0].device)}, which"
            if without[0].device
            else f"the operation {without[0].operation} needs a device that"
        )
        what = f"{asked} this process does not have{has}"
    elif statement is not None:
        lines = [statement.line]
        name = statement.groups["spec"] or statement.groups["listed"]
        unread = statement.groups["unread"]
        what = (
            f"the program uses {name}, which this process does not have"
            if name
            else f"the program gives a device the name {unread!r}, which TensorFlow cannot read; a "
            "GPU has a name like /gpu:0"
            if unread
            else f"the program needs a device that this process does not have: "
            f"{excerpt(statement.text)}"
        )
    elif form is not None:
        lines = [form.line]
        what = (
            "the model uses a layout for GPUs (channels first, NCHW), but its operations run on "
            "the CPU, because this process has no GPU"
        )
    else:
        return
    lines += [
        f.line for f in log.failures if _STATEMENTS.search(f.text) or _CPU_FORMAT.search(f.text)
    ]
    bare = bool(without) and not _HAS_GPU.search(without[0].has) and "GPU" in without[0].device
    tpu = statement is not None and not without and _OF_TPU.search(statement.text) is not None
    weak = not without and (
        form is not None or (statement is not None and statement.groups["backend"])
    )
    yield CAUSE.finding(
        subject=subject_of(log),
        message=what,
        evidence=log.evidence(*(n for n in lines if any(line.number == n for line in log.lines))),
        remedies=_NAME
        if statement and statement.groups["unread"]
        else _TPU
        if tpu
        else tuple(_remedies(log, without)),
        # If there is no GPU at all, this is certain, but hardly the root cause.
        confidence="possible" if weak and statement else "likely" if weak or bare else "certain",
        effect="broken" if failed_at(log, lines) or without else "cpu",
        ask="Which accelerator does that machine have?"
        if tpu
        else "Does `nvidia-smi` show a GPU there, and does the installed build have CUDA? "
        "`whygpu check` shows both.",
    )


def _short(devices: str) -> str:
    """Without the part that all devices of one process share."""
    return devices.replace("/job:localhost/replica:0/task:0", "")


_OF_TPU = late(r"\bTPU\b|COLAB_TPU|'tpu'")
_TPU = (
    Remedy(
        "On a machine with a TPU of its own (Colab, a Cloud TPU VM), name it: "
        "TPUClusterResolver(tpu='local'), with the build of TensorFlow for TPUs.",
        shell_script("python -m pip list | grep -i -E 'tensorflow|libtpu'"),
    ),
    Remedy(
        "If there is none, choose a machine or a runtime with a TPU (in Colab: Runtime > Change "
        "runtime type), or leave out the TPU strategy."
    ),
)
_NAME = (Remedy("Write the kind and the number: /gpu:0, /cpu:0."),)


def _remedies(log: Log, without: list[Placement]) -> Iterator[Remedy]:
    soft = soft_placement(log, "Let operations run on another device if theirs is missing")
    has = without[0].has if without else ""
    if _HAS_GPU.search(has):
        yield Remedy("Use a device that exists; a single GPU is /gpu:0.")
        yield soft
        return
    yield Remedy(
        "Check which devices there are, and why the GPU is missing.", command_line("whygpu check")
    )
    if _ONLY_XLA.search(has):
        yield from _LIBRARIES
    yield soft
    there = "such as /cpu:0" if has else "a single GPU is /gpu:0"
    yield Remedy(f"Or use a device that exists, {there}.")
