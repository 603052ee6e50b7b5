"""tensorflow.examples.tutorials.mnist.mnist: the small network of the first tutorials."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["IMAGE_PIXELS", "IMAGE_SIZE", "NUM_CLASSES"]
__all__ += ["evaluation", "inference", "loss", "training"]

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: "Any", hidden1_units: "Any", hidden2_units: "Any") -> "Any":
    """Logits by way of two hidden layers."""
    layer = _layer(images, IMAGE_PIXELS, hidden1_units, "hidden1", tf.nn.relu)
    layer = _layer(layer, hidden1_units, hidden2_units, "hidden2", tf.nn.relu)
    return _layer(layer, hidden2_units, NUM_CLASSES, "softmax_linear", tf.identity)


def _layer(inputs: "Any", size: "Any", units: "Any", name: "Any", activation: "Any") -> "Any":
    with tf.name_scope(name):
        start = tf.truncated_normal([size, units], stddev=1.0 / float(size) ** 0.5)
        weights = tf.Variable(start, name="weights")
        biases = tf.Variable(tf.zeros([units]), name="biases")
        return activation(tf.matmul(inputs, weights) + biases)


def loss(logits: "Any", labels: "Any") -> "Any":
    return tf.losses.sparse_softmax_cross_entropy(labels=tf.to_int64(labels), logits=logits)


def training(loss: "Any", learning_rate: "Any") -> "Any":
    tf.summary.scalar("loss", loss)
    step = tf.Variable(0, name="global_step", trainable=False)
    return tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=step)


def evaluation(logits: "Any", labels: "Any") -> "Any":
    """How many are right."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))
