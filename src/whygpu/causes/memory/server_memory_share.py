"""A server of language models may use a share of the GPU's memory, and what it needs exceeds it.

## Why it happens

vLLM, SGLang and similar servers take a fixed share of the GPU's memory when they start: the
weights first, then the cache of keys and values (KV cache) for the requests. It is a share of
all the memory of the GPU, not of what is free.

- Other processes already use a part of the share. The server then does not start, even if the model
  itself would fit.
- The weights leave too little for the cache of one request of the longest allowed length. Models
  with a context of 128,000 tokens need many GiB for it.

## What it looks like

- `Free memory on device (31.44/47.38 GiB) on startup is less than desired GPU memory utilization`.
- `... GiB KV cache is needed, which is larger than the available KV cache memory`.
- `No available memory for the cache blocks`.
- SGLang: `Not enough memory. Please try to increase --mem-fraction-static`.

## Fix

Lower the share if other programs need the rest (`--gpu-memory-utilization`), or end them. Raise it
if the GPU is otherwise unused. A shorter context (`--max-model-len`), a quantized model, a cache in
8 bits, or more GPUs reduce what it needs.

## Fires on (log)

```
ValueError: Free memory on device (31.44/47.38 GiB) on startup is less than desired GPU memory utilization (0.9, 42.64 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.
```

```
ValueError: To serve at least one request with the models's max seq len (32768), (4.00 GiB KV cache is needed, which is larger than the available KV cache memory (1.21 GiB). Based on the available memory, the estimated maximum model length is 9904. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.
```

```
ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.
```

```
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.
```

## Quiet on (log)

PyTorch itself ran out of memory; the share is not the reason.

```
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.69 GiB of which 614.00 MiB is free. Of the allocated memory 21.40 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.
```

```
INFO 06-01 10:22:11 [gpu_worker.py:227] Available KV cache memory: 21.21 GiB
INFO 06-01 10:22:12 [kv_cache_utils.py:715] GPU KV cache size: 397,104 tokens
INFO:     Application startup complete.
```

## Sources

- <https://docs.vllm.ai/en/latest/configuration/conserving_memory.html>
- <https://docs.vllm.ai/en/latest/configuration/engine_args.html>
- <https://docs.sglang.ai/advanced_features/hyperparameter_tuning.html>
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from whygpu.causes.evidence.log_out_of_memory import Shortage, server_share, told_apart
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.causes.evidence.memory_remedies import see_holders
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.units import size_text

CAUSE = cause("WG506", __name__, __doc__, severity="error", effect="broken")

Lacking = Literal["free memory", "cache of one request", "any cache"]


class _Options(NamedTuple):
    """The options with which a server uses a larger share, and several GPUs."""

    share: str
    gpus: str


_SERVERS = {
    "vllm": _Options("--gpu-memory-utilization", "--tensor-parallel-size"),
    "serving": _Options("--mem-fraction-static", "--tensor-parallel-size"),
}
_TEXT_GENERATION_INFERENCE = _Options("--cuda-memory-fraction", "--num-shard")
_CACHE_TOO_SMALL = late(
    r"larger than the available KV cache|larger than the maximum number of tokens"
    r"|Not enough memory to handle"
)
_OCCUPIED = late(r"occupied by other processes")
_PREFILL = late(r"Not enough memory to handle \d{1,9} prefill tokens")
_SHARE = late(r"GPU memory utilization \((?P<share>0\.\d{1,4}|1\.0)\b")
_LONGEST = late(r"estimated maximum model length is (?P<tokens>\d{1,9})")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    found = server_share(log)
    if found is None:
        return
    lacking = _lacking(log, found)
    yield CAUSE.finding(
        subject=subject_of(log),
        message=_message(lacking, found),
        evidence=log.evidence(*found.lines),
        remedies=tuple(_remedies(log, lacking, found)),
        # Memory of other processes makes the cache smaller, too, and these messages do not say it.
        confidence="certain" if lacking == "free memory" else "likely",
        severity=found.severity,
        ask="How much memory is in use before the server starts (nvidia-smi)?",
        kind_of="oom-other-process" if lacking == "free memory" else "oom-model-too-big",
    )


def _lacking(log: Log, found: Shortage) -> Lacking:
    texts = [log.line(allocation.line).text for allocation in found.refused]
    if any(allocation.free and allocation.total for allocation in found.refused):
        return "free memory"
    if any(_OCCUPIED.search(text) for text in texts):
        return "free memory"
    if any(_CACHE_TOO_SMALL.search(text) for text in texts):
        return "cache of one request"
    return "any cache"


def _message(lacking: Lacking, found: Shortage) -> str:
    known = found.requested is not None and found.free is not None
    asked, free = told_apart(found.requested or 0, found.free or 0)
    if lacking == "free memory" and not known:
        return (
            "one of the server's GPUs has less free memory than the others: other processes use it"
        )
    if lacking == "free memory":
        share = f"wants {asked}"
        whole = f" of {size_text(found.total)}" if found.total is not None else ""
        return (
            f"the server {share} of the GPU's memory, and {free}{whole} are free: other processes "
            "hold the rest"
        )
    if lacking == "cache of one request":
        needs = f" ({asked} needed, {free} left)" if known else ""
        return (
            "the model's weights leave too little memory for one request of the longest allowed "
            f"length{needs}"
        )
    return (
        "the model's weights, and the memory for computing with them, take all that the server "
        "may use of the GPU, and leave nothing for the cache of its requests"
    )


def _remedies(log: Log, lacking: Lacking, found: Shortage) -> Iterator[Remedy]:
    prefill = log.says(_PREFILL)
    options = _TEXT_GENERATION_INFERENCE if prefill else _SERVERS[found.refused[0].of]
    if lacking == "free memory":
        if found.free and found.total:
            share = int(100 * found.free / found.total) / 100
            yield Remedy(
                f"Let the server use no more than is free: {options.share} {share:.2f} or less."
            )
        yield see_holders(log)
        return
    longest = log.first(_LONGEST)
    if longest is not None:
        yield Remedy(
            f"Serve a context that fits: --max-model-len {longest.groups['tokens']} or less."
        )
    elif prefill:
        yield Remedy(
            "Admit fewer tokens at once: --max-batch-prefill-tokens with a smaller number."
        )
    elif lacking == "cache of one request":
        yield Remedy("Serve a shorter context: --max-model-len with a smaller number.")
    share_seen = log.first(_SHARE)
    now = f" (it is {share_seen.groups['share']} now)" if share_seen else ""
    yield Remedy(
        f"If nothing else uses the GPU, give the server a larger share: {options.share}{now}."
    )
    yield Remedy(
        "Or make the need smaller: a quantized model, a cache in 8 bits (--kv-cache-dtype), or "
        f"several GPUs ({options.gpus})."
    )
    yield see_holders(log)
