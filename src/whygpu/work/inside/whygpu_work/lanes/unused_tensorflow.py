"""Keeps Keras from importing a TensorFlow that the work does not use.

With any backend, Keras 3 seeds TensorFlow and looks for its types in every configuration. That
imports TensorFlow if it is installed, which takes seconds in each process of a lane.
"""

import contextlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator


@contextlib.contextmanager
def left_alone() -> "Iterator[None]":
    """In this context, Keras treats a TensorFlow that is not imported as not installed."""
    lazy: "Any" = getattr(sys.modules.get("keras.src.utils.module_utils"), "tensorflow", None)
    if "tensorflow" in sys.modules or getattr(lazy, "_available", False) is not None:
        # TensorFlow is imported, or this Keras checks for it in another way.
        yield
        return
    lazy._available = False
    try:
        yield
    finally:
        lazy._available = None
