"""One model with one batch, trained for three steps: prints the most memory that was resident.

    python find_truth.py torch_conv 64

What benchmarks.find_batch holds the finder against: written without a line of whygpu.
"""

from __future__ import annotations

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


def torch_steps(net: Any, example: Any, batch: int) -> None:
    import torch

    optimizer = torch.optim.Adam(net.parameters())
    x = torch.ones((batch, *example.shape[1:]), dtype=example.dtype)
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
    make = getattr(find_models, name)
    if name.startswith("keras"):
        keras_steps(make(), batch)
    elif name.startswith("torch"):
        torch_steps(*make(), batch)
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
