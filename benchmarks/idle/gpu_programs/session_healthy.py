"""A TensorFlow 1 program with its data on the GPU."""

import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, BATCH = 4096, 8192

x = tf.Variable(tf.ones((BATCH, WIDTH)), trainable=False)
w = tf.Variable(np.ones((WIDTH, WIDTH), "float32") / WIDTH)
loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, w)), w))))
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train_op)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        session.run(train_op)
