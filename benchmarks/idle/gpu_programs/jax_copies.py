"""Each batch is copied to the GPU, and the program waits for the copy."""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np

SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, BATCH = 1024, 65536


@jax.jit
def train_step(w, x):
    def loss(w):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


w = jnp.ones((WIDTH, WIDTH)) / WIDTH
batches = [np.random.rand(BATCH, WIDTH).astype("float32") for _ in range(4)]
w = train_step(w, jax.device_put(batches[0]))
end = time.monotonic() + SECONDS
step = 0
while time.monotonic() < end:
    x = jax.device_put(batches[step % 4])
    w = train_step(w, x)
    step += 1
w.block_until_ready()
