"""Models for benchmarks.find_batch: four kinds in each framework, none of them seen by a test.

They are wide and shallow, so that a sample takes megabytes and little time. Each function is
what a user would name: `whygpu memory find benchmarks/find_models.py:torch_conv`.
"""

from __future__ import annotations

from typing import Any


def keras_conv() -> Any:
    import keras

    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((96, 96, 3)),
            layers.Conv2D(16, 3, padding="same"),
            layers.BatchNormalization(),
            layers.Activation("relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )


def keras_mlp() -> Any:
    import keras

    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((16,)),
            layers.Dense(32768, activation="relu"),
            layers.Dropout(0.1),
            layers.Lambda(lambda x: x * 0.5 + 1.0, output_shape=(32768,)),
            layers.Dense(8),
        ]
    )


def keras_lstm() -> Any:
    import keras

    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((64, 16)),
            layers.LSTM(96, return_sequences=True),
            layers.LSTM(48),
            layers.Dense(1),
        ]
    )


def keras_transformer() -> Any:
    import keras

    layers = keras.layers
    words = layers.Input((192,), dtype="int32")
    x = layers.Embedding(2000, 64)(words)
    for _ in range(2):
        attended = layers.MultiHeadAttention(4, 16)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        wide = layers.Dense(256, activation="gelu")(x)
        x = layers.LayerNormalization()(layers.Add()([x, layers.Dense(64)(wide)]))
    return keras.Model(words, layers.Dense(5)(layers.GlobalAveragePooling1D()(x)))


def torch_conv() -> Any:
    import torch

    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    return net, torch.zeros(1, 3, 96, 96)


def torch_mlp() -> Any:
    import torch

    nn = torch.nn
    net = nn.Sequential(
        nn.Linear(16, 32768), nn.ReLU(), nn.Dropout(0.1), nn.Sigmoid(), nn.Linear(32768, 8)
    )
    return net, torch.zeros(1, 16)


def torch_lstm() -> Any:
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(16, 96, num_layers=2, batch_first=True)
            self.head = torch.nn.Linear(96, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(x)[0][:, -1])

    return Net(), torch.zeros(1, 64, 16)


def torch_transformer() -> Any:
    import torch

    nn = torch.nn
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True, activation="gelu")
    net = nn.Sequential(nn.Embedding(2000, 64), nn.TransformerEncoder(layer, 2), nn.Linear(64, 5))
    return net, torch.zeros(1, 192, dtype=torch.int64)


def jax_mlp(batch_size: int) -> Any:
    import jax
    import jax.numpy as jnp

    keys = jax.random.split(jax.random.key(0), 2)
    weights = (jax.random.normal(keys[0], (16, 32768)), jax.random.normal(keys[1], (32768, 8)))

    def loss(weights: Any, x: Any) -> Any:
        hidden = jax.nn.sigmoid(jax.nn.relu(x @ weights[0]))
        return jnp.square(hidden @ weights[1]).mean()

    return jax.value_and_grad(loss), (weights, jnp.ones((batch_size, 16)))


def jax_conv(batch_size: int) -> Any:
    import jax
    import jax.numpy as jnp

    kernels = (jnp.full((3, 3, 3, 16), 0.1), jnp.full((3, 3, 16, 32), 0.1))

    def convolved(x: Any, kernel: Any) -> Any:
        names = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=names)

    def loss(kernels: Any, x: Any) -> Any:
        for kernel in kernels:
            x = jax.nn.relu(convolved(x, kernel))
        return jnp.square(x).mean()

    return jax.value_and_grad(loss), (kernels, jnp.ones((batch_size, 64, 64, 3)))


def jax_scan(batch_size: int) -> Any:
    import jax
    import jax.numpy as jnp

    weights = jnp.eye(96) * 0.5

    def loss(weights: Any, x: Any) -> Any:
        def cell(state: Any, now: Any) -> Any:
            state = jnp.tanh(state @ weights + now)
            return state, state

        first = jnp.zeros((x.shape[1], 96))
        return jnp.square(jax.lax.scan(cell, first, x)[1]).mean()

    return jax.value_and_grad(loss), (weights, jnp.ones((256, batch_size, 96)))


def jax_attention(batch_size: int) -> Any:
    import jax
    import jax.numpy as jnp

    weights = jnp.stack([jnp.eye(64)] * 3)

    def loss(weights: Any, x: Any) -> Any:
        for _ in range(3):
            query, key, value = (x @ weight for weight in weights)
            scores = jax.nn.softmax(query @ key.swapaxes(-1, -2) / 8.0)
            x = x + scores @ value
        return jnp.square(x).mean()

    return jax.value_and_grad(loss), (weights, jnp.ones((batch_size, 256, 64)))


class _TensorFlowStep:
    """A training step with a gradient tape, as programs without Keras do it."""

    def __init__(self, shape: tuple[int, ...], variables: Any, loss: Any) -> None:
        import tensorflow as tf

        self._shape = shape
        self._slots = [tf.Variable(tf.zeros_like(each)) for each in variables]

        @tf.function
        def train(x: Any) -> Any:
            with tf.GradientTape() as tape:
                found = loss(x)
            gradients = tape.gradient(found, variables)
            for variable, slot, gradient in zip(variables, self._slots, gradients, strict=True):
                slot.assign(0.9 * slot + gradient)
                variable.assign_sub(0.001 * slot)
            return found

        self._train = train

    def __call__(self, batch_size: int) -> None:
        import tensorflow as tf

        self._train(tf.ones((batch_size, *self._shape)))


def tensorflow_mlp() -> Any:
    import tensorflow as tf

    first = tf.Variable(tf.random.normal((16, 32768), stddev=0.05))
    second = tf.Variable(tf.random.normal((32768, 8), stddev=0.05))

    def loss(x: Any) -> Any:
        hidden = tf.sigmoid(tf.nn.relu(x @ first))
        return tf.reduce_mean(tf.square(hidden @ second))

    return _TensorFlowStep((16,), [first, second], loss)


def tensorflow_conv() -> Any:
    import tensorflow as tf

    kernels = [tf.Variable(tf.fill((3, 3, a, b), 0.1)) for a, b in ((3, 16), (16, 32))]

    def loss(x: Any) -> Any:
        for kernel in kernels:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
        return tf.reduce_mean(tf.square(x))

    return _TensorFlowStep((96, 96, 3), kernels, loss)


def tensorflow_attention() -> Any:
    import tensorflow as tf

    weights = [tf.Variable(tf.eye(64)) for _ in range(3)]

    def loss(x: Any) -> Any:
        for _ in range(3):
            query, key, value = (tf.einsum("btc,cd->btd", x, weight) for weight in weights)
            scores = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / 8.0)
            x = x + tf.matmul(scores, value)
        return tf.reduce_mean(tf.square(x))

    return _TensorFlowStep((256, 64), weights, loss)


def tensorflow_while() -> Any:
    import tensorflow as tf

    weight = tf.Variable(tf.eye(96) * 0.5)

    def loss(x: Any) -> Any:
        state = tf.zeros((tf.shape(x)[0], 96))
        total = tf.constant(0.0)
        for place in tf.range(256):
            state = tf.tanh(state @ weight + x[:, place])
            total += tf.reduce_mean(tf.square(state))
        return total

    return _TensorFlowStep((256, 96), [weight], loss)
