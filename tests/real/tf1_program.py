# mypy: ignore-errors
"""A TensorFlow 1 program that uses much of its surface and prints what came out, as JSON.

It is run by the real TensorFlow 1 and, under --tf1, by TensorFlow 2: the answers must agree.
Nothing is random: weights start as constants, or from a formula.
"""

import gzip
import itertools
import json
import os
import struct
import sys
import tempfile
import warnings

import numpy as np
import tensorflow as tf
import tensorflow.contrib.slim as slim
from tensorflow.contrib import layers, rnn, tpu
from tensorflow.contrib.framework import add_arg_scope, arg_scope
from tensorflow.examples.tutorials.mnist import input_data
from tensorflow.python.framework import ops

warnings.simplefilter("ignore")
tf.logging.set_verbosity(tf.logging.ERROR)
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def wave(shape, dtype=None, partition_info=None, **others):
    """Weights that are neither random nor all the same."""
    shape = [int(size) for size in shape]
    values = np.sin(np.arange(np.prod(shape))) * 0.5
    return tf.constant(values.reshape(shape), tf.float32)


def images(count=3, size=8, channels=2):
    return np.cos(np.arange(count * size * size * channels)).reshape(count, size, size, channels)


def evaluated(tensors, feed=None, before=None):
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        if before is not None:
            session.run(before, feed)
        return session.run(tensors, feed)


def names(collection=tf.GraphKeys.GLOBAL_VARIABLES):
    return sorted(variable.name for variable in tf.get_collection(collection))


@check
def sessions_and_graphs():
    a = tf.placeholder(tf.float32, [None, 2])
    shape = [a.get_shape()[1].value, a.shape.as_list()]
    with tf.device("/cpu:0"):
        product = tf.matmul(a, tf.ones([2, 1]))
    value = evaluated(product, {a: [[1, 2], [3, 4]]})
    return [shape, value, product.device, type(a.shape[1]).__name__, tf.executing_eagerly()]


@check
def reference_variables():
    v = tf.Variable(1.0, name="v")
    bigger = tf.assign_add(v, 2.0)
    return [evaluated(bigger), v.name, v.dtype.name, names(), ops.get_default_graph() is v.graph]


@check
def tf_layers():
    x = tf.placeholder(tf.float32, [None, 8, 8, 2])
    training = tf.placeholder(tf.bool)
    h = tf.layers.conv2d(x, 3, 3, padding="same", kernel_initializer=wave, activation=tf.nn.relu)
    h = tf.layers.batch_normalization(h, training=training, momentum=0.5)
    h = tf.layers.max_pooling2d(h, 2, 2)
    h = tf.layers.dropout(tf.layers.flatten(h), 0.5, training=False)
    penalty = layers.l2_regularizer(0.1)
    h = tf.layers.dense(h, 4, kernel_initializer=wave, kernel_regularizer=penalty, name="out")
    with tf.variable_scope("", reuse=True):
        again = tf.layers.dense(tf.ones([1, 48]), 4, name="out")
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    outputs = [h, again, tf.losses.get_regularization_loss()]
    learned = evaluated(outputs, {x: images(), training: True})
    used = evaluated(outputs[:1], {x: images(), training: False}, before=None)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(updates, {x: images(), training: True})
        moved = session.run(tf.moving_average_variables() or tf.global_variables()[4:6])
    return [learned, used, moved, len(updates), names()]


@check
def batch_normalization_of_rows():
    x = tf.constant(images(4, 2, 1).reshape(4, 4), tf.float32)
    h = tf.layers.batch_normalization(x, training=True, axis=1, name="bn")
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, "bn")
    mean = next(v for v in tf.global_variables() if "moving_mean" in v.name)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(h)
        session.run(updates)
        return [before, session.run(mean), names()]


@check
def contrib_layers():
    x = tf.constant(images(), tf.float32)
    with arg_scope([layers.conv2d, layers.fully_connected], weights_initializer=wave):
        h = layers.conv2d(x, 4, [3, 3], normalizer_fn=layers.batch_norm, scope="c")
        h = layers.conv2d_transpose(h, 2, 3, stride=2, weights_initializer=wave)
        h = layers.separable_conv2d(h, 3, 3, 1, weights_initializer=wave)
        h = layers.max_pool2d(h, [2, 2])
        h = layers.instance_norm(h)
        h = layers.group_norm(h, groups=3)
        h = layers.layer_norm(layers.flatten(h))
        h = layers.fully_connected(h, 5, weights_regularizer=layers.l1_regularizer(0.01))
        h = layers.linear(h, 2, biases_initializer=tf.constant_initializer(0.5))
    loss = tf.losses.get_regularization_loss()
    return [evaluated([h, loss]), names(), names(tf.GraphKeys.MODEL_VARIABLES)]


@check
def paddings_in_small_letters():
    x = tf.constant(images(), tf.float32)
    with arg_scope([layers.conv2d, layers.separable_conv2d], weights_initializer=wave):
        h = layers.conv2d(x, 4, 3, padding="valid")
        h = layers.separable_conv2d(h, 3, 3, 1, padding="same")
    h = [layers.max_pool2d(h, 2, padding="same"), layers.avg_pool2d(h, 3, padding="valid")]
    return [evaluated(h), names()]


@check
def averages_corrected_for_their_start():
    x = tf.constant(images(), tf.float32)
    settings = {"zero_debias_moving_mean": True, "decay": 0.9}
    rows = layers.batch_norm(layers.flatten(x), updates_collections=None, **settings)
    layers.batch_norm(x, scope="fused", **settings)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run([rows, updates])
        means = [each for each in tf.global_variables() if "moving_mean:" in each.name]
        return [session.run([rows, *means]), names()]


@check
def slim_scopes():
    @add_arg_scope
    def scaled(value, factor=1.0, scope=None):
        return value * factor

    with slim.arg_scope([scaled], factor=3.0) as kept:
        inner = scaled(2.0)
    with slim.arg_scope(kept):
        again = scaled(2.0)
    x = tf.constant(images(), tf.float32)
    with slim.arg_scope([slim.conv2d], weights_initializer=wave, activation_fn=tf.nn.tanh):
        h = slim.repeat(x, 2, slim.conv2d, 2, [3, 3], scope="conv")
        h = slim.stack(slim.flatten(h), slim.fully_connected, [3, 2], scope="fc")
    found = [v.name for v in slim.get_variables_to_restore(exclude=["fc"])]
    return [inner, again, scaled(2.0), h.shape.as_list(), names(), sorted(found)]


@check
def initializers():
    count = 20000
    shape = [100, count // 100]
    made = [
        layers.xavier_initializer()(shape),
        layers.xavier_initializer(uniform=False)(shape),
        layers.variance_scaling_initializer()(shape),
    ]
    values = evaluated(made)
    spread = [round(float(np.std(value)), 2) for value in values]
    return [spread, [bool(np.abs(value).max() < 1.0) for value in values]]


@check
def recurrent_cells():
    x = tf.constant(images(2, 4, 1).reshape(2, 4, 4), tf.float32)
    with tf.variable_scope("cells", initializer=wave):
        cells = [rnn.BasicLSTMCell(3), rnn.GRUCell(3), rnn.BasicRNNCell(2)]
        wrapped = rnn.DropoutWrapper(rnn.MultiRNNCell(cells), output_keep_prob=1.0)
        outputs, state = tf.nn.dynamic_rnn(wrapped, x, sequence_length=[4, 2], dtype=tf.float32)
        static, _ = rnn.static_rnn(
            tf.nn.rnn_cell.LSTMCell(2, use_peepholes=True, num_proj=1),
            tf.unstack(x, axis=1),
            dtype=tf.float32,
            scope="static",
        )
        both, _ = tf.nn.bidirectional_dynamic_rnn(
            rnn.GRUCell(2), rnn.GRUCell(2), x, dtype=tf.float32
        )
    return [evaluated([outputs, state[0].c, static[-1], both[1]]), names()]


@check
def cells_of_contrib():
    x = tf.constant(images(2, 4, 1).reshape(2, 4, 4), tf.float32)
    cells = [
        rnn.OutputProjectionWrapper(rnn.BasicRNNCell(3), 2),
        rnn.InputProjectionWrapper(rnn.GRUCell(3), 2),
        rnn.LSTMBlockCell(3),
        rnn.LayerNormBasicLSTMCell(3),
    ]
    outputs = []
    for number, cell in enumerate(cells):
        with tf.variable_scope(f"cell{number}", initializer=wave):
            outputs.append(tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)[0])
    with tf.variable_scope("words", initializer=wave):
        cell = rnn.EmbeddingWrapper(rnn.BasicRNNCell(3), 5, 2)
        outputs.append(rnn.static_rnn(cell, [tf.constant([1, 2])], dtype=tf.float32)[0][0])
    return [evaluated(outputs), names()]


@check
def linear_maps_of_own_cells():
    from tensorflow.contrib.rnn.python.ops.core_rnn_cell import _Linear, _linear

    first, second = (tf.constant(images(2, 4, 1)[:, row, :, 0], tf.float32) for row in (0, 1))
    with tf.variable_scope("linear", initializer=wave):
        sums = [_linear([first, second], 3, True)]
        with tf.variable_scope("other"):
            sums.append(_Linear(first, 2, False)(first))
    return [evaluated(sums), names()]


@check
def normal_distributions_of_contrib():
    distributions = tf.contrib.distributions
    mean = tf.constant([[0.5, -1.0], [2.0, 0.0]])
    one = distributions.MultivariateNormalDiag(mean, tf.constant([0.5, 2.0]))
    other = distributions.MultivariateNormalDiag(loc=mean * 2.0, scale_diag=tf.ones_like(mean))
    drawn = one.sample(5)
    numbers = [one.log_prob(mean + 0.3), one.prob(mean), one.entropy(), one.mean(), one.stddev()]
    numbers += [one.mode(), one.covariance(), one.variance(), one.kl_divergence(other)]
    numbers += [distributions.kl_divergence(other, one), distributions.softplus_inverse(2.0)]
    wide = distributions.MultivariateNormalDiag(mean, scale_identity_multiplier=[2.0, 3.0])
    numbers += [wide.stddev(), wide.variance(), wide.covariance(), wide.log_prob(mean + 0.3)]
    shapes = [drawn.shape.as_list(), one.batch_shape.as_list(), one.event_shape.as_list()]
    return [evaluated(numbers), shapes]


@check
def sequences():
    x = tf.constant(images(2, 3, 1).reshape(2, 3, 3), tf.float32)
    targets = tf.constant([[0, 1, 2], [2, 1, 0]])
    weights = tf.constant([[1.0, 1.0, 0.0], [1.0, 0.5, 1.0]])
    loss = tf.contrib.seq2seq.sequence_loss
    new = [loss(x, targets, weights), loss(x, targets, weights, average_across_batch=False)]
    old = tf.contrib.legacy_seq2seq
    steps = [tf.unstack(each, axis=1) for each in (x, targets, weights)]
    with tf.variable_scope("decoder", initializer=wave):
        cell = rnn.BasicRNNCell(3)
        outputs, _ = old.rnn_decoder(steps[0], cell.zero_state(2, tf.float32), cell)
    by_example = old.sequence_loss_by_example(*steps)
    return [evaluated([*new, by_example, old.sequence_loss(*steps), outputs[-1]]), names()]


@check
def decoders_with_attention():
    seq2seq = tf.contrib.seq2seq
    memory = tf.constant(images(2, 4, 1).reshape(2, 4, 4), tf.float32)
    inputs = tf.constant(images(2, 3, 1)[:, :, :, 0], tf.float32)
    embedding = tf.constant(images(1, 5, 1)[0, :, :3, 0], tf.float32)
    outputs = []
    for mechanism, options in (
        (seq2seq.BahdanauAttention, {"memory_sequence_length": [4, 2]}),
        (seq2seq.BahdanauAttention, {"normalize": True}),
        (seq2seq.LuongAttention, {"scale": True, "memory_sequence_length": [3, 4]}),
    ):
        with tf.variable_scope(None, "model", initializer=wave):
            attention = mechanism(3, memory, **options)
            cell = seq2seq.AttentionWrapper(
                rnn.BasicLSTMCell(3), attention, attention_layer_size=2, alignment_history=True
            )
            layer = tf.layers.Dense(5, kernel_initializer=wave, name="words")
            start = cell.zero_state(2, tf.float32)
            helper = seq2seq.TrainingHelper(inputs, [3, 2])
            decoder = seq2seq.BasicDecoder(cell, helper, start, layer)
            learned, state, lengths = seq2seq.dynamic_decode(decoder, impute_finished=True)
            outputs += [learned.rnn_output, learned.sample_id, lengths, state.alignments]
            outputs.append(state.alignment_history.stack())
        with tf.variable_scope(None, "greedy", initializer=wave):
            plain_cell = rnn.GRUCell(3)
            greedy = seq2seq.GreedyEmbeddingHelper(embedding, [0, 1], 4)
            words = tf.layers.Dense(5, kernel_initializer=wave, name="words")
            decoder = seq2seq.BasicDecoder(
                plain_cell, greedy, plain_cell.zero_state(2, tf.float32), words
            )
            found, _, lengths = seq2seq.dynamic_decode(decoder, maximum_iterations=4)
            outputs += [found.sample_id, lengths, seq2seq.tile_batch(found.sample_id, 2)]
    return [evaluated(outputs), names()]


@check
def training():
    x = tf.constant(images(6, 2, 1).reshape(6, 4), tf.float32)
    y = tf.constant([0, 1, 2, 0, 1, 2])
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.1, step, 1, 0.9)
    logits = tf.layers.dense(x, 3, kernel_initializer=wave)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    trains = [
        tf.train.AdamOptimizer(rate).minimize(loss, step),
        tf.train.MomentumOptimizer(rate, 0.9).minimize(loss),
        tf.train.RMSPropOptimizer(rate).minimize(loss),
        layers.optimize_loss(loss, step, 0.1, "SGD", clip_gradients=0.5, summaries=[]),
    ]
    right, update = tf.metrics.accuracy(y, tf.argmax(logits, 1))
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for train in trains:
            session.run(train)
        session.run(update)
        return session.run([loss, right, step])


@check
def saving_and_summaries():
    folder = tempfile.mkdtemp()
    v = tf.get_variable("v", initializer=tf.constant([1.0, 2.0]))
    tf.summary.scalar("sum", tf.reduce_sum(v))
    tf.summary.histogram("v", v)
    merged = tf.summary.merge_all()
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        writer = tf.summary.FileWriter(folder, session.graph)
        writer.add_summary(session.run(merged), 1)
        writer.close()
        path = saver.save(session, os.path.join(folder, "model"), global_step=7)
        session.run(v.assign([0.0, 0.0]))
        saver.restore(session, path)
        value = session.run(v)
    listed = tf.contrib.framework.list_variables(folder)
    kinds = sorted({name.split(".")[0] for name in os.listdir(folder)})
    return [value, os.path.basename(path), listed, kinds]


@check
def old_pipelines():
    dataset = tf.data.Dataset.from_tensor_slices(np.arange(6)).batch(2)
    batch = dataset.make_one_shot_iterator().get_next()
    queue = tf.train.range_input_producer(3, shuffle=False, num_epochs=1)
    item = queue.dequeue()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found = [session.run(batch), session.run(batch), session.run(item), session.run(item)]
        coordinator.request_stop()
        coordinator.join(threads)
    return found


@check
def control_flow_and_strings():
    total = tf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), [0, 0])[1]
    chosen = tf.cond(tf.constant(True), lambda: 1.0, lambda: 2.0)
    words = tf.string_split(["a b c"]).values
    joined = tf.string_join(["x", "y"])
    called = tf.py_func(lambda v: np.float32(v * 2), [tf.constant(3.0)], tf.float32)
    sparse = tf.sparse_to_dense([0, 2], [4], 1)
    old = [tf.to_float(3), tf.div(7, 2), tf.reduce_sum(tf.ones([2, 2]), keep_dims=True)]
    found = evaluated([total, chosen, words, joined, called, sparse, *old])
    return [*found, tf.AUTO_REUSE.name, tf.app.flags.FLAGS is tf.flags.FLAGS]


@check
def mnist():
    folder = tempfile.mkdtemp()
    labels = np.arange(30) % 10
    pixels = np.arange(30 * 4).reshape(30, 2, 2) % 256
    for start in ("train", "t10k"):
        with gzip.open(os.path.join(folder, start + "-images-idx3-ubyte.gz"), "wb") as file:
            file.write(struct.pack(">4I", 2051, 30, 2, 2) + pixels.astype(np.uint8).tobytes())
        with gzip.open(os.path.join(folder, start + "-labels-idx1-ubyte.gz"), "wb") as file:
            file.write(struct.pack(">2I", 2049, 30) + labels.astype(np.uint8).tobytes())
    data = input_data.read_data_sets(folder, one_hot=True, validation_size=10)
    first, second = data.train.next_batch(15, shuffle=False), data.train.next_batch(15)
    sizes = [data.train.num_examples, data.validation.num_examples, data.test.num_examples]
    shapes = [list(data.test.images.shape), list(data.test.labels.shape)]
    kinds = [str(data.test.images.dtype), str(data.test.labels.dtype)]
    totals = [first[0].sum(), first[1].sum(axis=0), second[1].sum(), data.train.epochs_completed]
    raw = input_data.read_data_sets(folder, reshape=False, validation_size=0, dtype=tf.uint8)
    return [sizes, shapes, kinds, totals, list(raw.train.images.shape), str(raw.train.images.dtype)]


@check
def keras_in_a_graph():
    keras = tf.keras
    model = keras.models.Sequential(
        [
            keras.layers.Dense(3, activation="relu", kernel_initializer=wave, input_shape=(4,)),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(1, kernel_initializer=wave),
        ]
    )
    model.compile(keras.optimizers.SGD(lr=0.1), "mse", metrics=["mae"])
    x = images(8, 2, 1).reshape(8, 4)
    history = model.fit(x, x.sum(axis=1), epochs=2, batch_size=8, shuffle=False, verbose=0)
    inside = keras.backend.get_session().run(model.output, {model.input: x[:2]})
    one_hot = keras.utils.to_categorical([1, 0], 2)
    weights = [list(weight.shape) for weight in model.get_weights()]
    return [history.history["loss"], model.predict(x[:2]), inside, one_hot, weights]


@check
def keras_layers_in_a_graph():
    keras, layer = tf.keras, tf.keras.layers
    x = images(2, 4, 1).reshape(2, 4, 4).astype(np.float32)
    start = keras.layers.Input(shape=(4, 4))
    weights = {"kernel_initializer": wave, "recurrent_initializer": wave}
    small = keras.initializers.Constant(0.1)
    constant = {"kernel_initializer": small, "recurrent_initializer": small}
    outputs = [
        layer.LSTM(2, **weights)(start),
        layer.GRU(2, return_sequences=True, **weights)(start),
        layer.Bidirectional(layer.LSTM(2, return_sequences=True, **constant))(start),
        layer.Bidirectional(layer.GRU(2, **constant), merge_mode="sum")(start),
        layer.TimeDistributed(layer.Dense(3, kernel_initializer=wave))(start),
        layer.LayerNormalization(gamma_initializer=wave)(start),
        layer.GaussianNoise(1.0)(layer.GaussianDropout(0.5)(start)),
        layer.concatenate([layer.Flatten()(start), layer.Flatten()(start)]),
    ]
    model = keras.Model(start, outputs)
    shapes = [list(output.shape.as_list()) for output in outputs]
    return [model.predict(x), shapes, model.count_params()]


@check
def keras_models_are_saved():
    keras = tf.keras
    model = keras.Sequential(
        [
            keras.layers.Dense(2, input_shape=(3,), kernel_initializer="ones"),
            keras.layers.BatchNormalization(),
            keras.layers.Reshape((1, 2)),
            keras.layers.TimeDistributed(keras.layers.Dense(2, kernel_initializer="ones")),
            keras.layers.Bidirectional(keras.layers.GRU(1, kernel_initializer="ones")),
        ]
    )
    model.compile("sgd", "mse")
    folder = tempfile.mkdtemp()
    model.save(os.path.join(folder, "model.h5"))
    again = keras.models.load_model(os.path.join(folder, "model.h5"))
    model.save_weights(os.path.join(folder, "weights"))
    copy = keras.models.model_from_json(model.to_json())
    copy.load_weights(os.path.join(folder, "weights"))
    x = np.ones([1, 3])
    version = keras.__version__.startswith("2.")
    return [again.predict(x), copy.predict(x), type(again.optimizer).__name__, version]


@check
def conditional_random_fields():
    scores = tf.constant(images(2, 4, 1).reshape(2, 4, 4), tf.float32)
    tags = tf.constant([[0, 1, 2, 3], [3, 2, 0, 0]])
    lengths = tf.constant([4, 2])
    crf = tf.contrib.crf
    with tf.variable_scope("crf", initializer=wave):
        likelihood, transitions = crf.crf_log_likelihood(scores, tags, lengths)
    best, best_scores = crf.crf_decode(scores, transitions, lengths)
    found = evaluated([likelihood, best, best_scores, scores, transitions])
    one = crf.viterbi_decode(found[3][0], found[4])
    return [found[:3], list(one[0]), float(one[1]), names()]


@check
def end_points():
    x = tf.constant(images(), tf.float32)
    with tf.variable_scope("net", values=[x]) as scope:
        where = scope.original_name_scope + "_end_points"
        with slim.arg_scope([slim.conv2d, slim.max_pool2d], outputs_collections=where):
            h = slim.conv2d(x, 2, [3, 3], scope="conv1")
            h = slim.max_pool2d(h, [2, 2], scope="pool1")
        points = slim.utils.convert_collection_to_dict(where)
    return [list(points), [tensor.shape.as_list() for tensor in points.values()]]


@check
def slim_names():
    x = tf.placeholder(tf.float32, [None, 2, 3])
    logits = tf.constant(images(2, 2, 3)[:, 0], tf.float32)
    step = slim.create_global_step()
    h = slim.fully_connected(tf.constant(images()[:, 0, 0], tf.float32), 3, scope="h")
    variables = slim.get_model_variables()
    describe = slim.model_analyzer.tensor_description
    return [
        evaluated([slim.softmax(logits), step]),
        slim.softmax(x).shape.as_list(),
        slim.utils.last_dimension(x.get_shape(), min_rank=2),
        slim.utils.channel_dimension(x.shape, "channels_first"),
        slim.model_analyzer.analyze_vars(variables),
        slim.model_analyzer.analyze_ops(h.graph) > 10,
        [describe(each) for each in variables],
        [type(each) is tf.Tensor for each in (x, h, logits)],
        [isinstance(each, tf.Tensor) for each in (x, step)],
        slim.utils.smart_cond(True, lambda: 1, lambda: 2),
    ]


@check
def slim_summaries_and_queues():
    x = tf.constant([[0.0, 1.0]], name="x")
    total = tf.reduce_sum(x, name="total")
    summaries = slim.summaries
    summaries.add_histogram_summary(x, prefix="p")
    summaries.add_scalar_summary(total, name="n", prefix="eval")
    summaries.add_zero_fraction_summary(x)
    number = tf.train.input_producer([3, 4, 5], shuffle=False).dequeue()
    with tf.Session() as session, slim.queues.QueueRunners(session):
        found = [session.run(number) for _ in range(4)]
        text = session.run(tf.summary.merge_all())
    kept = [
        (value.tag, value.simple_value)
        for value in tf.Summary.FromString(text).value
        if "input_producer" not in value.tag
    ]
    return [found, kept, slim.initializers.xavier_initializer() is not None]


@check
def losses_of_contrib():
    predictions = tf.constant([[0.2, 0.7], [0.9, 0.4]])
    labels = tf.constant([[0.0, 1.0], [1.0, 0.0]])
    losses = slim.losses
    pairs = [
        losses.log_loss(predictions, labels),
        losses.sigmoid_cross_entropy(predictions, labels),
        losses.softmax_cross_entropy(predictions, labels, label_smoothing=0.1),
        losses.sparse_softmax_cross_entropy(predictions, tf.constant([1, 0])),
        losses.absolute_difference(predictions, labels, weights=0.5),
        losses.mean_squared_error(predictions, labels),
        losses.cosine_distance(predictions, labels, axis=1),
        losses.hinge_loss(predictions, labels),
    ]
    count = len(tf.get_collection(tf.GraphKeys.LOSSES))
    return [evaluated(pairs), count, evaluated(losses.get_total_loss())]


@check
def metrics_of_contrib():
    predictions, labels = tf.constant([1, 0, 1, 1]), tf.constant([1, 1, 0, 1])
    scores = tf.constant([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]])
    metrics = tf.contrib.metrics
    values, updates = slim.metrics.aggregate_metric_map(
        {
            "precision": metrics.streaming_precision(predictions, labels),
            "recall": metrics.streaming_recall(predictions, labels),
            "accuracy": metrics.streaming_accuracy(predictions, labels),
            "auc": metrics.streaming_auc(scores[:, 1], labels),
            "iou": metrics.streaming_mean_iou(predictions, labels, 2),
            "top": metrics.streaming_recall_at_k(scores, labels, 1),
            "error": metrics.streaming_mean_absolute_error(scores, scores * 2),
            "mean": metrics.streaming_mean(scores),
        }
    )
    return [sorted(evaluated(values, before=updates).items()), sorted(values)]


@check
def slim_data():
    from tensorflow.contrib.slim.python.slim.data import dataset_data_provider

    path = os.path.join(tempfile.mkdtemp(), "examples.tfrecord")
    picture = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    with tf.Session() as session:
        encoded = session.run(tf.image.encode_png(picture))
    feature = tf.train.Feature
    with tf.python_io.TFRecordWriter(path) as writer:
        for number in range(3):
            features = {
                "image/encoded": feature(bytes_list=tf.train.BytesList(value=[encoded])),
                "image/format": feature(bytes_list=tf.train.BytesList(value=[b"png"])),
                "label": feature(int64_list=tf.train.Int64List(value=[number])),
                "box/ymin": feature(float_list=tf.train.FloatList(value=[0.1, 0.2])),
                "box/xmin": feature(float_list=tf.train.FloatList(value=[0.3, 0.4])),
                "box/ymax": feature(float_list=tf.train.FloatList(value=[0.5, 0.6])),
                "box/xmax": feature(float_list=tf.train.FloatList(value=[0.7, 0.8])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    keys = {
        "image/encoded": tf.FixedLenFeature((), tf.string, default_value=""),
        "image/format": tf.FixedLenFeature((), tf.string, default_value="png"),
        "label": tf.FixedLenFeature([1], tf.int64),
    }
    for side in ("ymin", "xmin", "ymax", "xmax"):
        keys["box/" + side] = tf.VarLenFeature(tf.float32)
    decoder = slim.tfexample_decoder
    handlers = {
        "image": decoder.Image(shape=[4, 4, 3]),
        "label": decoder.Tensor("label", shape=[]),
        "boxes": decoder.BoundingBox(prefix="box/"),
    }
    dataset = slim.dataset.Dataset(
        data_sources=path,
        reader=tf.TFRecordReader,
        decoder=decoder.TFExampleDecoder(keys, handlers),
        num_samples=3,
        items_to_descriptions={},
        classes=3,
    )
    provider = dataset_data_provider.DatasetDataProvider(dataset, shuffle=False)
    items = provider.get(["image", "label", "boxes"])
    queue = slim.prefetch_queue.prefetch_queue(items[:2], capacity=2)
    image, label = queue.dequeue()
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found = [session.run([image, label]) for _ in range(4)]
        boxes = session.run(items[2])
        coordinator.request_stop()
        session.run(queue.close(cancel_pending_enqueues=True))
        coordinator.join(threads, ignore_live_threads=True)
    shapes = [tensor.shape.as_list() for tensor in (image, label)]
    return [found, boxes, shapes, provider.num_samples(), dataset.classes]


@check
def slim_learning():
    x = tf.constant(images(6, 2, 1).reshape(6, 4), tf.float32)
    h = slim.fully_connected(
        x, 3, activation_fn=None, weights_initializer=wave, normalizer_fn=slim.batch_norm
    )
    slim.losses.mean_squared_error(h, x[:, :3])
    loss = slim.losses.get_total_loss()
    train = slim.learning.create_train_op(
        loss,
        tf.train.GradientDescentOptimizer(0.5),
        clip_gradient_norm=0.1,
        gradient_multipliers={"fully_connected/weights": 2.0},
    )
    folder = tempfile.mkdtemp()
    last = slim.learning.train(
        train, folder, number_of_steps=5, log_every_n_steps=0, save_interval_secs=0
    )
    saved = tf.train.latest_checkpoint(folder)
    kept = tf.train.load_checkpoint(saved).get_tensor("fully_connected/weights")
    with tf.Graph().as_default():
        tf.train.create_global_step()
        mean, update = tf.metrics.mean(tf.get_variable("fully_connected/weights", [4, 3]))
        found = slim.evaluation.evaluate_once(
            "", saved, folder, num_evals=2, eval_op=update, final_op=mean
        )
    nested = tf.contrib.framework.nest
    sequences = [nested.is_sequence([1]), nested.is_sequence(1), nested.flatten([[1], 2])]
    return [last, kept, os.path.basename(saved), names(), found, sequences]


def people():
    features = {
        "age": tf.constant([[20.0], [30.0], [40.0], [50.0]]),
        "job": tf.constant([["a"], ["b"], ["a"], ["zz"]]),
        "sex": tf.constant([["m"], ["f"], ["f"], ["m"]]),
    }
    return features, tf.constant([[0], [1], [1], [0]])


@check
def estimators_of_contrib_learn():
    age = layers.real_valued_column("age")
    columns = [
        layers.bucketized_column(age, boundaries=[25, 35]),
        layers.sparse_column_with_hash_bucket("job", hash_bucket_size=10),
        layers.sparse_column_with_keys("sex", keys=["m", "f"]),
    ]
    learn = tf.contrib.learn
    linear = learn.LinearClassifier(columns, model_dir=tempfile.mkdtemp())
    linear.fit(input_fn=people, steps=20)
    found = linear.evaluate(input_fn=people, steps=1)
    probabilities = list(itertools.islice(linear.predict_proba(input_fn=people), 4))
    classes = list(itertools.islice(linear.predict(input_fn=people), 4))
    weights = linear.get_variable_value("linear/sex/weights")
    variables = [name for name in linear.get_variable_names() if "/Ftrl" not in name]
    regressor = learn.LinearRegressor([age], optimizer=tf.train.GradientDescentOptimizer(1e-4))
    regressor.fit(input_fn=people, steps=3)
    scores = list(itertools.islice(regressor.predict(input_fn=people), 4))
    x = images(6, 2, 1).reshape(6, 4).astype(np.float32)
    plain = learn.infer_real_valued_columns_from_input(x)
    three = learn.LinearClassifier(plain, n_classes=3)
    three.fit(x, np.array([0, 1, 2] * 2), steps=4)
    deep = learn.DNNClassifier([3], plain, n_classes=3)
    deep.fit(x, np.array([0, 1, 2] * 2), steps=2)
    return [
        sorted(found.items()),
        probabilities,
        classes,
        weights,
        sorted(set(variables) - {"global_step"}),
        scores,
        regressor.evaluate(input_fn=people, steps=1)["loss"],
        list(three.predict(x)),
        three.evaluate(x, np.array([0, 1, 2] * 2), steps=1)["loss"],
        len(list(deep.predict_proba(x))),
    ]


@check
def documents():
    processor = tf.contrib.learn.preprocessing.VocabularyProcessor(4)
    rows = np.array(list(processor.fit_transform(["a dog ran", "the dog sat down again"])))
    hparams = tf.contrib.training.HParams(rate=0.1, name="a").parse("rate=0.5")
    return [rows, len(processor.vocabulary_), hparams.rate]


@check
def estimators():
    def model_fn(features, labels, mode, params):
        logits = tf.layers.dense(features["x"], 1, kernel_initializer=wave, name="d")[:, 0]
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"y": logits})
        loss = tf.losses.mean_squared_error(labels, logits)
        train = tf.train.GradientDescentOptimizer(params["rate"])
        return tf.estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=train.minimize(loss, tf.train.get_global_step()),
            eval_metric_ops={"error": tf.metrics.mean_absolute_error(labels, logits)},
        )

    x = images(8, 2, 1).reshape(8, 4).astype(np.float32)
    inputs = tf.estimator.inputs.numpy_input_fn
    every = inputs({"x": x}, x.sum(axis=1), batch_size=8, num_epochs=None, shuffle=False)
    once = inputs({"x": x}, x.sum(axis=1), batch_size=4, shuffle=False)
    model = tf.estimator.Estimator(model_fn, tempfile.mkdtemp(), params={"rate": 0.1})
    model.train(every, steps=3)
    model.train(every, max_steps=5)
    answers = [row["y"] for row in model.predict(inputs({"x": x[:2]}, shuffle=False))]
    found = model.evaluate(once)
    return [answers, sorted(found.items()), sorted(model.get_variable_names())]


@check
def estimators_of_contrib_tpu():
    sizes = []

    def model_fn(features, labels, mode, params):
        sizes.append([mode, params["batch_size"], params["rate"]])
        y = tf.layers.dense(features["x"], 1, kernel_initializer=wave)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"y": y})
        loss = tf.losses.mean_squared_error(labels, y)
        optimizer = tf.train.GradientDescentOptimizer(params["rate"])
        return tpu.TPUEstimatorSpec(
            mode=mode,
            loss=loss,
            train_op=optimizer.minimize(loss, tf.train.get_global_step()),
            eval_metrics=(lambda a, b: {"off": tf.metrics.mean_absolute_error(a, b)}, [labels, y]),
            scaffold_fn=lambda: tf.train.Scaffold(),
        )

    def input_fn(params):
        rows = images(4, 2, 1).reshape(4, 4).astype("float32")
        data = tf.data.Dataset.from_tensor_slices(({"x": rows}, rows[:, :1]))
        return data.repeat(3).batch(params["batch_size"], drop_remainder=True)

    model = tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(
            model_dir=tempfile.mkdtemp(),
            tpu_config=tpu.TPUConfig(iterations_per_loop=5, num_shards=1),
        ),
        params={"rate": 0.1},
        use_tpu=False,
        train_batch_size=4,
        eval_batch_size=2,
        predict_batch_size=3,
    )
    model.train(input_fn, max_steps=2)
    found = model.evaluate(input_fn, steps=2)
    values = [plain(each["y"]) for each in model.predict(input_fn)]
    return [sorted(found), [plain(found[name]) for name in sorted(found)], values, sizes]


@check
def estimators_leave_the_hyperparameters_alone():
    found = []

    def model_fn(features, labels, mode, params):
        found.append([mode, params.rate, "batch_size" in params])
        y = tf.layers.dense(features["x"], 1, kernel_initializer=wave)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"y": y})
        loss = tf.losses.mean_squared_error(labels, y)
        train = tf.train.GradientDescentOptimizer(params.rate)
        step = train.minimize(loss, tf.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=step)

    def input_fn(params):
        rows = images(4, 2, 1).reshape(4, 4).astype("float32")
        return tf.data.Dataset.from_tensor_slices(({"x": rows}, rows[:, :1])).batch(2)

    params = tf.contrib.training.HParams(rate=0.1)
    config = tpu.RunConfig(model_dir=tempfile.mkdtemp())
    for _ in range(2):  # with the same object, which has no batch size yet
        model = tpu.TPUEstimator(
            model_fn, config=config, params=params, use_tpu=False, train_batch_size=2
        )
        params.rate = 0.2
        model.train(input_fn, steps=1)
        list(model.predict(input_fn))
    return [found, "batch_size" in params]


@check
def exported_estimators():
    from tensorflow.contrib import predictor

    def model_fn(features, labels, mode):
        logits = tf.layers.dense(features["x"], 2, kernel_initializer=wave, name="d")
        table = tf.contrib.lookup.index_to_string_table_from_tensor(["no", "yes"])
        word = table.lookup(tf.argmax(logits, axis=1))
        if mode == tf.estimator.ModeKeys.PREDICT:
            outputs = {"logits": logits, "word": word}
            export = {"serving_default": tf.estimator.export.PredictOutput(outputs)}
            return tf.estimator.EstimatorSpec(mode, predictions=outputs, export_outputs=export)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    x = images(8, 2, 1).reshape(8, 4).astype(np.float32)
    inputs = tf.estimator.inputs.numpy_input_fn(
        {"x": x}, np.arange(8) % 2, batch_size=8, num_epochs=None, shuffle=False
    )
    folder = tempfile.mkdtemp()
    model = tf.estimator.Estimator(model_fn, folder)
    raw = tf.estimator.export.build_raw_serving_input_receiver_fn
    parsed = tf.estimator.export.build_parsing_serving_input_receiver_fn
    sent = {"x": tf.placeholder(tf.float32, [None, 4], name="x")}
    final = tf.estimator.FinalExporter("last", raw(sent))
    tf.estimator.train_and_evaluate(
        model,
        tf.estimator.TrainSpec(inputs, max_steps=3),
        tf.estimator.EvalSpec(inputs, steps=1, exporters=[final]),
    )
    answers = [predictor.from_estimator(model, raw(sent))({"x": x[:2]})]
    spec = {"x": tf.FixedLenFeature([4], tf.float32)}
    by_example = model.export_savedmodel(os.path.join(folder, "examples"), parsed(spec))
    by_array = os.path.join(folder, "export", "last")
    by_array = os.path.join(by_array, os.listdir(by_array)[0])
    answers.append(predictor.from_saved_model(by_array)({"x": x[:2]}))
    row = tf.train.Example()
    row.features.feature["x"].float_list.value.extend(x[0].tolist())
    serving = predictor.from_saved_model(by_example)
    answers.append(serving({"examples": [row.SerializeToString()]}))
    return [sorted((name, value) for name, value in each.items()) for each in answers]


@check
def ready_made_estimators():
    x = (images(8, 2, 1).reshape(16, 2) + 1.0).astype(np.float32)
    features = {"x": x, "word": np.array(["a", "b"] * 8)}
    labels = (x[:, 0] > x[:, 1]).astype(np.int64)
    column = tf.feature_column
    word = column.categorical_column_with_vocabulary_list("word", ["a", "b"])
    columns = [column.numeric_column("x", shape=[2]), word]
    inputs = tf.estimator.inputs.numpy_input_fn
    estimator = tf.estimator
    linear = [
        (estimator.LinearClassifier(columns), labels),
        (estimator.LinearClassifier(columns, n_classes=3), labels),
        (estimator.LinearRegressor(columns, optimizer=tf.train.AdamOptimizer(0.1)), x[:, 0]),
    ]
    dense = [columns[0], column.indicator_column(word)]
    deep = [
        (estimator.DNNClassifier([4], dense, n_classes=3), labels),
        (estimator.DNNRegressor([4], dense), x[:, 0]),
        (
            estimator.DNNLinearCombinedClassifier(
                linear_feature_columns=columns, dnn_feature_columns=dense, dnn_hidden_units=[4]
            ),
            labels,
        ),
    ]
    found = []
    for number, (model, wanted) in enumerate(linear + deep):
        model.train(inputs(features, wanted, 8, None, shuffle=False), steps=5)
        metrics = model.evaluate(inputs(features, wanted, 8, shuffle=False))
        first = next(model.predict(inputs(features, batch_size=8, shuffle=False)))
        names = sorted(model.get_variable_names())
        # What optimizers keep beside the weights was named after the pieces of split weights.
        weights = [name for name in names if name.endswith(("weights", "kernel", "bias", "step"))]
        found.append([sorted(metrics), sorted(first), weights])
        if number < len(linear):
            # These start at zero, so that nothing about them is random.
            found.append([sorted(metrics.items()), sorted(first.items())])
    return found


@check
def names_inside_the_package():
    """At the places that they had in TensorFlow 1."""
    from tensorflow.python.framework import graph_util
    from tensorflow.python.framework.ops import IndexedSlices
    from tensorflow.python.layers.normalization import BatchNormalization
    from tensorflow.python.ops import array_ops, control_flow_ops, math_ops
    from tensorflow.python.ops.control_flow_ops import cond
    from tensorflow.python.training import training_ops
    from tensorflow.python.util.nest import is_sequence

    rows = array_ops.unstack(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    stacked = array_ops.stack(rows[::-1])
    counted = control_flow_ops.while_loop(lambda i: i < 5, lambda i: i + 2, [0])
    chosen = cond(math_ops.less(counted, 10), lambda: stacked, lambda: -stacked)
    normalized = BatchNormalization(name="old").apply(stacked, training=True)
    weight = tf.get_variable("weight", initializer=3.0, use_resource=False)
    step = training_ops.apply_gradient_descent(weight, 0.5, tf.constant(2.0)).op
    doubled = tf.multiply(weight, 2.0, name="doubled")
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        frozen = graph_util.convert_variables_to_constants(
            session, session.graph.as_graph_def(), ["doubled"]
        )
        values = session.run([stacked, counted, chosen, normalized, doubled])
    with tf.Graph().as_default(), tf.Session() as session:
        (again,) = tf.import_graph_def(frozen, return_elements=["doubled:0"], name="")
        values.append(session.run(again))
    nested = [is_sequence(each) for each in ([1], "ab", {"a": 1})]
    return values, nested, IndexedSlices is tf.IndexedSlices, names()


@check
def values_of_a_module():
    found = vars(tf.logging)["INFO"], tf.logging.__dict__["WARN"]
    cells = [
        each.__name__
        for each in tf.contrib.rnn.__dict__.values()
        if isinstance(each, type) and issubclass(each, tf.contrib.rnn.RNNCell)
    ]
    # What needs a package that is not installed is left out.
    cells += vars(tf.contrib.distributions)
    wanted = {"GRUCell", "MultiRNNCell", "MultivariateNormalDiag"}
    return found, "exponential_decay" in vars(tf.train), wanted <= {*cells}


def refusals():
    """What whygpu says of names that have no place in TensorFlow 2; in TensorFlow 1 all exist."""

    def refused(action):
        try:
            action()
        except (AttributeError, ImportError, OSError) as error:
            return f"{type(error).__name__}: {error}"
        return "was not refused"

    def contrib_module():
        from tensorflow.contrib.factorization import KMeans  # noqa: F401

    def contrib_name():
        from tensorflow.contrib.layers import nothing_of_that_name  # noqa: F401

    def inner_name():
        from tensorflow.contrib.rnn.python.ops.rnn import nothing_of_that_name  # noqa: F401

    def wrong_name():
        from tensorflow.python.ops.array_ops import scalar  # noqa: F401

    # As a library asks, which is no part of the program.
    library = {"__name__": "keras.library"}
    exec("import tensorflow.python.ops.array_ops as it; has = hasattr(it, 'stack')", library)

    return {
        "inside a library": str(library["has"]),
        "wrong name inside": refused(wrong_name),
        "contrib module": refused(contrib_module),
        "contrib name": refused(contrib_name),
        "contrib name inside": refused(inner_name),
        "keras layer": refused(lambda: tf.keras.layers.LocallyConnected2D),
        "estimator": refused(lambda: tf.estimator.BoostedTreesClassifier),
        "TensorFlow 2 only": refused(lambda: tf.optimizers),
        "no such name": refused(lambda: tf.nothing_of_that_name),
        "mnist": refused(lambda: input_data.read_data_sets(tempfile.mkdtemp())),
        "libraries see": sys.modules["tensorflow"].keras.__name__,
        "numpy": str(np.int),
    }


def plain(value):
    """What JSON can say."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def main(_):
    answers = {}
    for function in CHECKS:
        tf.reset_default_graph()
        tf.keras.backend.clear_session()
        tf.set_random_seed(1)
        try:
            answers[function.__name__] = plain(function())
        except Exception as error:
            answers[function.__name__] = f"{type(error).__name__}: {error}"
    found = {"version": tf.__version__, "answers": answers}
    if not tf.__version__.startswith("1."):
        found["refusals"] = refusals()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    tf.app.run()
