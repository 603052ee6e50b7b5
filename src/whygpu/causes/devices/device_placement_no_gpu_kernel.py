"""An operation is pinned to the GPU, but it has no GPU kernel.

## Why it happens

Not every operation has a kernel for every device and data type. Strings, many integer types,
summaries and input pipelines run only on the CPU, and some operations only on TPUs. Under
`tf.device('/gpu:0')` TensorFlow 1 does not run such an operation on another device unless soft
placement is allowed. An operation without a kernel for any device fails in every case. Plugin GPUs
(DirectML, Metal) have fewer operations than NVIDIA's, and no cuDNN ones.

## What it looks like

- `Cannot assign a device for operation ...: Could not satisfy explicit device specification
  '/device:GPU:0' because no supported kernel for GPU devices is available`.
- `No OpKernel was registered to support Op 'X' ... Registered devices: [CPU, GPU]`.
- `Cannot colocate nodes ... because no device type supports both of those nodes`.
- XLA: `... not implemented on GPU`.
- XLA: `Detected unsupported operations when trying to compile graph ... on XLA_GPU_JIT: CudnnRNN`.
  The operation has a GPU kernel, but none for XLA, and the program compiles the whole step with it
  (`jit_compile=True`).

## Fix

Allow soft placement, so that such operations run on the CPU, or pin only operations with a GPU
kernel. If XLA is what cannot compile the operation, switch XLA off for the step:
`jit_compile=False`.

## Fires on (log)

```
InvalidArgumentError (see above for traceback): Cannot assign a device for operation 'save/ShardedFilename': Could not satisfy explicit device specification '/device:GPU:0' because no supported kernel for GPU devices is available.
```

There is a GPU, but this operation is for TPUs.

```
tensorflow.python.framework.errors_impl.InvalidArgumentError: No OpKernel was registered to support Op 'CollectivePermute' used by {{node CollectivePermute}} with these attrs: [T=DT_FLOAT]
Registered devices: [CPU, GPU]
Registered kernels:
  <no registered kernels>
```

```
InvalidArgumentError: Could not satisfy device specification '/job:localhost/replica:0/task:0/device:GPU:0'. enable_soft_placement=0. Supported device types [CPU]. All available devices [/job:localhost/replica:0/task:0/device:CPU:0, /job:localhost/replica:0/task:0/device:GPU:0].
```

XLA cannot compile an operation that runs on the GPU without XLA.

```
tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:

Detected unsupported operations when trying to compile graph __inference_one_step_on_data_993[] on XLA_GPU_JIT: CudnnRNN (No registered 'CudnnRNN' OpKernel for XLA_GPU_JIT devices compatible with node {{node CudnnRNN}}){{node CudnnRNN}}
```

## Quiet on (log)

The device itself is missing.

```
InvalidArgumentError: Cannot assign a device for operation MatMul: node MatMul was explicitly assigned to /device:GPU:0 but available devices are [ /job:localhost/replica:0/task:0/device:CPU:0 ]. Make sure the device specification refers to a valid device.
```

The program's own library of operations was not loaded.

```
tensorflow.python.framework.errors_impl.NotFoundError: Op type not registered 'TRTEngineOp' in binary running on box. Make sure the Op and Kernel are registered in the binary running in this process.
```

## Sources

- <https://www.tensorflow.org/guide/gpu>
- <https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/common_runtime/placer.cc>
- <https://github.com/keras-team/keras/issues/18456>
- <https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/framework/op_kernel.cc>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_placement import misplaced, placements
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.causes.evidence.log_tensorflow_api import soft_placement
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match

CAUSE = cause("WG408", __name__, __doc__, severity="error", effect="broken")

_XLA = late(
    r"(?P<what>[\w ]{3,60}) (?:is )?not (?:implemented|supported) on (?:the )?GPU\b"
    r"|(?:Unimplemented|UNIMPLEMENTED): [^\n]{0,120}(?:on GPU|for (?:platform )?(?:CUDA|GPU))"
    r"|only (?:implemented|supported|available) (?:for|on) (?:the )?CPU(?: devices)?\b"
    r"|Could not run '(?!torchvision)(?P<torch>[\w:.]{2,60})' with arguments from the '[A-Z]?\w{0,12}CUDA"
    r"|\"(?P<kernel>\w{0,50}cuda\w{0,50})\" not implemented for '"
    r"|No registered '(?P<op>\w{2,60})' OpKernel for '?(?:XLA_)?GPU\w{0,5}'? devices"
    # Only the end of the message: the list of kernels, and the node that was pinned.
    r"|Registered kernels:\n(?:\s{1,8}device='CPU'[^\n]{0,80}\n){1,40}\s{0,8}\[\[Node: "
    r"(?P<node>[\w/.-]{1,120}) = [^\n]{1,200}_device=\"[^\"\n]{0,80}GPU:\d"
)


_JIT = late(
    r"unsupported operations when trying to compile graph [^\n]{1,400}? on XLA_(?P<on>[CG]PU)_JIT: "
    r"(?P<op>\w{2,60})"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    compiled = log.first(_JIT)
    if compiled is not None:
        yield _not_compiled(log, compiled)
        return
    without = [p for p in placements(log) if misplaced(p) != "no-device"]
    xla = next((match for match in log.find(_XLA) if not _is_remark(log, match)), None)
    if not without and xla is None:
        return
    name = without[0].operation if without else _named(xla)
    lines = [n for p in without for n in range(p.line, p.last + 1)]
    if xla is not None:
        lines += [xla.line, *(f.line for f in log.failures if _XLA.search(f.text))]
    operation = f"the operation {name}" if name else "an operation"
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{operation} is pinned to the GPU, but this build has no GPU kernel for it, or "
        "not for its data type",
        evidence=log.evidence(*(n for n in lines if _is_kept(log, n))),
        remedies=(
            soft_placement(log, "Let TensorFlow run on the CPU what the GPU cannot run"),
            Remedy("Or put only operations with a GPU kernel under tf.device('/gpu:0')."),
            Remedy(
                "If no device has a kernel, the operation is for TPUs or from an extension: use "
                "the library's alternative, or another data type (float32 has the most kernels)."
            ),
        ),
        confidence="certain" if without and misplaced(without[0]) else "likely",
    )


def _not_compiled(log: Log, match: Match) -> Finding:
    recurrent = (
        (
            Remedy(
                "Or, if it is the kernel of an LSTM or GRU layer, let the layer use its own: "
                "use_cudnn=False in Keras 3."
            ),
        )
        if "RNN" in (match.groups["op"] or "")
        else ()
    )
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"XLA has no kernel for the operation {match.groups['op']}, and the program "
        "compiles the whole step with XLA (jit_compile)",
        evidence=log.evidence(match.line),
        remedies=(
            Remedy(
                "Run the step without XLA: model.compile(..., jit_compile=False), or no "
                f"jit_compile=True in tf.function. It still runs on the {match.groups['on']}."
            ),
            *recurrent,
        ),
    )


def _is_remark(log: Log, match: Match) -> bool:
    """TensorFlow's graph optimizer warns about operations that it leaves on the CPU."""
    return bool(match.groups["op"]) and log.line(match.line).level in ("info", "warning")


def _named(match: Match | None) -> str | None:
    groups = match.groups if match else {}
    return groups.get("op") or groups.get("torch") or groups.get("kernel") or groups.get("node")


def _is_kept(log: Log, number: int) -> bool:
    return any(line.number == number for line in log.lines)
