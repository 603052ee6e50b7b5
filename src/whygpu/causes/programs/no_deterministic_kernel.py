"""The program demands the same result in every run, and an operation cannot promise that on the GPU.

## Why it happens

Many GPU kernels add numbers in an order that changes from run to run, so that the last digits of a
result differ. A program can forbid that: `torch.use_deterministic_algorithms(True)` in PyTorch,
`tf.config.experimental.enable_op_determinism()` or `TF_DETERMINISTIC_OPS=1` in TensorFlow,
`XLA_FLAGS=--xla_gpu_deterministic_ops=true` in JAX; also `Trainer(deterministic=True)` of Lightning
and `whygpu run --deterministic`. The framework then raises an error when the program comes to an
operation that has no such kernel, often only in the backward pass. The GPU and its libraries work.

PyTorch asks for one thing more: cuBLAS, which computes matrix products, is deterministic only if
`CUBLAS_WORKSPACE_CONFIG` is set before the program uses the GPU.

## What it looks like

- PyTorch: `this operation is not deterministic because it uses CuBLAS and you have CUDA >= 10.2`.
- PyTorch: `scatter_add_cuda_kernel does not have a deterministic implementation, but you set
  'torch.use_deterministic_algorithms(True)'`.
- TensorFlow: `UnimplementedError: A deterministic GPU implementation of ... is not currently
  available`, or `Determinism is not yet supported in GPU implementation of ...`.
- JAX: `HLO instruction ... does not have a deterministic implementation, but run-to-run determinism
  is required`.

Most of these operations have no such limit on the CPU, so that the same program works on a machine
without a GPU.

## Fix

If the message names cuBLAS, set `CUBLAS_WORKSPACE_CONFIG=:4096:8` in the shell, before Python
starts.

Else decide what you need. Fixed seeds alone make two runs similar, not equal, and may be enough. To
keep the demand for all other operations, let PyTorch warn instead (`warn_only=True`), or compute
this one operation on the CPU. A newer release of the framework may have a deterministic kernel.

## Fires on (log)

```
Traceback (most recent call last):
  File "train.py", line 52, in <module>
    out = model(batch.cuda())
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: Deterministic behavior was enabled with either `torch.use_deterministic_algorithms(True)` or `at::Context::setDeterministicAlgorithms(true)`, but this operation is not deterministic because it uses CuBLAS and you have CUDA >= 10.2. To enable deterministic behavior in this case, you must set an environment variable before running your PyTorch application: CUBLAS_WORKSPACE_CONFIG=:4096:8 or CUBLAS_WORKSPACE_CONFIG=:16:8.
```

```
Traceback (most recent call last):
  File "train.py", line 61, in <module>
    loss.backward()
RuntimeError: upsample_linear1d_backward_out_cuda does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's acceptable for your application.
```

```
tensorflow.python.framework.errors_impl.UnimplementedError: A deterministic GPU implementation of DepthwiseConvBackpropFilter is not currently available.
          [[node gradient_tape/model/depthwise_conv2d/DepthwiseConv2dNativeBackpropFilter]] [Op:__inference_train_step_19847]
```

Keras shows the reason in a paragraph of its own.

```
Traceback (most recent call last):
  File "train.py", line 31, in <module>
    model.fit(dataset, epochs=2)
tensorflow.python.framework.errors_impl.UnimplementedError: Graph execution error:

Detected at node model/bincount/DenseBincount defined at (most recent call last):
  File "train.py", line 31, in <module>

Determinism is not yet supported in GPU implementation of DenseBincount.
          [[{{node model/bincount/DenseBincount}}]] [Op:__inference_train_function_1044]
```

```
jaxlib.xla_extension.XlaRuntimeError: UNIMPLEMENTED: HLO instruction select-and-scatter.401.0 does not have a deterministic implementation, but run-to-run determinism is required by --xla_gpu_deterministic_ops.
```

## Quiet on (log)

With `warn_only=True` it is a warning, and the program goes on.

```
train.py:61: UserWarning: upsample_linear1d_backward_out_cuda does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True, warn_only=True)'.
  loss.backward()
Epoch 1: loss 0.71
Epoch 2: loss 0.60
```

Nothing demanded it: results differ, which is another question.

```
WARNING: cudnn.deterministic is False, so results are not deterministic on the GPU
Epoch 1: loss 0.71
```

## Sources

- <https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html>
- <https://docs.nvidia.com/cuda/cublas/index.html#results-reproducibility>
- <https://www.tensorflow.org/api_docs/python/tf/config/experimental/enable_op_determinism>
- <https://github.com/tensorflow/tensorflow/issues/51978>
- <https://github.com/google/flax/issues/4233>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_subjects import framework_title, is_tensorflow, subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.remedy import SetVariable

CAUSE = cause("WG707", __name__, __doc__, severity="error", effect="broken")

_REFUSED = late(
    r"(?P<cublas>not deterministic because it uses CuBLAS)"
    r"|(?P<torch>[\w:]{1,80}) does not have a deterministic implementation, but you set 'torch\."
    r"|HLO instruction %?(?P<xla>[\w.\-]{1,80}) does not have a deterministic implementation"
    r"|[Dd]eterministic GPU implementation of (?P<tensorflow>[\w ,\-]{1,80}?),? (?:is )?not "
    r"(?:currently )?available"
    r"|Determinism is not yet supported (?:in GPU implementation of|for) (?P<other>\w{1,80})"
)
_WARNING = late(r"Warning: |warn_only=True\)'")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    match = next((match for match in log.find(_REFUSED) if _stopped(log, match)), None)
    if match is None:
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{framework_title(log)} stopped because the program demands the same result in "
        f"every run, and {_reason(match)}",
        evidence=log.evidence(match.line),
        remedies=_CUBLAS if match.groups["cublas"] else tuple(_remedies(log, match)),
    )


def _stopped(log: Log, match: Match) -> bool:
    """PyTorch only warns if it was told to; a program that worked on afterwards did not stop."""
    return _WARNING.search(match.text) is None and all(line < match.line for line in log.progress)


def _reason(match: Match) -> str:
    if match.groups["cublas"]:
        return "cuBLAS promises that only if CUBLAS_WORKSPACE_CONFIG is set"
    operation = next(name for name in match.groups.values() if name)
    where = " on the GPU" if _is_gpu_code(match) else ""
    return f"{operation} has no deterministic implementation{where}"


def _is_gpu_code(match: Match) -> bool:
    """PyTorch refuses a few operations, such as put_, on every device; kernels have cuda in their
    names. The others write of GPU code only."""
    return "cuda" in (match.groups["torch"] or "cuda")


_CUBLAS = (
    Remedy(
        "Set the variable in the shell, before Python starts.",
        SetVariable("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
    ),
    Remedy(
        "Or do not demand it: remove torch.use_deterministic_algorithms(True), or "
        "deterministic=True of the trainer, and keep the seeds."
    ),
)


def _remedies(log: Log, match: Match) -> Iterator[Remedy]:
    if match.groups["torch"]:
        yield Remedy(
            "If small differences between runs are acceptable, let PyTorch warn only: "
            "torch.use_deterministic_algorithms(True, warn_only=True)."
        )
    elif match.groups["xla"] and not is_tensorflow(log):
        yield Remedy(
            "If small differences between runs are acceptable, remove --xla_gpu_deterministic_ops "
            "and --xla_gpu_exclude_nondeterministic_ops from XLA_FLAGS, and keep the seeds."
        )
    else:
        yield Remedy(
            "If small differences between runs are acceptable, remove "
            "tf.config.experimental.enable_op_determinism() and TF_DETERMINISTIC_OPS, and keep "
            "the seeds (tf.keras.utils.set_random_seed)."
        )
    yield Remedy(
        "Or compute this operation on the CPU, or with another one."
        if _is_gpu_code(match)
        else "Or use another operation."
    )
    yield Remedy("Or try the newest release, which may have a deterministic implementation.")
