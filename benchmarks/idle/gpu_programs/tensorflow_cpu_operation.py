"""One operation of the step is placed on the CPU."""

import os
import time

import tensorflow as tf

CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, BATCH = 1024, 4096
weights = tf.Variable(tf.ones((WIDTH, WIDTH)) / WIDTH)


@tf.function
def train_step(x):
    with tf.device("GPU:0" if CURED else "CPU:0"):
        x = tf.sort(x, axis=1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.tanh(tf.tanh(x @ weights) @ weights) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


x = tf.random.uniform((BATCH, WIDTH))
train_step(x)
end = time.monotonic() + SECONDS
step = 0
while time.monotonic() < end:
    loss = train_step(x)
    step += 1
    if step % 20 == 0:
        print(float(loss))
