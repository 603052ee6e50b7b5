"""Words are counted in Python before each step."""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np

CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, BATCH = 1024, 512


@jax.jit
def train_step(w, x):
    def loss(w):
        return jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return w - 0.1 * gradient, value


w = jnp.ones((WIDTH, WIDTH)) / WIDTH
WORDS = [str(number % WIDTH) for number in range(40000)]
train_step(w, np.ones((BATCH, WIDTH), "float32"))
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    counts = [0] * WIDTH
    if not CURED:
        for word in WORDS:
            counts[int(word)] += 1
    x = np.tile(np.array(counts, "float32"), (BATCH, 1))
    w, value = train_step(w, x)
w.block_until_ready()
