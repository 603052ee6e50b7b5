"""Batches have different lengths, and each length is compiled."""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np

CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "15"))
WIDTH = 512


@jax.jit
def train_step(w, x):
    def loss(w):
        return jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


w = jnp.ones((WIDTH, WIDTH)) / WIDTH
w = train_step(w, np.ones((64, WIDTH), "float32"))
end = time.monotonic() + SECONDS
step = 0
while time.monotonic() < end:
    length = 64 if CURED else 65 + step
    w = train_step(w, np.ones((length, WIDTH), "float32"))
    step += 1
w.block_until_ready()
