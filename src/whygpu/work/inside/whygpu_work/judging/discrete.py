"""Choices made from numbers: positions of the largest values, and values above a threshold.

A position that differs between two lanes counts by itself only if the numbers that it was computed
from were not recorded: if they were, they are judged instead.
"""

import numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable


def source_of(
    choices: "tuple[numpy.ndarray, numpy.ndarray]",
    candidates: "Iterable[tuple[str, numpy.ndarray, numpy.ndarray]]",
) -> "tuple[str, float | None]":
    """The name of the array that the choices of two lanes were made from, and the margin there.

    `choices` is a pair of different arrays of integers or truth values, of one shape; `candidates`
    are (name, a, b) of float64 arrays. Returns ("", None) if none of them explains both choices.
    """
    for name, a, b in candidates:
        for taken, margin in _WAYS:
            if taken(choices[0], a) and taken(choices[1], b):
                return name, float(margin(choices, a, b))
    return "", None


def _is_largest(choice: "numpy.ndarray", values: "numpy.ndarray") -> bool:
    """argmax along the last axis."""
    return choice.dtype.kind in "iu" and numpy.array_equal(values.argmax(axis=-1), choice)


def _largest_margin(
    choices: "tuple[numpy.ndarray, numpy.ndarray]", a: "numpy.ndarray", b: "numpy.ndarray"
) -> "Any":
    places = [numpy.expand_dims(choice, -1) for choice in choices]
    gaps = [
        numpy.abs(
            numpy.take_along_axis(values, places[0], -1)
            - numpy.take_along_axis(values, places[1], -1)
        )
        for values in (a, b)
    ]
    return max(gap.max() for gap in gaps)


def _is_top(choice: "numpy.ndarray", values: "numpy.ndarray") -> bool:
    """The positions of the k largest along the last axis, largest first."""
    return (
        choice.dtype.kind in "iu"
        and choice.ndim == values.ndim > 0
        and choice.shape[:-1] == values.shape[:-1]
        and bool(choice.min() >= 0 and choice.max() < values.shape[-1])
        and numpy.array_equal(
            numpy.take_along_axis(values, choice, -1),
            numpy.sort(values, axis=-1)[..., ::-1][..., : choice.shape[-1]],
        )
    )


def _top_margin(
    choices: "tuple[numpy.ndarray, numpy.ndarray]", a: "numpy.ndarray", b: "numpy.ndarray"
) -> "Any":
    return max(
        numpy.abs(
            numpy.take_along_axis(values, choices[0], -1)
            - numpy.take_along_axis(values, choices[1], -1)
        ).max()
        for values in (a, b)
    )


def _is_above(choice: "numpy.ndarray", values: "numpy.ndarray") -> bool:
    """True where a value is above some threshold, which then lies between the two kinds."""
    return (
        choice.dtype.kind == "b"
        and choice.shape == values.shape
        and bool(choice.any() and not choice.all())
        and bool(values[choice].min() >= values[~choice].max())
    )


def _threshold_margin(
    choices: "tuple[numpy.ndarray, numpy.ndarray]", a: "numpy.ndarray", b: "numpy.ndarray"
) -> "Any":
    odd = choices[0] != choices[1]
    return numpy.abs(a[odd] - b[odd]).max()


_WAYS = (
    (_is_largest, _largest_margin),
    (_is_top, _top_margin),
    (_is_above, _threshold_margin),
)
