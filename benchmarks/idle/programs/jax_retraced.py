"""Batches have different lengths, and each length is compiled."""

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

LENGTHS = [64] if CURED else range(64, 224)
for step in range(160):
    w = train_step(w, np.ones((LENGTHS[step % len(LENGTHS)], 384), "float32"))
w.block_until_ready()
