"""A TensorFlow 1 program that makes each batch in a Python loop."""

import os

import numpy as np
import tensorflow as tf

tf1 = getattr(tf, "compat", tf).v1 if hasattr(tf, "compat") else tf
CURED = "CURED" in os.environ
if hasattr(tf1, "disable_eager_execution"):
    tf1.disable_eager_execution()

x = tf1.placeholder(tf.float32, (None, 256))
w = tf1.Variable(np.ones((256, 256), "float32") / 256)
loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, w))))
train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)

with tf1.Session() as session:
    session.run(tf1.global_variables_initializer())
    for _ in range(1500):
        rows = []
        for row in range(64):
            rows.append([1.0] * 256 if CURED else [float((row * c) % 7) for c in range(256)])
        session.run([train_op, loss], feed_dict={x: np.array(rows, "float32")})
