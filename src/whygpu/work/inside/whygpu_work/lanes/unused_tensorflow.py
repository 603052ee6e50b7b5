"""Keeps Keras from importing a TensorFlow that the work does not use.

Keras 3 seeds TensorFlow, and looks for its types in every configuration, whatever its backend is:
that imports it wherever it is installed, which takes seconds in each process of a lane.
"""

import contextlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator


@contextlib.contextmanager
def left_alone() -> "Iterator[None]":
    """While this holds, Keras takes a TensorFlow that nobody has imported for not installed."""
    lazy: "Any" = getattr(sys.modules.get("keras.src.utils.module_utils"), "tensorflow", None)
    if "tensorflow" in sys.modules or getattr(lazy, "_available", False) is not None:
        # It is there, or this Keras has another way to ask for it.
        yield
        return
    lazy._available = False
    try:
        yield
    finally:
        lazy._available = None
