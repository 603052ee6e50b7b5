"""Repairs the copy of Keras 2 inside TensorFlow 2, from which parts were removed over the years."""

import functools
import sys

from tensorflow.python import keras
from tensorflow.python.keras import backend, layers
from tensorflow.python.keras.engine import functional, training
from tensorflow.python.keras.utils import generic_utils

from whygpu_bootstrap.tf1 import keras_layers, keras_wrappers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def mend(version: "Any") -> None:
    """Make models that are not executed eagerly save, load and plot again."""
    if not hasattr(keras, "__version__"):
        # Written into every saved model.
        keras.__version__ = version
    for name in ("save_weights", "load_weights"):
        setattr(training.Model, name, _in_session(getattr(training.Model, name)))
    _add_layers()
    lookup = functional.Functional._lookup_dependency
    if lookup.__code__.co_argcount == 2:
        functional.Functional._lookup_dependency = _with_cache(lookup)


def _add_layers() -> None:
    """Saved models name layers that were removed, and plots of models import wrappers."""
    objects = generic_utils.get_custom_objects()
    for module in (keras_layers, keras_wrappers):
        objects.update((name, getattr(module, name)) for name in module.__all__)
    if not hasattr(layers, "wrappers"):
        layers.wrappers = keras_wrappers
        sys.modules[layers.__name__ + ".wrappers"] = keras_wrappers


def _in_session(method: "Any") -> "Any":
    """TensorFlow's checkpoints used to find Keras's session by themselves."""

    @functools.wraps(method)
    def wrapper(*args: "Any", **kwargs: "Any") -> "Any":
        with backend.get_session().as_default():
            return method(*args, **kwargs)

    return wrapper


def _with_cache(lookup: "Any") -> "Any":
    """Newer checkpoints pass a cache as well, which models do not need."""

    @functools.wraps(lookup)
    def wrapper(self: "Any", name: "Any", cached_dependencies: "Any" = None) -> "Any":
        return lookup(self, name)

    return wrapper
