"""CUDA is used in a forked process whose parent had started it already.

## Why it happens

A CUDA context belongs to the process that made it. `fork` copies the process, but not the context:
in the child every CUDA call fails, or hangs. Python's multiprocessing forks by default on Linux up
to 3.13, and so do data-loader workers, gunicorn with preload and Celery.

## What it looks like

- `RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing,
  you must use the 'spawn' start method`
- TensorFlow: the GPU is found and used, then `CUDA_ERROR_NOT_INITIALIZED` from the workers.
- `CUDA error: initialization error` out of a DataLoader worker; the same from CuPy and Numba.

## Fix

Start workers with `spawn` (or `forkserver`), or do not touch the GPU in the parent before they are
started: no tensor on it, no `is_available()` in old releases, no session.

## Fires on (log)

```
RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method
```

```
I tensorflow/core/common_runtime/gpu/gpu_device.cc:1115] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 7014 MB memory) -> physical GPU (device: 0, name: Quadro P4000, pci bus id: 0000:17:00.0, compute capability: 6.1)
E tensorflow/stream_executor/cuda/cuda_driver.cc:1368] could not retrieve CUDA device count: CUDA_ERROR_NOT_INITIALIZED: initialization error
```

```
  File "/usr/lib/python3.7/site-packages/torch/utils/data/_utils/worker.py", line 178, in _worker_loop
    data = fetcher.fetch(index)
RuntimeError: CUDA error: initialization error
```

## Quiet on (log)

```
RuntimeError: CUDA error: invalid device ordinal
```

## Sources

- <https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing>
- <https://docs.python.org/3/library/multiprocessing.html#contexts-and-start-methods>
- <https://github.com/tensorflow/tensorflow/issues/8220>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.shared_logs import framework_title, gpu_ends_after, subject_of
from whygpu.model.cause import cause
from whygpu.model.finding import Confidence, Finding, Remedy
from whygpu.model.log import Log

CAUSE = cause("WG703", __name__, __doc__, severity="error", effect="broken")

_SAID = re.compile(
    r"Cannot re-initiali[sz]e (?:CUDA|HIP|XPU|NPU) in forked (?:sub)?process"
    r"|CUDA (?:was |has been )?(?:already )?initiali[sz]ed (?:before|in the parent"
    r"|in the main)[^\n]{0,60}fork"
    r"|poison_fork|in_bad_fork"
)
_NOT_INITIALIZED = re.compile(
    r"CUDA_ERROR_NOT_INITIALIZED|cudaErrorInitializationError"
    r"|(?:CUDA|cuda) (?:runtime )?error(?: \(3\))? ?: ?initialization error"
    r"|error=3 : initialization error"
    r"|cuInit failed: initialization error|device properties, error code: 3\b"
    r"|cudaSuccess ?\(3 ?vs\. ?0\)"
)
_WORKERS = re.compile(
    r"multiprocessing[/\\.]|_worker_loop|DataLoader worker|[Ff]orked?\b|ForkPoolWorker|ForkProcess"
    r"|Process-\d|Process ForkP|gunicorn|uwsgi|billiard|celery|joblib|Pool\(|prefork|worker process"
)
_FORK_WARNING = re.compile(r"os\.fork\(\) (?:was called|is incompatible)")
_MOST_LINES = 6


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    said = [match.line for match in log.find(_SAID)]
    unready = [match.line for match in log.find(_NOT_INITIALIZED)]
    confidence: Confidence
    if said:
        confidence = "certain"
    elif unready and (log.says(_WORKERS) or log.says(_FORK_WARNING) or _worked(log, unready[0])):
        confidence = "likely"
    elif unready:
        confidence = "possible"
    else:
        return
    lines = said or unready
    ends = gpu_ends_after(log, lines[0])
    yield CAUSE.finding(
        subject=subject_of(log),
        message="a forked process uses CUDA after its parent has started it, and "
        f"{framework_title(log)} cannot start it a second time there",
        evidence=log.evidence(*lines[:_MOST_LINES], *ends[:_MOST_LINES]),
        remedies=(
            Remedy(
                "Start the workers without fork, at the beginning of the program: "
                "multiprocessing.set_start_method('spawn')."
            ),
            Remedy(
                "Or keep the parent off the GPU until they are started; have data-loader workers "
                "return CPU tensors, and move the batch in the main process."
            ),
            *_for_servers(log),
        ),
        confidence=confidence,
        ask=None
        if confidence == "certain"
        else "Does it work with one process and no workers (num_workers=0)? Then the fork is the "
        "reason.",
    )


def _worked(log: Log, line: int) -> bool:
    """A GPU was ready before: so CUDA itself is in order."""
    return any(device.event == "ready" and device.line < line for device in log.devices)


def _for_servers(log: Log) -> Iterator[Remedy]:
    if re.search(r"vllm", log.text, re.I):
        yield Remedy("For vLLM.", "export VLLM_WORKER_MULTIPROC_METHOD=spawn")
    elif re.search(r"gunicorn|uwsgi|celery", log.text, re.I):
        yield Remedy(
            "Load the model in each worker after the fork: no --preload, lazy-apps = true."
        )
