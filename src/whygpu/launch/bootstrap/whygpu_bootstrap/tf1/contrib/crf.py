"""tf.contrib.crf: linear-chain conditional random fields."""

import numpy
import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["crf_binary_score", "crf_decode", "crf_log_likelihood", "crf_log_norm"]
__all__ += ["crf_sequence_score", "crf_unary_score", "viterbi_decode"]


def _mask(sequence_lengths: "Any", steps: "Any") -> "Any":
    return tf.sequence_mask(tf.cast(sequence_lengths, tf.int32), steps, tf.float32)


def crf_unary_score(tag_indices: "Any", sequence_lengths: "Any", inputs: "Any") -> "Any":
    """The scores of the inputs for the given tags."""
    chosen = tf.one_hot(tag_indices, tf.shape(inputs)[2], dtype=tf.float32) * inputs
    return tf.reduce_sum(tf.reduce_sum(chosen, 2) * _mask(sequence_lengths, tf.shape(inputs)[1]), 1)


def crf_binary_score(
    tag_indices: "Any", sequence_lengths: "Any", transition_params: "Any"
) -> "Any":
    """The scores of the transitions for the given tags."""
    places = tf.stack([tag_indices[:, :-1], tag_indices[:, 1:]], axis=2)
    scores = tf.gather_nd(transition_params, places)
    return tf.reduce_sum(scores * _mask(sequence_lengths, tf.shape(tag_indices)[1])[:, 1:], 1)


def crf_sequence_score(
    inputs: "Any", tag_indices: "Any", sequence_lengths: "Any", transition_params: "Any"
) -> "Any":
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def _forward(
    inputs: "Any", sequence_lengths: "Any", transition_params: "Any", combined: "Any"
) -> "Any":
    """Scores of the last tag, combined over all ways to it; a sequence stops at its length."""
    steps = tf.transpose(inputs, [1, 0, 2])
    running = tf.transpose(_mask(sequence_lengths, tf.shape(inputs)[1]))[:, :, None] > 0

    def step(scores: "Any", given: "Any") -> "Any":
        emission, goes_on = given
        new = combined(scores[:, :, None] + transition_params[None]) + emission
        return tf.where(tf.broadcast_to(goes_on, tf.shape(new)), new, scores)

    return tf.foldl(step, (steps[1:], running[1:]), initializer=steps[0])


def crf_log_norm(inputs: "Any", sequence_lengths: "Any", transition_params: "Any") -> "Any":
    """The logarithm of the sum over all ways to tag."""
    scores = _forward(
        inputs, sequence_lengths, transition_params, lambda x: tf.reduce_logsumexp(x, 1)
    )
    norm = tf.reduce_logsumexp(scores, 1)
    return tf.where(tf.less_equal(sequence_lengths, 0), tf.zeros_like(norm), norm)


def crf_log_likelihood(
    inputs: "Any", tag_indices: "Any", sequence_lengths: "Any", transition_params: "Any" = None
) -> "tuple[Any, Any]":
    """The logarithm of each tagging's probability, and the transitions."""
    if transition_params is None:
        tags = inputs.shape.dims[2].value
        transition_params = tf.get_variable("transitions", [tags, tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    norm = crf_log_norm(inputs, sequence_lengths, transition_params)
    return score - norm, transition_params


def viterbi_decode(score: "Any", transition_params: "Any") -> "tuple[Any, Any]":
    """The best tags of one sequence, as numbers; outside of a graph."""
    best = numpy.zeros_like(score)
    came_from = numpy.zeros_like(score, dtype=numpy.int32)
    best[0] = score[0]
    for step in range(1, score.shape[0]):
        ways = best[step - 1][:, None] + transition_params
        best[step] = score[step] + ways.max(0)
        came_from[step] = ways.argmax(0)
    tags = [int(best[-1].argmax())]
    for step in range(score.shape[0] - 1, 0, -1):
        tags.append(int(came_from[step][tags[-1]]))
    return tags[::-1], best[-1].max()


def crf_decode(
    potentials: "Any", transition_params: "Any", sequence_length: "Any"
) -> "tuple[Any, Any]":
    """The best tags of each sequence, and their scores."""

    def decoded(scores: "Any", transitions: "Any", lengths: "Any") -> "tuple[Any, Any]":
        tags = numpy.zeros(scores.shape[:2], numpy.int32)
        best = numpy.zeros(len(scores), numpy.float32)
        for row, length in enumerate(lengths):
            if length > 0:
                tags[row, :length], best[row] = viterbi_decode(scores[row, :length], transitions)
        return tags, best

    tags, best = tf.numpy_function(
        decoded, [potentials, transition_params, sequence_length], [tf.int32, tf.float32]
    )
    tags.set_shape(potentials.shape[:2])
    best.set_shape(potentials.shape[:1])
    return tags, best
