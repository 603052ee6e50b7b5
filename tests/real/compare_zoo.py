"""Layers of Keras side by side in one model, for test_compare_numerics.py: runs inside a target.

`lane FOLDER` computes them in float32 by the backend of the process, as they are and with faults;
`reference FOLDER LANE ...` computes them in float64 and prints how far the lanes are from that, in
units of what rounding explains, as JSON.
"""

# mypy: ignore-errors

import json
import os
import sys
import zlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import keras
import numpy
from keras import layers
from whygpu_work.judging import float64_keras, local, tools_keras
from whygpu_work.lanes import recording, taps_keras
from whygpu_work.tasks.differences import Lane, layer_errors

RANDOM = numpy.random.RandomState(0)
HALF, BRAIN = "mixed_float16", "mixed_bfloat16"


def normal(*shape, offset=0.0):
    return (RANDOM.standard_normal(shape) + offset).astype("float32")


INPUTS = {
    "image": normal(3, 16, 16, 8),
    "channels": normal(3, 8, 8, 256),
    "large": normal(3, 64, 64, 4, offset=5.0),
    "sequence": normal(3, 20, 16),
    "wide": normal(3, 20, 128, offset=3.0),
    "vector": normal(3, 300),
    "positive": abs(normal(3, 2000)),
    "numbers": RANDOM.randint(0, 50, (3, 12)).astype("int32"),
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


def approximate(x):
    return keras.ops.gelu(x, approximate=True)


# name: (an input or what goes before, layer, settings)
SOUND = {
    "dense": ("vector", layers.Dense, {"units": 32}),
    "dense-again": ("vector", layers.Dense, {"units": 32}),
    "dense-of-one-sign": ("positive", layers.Dense, {"units": 32}),
    "dense-softmax": ("vector", layers.Dense, {"units": 50, "activation": "softmax"}),
    "gelu": ("vector", layers.Activation, {"activation": "gelu"}),
    "sigmoid": ("vector", layers.Activation, {"activation": "sigmoid"}),
    "tanh": ("vector", layers.Activation, {"activation": "tanh"}),
    "convolution": (
        "image",
        layers.Conv2D,
        {"filters": 16, "kernel_size": 3, "padding": "same", "activation": "relu"},
    ),
    "convolution-of-many": ("channels", layers.Conv2D, {"filters": 16, "kernel_size": 3}),
    "depthwise": ("image", layers.DepthwiseConv2D, {"kernel_size": 3, "padding": "same"}),
    "transposed": ("image", layers.Conv2DTranspose, {"filters": 8, "kernel_size": 3, "strides": 2}),
    "batch-normalization": ("image", layers.BatchNormalization, {}),
    "layer-normalization": ("wide", layers.LayerNormalization, {}),
    "group-normalization": ("image", layers.GroupNormalization, {"groups": 4}),
    "pooling": ("image", layers.AveragePooling2D, {"pool_size": 2}),
    "global-pooling": ("large", layers.GlobalAveragePooling2D, {}),
    "lstm": ("sequence", layers.LSTM, {"units": 24, "return_sequences": True}),
    "gru": ("sequence", layers.GRU, {"units": 24}),
    "attention": ("sequence", layers.MultiHeadAttention, {"num_heads": 4, "key_dim": 16}),
    "embedding": (
        "numbers",
        layers.Embedding,
        {"input_dim": 50, "output_dim": 16, "mask_zero": True},
    ),
    "masked": ("embedding", layers.LSTM, {"units": 8}),
    "resizing": ("image", layers.Resizing, {"height": 24, "width": 20}),
    "rescaling": ("image", layers.Rescaling, {"scale": 1 / 127.5, "offset": -1}),
    "half-dense": ("vector", layers.Dense, {"units": 32, "dtype": HALF}),
    "half-lstm": ("sequence", layers.LSTM, {"units": 24, "dtype": HALF}),
    "half-normalization": ("wide", layers.LayerNormalization, {"dtype": HALF}),
    "brain-attention": (
        "sequence",
        layers.MultiHeadAttention,
        {"num_heads": 4, "key_dim": 16, "dtype": BRAIN},
    ),
    "brain-convolution": (
        "channels",
        layers.Conv2D,
        {"filters": 16, "kernel_size": 3, "dtype": BRAIN},
    ),
}
# The same name with another layer, or with another setting.
FAULTS = {
    "dense": (SwappedDense, {}),
    "dense-again": (NarrowDense, {}),
    "gelu": (layers.Activation, {"activation": approximate}),
    "convolution": (layers.Conv2D, {"dilation_rate": 2}),
    "batch-normalization": (layers.BatchNormalization, {"epsilon": 1.1e-3}),
    "layer-normalization": (layers.LayerNormalization, {"epsilon": 1e-5}),
    "group-normalization": (layers.GroupNormalization, {"epsilon": 1e-5}),
    "pooling": (layers.MaxPooling2D, {}),
    "lstm": (layers.LSTM, {"recurrent_activation": "hard_sigmoid"}),
    "attention": (layers.MultiHeadAttention, {"use_bias": False}),
    "resizing": (layers.Resizing, {"interpolation": "nearest"}),
}


def model_of(entries):
    given = {
        name: keras.Input(array.shape[1:], dtype=str(array.dtype), name=name)
        for name, array in INPUTS.items()
    }
    made, outputs = {}, {}
    for name, (source, kind, settings) in entries.items():
        made[name] = kind(name=name, **settings)
        x = given[source] if source in given else outputs[source]
        outputs[name] = made[name](x, x) if kind is layers.MultiHeadAttention else made[name](x)
    model = keras.Model(list(given.values()), list(outputs.values()))
    for name, layer in made.items():
        layer.set_weights(weights_for(name, layer.get_weights()))
    return model


def weights_for(name, shapes):
    random = numpy.random.RandomState(zlib.crc32(name.encode()))
    result = []
    for old in shapes:
        fan = max(1, old.size // old.shape[-1]) if old.ndim > 1 else 1
        new = random.standard_normal(old.shape) / fan**0.5
        result.append((abs(new) + 0.1 if old.ndim < 2 else new).astype(old.dtype))
    return result


def lane(folder):
    faulty = {
        name: (SOUND[name][0], kind, {**SOUND[name][2], **changed})
        for name, (kind, changed) in FAULTS.items()
    }
    for place, entries in (("sound", SOUND), ("faulty", faulty)):
        recorder, steps = taps_keras.recorder(keras, model_of(entries))
        results = recorder.predict_on_batch(list(INPUTS.values()))
        writer = recording.Writer(os.path.join(folder, place))
        for (name, layer, code_before), result in zip(steps, results, strict=True):
            writer.tensor(name, "layer", result)
            precision, settings = taps_keras.precision(layer), taps_keras.settings(layer)
            writer.step(name, type(layer).__name__, [name], precision, settings, "", code_before)
        writer.close()
    # Nobody has asked for it on other backends, and importing it takes seconds.
    assert ("tensorflow" in sys.modules) == (keras.backend.backend() == "tensorflow")


def reference(folder, lanes):
    exact = float64_keras.lifted(keras, model_of(SOUND))
    found = {}
    for place in ("sound", "faulty"):
        for backend in lanes:
            for error in errors_of(exact, os.path.join(folder, backend, place)):
                by_backend = found.setdefault(place, {}).setdefault(error["layer"], {})
                by_backend[backend] = dict(error["units"], not_finite=error["not_finite"])
    print(json.dumps(found))


def errors_of(exact, place):
    writer = local.ErrorWriter(os.path.join(place, "local"))
    wide = [
        array.astype("float64") if array.dtype.kind == "f" else array for array in INPUTS.values()
    ]
    tools = tools_keras.KerasTools(keras)
    forcing = local.Forcing(tools, recording.Recording(place), writer, wide)
    with taps_keras.tapped(keras, exact, forcing):
        for _ in forcing.passes():
            exact(wide, training=False)
    writer.close()
    request = {"name": "lane", "runs": [place], "local": os.path.join(place, "local")}
    return layer_errors(Lane(request))


if __name__ == "__main__":
    if sys.argv[1] == "lane":
        lane(os.path.join(sys.argv[2], keras.backend.backend()))
    else:
        reference(sys.argv[2], sys.argv[3:])
