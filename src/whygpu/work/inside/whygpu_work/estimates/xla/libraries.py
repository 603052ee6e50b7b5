"""Replaces the calls of cuDNN while a program is traced on a machine without a GPU.

Keras and JAX take another path if they see no GPU: an LSTM becomes a loop, attention in 16 bits
stores its scores. The replacements have the arguments, results and scratch memory of cuDNN's calls;
they can be traced, but not run.
"""

import contextlib
import functools
import importlib
import math
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

FORWARD = "cudnn_rnn_ffi"
BACKWARD = "cudnn_rnn_bwd_ffi"
"""Calls that JAX's CUDA plugin knows, because the compiler accepts no others."""
GATES = 4
OLDEST_FLASH = (8, 0)


@contextlib.contextmanager
def as_on_gpu(capability: "tuple[int, int]") -> "Iterator[None]":
    """In this context, tracing takes the path for a GPU of that compute capability."""
    import jax

    replaced: "list[tuple[Any, str, Any]]" = [(jax, "default_backend", lambda: "gpu")]
    if hasattr(jax, "ffi"):
        replaced += [(_module("jax.experimental.rnn"), "lstm", _lstm())]
        replaced += [(jax.nn, "dot_product_attention", _attention())]
        if "keras" in sys.modules:
            usable = functools.partial(_flash_is_possible, capability)
            replaced += [(_module("keras.src.backend.jax.nn"), "_can_use_flash_attention", usable)]
    before = [
        (place, name, getattr(place, name)) for place, name, _ in replaced if hasattr(place, name)
    ]
    try:
        for place, name, stand_in in replaced:
            if hasattr(place, name):
                setattr(place, name, stand_in)
        yield
    finally:
        for place, name, original in before:
            setattr(place, name, original)


def _module(name: str) -> "Any":
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def lstm_sizes(
    inputs: int, hidden: int, batch: int, steps: int, directions: int
) -> "tuple[int, int]":
    """(workspace, reserve) in bytes that cuDNN 9 asks for one layer of an LSTM in 32 bits.

    It is exact for the 864 combinations of sizes that were measured on an NVIDIA H200.
    """
    one = directions == 1
    few_inputs = steps * ((5 if one else 14) * hidden + inputs) + (10 if one else 24) * hidden
    many_inputs = steps * (3 if one else 6) * (hidden + inputs) + (11 if one else 26) * hidden
    weights = 4 * GATES * hidden * (inputs + hidden)
    workspace = directions * ((8 << 20) + weights) + 4 * batch * (max(few_inputs, many_inputs) + 2)
    return workspace + 280, 4 * directions * (GATES + 1) * hidden * batch * steps + 256


def _lstm() -> "Callable[..., Any]":
    import jax
    import jax.numpy as jnp

    def spaces(x: "Any", inputs: int, hidden: int, directions: int) -> "list[Any]":
        # JAX takes the sizes in bytes as counts of float32: it allocates four times as much.
        sizes = lstm_sizes(inputs, hidden, x.shape[0], x.shape[1], directions)
        return [jax.ShapeDtypeStruct((size,), jnp.float32) for size in sizes]

    # The names are those of jax.experimental.rnn.lstm: Keras passes keyword arguments.
    @functools.partial(jax.custom_vjp, nondiff_argnums=(5, 6, 7, 8, 9, 10))
    def lstm(
        x: "Any",
        h_0: "Any",
        c_0: "Any",
        weights: "Any",
        seq_lengths: "Any",
        input_size: "Any",
        hidden_size: "Any",
        num_layers: "Any",
        dropout: float,
        bidirectional: bool,
        precision: "Any" = None,
    ) -> "Any":
        sizes = (input_size, hidden_size, num_layers, dropout, bidirectional, precision)
        return forward(x, h_0, c_0, weights, seq_lengths, *sizes)[0]

    def forward(
        x: "Any",
        h_0: "Any",
        c_0: "Any",
        weights: "Any",
        lengths: "Any",
        inputs: int,
        hidden: int,
        layers: int,
        dropout: float,
        two: bool,
        precision: "Any",
    ) -> "tuple[tuple[Any, Any, Any], tuple[Any, Any, Any, Any, Any, Any, Any]]":
        directions = 2 if two else 1
        y = jax.ShapeDtypeStruct(x.shape[:2] + (directions * hidden,), x.dtype)
        results = [y, _like(h_0), _like(c_0)] + spaces(x, inputs, hidden, directions)
        y, h_n, c_n, _, reserve = jax.ffi.ffi_call(FORWARD, results)(x, h_0, c_0, weights, lengths)
        return (y, h_n, c_n), (x, h_0, c_0, weights, lengths, y, reserve)

    def backward(
        inputs: int,
        hidden: int,
        layers: int,
        dropout: float,
        two: bool,
        precision: "Any",
        kept: "Any",
        gradients: "Any",
    ) -> "Any":
        x, h_0, c_0, weights, lengths, y, reserve = kept
        results = [_like(each) for each in (x, h_0, c_0, weights)]
        results += spaces(x, inputs, hidden, 2 if two else 1)[:1]
        read = gradients + (x, h_0, c_0, weights, y, reserve, jnp.zeros_like(weights), lengths)
        found = jax.ffi.ffi_call(BACKWARD, results)(*read)
        return tuple(found[:4]) + (None,)

    lstm.defvjp(forward, backward)
    return lstm


def _like(array: "Any") -> "Any":
    import jax

    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def _flash_is_possible(
    capability: "tuple[int, int]",
    query: "Any",
    key: "Any",
    value: "Any",
    bias: "Any" = None,
    raise_error: bool = False,
) -> bool:
    """Whether cuDNN's attention supports these; Keras asks this function."""
    depths = {query.shape[-1], value.shape[-1]}
    largest = 256 if capability >= (9, 0) else 128
    return (
        capability >= OLDEST_FLASH
        and str(query.dtype) in ("float16", "bfloat16")
        and all(depth % 8 == 0 and depth <= largest for depth in depths)
    )


def _attention() -> "Callable[..., Any]":
    import jax

    original = jax.nn.dot_product_attention
    fused = _fused_attention()

    @functools.wraps(original)
    def dot_product_attention(
        query: "Any",
        key: "Any",
        value: "Any",
        bias: "Any" = None,
        mask: "Any" = None,
        **options: "Any",
    ) -> "Any":
        if options.get("implementation") != "cudnn" or query.ndim != 4:
            return original(query, key, value, bias, mask, **options)
        if mask is not None:
            # cuDNN gets a mask as a bias.
            masked = jax.numpy.where(mask, 0, -math.inf).astype(query.dtype)
            bias = masked if bias is None else bias + masked
        return fused(query, key, value, bias)

    return dot_product_attention


def _fused_attention() -> "Callable[..., Any]":
    import jax
    import jax.numpy as jnp

    @jax.custom_vjp
    def attention(query: "Any", key: "Any", value: "Any", bias: "Any") -> "Any":
        return forward(query, key, value, bias)[0]

    def forward(
        query: "Any", key: "Any", value: "Any", bias: "Any"
    ) -> "tuple[Any, tuple[Any, Any, Any]]":
        batch, steps, heads, _ = query.shape
        output = jax.ShapeDtypeStruct(query.shape[:3] + value.shape[3:], query.dtype)
        sums = jax.ShapeDtypeStruct((batch, heads, steps), jnp.float32)
        read = (query, key, value) if bias is None else (query, key, value, bias)
        output, sums = jax.ffi.ffi_call(FORWARD, [output, sums])(*read)
        return output, (read, output, sums)

    def backward(kept: "Any", gradient: "Any") -> "Any":
        read, output, sums = kept
        summed = jax.ShapeDtypeStruct(read[0].shape, jnp.float32)
        results = [_like(each) for each in read[:3]] + [summed, _like(sums)]
        found = jax.ffi.ffi_call(BACKWARD, results)(gradient, output, sums, *read)
        bias = jnp.zeros_like(read[3]) if len(read) > 3 else None
        return tuple(found[:3]) + (bias,)

    attention.defvjp(forward, backward)
    return attention
