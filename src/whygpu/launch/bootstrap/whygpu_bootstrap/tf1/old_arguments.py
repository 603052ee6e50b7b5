"""Functions whose arguments had another order, or other names, before TensorFlow 1.0.

What was meant is certain: later releases refuse such a call.
"""

import functools

import numpy
import tensorflow.compat.v1 as tf

from whygpu_bootstrap import process_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["concat", "split"]


@functools.wraps(tf.concat)
def concat(*args: "Any", **kwargs: "Any") -> "Any":
    kwargs = _renamed(kwargs, concat_dim="axis")
    if len(args) > 1 and _is_number(args[0]) and not _is_number(args[1]):
        _note("concat(axis, values)", "concat(values, axis)")
        args = (args[1], args[0]) + args[2:]
    return tf.concat(*args, **kwargs)


@functools.wraps(tf.split)
def split(*args: "Any", **kwargs: "Any") -> "Any":
    kwargs = _renamed(kwargs, split_dim="axis", num_split="num_or_size_splits")
    if len(args) > 1 and _is_number(args[0]) and (len(args) < 3 or not _is_number(args[2])):
        _note("split(axis, number, value)", "split(value, number, axis)")
        names = ("axis", "num_or_size_splits", "value")
        kwargs = dict(zip(names, args), **kwargs)
        args = ()
    return tf.split(*args, **kwargs)


def _renamed(kwargs: "dict[str, Any]", **names: str) -> "dict[str, Any]":
    for old, new in names.items():
        if old in kwargs:
            _note(old + "=", new + "=")
            kwargs = {names.get(name, name): value for name, value in kwargs.items()}
    return kwargs


def _is_number(value: "Any") -> bool:
    return isinstance(value, (int, numpy.integer))


def _note(old: str, new: str) -> None:
    process_record.note("--tf1: arguments of before release 1.0: %s -> %s" % (old, new))
