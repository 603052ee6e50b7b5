"""How many products a layer sums into one number: its rounding grows with that."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, Sequence

_MOVES = {
    # Layers that only move numbers, or work on each of them separately.
    "Add", "Average", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "BatchNormalization",
    "Concatenate", "Cropping1D", "Cropping2D", "Cropping3D", "Dropout", "Embedding",
    "Flatten", "Identity", "LeakyReLU", "MaxPool1d", "MaxPool2d", "MaxPool3d",
    "MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "Maximum", "Minimum", "Multiply",
    "Normalization", "PReLU", "Permute", "ReLU", "RepeatVector", "Rescaling", "Reshape",
    "Subtract", "ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D",
}  # fmt: skip
_SUMS_ALONG_AN_AXIS = ("Attention", "Norm", "Softmax")
_FUNCTION = 16
"""exp, tanh and similar functions are off by about four units, like a sum of that many."""
_WINOGRAD = 4
"""Winograd convolutions with tiles of 4 by 4 are about as inexact as sums that are that many times
longer. They are used for kernels of more than one element."""


def reduction(
    names: "Sequence[str]",
    activation: str,
    weights: "Sequence[tuple[int, ...]]",
    inputs: "Sequence[tuple[int, ...]]",
    outputs: "Sequence[tuple[int, ...]]",
) -> int:
    """An upper estimate, from what every framework can report about a layer.

    `names` are those of its class and the classes below it; `weights` are shapes with the axis of
    the outputs last; `inputs` and `outputs` are shapes with the batch first.
    """
    sizes = [1]
    if activation == "softmax":
        sizes += [shape[-1] for shape in outputs if shape]
    if not _MOVES.isdisjoint(names):
        return max(sizes)
    matrices = [shape for shape in weights if len(shape) > 1]
    if _has(names, "Depthwise"):
        sizes += [_product(shape[:-2]) for shape in matrices]
    else:
        sizes += [_winograd(names, shape) * _product(shape[:-1]) for shape in matrices]
    if _has(names, "Resiz", "UpSampl", "Upsample"):
        # Positions between pixels are as inexact as one unit of the whole length.
        sizes += [length**2 for shape in outputs for length in shape[1:]]
    if not matrices or _has(names, *_SUMS_ALONG_AN_AXIS):
        sizes.append(_FUNCTION)
        sizes += [length for shape in inputs for length in shape[1:]]
    taken = max([_product(shape) for shape in inputs] or [1])
    given = max([_product(shape) for shape in outputs] or [1])
    sizes.append(taken // max(1, given))
    return max(sizes)


def makes_products(names: "Sequence[str]", weights: "Iterable[tuple[int, ...]]") -> bool:
    """Whether numbers are multiplied and summed, as tensor cores do."""
    if not _MOVES.isdisjoint(names):
        return False
    matrices = any(len(shape) > 1 for shape in weights)
    return matrices or _has(names, "Attention", "Dot", "Einsum", "Matmul", "Conv")


def _winograd(names: "Sequence[str]", shape: "tuple[int, ...]") -> int:
    return _WINOGRAD if _has(names, "Conv") and _product(shape[:-2]) > 1 else 1


def _has(names: "Sequence[str]", *words: str) -> bool:
    return any(word in name for name in names for word in words)


def _product(shape: "tuple[int, ...]") -> int:
    result = 1
    for length in shape:
        result *= length
    return result
