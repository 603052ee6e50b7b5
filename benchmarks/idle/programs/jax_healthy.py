"""Batches are in memory."""

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

batches = [np.ones((256, 384), "float32") for _ in range(8)]
for step in range(250):
    w = train_step(w, batches[step % 8])
    if step % 50 == 0:
        print(float(w[0, 0]))
