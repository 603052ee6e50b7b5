"""The number of the step is a Python number, so each step is traced again."""

import os

import tensorflow as tf

CURED = "CURED" in os.environ
weights = tf.Variable(tf.ones((256, 256)) / 256)


@tf.function
def train_step(x, step):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.tanh(x @ weights) ** 2)
    rate = 0.1 / (1.0 + tf.cast(step, tf.float32))
    weights.assign_sub(rate * tape.gradient(loss, weights))
    return loss


x = tf.ones((256, 256))
for step in range(150):
    train_step(x, tf.constant(step) if CURED else step)
