"""Decoders of tf.contrib.seq2seq: helpers that give the inputs, BasicDecoder, dynamic_decode."""

import collections

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BasicDecoder", "BasicDecoderOutput", "CustomHelper", "GreedyEmbeddingHelper"]
__all__ += ["Helper", "SampleEmbeddingHelper", "TrainingHelper", "dynamic_decode", "tile_batch"]

BasicDecoderOutput = collections.namedtuple("BasicDecoderOutput", "rnn_output sample_id")


class Helper:
    """Where a decoder's inputs come from, and what is taken from its outputs."""

    sample_ids_shape = tf.TensorShape([])
    sample_ids_dtype = tf.int32

    def sample(self, time: "Any", outputs: "Any", state: "Any", name: "Any" = None) -> "Any":
        return tf.cast(tf.argmax(outputs, axis=-1), tf.int32)


class TrainingHelper(Helper):
    """The inputs are given, whatever the outputs are."""

    def __init__(
        self, inputs: "Any", sequence_length: "Any", time_major: bool = False, name: "Any" = None
    ) -> None:
        self._inputs = inputs if time_major else _batch_and_time_swapped(inputs)
        self._lengths = tf.cast(sequence_length, tf.int32)
        self.batch_size = tf.shape(sequence_length)[0]

    def initialize(self, name: "Any" = None) -> "tuple[Any, Any]":
        return tf.equal(0, self._lengths), self._inputs[0]

    def next_inputs(
        self,
        time: "Any",
        outputs: "Any",
        state: "Any",
        sample_ids: "Any" = None,
        name: "Any" = None,
    ) -> "tuple[Any, Any, Any]":
        following = time + 1
        finished = following >= self._lengths
        last = tf.shape(self._inputs)[0] - 1
        given = self._inputs[tf.minimum(following, last)]
        # A step that nobody reads gets nothing to read.
        given = tf.cond(tf.reduce_all(finished), lambda: tf.zeros_like(given), lambda: given)
        return finished, given, state


class GreedyEmbeddingHelper(Helper):
    """The input is the embedding of what came out before, until the end token does."""

    def __init__(self, embedding: "Any", start_tokens: "Any", end_token: "Any") -> None:
        self._embed = embedding
        if not callable(embedding):
            self._embed = lambda ids: tf.nn.embedding_lookup(embedding, ids)
        self._start = tf.cast(start_tokens, tf.int32)
        self._end = tf.cast(end_token, tf.int32)
        self.batch_size = tf.size(start_tokens)

    def initialize(self, name: "Any" = None) -> "tuple[Any, Any]":
        return tf.tile([False], [self.batch_size]), self._embed(self._start)

    def next_inputs(
        self, time: "Any", outputs: "Any", state: "Any", sample_ids: "Any", name: "Any" = None
    ) -> "tuple[Any, Any, Any]":
        finished = tf.equal(sample_ids, self._end)
        ids = tf.where(finished, tf.fill([self.batch_size], self._end), sample_ids)
        return finished, self._embed(ids), state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """The same, with words drawn by their probability."""

    def __init__(
        self,
        embedding: "Any",
        start_tokens: "Any",
        end_token: "Any",
        softmax_temperature: "Any" = None,
        seed: "Any" = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: "Any", outputs: "Any", state: "Any", name: "Any" = None) -> "Any":
        logits = outputs if self._temperature is None else outputs / self._temperature
        drawn = tf.random.categorical(logits, 1, seed=self._seed)
        return tf.cast(drawn[:, 0], tf.int32)


class CustomHelper(Helper):
    """A helper made of three functions."""

    def __init__(
        self,
        initialize_fn: "Any",
        sample_fn: "Any",
        next_inputs_fn: "Any",
        sample_ids_shape: "Any" = None,
        sample_ids_dtype: "Any" = None,
    ) -> None:
        self._initialize = initialize_fn
        self._sample = sample_fn
        self._next = next_inputs_fn
        self.sample_ids_shape = tf.TensorShape(sample_ids_shape or [])
        self.sample_ids_dtype = sample_ids_dtype or tf.int32
        self.batch_size = None

    def initialize(self, name: "Any" = None) -> "tuple[Any, Any]":
        finished, given = self._initialize()
        self.batch_size = tf.size(finished)
        return finished, given

    def sample(self, time: "Any", outputs: "Any", state: "Any", name: "Any" = None) -> "Any":
        return self._sample(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: "Any", outputs: "Any", state: "Any", sample_ids: "Any", name: "Any" = None
    ) -> "Any":
        return self._next(time=time, outputs=outputs, state=state, sample_ids=sample_ids)


class BasicDecoder:
    """A cell, fed by a helper, whose outputs may pass through a layer."""

    def __init__(
        self, cell: "Any", helper: "Any", initial_state: "Any", output_layer: "Any" = None
    ) -> None:
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> "Any":
        return self._helper.batch_size

    @property
    def output_dtype(self) -> "Any":
        first = tf.nest.flatten(self._initial_state)[0].dtype
        return BasicDecoderOutput(first, self._helper.sample_ids_dtype)

    def initialize(self, name: "Any" = None) -> "Any":
        return tuple(self._helper.initialize()) + (self._initial_state,)

    def step(
        self, time: "Any", inputs: "Any", state: "Any", name: "Any" = None
    ) -> "tuple[Any, Any, Any, Any]":
        outputs, state = self._cell(inputs, state)
        if self._output_layer is not None:
            outputs = self._output_layer(outputs)
        ids = self._helper.sample(time=time, outputs=outputs, state=state)
        finished, inputs, state = self._helper.next_inputs(
            time=time, outputs=outputs, state=state, sample_ids=ids
        )
        return BasicDecoderOutput(outputs, ids), state, inputs, finished


def dynamic_decode(
    decoder: "Any",
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: "Any" = None,
    parallel_iterations: "Any" = 32,
    swap_memory: bool = False,
    scope: "Any" = None,
) -> "tuple[Any, Any, Any]":
    """Step until everything is finished: (outputs, last state, lengths)."""
    with tf.variable_scope(scope, "decoder"):
        finished, inputs, state = decoder.initialize()
        if maximum_iterations is not None:
            finished = tf.logical_or(finished, maximum_iterations <= 0)
        lengths = tf.zeros_like(finished, tf.int32)
        arrays = tf.nest.map_structure(
            lambda dtype: tf.TensorArray(dtype, size=0, dynamic_size=True), decoder.output_dtype
        )

        def goes_on(
            time: "Any", arrays: "Any", state: "Any", inputs: "Any", finished: "Any", lengths: "Any"
        ) -> "Any":
            return tf.logical_not(tf.reduce_all(finished))

        def step(
            time: "Any", arrays: "Any", state: "Any", inputs: "Any", finished: "Any", lengths: "Any"
        ) -> "tuple[Any, Any, Any, Any, Any, Any]":
            outputs, next_state, next_inputs, now_finished = decoder.step(time, inputs, state)
            next_finished = tf.logical_or(now_finished, finished)
            if maximum_iterations is not None:
                next_finished = tf.logical_or(next_finished, time + 1 >= maximum_iterations)
            ended = tf.where(
                tf.logical_not(finished), tf.fill(tf.shape(lengths), time + 1), lengths
            )
            if impute_finished:
                outputs = tf.nest.map_structure(
                    lambda new: _chosen(finished, tf.zeros_like(new), new), outputs
                )
                next_state = tf.nest.map_structure(
                    lambda new, old: _carried(finished, new, old), next_state, state
                )
            tf.nest.map_structure(_keep_shape, next_state, state)
            next_inputs.set_shape(inputs.shape)
            arrays = tf.nest.map_structure(
                lambda array, new: array.write(time, new), arrays, outputs
            )
            return time + 1, arrays, next_state, next_inputs, next_finished, ended

        _, arrays, state, _, _, lengths = tf.while_loop(
            goes_on,
            step,
            [tf.constant(0), arrays, state, inputs, finished, lengths],
            parallel_iterations=parallel_iterations,
            swap_memory=swap_memory,
        )
        outputs = tf.nest.map_structure(lambda array: array.stack(), arrays)
        if not output_time_major:
            outputs = tf.nest.map_structure(_batch_and_time_swapped, outputs)
        return outputs, state, lengths


def _batch_and_time_swapped(x: "Any") -> "Any":
    return tf.transpose(x, [1, 0] + list(range(2, x.shape.ndims)))


def _chosen(condition: "Any", yes: "Any", no: "Any") -> "Any":
    """tf.where for whole rows."""
    shape = [-1] + [1] * (no.shape.ndims - 1)
    return tf.where(tf.broadcast_to(tf.reshape(condition, shape), tf.shape(no)), yes, no)


def _carried(finished: "Any", new: "Any", old: "Any") -> "Any":
    """The state of a finished sequence stays; what is not a state of each sequence goes on."""
    if isinstance(old, tf.TensorArray) or new.shape.ndims == 0:
        return new
    return _chosen(finished, old, new)


def _keep_shape(new: "Any", old: "Any") -> None:
    if not isinstance(old, tf.TensorArray):
        new.set_shape(old.shape)


def tile_batch(t: "Any", multiplier: "Any", name: "Any" = None) -> "Any":
    """Every entry of the batch several times in a row."""

    def tiled(x: "Any") -> "Any":
        repeated = tf.repeat(x, multiplier, axis=0)
        batch = x.shape.dims[0].value
        repeated.set_shape([None if batch is None else batch * multiplier] + x.shape.as_list()[1:])
        return repeated

    return tf.nest.map_structure(tiled, t)
