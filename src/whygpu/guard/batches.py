"""Batches as programs hold them: arrays in lists, tuples and dicts, cut along their first axis."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any

from whygpu.errors import UsageError

_KEPT_WHOLE = (type(None), str, bytes, bool, int, float, complex)


def is_array(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def leaves(tree: Any, place: str = "batch") -> Iterator[tuple[str, Any]]:
    """The arrays of a batch, each with its place, such as batch[0]; unknown types are refused."""
    if is_array(tree):
        yield place, tree
    elif isinstance(tree, MutableMapping):
        for key, value in tree.items():
            yield from leaves(value, f"{place}[{key!r}]")
    elif isinstance(tree, (list, tuple)):
        for index, value in enumerate(tree):
            yield from leaves(value, f"{place}[{index}]")
    elif not isinstance(tree, _KEPT_WHOLE):
        raise UsageError(
            f"{place} is a {type(tree).__name__}, which whygpu cannot split: expected tensors in "
            "lists, tuples or dicts, with one sample per row"
        )


def mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The same batch with every array that has an axis changed."""
    if is_array(tree):
        return change(tree) if len(tree.shape) else tree
    if isinstance(tree, MutableMapping):
        # A copy keeps the other attributes of a subclass, such as a tokenizer's encodings.
        result = copy.copy(tree)
        for key, value in tree.items():
            result[key] = mapped(value, change)
        return result
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(mapped(value, change) for value in tree))
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(value, change) for value in tree)
    return tree


def samples_in(arrays: Iterable[tuple[str, Any]]) -> int:
    """How many samples these arrays hold; it must be the same number for all."""
    counts = {place: int(array.shape[0]) for place, array in arrays if len(array.shape)}
    if not counts:
        raise UsageError("the batch has no array with a first axis to split along")
    if len(set(counts.values())) > 1:
        sizes = ", ".join(f"{place} has {count}" for place, count in counts.items())
        raise UsageError(
            f"all arrays of a batch need one row per sample, but their lengths differ: {sizes}. "
            "Arrays that must not be split belong in the function, not in the batch"
        )
    return next(iter(counts.values()))


def bounds(sizes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Where each part begins and ends."""
    start = 0
    for size in sizes:
        yield start, start + size
        start += size
