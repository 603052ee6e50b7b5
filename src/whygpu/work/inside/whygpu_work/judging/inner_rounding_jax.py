"""Changes the result of each operation of JAX; see inner_rounding.py.

Compiled functions are run operation by operation for that, those of jax.numpy as well.
"""

import contextlib

import numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

EXACT = frozenset(
    [
        "abs",
        "argsort",
        "broadcast_in_dim",
        "ceil",
        "clamp",
        "concatenate",
        "convert_element_type",
        "copy",
        "copy_p",
        "cummax",
        "cummin",
        "device_put",
        "dynamic_slice",
        "dynamic_update_slice",
        "expand_dims",
        "floor",
        "full_like",
        "gather",
        "iota",
        "max",
        "min",
        "neg",
        "pad",
        "reduce_max",
        "reduce_min",
        "reduce_precision",
        "reduce_window_max",
        "reshape",
        "rev",
        "round",
        "scatter",
        "select_n",
        "sign",
        "slice",
        "sort",
        "split",
        "squeeze",
        "stage",
        "stop_gradient",
        "tile",
        "top_k",
        "transpose",
    ]
)
"""Operations that choose or copy numbers: their results are not rounded."""

SUMS = frozenset(
    [
        "add_any",
        "conv_general_dilated",
        "cumlogsumexp",
        "cumprod",
        "cumsum",
        "dot_general",
        "ragged_dot_general",
        "reduce_prod",
        "reduce_sum",
        "reduce_window_sum",
        "scatter-add",
        "scatter_add",
        "while",
    ]
)
"""Operations whose rounding is that of a sum, and loops, which contain some."""


def context(move: "Callable[[Any, bool], Any]") -> "Any":
    """None if this JAX does not evaluate operations where others do."""
    try:
        import jax
        from jax._src.core import EvalTrace

        evaluate = EvalTrace.process_primitive
    except (ImportError, AttributeError):
        return None
    return _changed(jax, EvalTrace, evaluate, move)


@contextlib.contextmanager
def _changed(
    jax: "Any", trace: "Any", evaluate: "Any", move: "Callable[[Any, bool], Any]"
) -> "Iterator[None]":
    inside: "list[Any]" = []

    def one(result: "Any", is_sum: bool) -> "Any":
        if not isinstance(result, jax.Array) or isinstance(result, jax.core.Tracer):
            return result
        if not jax.numpy.issubdtype(result.dtype, numpy.floating):
            return result
        array = numpy.asarray(result).astype(numpy.float64)
        return jax.device_put(move(array, is_sum).astype(result.dtype), result.sharding)

    def process_primitive(self: "Any", primitive: "Any", *rest: "Any") -> "Any":
        if inside:
            return evaluate(self, primitive, *rest)
        result = evaluate(self, primitive, *rest)
        if primitive.name in EXACT:
            return result
        # What puts the changed numbers on the device is no operation of the layer.
        inside.append(primitive)
        try:
            is_sum = primitive.name in SUMS
            if isinstance(result, (list, tuple)):
                return type(result)([one(each, is_sum) for each in result])
            return one(result, is_sum)
        finally:
            inside.pop()

    trace.process_primitive = process_primitive
    try:
        with jax.disable_jit():
            yield
    finally:
        trace.process_primitive = evaluate
