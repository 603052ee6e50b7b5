"""Words are counted in Python before each step."""

import os
import time

import numpy as np
import tensorflow as tf

CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, BATCH = 1024, 512
weights = tf.Variable(tf.ones((WIDTH, WIDTH)) / WIDTH)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.tanh(tf.tanh(x @ weights) @ weights) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


WORDS = [str(number % WIDTH) for number in range(40000)]
train_step(tf.ones((BATCH, WIDTH)))
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    counts = [0] * WIDTH
    if not CURED:
        for word in WORDS:
            counts[int(word)] += 1
    x = tf.constant(np.tile(np.array(counts, "float32"), (BATCH, 1)))
    loss = train_step(x)
print(float(loss))
