"""What Keras does on the backend that it really uses: a training step, and where weights are."""

import importlib.util
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .harness import Report, Sums

DENSE_WEIGHT = 1.0 / 64
ERROR = 4.0
LEARNING_RATE = 1e-6


def probe(report: "Report", sums: "Sums") -> None:
    leave_home_alone()
    report.stage("import")
    name, keras = import_keras()
    report.fact("module", name)
    report.version(version_of(name, keras))
    report.fact("location", keras.__file__)
    report.stage("backend")
    backend = keras.backend.backend()
    report.fact("backend", backend)
    if "tensorflow" in sys.modules:
        report.ask("tf.keras", lambda: sys.modules["tensorflow"].keras.__name__)

    report.stage("devices")
    list_devices = {
        "tensorflow": tensorflow_devices,
        "jax": jax_devices,
        "torch": torch_devices,
    }.get(backend)
    if list_devices is None:
        report.unknown_devices("the backend %s has no list of devices" % backend)
    else:
        report.devices([(name, "") for name in list_devices()])
    if backend == "numpy":
        # It computes on the CPU and cannot train.
        report.operate("forward-pass", "default", lambda: predict(keras, sums))
    else:
        report.operate("training-step", "default", lambda: train(report, keras, sums))


def leave_home_alone() -> None:
    """Keep Keras from creating a configuration file in the user's home folder."""
    folder = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
    if not os.path.exists(os.path.join(folder, "keras.json")):
        os.environ["KERAS_HOME"] = os.devnull


def import_keras() -> "tuple[str, Any]":
    """The name and the module of Keras: keras, else tf_keras, else the one in TensorFlow."""
    for name in ("keras", "tf_keras"):
        if importlib.util.find_spec(name) is not None:
            return name, importlib.import_module(name)
    return "tensorflow.keras", importlib.import_module("tensorflow").keras


def version_of(name: str, keras: "Any") -> str:
    if hasattr(keras, "__version__"):
        return keras.__version__
    from importlib import metadata  # tf_keras, which needs a Python that has this

    return metadata.version(name)


def tensorflow_devices() -> "list[str]":
    import tensorflow as tf

    if not tf.executing_eagerly():
        from tensorflow.python.client import device_lib

        config = tf.compat.v1.ConfigProto()
        config.gpu_options.allow_growth = True
        return [short(device.name) for device in device_lib.list_local_devices(config)]
    config = tf.config if hasattr(tf.config, "list_logical_devices") else tf.config.experimental
    return [short(device.name) for device in config.list_logical_devices()]


def jax_devices() -> "list[str]":
    import jax

    return [name_of(device) for device in jax.devices()]


def torch_devices() -> "list[str]":
    import torch

    devices = ["cpu"]
    if torch.cuda.is_available():
        devices += ["cuda:%d" % index for index in range(torch.cuda.device_count())]
    return devices


def train(report: "Report", keras: "Any", sums: "Sums") -> "tuple[str, bool]":
    """Train a model whose loss is known beforehand for one step; where its result is."""
    model, metadata, image, output = known_model(keras, sums)
    target = output - ERROR
    first = loss_of(model.train_on_batch(image, target))
    second = loss_of(model.test_on_batch(image, target))
    report.fact("loss", "%g, after one step %g; %g was expected" % (first, second, ERROR**2))
    correct = abs(first - ERROR**2) <= 0.05 * ERROR**2 and second < first

    if metadata is not None:
        weights, result = graph_devices(metadata)
    else:
        weights = device_of(model.trainable_weights[0])
        result = device_of(model(tensor(keras, image)))
    report.fact("weights on", weights)
    return result, correct


def predict(keras: "Any", sums: "Sums") -> "tuple[str, bool]":
    """Compute the output of a model, which is known beforehand."""
    model, _, image, output = known_model(keras, sums)
    expected = float(output[0, 0])
    received = float(model(image)[0, 0])
    return "cpu", abs(received - expected) <= 0.01 * abs(expected)


def known_model(keras: "Any", sums: "Sums") -> "tuple[Any, Any, Any, Any]":
    """A model, its session's metadata, an input, and the output for that input."""
    import numpy as np

    image = np.array(sums.image, dtype="float32")
    kernel = np.array(sums.kernel, dtype="float32")
    convolved = sums.expected("convolution")
    model, metadata = build(keras, image.shape[1:], kernel.shape[-1])
    dense = np.full((len(convolved), 1), DENSE_WEIGHT, dtype="float32")
    model.set_weights([kernel, dense])
    return model, metadata, image, np.array([[sum(convolved) * DENSE_WEIGHT]], dtype="float32")


def build(keras: "Any", shape: "tuple[int, ...]", channels: int) -> "tuple[Any, Any]":
    layers = keras.layers
    model = keras.models.Sequential(
        [
            layers.InputLayer(shape),
            layers.Conv2D(channels, 3, padding="same", use_bias=False),
            layers.Flatten(),
            layers.Dense(1, use_bias=False),
        ]
    )
    metadata, watch = None, {}
    if "tensorflow" in sys.modules and not sys.modules["tensorflow"].executing_eagerly():
        # In graph mode, only the metadata of the session tell where an operation ran.
        v1 = sys.modules["tensorflow"].compat.v1
        metadata = v1.RunMetadata()
        watch = {"options": v1.RunOptions(output_partition_graphs=True), "run_metadata": metadata}
    # The argument for the learning rate was renamed, but it is the first in all releases.
    model.compile(optimizer=keras.optimizers.SGD(LEARNING_RATE), loss="mse", **watch)
    return model, metadata


def tensor(keras: "Any", array: "Any") -> "Any":
    convert = getattr(getattr(keras, "ops", None), "convert_to_tensor", None)
    return array if convert is None else convert(array)


def loss_of(answer: "Any") -> float:
    """train_on_batch returns the loss, alone or followed by metrics."""
    return float(answer[0] if isinstance(answer, (list, tuple)) else answer)


def graph_devices(metadata: "Any") -> "tuple[str, str]":
    nodes = [node for part in metadata.partition_graphs for node in part.node]
    weights = [n.device for n in nodes if n.op in ("VarHandleOp", "VariableV2")]
    results = [n.device for n in nodes if n.op == "Conv2D"]
    if not weights or not results:
        raise LookupError("the session's metadata have no variable or no convolution")
    return short(weights[0]), short(results[0])


def device_of(value: "Any") -> str:
    """The device of a variable or tensor of any backend."""
    inner = getattr(value, "value", None)
    if inner is not None and not callable(inner):
        value = inner  # a Keras 3 variable
    devices = getattr(value, "devices", None)
    if devices is not None:
        return ", ".join(sorted(name_of(device) for device in devices()))
    return short(str(value.device))


def name_of(device: "Any") -> str:
    return "%s:%d" % (device.platform, device.id)


def short(name: str) -> str:
    """GPU:0, from /job:localhost/replica:0/task:0/device:GPU:0; others as they are."""
    head, _, tail = name.rpartition("device:")
    return tail.upper() if head else name
