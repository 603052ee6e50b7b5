"""`_linear` and `_Linear` of rnn_cell, which programs with cells of their own import."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["_Linear", "_linear"]


class _Linear:
    """The sum of args[i] * W[i], where W is one variable, and a bias."""

    def __init__(
        self,
        args: "Any",
        output_size: int,
        build_bias: bool,
        bias_initializer: "Any" = None,
        kernel_initializer: "Any" = None,
    ) -> None:
        args = args if isinstance(args, (list, tuple)) else [args]
        sizes = [_columns(arg) for arg in args]
        shape = [sum(sizes), output_size]
        dtype = args[0].dtype
        self._kernel = tf.get_variable("kernel", shape, dtype, kernel_initializer)
        self._bias = None
        if build_bias:
            with tf.variable_scope(tf.get_variable_scope()) as scope:
                scope.set_partitioner(None)
                initializer = bias_initializer or tf.zeros_initializer(dtype=dtype)
                self._bias = tf.get_variable("bias", [output_size], dtype, initializer)

    def __call__(self, args: "Any") -> "Any":
        args = list(args) if isinstance(args, (list, tuple)) else [args]
        joined = args[0] if len(args) == 1 else tf.concat(args, 1)
        product = tf.matmul(joined, self._kernel)
        return product if self._bias is None else tf.nn.bias_add(product, self._bias)


def _columns(arg: "Any") -> int:
    shape = arg.shape
    if shape.ndims != 2 or shape.dims[1].value is None:
        raise ValueError("linear expects matrices with a known number of columns: %s" % shape)
    return int(shape.dims[1].value)


def _linear(
    args: "Any",
    output_size: int,
    bias: bool,
    bias_initializer: "Any" = None,
    kernel_initializer: "Any" = None,
    bias_start: "Any" = None,
    scope: "Any" = None,
) -> "Any":
    """With the arguments of releases 0.8 to 1.4; the fourth was a number (bias_start) at first."""
    if bias_initializer is not None and not callable(bias_initializer):
        bias_initializer, bias_start = None, bias_initializer
    if bias_start is not None:
        bias_initializer = tf.constant_initializer(bias_start)
    if isinstance(kernel_initializer, (str, tf.VariableScope)):
        kernel_initializer, scope = None, kernel_initializer
    if args is None or (isinstance(args, (list, tuple)) and not args):
        raise ValueError("`args` must be specified")
    with tf.variable_scope(scope or tf.get_variable_scope()):
        linear = _Linear(args, output_size, bias, bias_initializer, kernel_initializer)
    return linear(args)
