"""tf.contrib.slim.utils: names for a layer's outputs, which networks collect as end points."""

import collections

import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1 import normalization

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "append_tensor_alias",
    "channel_dimension",
    "collect_named_outputs",
    "constant_value",
    "convert_collection_to_dict",
    "gather_tensors_aliases",
    "get_tensor_aliases",
    "get_variable_collections",
    "last_dimension",
    "n_positive_integers",
    "smart_cond",
    "static_cond",
    "two_element_tuple",
]


def append_tensor_alias(tensor: "Any", alias: "Any") -> "Any":
    tensor.aliases = [*getattr(tensor, "aliases", ()), alias.rstrip("/")]
    return tensor


def get_tensor_aliases(tensor: "Any") -> "Any":
    """The names that layers gave to it, or else the one that the graph has for it."""
    if getattr(tensor, "aliases", None):
        return tensor.aliases
    name = tensor.op.name
    return [name if tensor.op.outputs[0] is tensor else tensor.name]


def gather_tensors_aliases(tensors: "Any") -> "list[Any]":
    return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def collect_named_outputs(collections: "Any", alias: "Any", outputs: "Any") -> "Any":
    """Put outputs into collections, under a name."""
    if collections:
        append_tensor_alias(outputs, alias)
        for name in [collections] if isinstance(collections, str) else collections:
            tf.add_to_collection(name, outputs)
    return outputs


def convert_collection_to_dict(collection: "Any", clear_collection: bool = False) -> "Any":
    """The outputs of a collection by their names."""
    found = collections.OrderedDict(
        (alias, tensor)
        for tensor in tf.get_collection(collection)
        for alias in get_tensor_aliases(tensor)
    )
    if clear_collection:
        tf.get_default_graph().clear_collection(collection)
    return found


def two_element_tuple(int_or_tuple: "Any") -> "Any":
    return n_positive_integers(2, int_or_tuple)


def n_positive_integers(n: "Any", value: "Any") -> "Any":
    values = tuple(value) if isinstance(value, (list, tuple)) else (int(value),) * n
    if len(values) != n or any(int(each) < 1 for each in values):
        raise ValueError("Must be a positive integer or a sequence of %d of them: %r" % (n, value))
    return values


def last_dimension(shape: "Any", min_rank: int = 1) -> "Any":
    return _dimension(shape, -1, min_rank)


def channel_dimension(shape: "Any", data_format: str, min_rank: int = 1) -> "Any":
    return _dimension(shape, 1 if data_format == "channels_first" else -1, min_rank)


def _dimension(shape: "Any", axis: int, min_rank: int) -> "Any":
    """The size along an axis; the rank must be high enough, and the size known."""
    if shape.ndims is None or shape.ndims < min_rank:
        raise ValueError("the rank of the shape %s must be at least %d" % (shape, min_rank))
    size = shape.dims[axis].value
    if size is None:
        raise ValueError("dimension %d of the shape %s must be known" % (axis, shape))
    return size


def get_variable_collections(variables_collections: "Any", name: "Any") -> "Any":
    """Those a kind of variable goes to: for all kinds one list, or one for each."""
    if isinstance(variables_collections, dict):
        return variables_collections.get(name)
    return variables_collections


def constant_value(value_or_tensor_or_var: "Any", dtype: "Any" = None) -> "Any":
    """A number as it is; the value of a tensor if it is constant, else None."""
    if value_or_tensor_or_var is None:
        raise ValueError("value_or_tensor_or_var cannot be None")
    if isinstance(value_or_tensor_or_var, tf.Variable):
        return None
    if tf.is_tensor(value_or_tensor_or_var):
        return tf.get_static_value(value_or_tensor_or_var)
    return value_or_tensor_or_var


def static_cond(pred: "Any", fn1: "Any", fn2: "Any") -> "Any":
    if not (callable(fn1) and callable(fn2)):
        raise TypeError("fn1 and fn2 must be callable.")
    return fn1() if pred else fn2()


def smart_cond(pred: "Any", fn1: "Any", fn2: "Any", name: "Any" = None) -> "Any":
    """One of the two, without a condition in the graph if the answer is constant."""
    fixed = normalization.constant(pred)
    if fixed is None:
        return tf.cond(pred, fn1, fn2, name=name)
    return static_cond(fixed, fn1, fn2)
