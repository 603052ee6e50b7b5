"""One model with one batch, trained for three steps: prints the most memory that was resident.

    python find_truth.py torch_conv 64 [BYTES]

What benchmarks.find_batch holds the finder against: written without a line of whygpu. With BYTES it
runs on the first GPU, within this limit of its memory; the limit of JAX is a variable, which is set
by whoever starts this.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import find_models

STEPS = 3


def keras_steps(model: Any, batch: int) -> None:
    import numpy

    model.compile("adam", "mse")
    (given,) = model.inputs
    x = numpy.ones((batch, *given.shape[1:]), given.dtype)
    y = numpy.ones((batch, *model.outputs[0].shape[1:]), "float32")
    for _ in range(STEPS):
        model.train_on_batch(x, y)


def limit_tensorflow(limit: int) -> None:
    import tensorflow as tf

    for gpu in tf.config.list_physical_devices("GPU"):
        logical = tf.config.LogicalDeviceConfiguration(memory_limit=limit >> 20)
        tf.config.set_logical_device_configuration(gpu, [logical])


def limit_torch(limit: int) -> None:
    import torch

    _, total = torch.cuda.mem_get_info()
    torch.cuda.set_per_process_memory_fraction(limit / total)


def torch_steps(net: Any, example: Any, batch: int, device: str) -> None:
    import torch

    net.to(device)
    optimizer = torch.optim.Adam(net.parameters())
    x = torch.ones((batch, *example.shape[1:]), dtype=example.dtype, device=device)
    for _ in range(STEPS):
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()


def jax_steps(function: Any, arguments: Any) -> None:
    import jax

    compiled = jax.jit(function)
    for _ in range(STEPS):
        result = compiled(*arguments)
        jax.block_until_ready(result)


def main() -> None:
    name, batch = sys.argv[1], int(sys.argv[2])
    limit = int(sys.argv[3]) if len(sys.argv) > 3 else None
    make = getattr(find_models, name)
    backend = os.environ.get("KERAS_BACKEND", "") if name.startswith("keras") else name
    if limit is not None and backend.startswith("tensorflow"):
        limit_tensorflow(limit)
    elif limit is not None and backend.startswith("torch"):
        limit_torch(limit)
    if name.startswith("keras"):
        keras_steps(make(), batch)
    elif name.startswith("torch"):
        torch_steps(*make(), batch, "cpu" if limit is None else "cuda")
    elif name.startswith("jax"):
        jax_steps(*make(batch))
    else:
        step = make()
        for _ in range(STEPS):
            step(batch)
    with open("/proc/self/status") as status:
        # Not ru_maxrss, which begins with what the process that started this one holds.
        print(int(next(line for line in status if line.startswith("VmHWM")).split()[1]) * 1024)


if __name__ == "__main__":
    main()
