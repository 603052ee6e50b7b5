"""Only a part of the step is jitted: the optimizer's arithmetic runs operation by operation."""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np

CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, BATCH = 256, 256


@jax.jit
def train_step(w, x):
    def loss(w):
        return jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return w - 0.1 * gradient, value


w = jnp.ones((WIDTH, WIDTH)) / WIDTH


@jax.jit
def train_gradient(w, x):
    return jax.grad(lambda w: jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2))(w)


def update(w, m, v, gradient):
    for _ in range(10):
        m = 0.9 * m + 0.1 * gradient
        v = 0.99 * v + 0.01 * gradient**2
    return w - 0.001 * m / (jnp.sqrt(v) + 1e-8), m, v


if CURED:
    update = jax.jit(update)
x = jax.device_put(np.ones((BATCH, WIDTH), "float32"))
m, v = jnp.zeros_like(w), jnp.zeros_like(w)
update(w, m, v, train_gradient(w, x))
end = time.monotonic() + SECONDS
step = 0
while time.monotonic() < end:
    w, m, v = update(w, m, v, train_gradient(w, x))
    step += 1
    if step % 50 == 0:
        w.block_until_ready()
