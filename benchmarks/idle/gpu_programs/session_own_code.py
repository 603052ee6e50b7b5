"""A TensorFlow 1 program that makes each batch in a Python loop."""

import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
CURED = "CURED" in os.environ
SECONDS = float(os.environ.get("IDLE_SECONDS", "4"))
WIDTH, BATCH = 1024, 256

x = tf.placeholder(tf.float32, (None, WIDTH))
w = tf.Variable(np.ones((WIDTH, WIDTH), "float32") / WIDTH)
loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, w)), w))))
train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train_op, feed_dict={x: np.ones((BATCH, WIDTH), "float32")})
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if CURED:
            batch = np.ones((BATCH, WIDTH), "float32")
        else:
            rows = []
            for row in range(BATCH):
                rows.append([float((row * column) % 7) for column in range(WIDTH)])
            batch = np.array(rows, "float32")
        session.run([train_op, loss], feed_dict={x: batch})
