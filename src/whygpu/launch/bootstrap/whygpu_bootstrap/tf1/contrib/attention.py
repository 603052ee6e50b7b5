"""Attention of tf.contrib.seq2seq: what a decoder's cell reads from its encoder's outputs."""

import collections

import tensorflow.compat.v1 as tf
from tensorflow.python.layers.core import Dense
from tensorflow.python.ops import rnn_cell_impl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["AttentionWrapper", "AttentionWrapperState", "BahdanauAttention", "LuongAttention"]


class _Attention:
    """A memory, whose keys are compared with a query."""

    _scores: "Any"
    """A method of each subclass: the scores of a query."""

    def __init__(
        self,
        memory: "Any",
        memory_sequence_length: "Any",
        keys_layer: "Any",
        probability_fn: "Any",
        low_score: "Any",
    ) -> None:
        self._mask = None
        if memory_sequence_length is not None:
            steps = tf.shape(memory)[1]
            self._mask = tf.sequence_mask(memory_sequence_length, steps)
            memory *= tf.cast(self._mask, memory.dtype)[:, :, None]
        self.values = memory
        self.keys = keys_layer(memory)
        self._probabilities = probability_fn or tf.nn.softmax
        self._low = float("-inf") if low_score is None else low_score

    batch_size = property(lambda self: tf.shape(self.keys)[0])
    alignments_size = property(lambda self: self.keys.shape.dims[1].value or tf.shape(self.keys)[1])
    state_size = alignments_size

    def initial_alignments(self, batch_size: "Any", dtype: "Any") -> "Any":
        return tf.zeros([batch_size, self.alignments_size], dtype)

    initial_state = initial_alignments

    def __call__(self, query: "Any", state: "Any") -> "tuple[Any, Any]":
        scores = self._scores(query)
        if self._mask is not None:
            scores = tf.where(self._mask, scores, tf.fill(tf.shape(scores), self._low))
        alignments = self._probabilities(scores)
        return alignments, alignments


class BahdanauAttention(_Attention):
    """Query and keys are added, and a vector says what that is worth."""

    def __init__(
        self,
        num_units: "Any",
        memory: "Any",
        memory_sequence_length: "Any" = None,
        normalize: bool = False,
        probability_fn: "Any" = None,
        score_mask_value: "Any" = None,
        dtype: "Any" = None,
        name: str = "BahdanauAttention",
    ) -> None:
        keys = Dense(num_units, name="memory_layer", use_bias=False, dtype=dtype)
        super().__init__(memory, memory_sequence_length, keys, probability_fn, score_mask_value)
        self._query_layer = Dense(num_units, name="query_layer", use_bias=False, dtype=dtype)
        self._units = num_units
        self._normalize = normalize

    def _scores(self, query: "Any") -> "Any":
        with tf.variable_scope(None, "bahdanau_attention", [query]):
            query = self._query_layer(query)[:, None]
            v = tf.get_variable("attention_v", [self._units], query.dtype)
            if not self._normalize:
                return tf.reduce_sum(v * tf.tanh(self.keys + query), 2)
            start = tf.constant_initializer((1.0 / self._units) ** 0.5)
            g = tf.get_variable("attention_g", [], query.dtype, initializer=start)
            zeros = tf.zeros_initializer()
            b = tf.get_variable("attention_b", [self._units], query.dtype, initializer=zeros)
            direction = g * v * tf.rsqrt(tf.reduce_sum(tf.square(v)))
            return tf.reduce_sum(direction * tf.tanh(self.keys + query + b), 2)


class LuongAttention(_Attention):
    """Query and keys are multiplied."""

    def __init__(
        self,
        num_units: "Any",
        memory: "Any",
        memory_sequence_length: "Any" = None,
        scale: bool = False,
        probability_fn: "Any" = None,
        score_mask_value: "Any" = None,
        dtype: "Any" = None,
        name: str = "LuongAttention",
    ) -> None:
        keys = Dense(num_units, name="memory_layer", use_bias=False, dtype=dtype)
        super().__init__(memory, memory_sequence_length, keys, probability_fn, score_mask_value)
        self._scale = scale

    def _scores(self, query: "Any") -> "Any":
        with tf.variable_scope(None, "luong_attention", [query]):
            scores = tf.matmul(query[:, None], self.keys, transpose_b=True)[:, 0]
            if not self._scale:
                return scores
            ones = tf.ones_initializer()
            return scores * tf.get_variable("attention_g", [], query.dtype, initializer=ones)


class AttentionWrapperState(
    collections.namedtuple(
        "AttentionWrapperState",
        "cell_state attention time alignments alignment_history attention_state",
    )
):
    def clone(self, **changes: "Any") -> "Any":
        """The same with other parts; a cell's state keeps its shape."""
        return self._replace(**changes)


class AttentionWrapper(rnn_cell_impl.RNNCell):
    """A cell that reads its input together with what it attended to in the step before."""

    def __init__(
        self,
        cell: "Any",
        attention_mechanism: "Any",
        attention_layer_size: "Any" = None,
        alignment_history: bool = False,
        cell_input_fn: "Any" = None,
        output_attention: bool = True,
        initial_cell_state: "Any" = None,
        name: "Any" = None,
        attention_layer: "Any" = None,
    ) -> None:
        super().__init__(name=name)
        if isinstance(attention_mechanism, (list, tuple)):
            raise NotImplementedError("AttentionWrapper under --tf1 takes one mechanism")
        self._cell = cell
        self._mechanism = attention_mechanism
        self._layer = attention_layer
        if attention_layer_size is not None:
            self._layer = Dense(attention_layer_size, name="attention_layer", use_bias=False)
        self._size = attention_layer_size or attention_mechanism.values.shape.dims[2].value
        self._keeps_history = alignment_history
        self._cell_inputs = cell_input_fn or (lambda *parts: tf.concat(parts, -1))
        self._outputs_attention = output_attention
        self._initial = initial_cell_state

    @property
    def output_size(self) -> "Any":
        return self._size if self._outputs_attention else self._cell.output_size

    @property
    def state_size(self) -> "Any":
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            attention=self._size,
            time=tf.TensorShape([]),
            alignments=self._mechanism.alignments_size,
            alignment_history=(),
            attention_state=self._mechanism.state_size,
        )

    def zero_state(self, batch_size: "Any", dtype: "Any") -> "Any":
        state = self._initial
        if state is None:
            state = self._cell.zero_state(batch_size, dtype)
        alignments = self._mechanism.initial_alignments(batch_size, dtype)
        history = ()
        if self._keeps_history:
            history = tf.TensorArray(dtype, size=0, dynamic_size=True)
        return AttentionWrapperState(
            cell_state=state,
            attention=tf.zeros([batch_size, self._size], dtype),
            time=tf.zeros([], tf.int32),
            alignments=alignments,
            alignment_history=history,
            attention_state=alignments,
        )

    def call(self, inputs: "Any", state: "Any") -> "tuple[Any, Any]":
        inputs = self._cell_inputs(inputs, state.attention)
        output, cell_state = self._cell(inputs, state.cell_state)
        alignments, attention_state = self._mechanism(output, state.attention_state)
        context = tf.matmul(alignments[:, None], self._mechanism.values)[:, 0]
        attention = context
        if self._layer is not None:
            attention = self._layer(tf.concat([output, context], 1))
        history = state.alignment_history
        if self._keeps_history:
            history = history.write(state.time, alignments)
        following = AttentionWrapperState(
            cell_state=cell_state,
            attention=attention,
            time=state.time + 1,
            alignments=alignments,
            alignment_history=history,
            attention_state=attention_state,
        )
        return (attention if self._outputs_attention else output), following
