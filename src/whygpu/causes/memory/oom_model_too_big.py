"""The program itself needs more memory than the GPU has.

## Why it happens

Weights, gradients, optimizer state and the activations of a whole batch must be in GPU memory at
the same time. Activations are the largest part; they grow with the batch, the size of the images
and the length of the sequences. Copying a whole data set to the GPU, or evaluating all test images
in one batch, has the same effect.

## What it looks like

- TensorFlow: `ResourceExhaustedError: OOM when allocating tensor with shape[...]`, after `Allocator
  (GPU_0_bfc) ran out of memory trying to allocate ...`. The same line with "The caller indicates
  that this is not a failure" is a note about speed, not an error.
- JAX: `RESOURCE_EXHAUSTED: Out of memory while trying to allocate ... bytes`.
- PyTorch: `CUDA out of memory. Tried to allocate ...`, with figures for each holder of memory.
- RAPIDS, CuPy, Numba: `std::bad_alloc: out_of_memory`, `OutOfMemoryError`,
  `CUDA_ERROR_OUT_OF_MEMORY`.

## Fix

Make the batch smaller, and accumulate gradients if the optimizer needs the larger batch. Mixed
precision halves the activations. Recomputing them (gradient checkpointing), shorter sequences and
smaller images save more. With several GPUs, count the batch per GPU.

## Fires on (log)

```
2022-03-02 11:20:14.120000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1525] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9649 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 2080 Ti, pci bus id: 0000:0a:00.0, compute capability: 7.5
2022-03-02 11:20:40.670000: W tensorflow/core/common_runtime/bfc_allocator.cc:462] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.30GiB (rounded to 2466250752)requested by op conv2d/Conv2D
tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[96,64,320,320] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]
```

```
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 23.69 GiB total capacity; 21.40 GiB already allocated; 614.00 MiB free; 22.05 GiB reserved in total by PyTorch)
```

```
jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 42949672960 bytes.
```

## Quiet on (log)

A note about speed; the training continues.

```
2021-02-03 10:00:05.000000: W tensorflow/core/common_runtime/bfc_allocator.cc:248] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.25GiB with freed_by_count=0. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory were available.
Epoch 1/10
400/400 [==============================] - 31s 76ms/step - loss: 0.4213
```

Another process holds the memory.

```
RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity; 41.12 MiB already allocated; 8.56 MiB free; 44.00 MiB reserved in total by PyTorch)
```

## Sources

- <https://www.tensorflow.org/guide/mixed_precision>
- <https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management>
- <https://docs.jax.dev/en/latest/gpu_memory_allocation.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_out_of_memory import Shortage, how_far, seen_in
from whygpu.causes.evidence.log_subjects import framework_title, is_tensorflow, subject_of
from whygpu.causes.evidence.log_tensorflow_api import api_of
from whygpu.causes.evidence.memory_remedies import another_gpu, maker_of, see_holders, shown_by
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

CAUSE = cause(
    "WG504",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-crashes",),
)

_ARRAYS = ("cupy", "numba")
"""Libraries that compute with arrays and have neither batches nor gradients."""
_OWN_LIMIT = late(r"\bis free\. (?P<limit>[\d.]{1,8} [KMG]iB) allowed;")
"""PyTorch was told to use a fraction of the GPU."""
_WHOLE_DATA_SET = late(r"_EagerConst|from_tensor_slices")
_SERVING = late(
    r"\bv(?:llm|LLM)\b|KV cache|max_model_len|llama|gpu_memory_utilization|text.generation"
)
_VLLM = late(r"\bv(?:llm|LLM)\b")
_INFERENCE = late(
    r"\bin (?:generate|predict|sample|transcribe|infer\w{0,8})\b|\.(?:generate|predict|transcribe)\("
    r"|\b[Ii]nference\b|diffusers|\bpipeline\(|ComfyUI|stable.diffusion|\bkoboldcpp\b|\bollama\b"
    r"|inference_mode|no_grad\b|\buvicorn\b|\bgunicorn\b"
)
_TRAINING = late(
    r"\bbackward\b|\b[Ee]poch\b|\bloss\b|optimizer|\btrain\w{0,8}\b|\bfit\(|[Gg]radient|\bin fit\b"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    found = seen_in(log, "too-big")
    if found is None:
        return
    asked = how_far(found)
    failure = f"{framework_title(log)} ran out of GPU memory"
    first = f"{failure}: it {asked}" if asked else failure
    own_limit = log.first(_OWN_LIMIT)
    if own_limit is not None:
        first += f" within its own limit of {own_limit.groups['limit']}"
    because = f"; {found.because}" if found.because and found.reason == "too-big" else ""
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"{first}{because}",
        evidence=log.evidence(*found.lines),
        remedies=tuple(_remedies(log, found)),
        confidence=found.confidence,
        severity=found.severity,
        effect="broken" if found.severity == "error" else "none",
        ask=_question(log, found),
    )


def _question(log: Log, found: Shortage) -> str | None:
    if found.confidence == "certain":
        return None
    return (
        f"How much memory is in use before the program starts{shown_by(log)}? If almost none, the "
        "program is too big; otherwise another process holds it."
    )


def _remedies(log: Log, found: Shortage) -> Iterator[Remedy]:
    if log.says(_OWN_LIMIT):
        yield Remedy(
            "The program limits its own share of the GPU: raise or remove "
            "torch.cuda.set_per_process_memory_fraction (or per_process_memory_fraction in "
            "PYTORCH_CUDA_ALLOC_CONF)."
        )
    if log.says(_WHOLE_DATA_SET):
        yield Remedy(
            "Keep the data set in main memory: build it under tf.device('/CPU:0'), or feed it "
            "from a generator."
        )
    trains = log.says(_TRAINING)
    if log.says(_SERVING) and not trains:
        if log.says(_VLLM):
            yield Remedy(
                "Lower the share of the GPU that vLLM fills with its cache "
                "(--gpu-memory-utilization; its default is 0.9), or let it work on fewer requests "
                "at once (--max-num-seqs)."
            )
        yield Remedy(
            "Serve a shorter context (max_model_len), a quantized model, or put fewer layers on "
            "the GPU."
        )
    elif log.says(_INFERENCE) and not trains:
        yield from _for_inference(log)
    elif log.framework in _ARRAYS:
        yield Remedy(
            "Process the data in smaller parts, and free each part before the next is loaded."
        )
    else:
        yield Remedy(_smaller_batch(found))
        yield from _half_precision(log)
        yield Remedy(
            "If the optimizer needs the larger batch, accumulate the gradients of several small "
            "ones."
        )
    if found.confidence != "certain":
        yield see_holders(log)
    yield from another_gpu(log)


def _for_inference(log: Log) -> Iterator[Remedy]:
    yield Remedy(
        "Process less at once: fewer inputs, shorter sequences or prompts, smaller images."
    )
    if log.framework == "torch":
        yield Remedy(
            "Load the weights in 16 bits (model.half(), torch_dtype='auto' in Transformers) or "
            "quantized, and compute under torch.inference_mode(), which keeps no activations."
        )
    else:
        yield Remedy("Use weights in 16 bits, a quantized model or a smaller one.")


def _smaller_batch(found: Shortage) -> str:
    shape = next((a.shape for a in found.refused if a.shape), "")
    first = shape.strip("[]").partition(",")[0]
    if first.isdecimal() and int(first) > 1 and "," in shape:
        return (
            f"Make the batch smaller: the tensor that was refused has shape {shape}; if its "
            f"{first} is the batch, try {int(first) // 2}."
        )
    return "Make the batch smaller: halve it until it fits; then images, sequences or the model."


def _half_precision(log: Log) -> Iterator[Remedy]:
    if log.framework == "torch":
        device = {"apple": "mps", "intel": "xpu"}.get(maker_of(log), "cuda")
        yield Remedy(f"Use mixed precision: run the model under torch.autocast('{device}').")
    elif log.framework == "jax":
        yield Remedy("Compute in bfloat16, and recompute activations with jax.checkpoint.")
    elif not is_tensorflow(log):
        yield Remedy("Use mixed precision: in 16 bits activations need half of the memory.")
    elif api_of(log) != "sessions":
        # Graphs have it only since TensorFlow 1.14, by another call.
        yield Remedy(
            "Use mixed precision: tf.keras.mixed_precision.set_global_policy('mixed_float16')."
        )
