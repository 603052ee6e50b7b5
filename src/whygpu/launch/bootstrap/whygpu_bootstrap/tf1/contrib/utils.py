"""tf.contrib.slim.utils: names for a layer's outputs, which networks collect as end points."""

import collections

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "append_tensor_alias",
    "collect_named_outputs",
    "convert_collection_to_dict",
    "gather_tensors_aliases",
    "get_tensor_aliases",
    "n_positive_integers",
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
