"""A generator reads each batch from storage that takes 15 ms to answer."""

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


def read(_):
    time.sleep(0.015)
    return np.ones((BATCH, WIDTH), "float32")


def stream():
    if CURED:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(4) as pool:
            for _ in range(1000):
                yield from pool.map(read, range(8))
        return
    while True:
        yield read(0)


train_step(w, np.ones((BATCH, WIDTH), "float32"))
end = time.monotonic() + SECONDS
for x in stream():
    w, value = train_step(w, x)
    if time.monotonic() > end:
        break
w.block_until_ready()
