"""Parts of tf.contrib.rnn and legacy_seq2seq that are neither in tf.nn nor in its rnn_cell."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "basic_rnn_seq2seq",
    "rnn_decoder",
    "sequence_loss",
    "sequence_loss_by_example",
    "stack_bidirectional_dynamic_rnn",
    "stack_bidirectional_rnn",
    "tied_rnn_seq2seq",
    "transpose_batch_time",
]


def transpose_batch_time(x: "Any") -> "Any":
    """[batch, time, ...] from [time, batch, ...], or back."""
    rank = x.shape.ndims
    return x if rank < 2 else tf.transpose(x, [1, 0] + list(range(2, rank)))


def rnn_decoder(
    decoder_inputs: "Any",
    initial_state: "Any",
    cell: "Any",
    loop_function: "Any" = None,
    scope: "Any" = None,
) -> "tuple[Any, Any]":
    """One output for each input; loop_function makes an input of the output before it."""
    with tf.variable_scope(scope or "rnn_decoder"):
        state = initial_state
        outputs: "list[Any]" = []
        for step, given in enumerate(decoder_inputs):
            if loop_function is not None and outputs:
                with tf.variable_scope("loop_function", reuse=True):
                    given = loop_function(outputs[-1], step)
            if step:
                tf.get_variable_scope().reuse_variables()
            output, state = cell(given, state)
            outputs.append(output)
    return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: "Any",
    decoder_inputs: "Any",
    cell: "Any",
    dtype: "Any" = tf.float32,
    scope: "Any" = None,
) -> "Any":
    import copy

    with tf.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = tf.nn.static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: "Any",
    decoder_inputs: "Any",
    cell: "Any",
    loop_function: "Any" = None,
    dtype: "Any" = tf.float32,
    scope: "Any" = None,
) -> "Any":
    with tf.variable_scope("combined_tied_rnn_seq2seq"):
        name = scope or "tied_rnn_seq2seq"
        _, state = tf.nn.static_rnn(cell, encoder_inputs, dtype=dtype, scope=name)
        tf.get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope=name)


def sequence_loss_by_example(
    logits: "Any",
    targets: "Any",
    weights: "Any",
    average_across_timesteps: bool = True,
    softmax_loss_function: "Any" = None,
    name: "Any" = None,
) -> "Any":
    """The weighted cross entropy of each sequence of the batch."""
    if not len(logits) == len(targets) == len(weights):
        raise ValueError(
            "Lengths of logits, weights, and targets must be the same %d, %d, %d."
            % (len(logits), len(weights), len(targets))
        )
    loss = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    with tf.name_scope(name, "sequence_loss_by_example", logits + targets + weights):
        losses = [
            loss(labels=_flat(target, softmax_loss_function), logits=logit) * weight
            for logit, target, weight in zip(logits, targets, weights)
        ]
        total = tf.add_n(losses)
        if average_across_timesteps:
            total /= tf.add_n(weights) + 1e-12
        return total


def _flat(target: "Any", own_function: "Any") -> "Any":
    return target if own_function is not None else tf.reshape(target, [-1])


def sequence_loss(
    logits: "Any",
    targets: "Any",
    weights: "Any",
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: "Any" = None,
    name: "Any" = None,
) -> "Any":
    """sequence_loss_by_example, added up over the batch."""
    with tf.name_scope(name, "sequence_loss", logits + targets + weights):
        cost = tf.reduce_sum(
            sequence_loss_by_example(
                logits, targets, weights, average_across_timesteps, softmax_loss_function
            )
        )
        if average_across_batch:
            cost /= tf.cast(tf.shape(targets[0])[0], cost.dtype)
        return cost


def stack_bidirectional_rnn(
    cells_fw: "Any",
    cells_bw: "Any",
    inputs: "Any",
    initial_states_fw: "Any" = None,
    initial_states_bw: "Any" = None,
    dtype: "Any" = None,
    sequence_length: "Any" = None,
    scope: "Any" = None,
) -> "tuple[Any, tuple[Any, ...], tuple[Any, ...]]":
    states_fw, states_bw = [], []
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for number, (forward, backward) in enumerate(zip(cells_fw, cells_bw)):
            with tf.variable_scope("cell_%d" % number):
                inputs, state_fw, state_bw = tf.nn.static_bidirectional_rnn(
                    forward,
                    backward,
                    inputs,
                    _at(initial_states_fw, number),
                    _at(initial_states_bw, number),
                    sequence_length=sequence_length,
                    dtype=dtype,
                )
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return inputs, tuple(states_fw), tuple(states_bw)


def stack_bidirectional_dynamic_rnn(
    cells_fw: "Any",
    cells_bw: "Any",
    inputs: "Any",
    initial_states_fw: "Any" = None,
    initial_states_bw: "Any" = None,
    dtype: "Any" = None,
    sequence_length: "Any" = None,
    parallel_iterations: "Any" = None,
    time_major: bool = False,
    scope: "Any" = None,
    swap_memory: bool = False,
) -> "tuple[Any, tuple[Any, ...], tuple[Any, ...]]":
    states_fw, states_bw = [], []
    with tf.variable_scope(scope or "stack_bidirectional_rnn"):
        for number, (forward, backward) in enumerate(zip(cells_fw, cells_bw)):
            with tf.variable_scope("cell_%d" % number):
                outputs, (state_fw, state_bw) = tf.nn.bidirectional_dynamic_rnn(
                    forward,
                    backward,
                    inputs,
                    initial_state_fw=_at(initial_states_fw, number),
                    initial_state_bw=_at(initial_states_bw, number),
                    sequence_length=sequence_length,
                    parallel_iterations=parallel_iterations,
                    swap_memory=swap_memory,
                    dtype=dtype,
                    time_major=time_major,
                )
                inputs = tf.concat(outputs, 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return inputs, tuple(states_fw), tuple(states_bw)


def _at(states: "Any", number: "Any") -> "Any":
    return states[number] if states else None
