"""Several processes use one GPU, and none of them limits its memory.

## Why it happens

In each process, TensorFlow reserves nearly all memory of every GPU that it sees, and JAX three
quarters of it. The process that starts first leaves nothing for the others.

## What it looks like

`CUDA_ERROR_OUT_OF_MEMORY`, `failed to create cublas handle` or `Could not create cudnn handle` in
all processes but the first.

## Fix

In each process, before anything else, set memory growth or a limit
(`tf.config.set_logical_device_configuration`), TF_FORCE_GPU_ALLOW_GROWTH=true or
XLA_PYTHON_CLIENT_PREALLOCATE=false. Or give each process its own GPU with CUDA_VISIBLE_DEVICES.

## Fires on (code)

```python
import multiprocessing
import tensorflow as tf

def train(n):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, y)

if __name__ == "__main__":
    for n in range(4):
        multiprocessing.Process(target=train, args=(n,)).start()
```

## Quiet on (code)

```python
import multiprocessing
import os
import tensorflow as tf

def train(n):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(n)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(x, y)

if __name__ == "__main__":
    for n in range(4):
        multiprocessing.Process(target=train, args=(n,)).start()
```

The child processes do not use TensorFlow.

```python
import multiprocessing
import tensorflow as tf

def load(n):
    return open(str(n)).read()

if __name__ == "__main__":
    for n in range(4):
        multiprocessing.Process(target=load, args=(n,)).start()
    tf.constant(1.0)
```

## Sources

- <https://www.tensorflow.org/guide/gpu#limiting_gpu_memory_growth>
- <https://docs.jax.dev/en/latest/gpu_memory_allocation.html>
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from whygpu.causes.evidence.child_processes import children, run_several
from whygpu.causes.evidence.runtime_starts import jax_starts, tensorflow_starts
from whygpu.model.cause import cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program

CAUSE = cause("WG724", __name__, __doc__, severity="warning", effect="broken")

_LIMITS = late(
    r"memory_growth|logical_device|virtual_device|memory_fraction|ALLOW_GROWTH|allow_growth"
    r"|CUDA_VISIBLE_DEVICES|visible_devices|PREALLOCATE|MEM_FRACTION|JAX_PLATFORM"
    r"|/cpu|/CPU|MEMORY_LIMIT|jax_platform"
)


@CAUSE.on_code("multiprocessing", "ProcessPoolExecutor", needs=("tensorflow", "jax"))
def detect(program: Program) -> Iterator[CodeFinding]:
    if _LIMITS.search(program.text):
        return
    started = list(children(program))
    for call, target in started:
        if not run_several(call, [each for each, _ in started]):
            continue
        inside = set(ast.walk(target.definition.node))
        for framework, starts in (("tensorflow", tensorflow_starts), ("jax", jax_starts)):
            if any(start.node in inside for start in starts(program)):
                name = "TensorFlow" if framework == "tensorflow" else "JAX"
                yield CAUSE.in_code(
                    program,
                    call.node,
                    subject=framework,
                    message=f"several processes run {target.definition.node.name}, and in each of "
                    f"them {name} reserves most of the GPU's memory: all but the first run out",
                    fix="Set memory growth or a limit in each process, or give each its own GPU "
                    "with CUDA_VISIBLE_DEVICES.",
                    confidence="likely",
                )
                break
