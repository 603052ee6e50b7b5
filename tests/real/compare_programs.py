"""Programs for test_compare.py: they run inside targets, some of them with a fault in one lane."""

# mypy: ignore-errors

import os

BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")


def model(**faults):
    """Convolution, normalization, recurrence and attention; `faults` say what is wrong on which
    backend: epsilon="jax"."""
    import keras
    from keras import layers

    bad = [fault for fault, backend in faults.items() if backend == BACKEND]
    image = keras.Input((8, 8, 3), name="image")
    # The normalization takes its bias out again: in training, its gradient is what rounding leaves.
    x = layers.Conv2D(4, 3, name="convolution")(image)
    epsilon = 1e-2 if "epsilon" in bad else 1e-3
    x = layers.BatchNormalization(epsilon=epsilon, name="normalization")(x)
    x = layers.Reshape((9, 16), name="sequence")(x)
    # JAX compiles the drawing of each shape of weight, and that of an orthogonal matrix takes long.
    drawn = {"return_sequences": True, "recurrent_initializer": "glorot_uniform"}
    x = layers.LSTM(16, name="recurrence", **drawn)(x)
    x = layers.MultiHeadAttention(2, 8, name="attention")(x, x)
    x = layers.GlobalAveragePooling1D(name="mean")(x)
    scale = 0.501 if "scale" in bad else 0.5
    x = block_of(layers)(layers.Dense(16, name="inner"), lambda y: y * scale, name="block")(x)
    x = layers.Dense(16, name="square")(x)
    half = "float16" if "overflow" in bad else "float32"
    x = layers.Rescaling(1e7, name="large", dtype=half)(x)
    x = layers.Rescaling(1e-7, name="small", dtype="float32")(x)
    x = layers.Dropout(0.5, name="dropout")(x)
    return keras.Model(image, layers.Dense(5, activation="softmax", name="output")(x))


def block_of(layers):
    """A layer of layers and of code, which does not tell how it was made."""

    class Block(layers.Layer):
        def __init__(self, inner, change, **settings):
            super().__init__(**settings)
            self.inner = inner
            self.change = change

        def call(self, x):
            return x + self.change(self.inner(x))

    return Block


def faulty():
    """A fault on each backend, and two on JAX. The weights are as from a file; PyTorch turns one of
    them round."""
    import numpy

    made = model(epsilon="jax", scale="jax", overflow="tensorflow")
    random = numpy.random.RandomState(1)
    made.set_weights([random.uniform(0.1, 0.5, each.shape) for each in made.get_weights()])
    if BACKEND == "torch":
        square = made.get_layer("square")
        kernel, bias = square.get_weights()
        square.set_weights([kernel.T, bias])
    return made


def watched():
    """A layer that does something else on JAX when its result is not kept, as a compiler may."""
    import inspect

    import keras

    class Fickle(keras.layers.Layer):
        def call(self, inputs):
            kept = any("taps_keras" in frame.filename for frame in inspect.stack(0))
            wrong = keras.backend.backend() == "jax" and not kept
            return inputs * 1.05 if wrong else inputs

    return keras.Sequential(
        [keras.Input((8,)), keras.layers.Dense(16), Fickle(), keras.layers.Dense(3)]
    )


def module():
    """A PyTorch module that is wrong where deterministic algorithms are asked for."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Conv2d(3, 8, 3)
            self.norm = torch.nn.BatchNorm2d(8)
            self.last = torch.nn.Linear(8 * 100, 4)
            if torch.are_deterministic_algorithms_enabled():
                self.norm.eps = 1e-2

        def forward(self, image):
            x = torch.relu(self.norm(self.first(image)))
            return self.last(x.flatten(1))

    return Net(), torch.randn(3, 3, 12, 12)


def pair():
    """A JAX function with its arguments."""
    import jax
    import jax.numpy as np

    return lambda a, b: {"product": np.tanh(a @ b)}, (
        jax.random.normal(jax.random.key(0), (8, 8)),
    ) * 2


def steady():
    """Random numbers, seeded by the program itself."""
    import numpy

    return {"numbers": numpy.random.default_rng(1).random(100), "count": 3}


def drawn():
    """Random numbers that nobody seeds but whygpu."""
    import numpy

    return [numpy.random.rand(100), numpy.arange(3)]


def entropy():
    """Random numbers that nobody can seed."""
    import numpy

    return numpy.random.default_rng().random(100)


def summed(values):
    """Fed with --inputs."""
    return values.sum(axis=0)


def always_dropping():
    """A model whose dropout is live in inference as well: each backend draws its own numbers."""
    import keras

    class Dropping(keras.layers.Layer):
        def __init__(self, **options):
            super().__init__(**options)
            self.generator = keras.random.SeedGenerator(7)

        def call(self, x):
            return keras.random.dropout(x, 0.5, seed=self.generator)

    layers = [keras.Input((32,)), keras.layers.Dense(64), Dropping(), keras.layers.Dense(10)]
    return keras.Sequential(layers)


def between():
    """On one backend, the code between two layers computes something else."""
    import keras
    import numpy as np

    class Scaling(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = keras.layers.Dense(8, name="first")
            self.second = keras.layers.Dense(4, name="second")
            self.third = keras.layers.Dense(4, name="third")

        def call(self, x):
            x = self.first(x)
            if keras.backend.backend() == "torch":
                x = x * 1.001
            return self.third(self.second(x))

    made = Scaling()
    made.build((None, 6))
    return made, np.ones((4, 6), "float32")
