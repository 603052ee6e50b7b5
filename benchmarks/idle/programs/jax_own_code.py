"""Words are counted in Python before each step."""

import os

import jax
import jax.numpy as jnp
import numpy as np

CURED = "CURED" in os.environ


@jax.jit
def train_step(w, x):
    def loss(w):
        return jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2)

    return w - 0.1 * jax.grad(loss)(w)


w = jnp.ones((384, 384)) / 384

WORDS = [str(number % 384) for number in range(40000)]
for _ in range(150):
    counts = [0] * 384
    if not CURED:
        for word in WORDS:
            counts[int(word)] += 1
    x = np.tile(np.array(counts, "float32"), (64, 1))
    w = train_step(w, x)
w.block_until_ready()
