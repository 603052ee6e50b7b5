"""slim.summaries: summaries of tensors, under names that begin with a prefix."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["add_histogram_summaries", "add_histogram_summary", "add_image_summaries"]
__all__ += ["add_image_summary", "add_scalar_summaries", "add_scalar_summary"]
__all__ += ["add_zero_fraction_summaries", "add_zero_fraction_summary"]


def add_histogram_summary(tensor: "Any", name: "Any" = None, prefix: "Any" = None) -> "Any":
    return tf.summary.histogram(_named(tensor, name, prefix), tensor)


def add_image_summary(
    tensor: "Any", name: "Any" = None, prefix: "Any" = None, print_summary: bool = False
) -> "Any":
    title = _named(tensor, name, prefix)
    return _printed(tf.summary.image(name=title, tensor=tensor), tensor, title, print_summary)


def add_scalar_summary(
    tensor: "Any", name: "Any" = None, prefix: "Any" = None, print_summary: bool = False
) -> "Any":
    """Outside of the usual collection: the caller writes it when the evaluation is over."""
    title = _named(tensor, name, prefix)
    summary = tf.summary.scalar(name=title, tensor=tensor, collections=[])
    summary = _printed(summary, tensor, title, print_summary)
    tf.add_to_collection(tf.GraphKeys.SUMMARIES, summary)
    return summary


def add_zero_fraction_summary(
    tensor: "Any", name: "Any" = None, prefix: "Any" = None, print_summary: bool = False
) -> "Any":
    title = _named(tensor, name, prefix, "Fraction_of_Zero_Values")
    return add_scalar_summary(tf.nn.zero_fraction(tensor), title, print_summary=print_summary)


def add_histogram_summaries(tensors: "Any", prefix: "Any" = None) -> "list[Any]":
    return [add_histogram_summary(tensor, prefix=prefix) for tensor in tensors]


def add_image_summaries(tensors: "Any", prefix: "Any" = None) -> "list[Any]":
    return [add_image_summary(tensor, prefix=prefix) for tensor in tensors]


def add_scalar_summaries(
    tensors: "Any", prefix: "Any" = None, print_summary: bool = False
) -> "list[Any]":
    return [
        add_scalar_summary(tensor, prefix=prefix, print_summary=print_summary) for tensor in tensors
    ]


def add_zero_fraction_summaries(tensors: "Any", prefix: "Any" = None) -> "list[Any]":
    return [add_zero_fraction_summary(tensor, prefix=prefix) for tensor in tensors]


def _named(tensor: "Any", name: "Any", prefix: "Any", postfix: "Any" = None) -> "Any":
    parts = [prefix, name or tensor.op.name, postfix]
    return "/".join(part for part in parts if part)


def _printed(summary: "Any", tensor: "Any", title: "Any", wanted: bool) -> "Any":
    return tf.Print(summary, [tensor], title) if wanted else summary
