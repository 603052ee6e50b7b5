"""Layers of Keras, one by one, for test_compare_numerics.py: runs inside a target.

`lane FOLDER` computes each in float32 by the backend of the process, as it is and with faults;
`reference FOLDER LANE ...` computes each in float64 and prints how far the lanes are from it, in
units of what rounding explains, as JSON.
"""

# mypy: ignore-errors

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import keras
import numpy
from keras import layers
from whygpu_work import float64_keras, local, recording, taps_keras, tools_keras
from whygpu_work.task_differences import Lane, layer_errors

RANDOM = numpy.random.RandomState(0)


def normal(*shape, scale=1.0, offset=0.0):
    return (RANDOM.standard_normal(shape) * scale + offset).astype("float32")


IMAGE, MANY = normal(3, 16, 16, 8), normal(2, 8, 8, 256)
SEQUENCE, WIDE, VECTOR = normal(3, 20, 16), normal(3, 20, 128, offset=3.0), normal(5, 300)


def attention(**settings):
    def build(x):
        return layers.MultiHeadAttention(4, 16, name="layer", **settings)(x, x)

    return build


def masked(x):
    x = layers.Embedding(50, 16, mask_zero=True)(x)
    return layers.LSTM(8, name="layer")(x)


# name: (input, layer or function of it); faults have the name of what they are a fault of.
SOUND = {
    "dense": (VECTOR, layers.Dense(32)),
    "dense of one sign": (abs(normal(5, 2000)), layers.Dense(32)),
    "dense softmax": (VECTOR, layers.Dense(50, activation="softmax")),
    "gelu": (VECTOR, layers.Activation("gelu")),
    "sigmoid": (VECTOR * 4, layers.Activation("sigmoid")),
    "tanh": (VECTOR, layers.Activation("tanh")),
    "convolution": (IMAGE, layers.Conv2D(16, 3, padding="same", activation="relu")),
    "convolution of many": (MANY, layers.Conv2D(16, 3, padding="same")),
    "convolution in groups": (IMAGE, layers.Conv2D(16, 5, 2, padding="same", groups=2)),
    "depthwise": (IMAGE, layers.DepthwiseConv2D(3, padding="same")),
    "transposed": (IMAGE, layers.Conv2DTranspose(8, 3, 2, padding="same")),
    "batch normalization": (IMAGE * 3 + 2, layers.BatchNormalization()),
    "layer normalization": (WIDE, layers.LayerNormalization()),
    "group normalization": (IMAGE, layers.GroupNormalization(4)),
    "pooling": (IMAGE, layers.AveragePooling2D(2)),
    "global pooling": (normal(2, 64, 64, 4, offset=5.0), layers.GlobalAveragePooling2D()),
    "lstm": (SEQUENCE, layers.LSTM(24, return_sequences=True)),
    "gru": (SEQUENCE, layers.GRU(24)),
    "bidirectional": (SEQUENCE, layers.Bidirectional(layers.LSTM(8))),
    "attention": (SEQUENCE, attention()),
    "einsum": (SEQUENCE, layers.EinsumDense("abc,cde->abde", (None, 4, 8))),
    "masked": (RANDOM.randint(0, 50, (4, 12)).astype("int32"), masked),
    "resizing": (IMAGE, layers.Resizing(24, 20)),
    "rescaling": (IMAGE * 100, layers.Rescaling(1 / 127.5, -1)),
    "half lstm": (SEQUENCE, layers.LSTM(24, dtype="mixed_float16")),
    "half normalization": (WIDE, layers.LayerNormalization(dtype="mixed_float16")),
    "brain half attention": (SEQUENCE, attention(dtype="mixed_bfloat16")),
    "brain half convolution": (MANY, layers.Conv2D(16, 3, dtype="mixed_bfloat16")),
    "half": (VECTOR, layers.Dense(32, dtype="mixed_float16")),
    "brain half": (VECTOR, layers.Dense(32, dtype="mixed_bfloat16")),
}


class SwappedDense(layers.Dense):
    """The kernel's inputs in the wrong order."""

    def call(self, inputs):
        return super().call(keras.ops.flip(inputs, 1))


class NarrowDense(layers.Dense):
    """Through float16, which ends at 65504."""

    def call(self, inputs):
        wide = super().call(inputs * 2.0**17)
        return keras.ops.cast(keras.ops.cast(wide, "float16"), "float32") * 2.0**-17


FAULTS = {
    "dense": [SwappedDense(32), NarrowDense(32)],
    "gelu": [layers.Activation(lambda x: keras.ops.gelu(x, approximate=True))],
    "batch normalization": [layers.BatchNormalization(epsilon=1.1e-3)],
    "layer normalization": [layers.LayerNormalization(epsilon=1e-5)],
    "group normalization": [layers.GroupNormalization(4, epsilon=1e-5)],
    "convolution": [layers.Conv2D(16, 3, padding="same", activation="relu", dilation_rate=2)],
    "lstm": [layers.LSTM(24, return_sequences=True, recurrent_activation="hard_sigmoid")],
    "attention": [attention(use_bias=False)],
    "pooling": [layers.MaxPooling2D(2)],
    "resizing": [layers.Resizing(24, 20, interpolation="nearest")],
}


def model_of(inputs, layer):
    given = keras.Input(inputs.shape[1:], dtype=str(inputs.dtype))
    if isinstance(layer, layers.Layer):
        layer.name = "layer"
    model = keras.Model(given, layer(given))
    random = numpy.random.RandomState(1)
    weights = []
    for old in model.get_weights():
        fan = max(1, old.size // old.shape[-1]) if old.ndim > 1 else 1
        new = random.standard_normal(old.shape) / fan**0.5
        weights.append((abs(new) + 0.1 if old.ndim < 2 else new).astype(old.dtype))
    model.set_weights(weights)
    return model


def write(folder, inputs, layer):
    recorder, steps = taps_keras.recorder(keras, model_of(inputs, layer))
    results = recorder.predict_on_batch(inputs)
    writer = recording.Writer(folder)
    for (name, each), result in zip(steps, results, strict=True):
        name = "layer" if each is layer else name
        writer.tensor(name, "layer", result)
        kind = type(each).__name__
        writer.step(name, kind, [name], taps_keras.precision(each), {}, "")
    writer.close()


def lane(folder):
    for number, (name, (inputs, layer)) in enumerate(SOUND.items()):
        write(os.path.join(folder, str(number)), inputs, layer)
        for fault, wrong in enumerate(FAULTS.get(name, ())):
            write(os.path.join(folder, f"{number} fault {fault}"), inputs, wrong)


def reference(folder, lanes):
    found = {}
    for number, (name, (inputs, layer)) in enumerate(SOUND.items()):
        exact = float64_keras.lifted(keras, model_of(inputs, layer))
        faults = range(len(FAULTS.get(name, ())))
        for each in [str(number)] + [f"{number} fault {fault}" for fault in faults]:
            for backend in lanes:
                place = os.path.join(folder, backend, each)
                units = units_of(exact, inputs, place)
                found.setdefault(each.replace(str(number), name, 1), {})[backend] = units
    print(json.dumps(found))


def units_of(exact, inputs, place):
    writer = local.ErrorWriter(os.path.join(place, "local"))
    recorded = recording.Recording(place)
    forcing = local.Forcing(tools_keras.KerasTools(keras), recorded, writer)
    wide = inputs.astype("float64") if inputs.dtype.kind == "f" else inputs
    with taps_keras.tapped(keras, exact, forcing):
        exact(wide, training=False)
    writer.close()
    request = {"name": "lane", "runs": [place], "local": os.path.join(place, "local")}
    errors = layer_errors(Lane(request))
    worst = max(errors, key=lambda error: error["units"]["own"])
    return dict(worst["units"], not_finite=sum(error["not_finite"] for error in errors))


if __name__ == "__main__":
    if sys.argv[1] == "lane":
        lane(os.path.join(sys.argv[2], keras.backend.backend()))
    else:
        reference(sys.argv[2], sys.argv[3:])
