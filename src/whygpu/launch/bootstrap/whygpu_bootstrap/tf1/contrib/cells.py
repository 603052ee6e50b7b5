"""Cells of tf.contrib.rnn that TensorFlow 2 no longer has."""

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import rnn_cell_impl as cells

from whygpu_bootstrap.tf1.contrib.linear import _linear

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["EmbeddingWrapper", "InputProjectionWrapper", "LSTMBlockCell"]
__all__ += ["LayerNormBasicLSTMCell", "OutputProjectionWrapper"]


class _Wrapper(cells.RNNCell):
    def __init__(self, cell: "Any", reuse: "Any" = None) -> None:
        super().__init__(_reuse=reuse)
        self._cell = cell

    state_size = property(lambda self: self._cell.state_size)
    output_size = property(lambda self: self._cell.output_size)

    def zero_state(self, batch_size: "Any", dtype: "Any") -> "Any":
        return self._cell.zero_state(batch_size, dtype)


class OutputProjectionWrapper(_Wrapper):
    """A cell whose outputs pass through a linear layer, the same for every step."""

    def __init__(
        self, cell: "Any", output_size: "Any", activation: "Any" = None, reuse: "Any" = None
    ) -> None:
        super().__init__(cell, reuse)
        self._size = output_size
        self._activation = activation or tf.identity

    output_size = property(lambda self: self._size)

    def call(self, inputs: "Any", state: "Any") -> "tuple[Any, Any]":
        output, state = self._cell(inputs, state)
        return self._activation(_linear(output, self._size, True)), state


class InputProjectionWrapper(_Wrapper):
    """A cell whose inputs have passed through a linear layer."""

    def __init__(
        self,
        cell: "Any",
        num_proj: "Any",
        activation: "Any" = None,
        input_size: "Any" = None,
        reuse: "Any" = None,
    ) -> None:
        super().__init__(cell, reuse)
        self._size = num_proj
        self._activation = activation or tf.identity

    def call(self, inputs: "Any", state: "Any") -> "Any":
        return self._cell(self._activation(_linear(inputs, self._size, True)), state)


class EmbeddingWrapper(_Wrapper):
    """A cell whose inputs are numbers of words."""

    def __init__(
        self,
        cell: "Any",
        embedding_classes: "Any",
        embedding_size: "Any",
        initializer: "Any" = None,
        reuse: "Any" = None,
    ) -> None:
        super().__init__(cell, reuse)
        self._shape = [embedding_classes, embedding_size]
        self._initializer = initializer

    def call(self, inputs: "Any", state: "Any") -> "Any":
        initializer = self._initializer or tf.get_variable_scope().initializer
        if initializer is None:
            initializer = tf.random_uniform_initializer(-(3.0**0.5), 3.0**0.5)
        embedding = tf.get_variable("embedding", self._shape, initializer=initializer)
        return self._cell(tf.nn.embedding_lookup(embedding, tf.reshape(inputs, [-1])), state)


class LSTMBlockCell(cells.LSTMCell):
    """The computation of the former fused operation, in standard operations."""

    def __init__(
        self,
        num_units: "Any",
        forget_bias: float = 1.0,
        cell_clip: "Any" = None,
        use_peephole: bool = False,
        dtype: "Any" = None,
        reuse: "Any" = None,
        name: str = "lstm_cell",
    ) -> None:
        super().__init__(
            num_units,
            use_peepholes=use_peephole,
            cell_clip=cell_clip,
            forget_bias=forget_bias,
            dtype=dtype,
            reuse=reuse,
            name=name,
        )


class LayerNormBasicLSTMCell(cells.RNNCell):
    """An LSTM with layer normalization of its gates, and dropout of what it learns."""

    def __init__(
        self,
        num_units: "Any",
        forget_bias: float = 1.0,
        input_size: "Any" = None,
        activation: "Any" = tf.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: float = 1.0,
        dropout_prob_seed: "Any" = None,
        reuse: "Any" = None,
    ) -> None:
        super().__init__(_reuse=reuse)
        self._units = num_units
        self._forget_bias = forget_bias
        self._activation = activation
        self._normal = layer_norm
        self._gain = norm_gain
        self._shift = norm_shift
        self._keep = dropout_keep_prob
        self._seed = dropout_prob_seed

    state_size = property(lambda self: cells.LSTMStateTuple(self._units, self._units))
    output_size = property(lambda self: self._units)

    def _norm(self, values: "Any", scope: "Any") -> "Any":
        if not self._normal:
            return values
        size = values.shape[-1:]
        with tf.variable_scope(scope):
            gamma = tf.get_variable("gamma", size, initializer=tf.constant_initializer(self._gain))
            beta = tf.get_variable("beta", size, initializer=tf.constant_initializer(self._shift))
        mean, variance = tf.nn.moments(values, [1], keep_dims=True)
        return tf.nn.batch_normalization(values, mean, variance, beta, gamma, 1e-12)

    def call(self, inputs: "Any", state: "Any") -> "tuple[Any, Any]":
        c, h = state
        together = tf.concat([inputs, h], 1)
        shape = [together.shape.dims[1].value, 4 * self._units]
        gates = tf.matmul(together, tf.get_variable("kernel", shape))
        if not self._normal:
            gates = tf.nn.bias_add(gates, tf.get_variable("bias", [4 * self._units]))
        i, j, f, o = tf.split(gates, 4, axis=1)
        i, j = self._norm(i, "input"), self._norm(j, "transform")
        f, o = self._norm(f, "forget"), self._norm(o, "output")
        learned = self._activation(j)
        if tf.is_tensor(self._keep) or self._keep < 1:
            learned = tf.nn.dropout(learned, rate=1 - self._keep, seed=self._seed)
        c = c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * learned
        c = self._norm(c, "state")
        h = self._activation(c) * tf.sigmoid(o)
        return h, cells.LSTMStateTuple(c, h)
