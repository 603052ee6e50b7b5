"""Gradients of TensorFlow: tensors, the rows of an embedding, or None, added up and compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from whygpu.guard.sameness import grain_of

Gradient = list[Any]
"""One for each variable, None where it has no part in the loss."""


def added(tf: Any, total: Any, new: Any) -> Any:
    """The sum of two gradients of one variable."""
    if total is None or new is None:
        return new if total is None else total
    slices = tf.IndexedSlices
    if isinstance(total, slices) and isinstance(new, slices):
        # The rows of an embedding: the rows of all parts are those of the whole batch.
        values = tf.concat([total.values, new.values], 0)
        indices = tf.concat([total.indices, new.indices], 0)
        return slices(values, indices, total.dense_shape)
    return tf.convert_to_tensor(total) + tf.convert_to_tensor(new)


def distance(tf: Any, gradient: Gradient, parts: Sequence[tuple[float, Gradient]]) -> float:
    """The distance from a gradient to a weighted sum of others."""
    gaps = list(gradient)
    for weight, part in parts:
        gaps = [_minus(tf, gap, weight, each) for gap, each in zip(gaps, part, strict=True)]
    return norm(tf, gaps)


def _minus(tf: Any, gap: Any, weight: float, each: Any) -> Any:
    if each is None:
        return gap
    scaled = tf.convert_to_tensor(each) * tf.cast(weight, each.dtype)
    return -scaled if gap is None else tf.convert_to_tensor(gap) - scaled


def norm(tf: Any, gradient: Gradient) -> float:
    found = (tf.convert_to_tensor(each) for each in gradient if each is not None)
    sizes = (float(tf.norm(tf.cast(tf.abs(each), "float32"))) for each in found)
    return math.sqrt(sum(size**2 for size in sizes))


def grain(tf: Any, gradient: Gradient) -> float:
    """The step between the numbers in most of the gradient, if it is coarse."""
    tensors = [tf.convert_to_tensor(each) for each in gradient if each is not None]

    def on_grid(name: str) -> int:
        return sum(
            int(tf.math.count_nonzero((each != 0) & (each == _rounded(tf, each, name))))
            for each in tensors
        )

    return grain_of(on_grid, sum(int(tf.math.count_nonzero(each)) for each in tensors))


def _rounded(tf: Any, tensor: Any, name: str) -> Any:
    return tf.cast(tf.cast(tensor, name), tensor.dtype)
