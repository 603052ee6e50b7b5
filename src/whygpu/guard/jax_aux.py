"""How the auxiliary values of parts combine, found from some samples and their two halves."""

from __future__ import annotations

from typing import Any

from whygpu.guard.sameness import HALF_THE_DIGITS
from whygpu.guard.splitting import CannotSplit, Sizes


class AuxRules:
    """For each leaf: the ways in which the whole followed from its parts, the best first."""

    def __init__(self, jax: Any) -> None:
        self._jax = jax
        self._rules: list[list[str]] | None = None

    def learn(self, whole: Any, halves: list[Any], half: int) -> None:
        with_paths = self._jax.tree_util.tree_leaves_with_path(whole)
        parts = [self._jax.tree_util.tree_leaves(tree) for tree in halves]
        found = []
        for index, (path, leaf) in enumerate(with_paths):
            ways = self._ways(leaf, [part[index] for part in parts], half)
            if self._rules is not None:
                ways = [way for way in self._rules[index] if way in ways]
            if not ways:
                raise CannotSplit(
                    f"the auxiliary value {self._jax.tree_util.keystr(path) or 'of the loss'} of a "
                    "batch is not the rows, the mean or the sum of the values of its halves"
                )
            found.append(ways)
        self._rules = found

    def joined(self, parts: list[Any], sizes: Sizes) -> Any:
        numpy = self._jax.numpy
        rules = iter(self._rules or ())

        def join(*leaves: Any) -> Any:
            way = next(rules)[0]
            if way == "rows":
                return numpy.concatenate(leaves)
            if way == "same":
                return leaves[-1]
            shares = [size / sum(sizes) if way == "mean" else 1 for size in sizes]
            return sum(leaf * share for leaf, share in zip(leaves, shares, strict=True))

        return self._jax.tree_util.tree_map(join, *parts)

    def _ways(self, whole: Any, halves: list[Any], half: int) -> list[str]:
        numpy = self._jax.numpy
        first, second = (numpy.asarray(leaf) for leaf in halves)
        whole = numpy.asarray(whole)
        by_row = whole.ndim and first.ndim and len(whole) == 2 * half and len(first) == half
        if by_row and self._close(whole, numpy.concatenate([first, second])):
            return ["rows"]
        if first.shape != whole.shape:
            return []
        exact = not numpy.issubdtype(whole.dtype, numpy.inexact)
        candidates = {"same": second, "sum": first + second}
        if not exact:
            candidates = {"mean": (first + second) / 2, "sum": first + second}
        return [way for way, value in candidates.items() if self._close(whole, value)]

    def _close(self, a: Any, b: Any) -> bool:
        numpy = self._jax.numpy
        if a.shape != b.shape:
            return False
        if not numpy.issubdtype(a.dtype, numpy.inexact):
            return bool(numpy.array_equal(a, b))
        scale = float(numpy.max(numpy.abs(a), initial=0.0))
        return float(numpy.max(numpy.abs(a - b), initial=0.0)) <= HALF_THE_DIGITS * scale
