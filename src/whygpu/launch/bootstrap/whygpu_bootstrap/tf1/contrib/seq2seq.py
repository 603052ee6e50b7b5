"""The loss of tf.contrib.seq2seq."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["sequence_loss"]


def sequence_loss(
    logits: "Any",
    targets: "Any",
    weights: "Any",
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: "Any" = None,
    name: "Any" = None,
    **options: "Any",
) -> "Any":
    """The weighted cross entropy of logits [batch, time, classes] and targets [batch, time]."""
    if options:
        raise NotImplementedError("sequence_loss under --tf1 has no %s" % ", ".join(options))
    if logits.shape.ndims != 3 or targets.shape.ndims != 2 or weights.shape.ndims != 2:
        raise ValueError(
            "sequence_loss takes logits [batch, time, classes], targets [batch, time] and weights "
            "[batch, time]; got %s, %s, %s" % (logits.shape, targets.shape, weights.shape)
        )
    with tf.name_scope(name, "sequence_loss", [logits, targets, weights]):
        classes = tf.shape(logits)[2]
        flat_logits = tf.reshape(logits, [-1, classes])
        flat_targets = tf.reshape(targets, [-1])
        loss = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
        losses = loss(labels=flat_targets, logits=flat_logits) * tf.reshape(weights, [-1])
        # Avoids a division by zero if all weights are zero.
        if average_across_timesteps and average_across_batch:
            return tf.reduce_sum(losses) / (tf.reduce_sum(weights) + 1e-12)
        losses = tf.reshape(losses, tf.shape(logits)[:2])
        if average_across_timesteps:
            return tf.reduce_sum(losses, axis=1) / (tf.reduce_sum(weights, axis=1) + 1e-12)
        if average_across_batch:
            return tf.reduce_sum(losses, axis=0) / (tf.reduce_sum(weights, axis=0) + 1e-12)
        return losses
