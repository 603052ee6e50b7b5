"""The workspace of NVIDIA's libraries (cuBLAS, cuDNN and CUB) while an XLA program runs.

XLA chooses it by trials on the GPU. The rules here describe its choices on an NVIDIA H200.
"""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable

    from .hlo_graph import Node

MIB = 1 << 20
EVEN_CHANNELS = 4
"""cuDNN's fast kernels need a multiple of this many channels; others are copied first."""

SMALL_PRODUCT = 64
"""XLA's own kernels are faster for a matrix with fewer rows or columns."""
DIMENSIONS = 4
"""Of a batch of images."""


def rule(capability: "tuple[int, int]") -> "Callable[[Node], int]":
    """A function that returns the workspace of a node, on a GPU of that compute capability."""
    for_products = (32 if tuple(capability) >= (9, 0) else 4) * MIB

    def needed(node: "Node") -> int:
        if node.operation == "dot":
            return for_products if _is_for_cublas(node) else 0
        if node.operation == "convolution":
            return _for_convolution(node)
        if node.operation == "sort":
            return _for_sorting(node)
        return 0

    return needed


def _is_for_cublas(node: "Node") -> bool:
    """Whether a matrix product is so large in each dimension that cuBLAS is faster."""
    (_, left), (_, right) = node.key
    listed = re.search(r"lhs_batch_dims=\{([0-9,]*)\}", node.attributes)
    places = [int(place) for place in listed.group(1).split(",") if place] if listed else []
    products = _product([left[place] for place in places])
    common = (_product(left) * _product(right) / float(node.elements * products or 1)) ** 0.5
    smallest = min(_product(left), _product(right)) / (products * common or 1)
    return min(common, smallest) >= SMALL_PRODUCT


def _product(sizes: "Iterable[int]") -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


def _for_convolution(node: "Node") -> int:
    """Copies of the operands that cuDNN makes in another layout."""
    labels = re.search(r"dim_labels=([^_]*)_([^-]*)->(\w*)", node.attributes)
    if labels is None:
        return 0
    seen, weights, result = labels.groups()
    (_, image), (_, kernel) = node.key
    room_for_image, room_for_kernel = (each.size for each in node.inputs)
    deep = len(seen) > DIMENSIONS
    if seen.startswith("f"):
        # The gradient of a kernel is a convolution of the images with the results' gradient.
        odd = _is_odd(image[seen.index("b")]) or _is_odd(kernel[weights.index("o")])
        copied = odd or deep or "lhs_dilate" in node.attributes
        return room_for_image + room_for_kernel if copied else 0
    odd = _is_odd(image[seen.index("f")])
    if deep:
        return 0 if odd else room_for_image
    last = node.size if _is_odd(node.shape[1][result.index("f")]) else 0
    return last + (room_for_image if odd else 0)


def _is_odd(channels: int) -> bool:
    return channels % EVEN_CHANNELS != 0


def _for_sorting(node: "Node") -> int:
    """CUB sorts floating-point numbers by integer keys, and needs memory for both."""
    keys = node.inputs[0]
    return 4 * keys.size if keys.shape[0] in ("f16", "bf16", "f32", "f64") else keys.size
