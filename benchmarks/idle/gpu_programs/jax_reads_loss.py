"""The loss is read in every step, so the GPU waits while the next step is launched."""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np

CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, BATCH = 512, 512


@jax.jit
def train_step(w, x):
    def loss(w):
        return jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return w - 0.1 * gradient, value


w = jnp.ones((WIDTH, WIDTH)) / WIDTH
x = jax.device_put(np.ones((BATCH, WIDTH), "float32"))
train_step(w, np.ones((BATCH, WIDTH), "float32"))
end = time.monotonic() + SECONDS
total, step = 0.0, 0
while time.monotonic() < end:
    w, value = train_step(w, x)
    step += 1
    if not CURED or step % 100 == 0:
        total += float(value)
print(total)
