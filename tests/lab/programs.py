"""Short programs of users, which scenarios run to see a fault for themselves."""

from __future__ import annotations

LIST_GPUS = """
import tensorflow as tf
print("GPUs:", len(tf.config.list_physical_devices("GPU")))
"""
"""TensorFlow 2.x: how many GPUs it has."""

LIST_GPUS_V1 = """
from tensorflow.python.client import device_lib
kinds = [device.device_type for device in device_lib.list_local_devices()]
print("GPUs:", kinds.count("GPU"))
"""

TF_KERAS = """
import tensorflow as tf
print("Keras:", tf.keras.layers.Dense(1)(tf.ones((1, 1))).shape)
"""

KERAS = """
import keras
print("backend:", keras.backend.backend())
"""

JAX_DEVICES = """
import jax
print("devices:", [device.platform for device in jax.devices()])
"""

TORCH_CUDA = """
import torch
print("CUDA:", torch.cuda.is_available(), torch.version.cuda)
"""

PROBED = frozenset(
    (
        "import jax",
        "import keras",
        "import tensorflow",
        JAX_DEVICES,
        KERAS,
        LIST_GPUS,
        LIST_GPUS_V1,
        TORCH_CUDA,
    )
)
"""Programs that do nothing but what the probes of `whygpu check` do as well."""

NAMING_LIBRARIES = """
import os
os.environ["TF_CPP_VMODULE"] = "dso_loader=1"
"""
"""Makes TensorFlow name the libraries that it opens."""
