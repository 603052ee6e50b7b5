"""The number of the step is a Python number, so each step is traced again."""

import os
import time

import tensorflow as tf

CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, BATCH = 1024, 512
weights = tf.Variable(tf.ones((WIDTH, WIDTH)) / WIDTH)


@tf.function
def train_step(x, step):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.tanh(tf.tanh(x @ weights) @ weights) ** 2)
    rate = 0.1 / (1.0 + tf.cast(step, tf.float32))
    weights.assign_sub(rate * tape.gradient(loss, weights))
    return loss


x = tf.ones((BATCH, WIDTH))
train_step(x, 0)
end = time.monotonic() + SECONDS
step = 0
while time.monotonic() < end:
    step += 1
    loss = train_step(x, tf.constant(step) if CURED else step)
print(float(loss))
