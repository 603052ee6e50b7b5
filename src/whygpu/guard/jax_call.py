"""The arguments of a loss function in JAX: which are the batch, and their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from whygpu.errors import UsageError
from whygpu.guard.batches import samples_in


class Layout(NamedTuple):
    """What each argument is, by its place."""

    trained: frozenset[int]
    batch: frozenset[int] | None
    """None: all arguments that are not trained."""

    def is_batch(self, place: int) -> bool:
        return place not in self.trained if self.batch is None else place in self.batch


class Call(NamedTuple):
    """One call of a loss function, for a batch or a part of one."""

    jax: Any
    layout: Layout
    arguments: tuple[Any, ...]

    @property
    def batch(self) -> tuple[Any, ...]:
        return tuple(a for place, a in enumerate(self.arguments) if self.layout.is_batch(place))

    def samples(self) -> int:
        found = []
        util = self.jax.tree_util
        for place, argument in enumerate(self.arguments):
            if self.layout.is_batch(place):
                for path, leaf in util.tree_leaves_with_path(argument):
                    if self._has_rows(leaf):
                        found.append((f"argument {place}{util.keystr(path)}", leaf))
        return samples_in(found)

    def part(self, start: int, stop: int, index: int) -> Call:
        """These rows. Each part but the first gets random keys of its own."""
        cut = self._mapped(lambda leaf: self._rows(leaf, start, stop))
        return cut.with_keys(index) if index else cut

    def reversed(self) -> Call:
        return self._mapped(lambda leaf: leaf[::-1])

    def with_keys(self, index: int) -> Call:
        """The same with other random numbers."""

        def folded(leaf: Any) -> Any:
            one = self._is_key(leaf) and not leaf.shape
            return self.jax.random.fold_in(leaf, index) if one else leaf

        return self._replace(
            arguments=tuple(
                argument if place in self.layout.trained else self._tree_map(folded, argument)
                for place, argument in enumerate(self.arguments)
            )
        )

    def has_keys(self) -> bool:
        others = [a for place, a in enumerate(self.arguments) if place not in self.layout.trained]
        return any(self._is_key(leaf) for leaf in self.jax.tree_util.tree_leaves(others))

    def refuse_tracing(self) -> None:
        leaves = self.jax.tree_util.tree_leaves(self.arguments)
        if any(isinstance(leaf, self.jax.core.Tracer) for leaf in leaves):
            raise UsageError(
                "the guarded value_and_grad was called inside jax.jit or another transformation. "
                "Memory cannot run out there yet. Call it outside: it compiles the loss itself"
            )

    def _mapped(self, change: Callable[[Any], Any]) -> Call:
        def changed(leaf: Any) -> Any:
            return change(leaf) if self._has_rows(leaf) else leaf

        return self._replace(
            arguments=tuple(
                self._tree_map(changed, argument) if self.layout.is_batch(place) else argument
                for place, argument in enumerate(self.arguments)
            )
        )

    def _rows(self, leaf: Any, start: int, stop: int) -> Any:
        if not isinstance(leaf, self.jax.Array):
            return leaf[start:stop]
        # Compiled once for each size, where leaf[start:stop] is once for each start as well.
        return self.jax.lax.dynamic_slice_in_dim(leaf, start, stop - start)

    def _has_rows(self, leaf: Any) -> bool:
        return len(getattr(leaf, "shape", ())) > 0 and not self._is_key(leaf)

    def _is_key(self, leaf: Any) -> bool:
        dtypes = self.jax.dtypes
        return hasattr(leaf, "dtype") and bool(dtypes.issubdtype(leaf.dtype, dtypes.prng_key))

    def _tree_map(self, change: Callable[[Any], Any], tree: Any) -> Any:
        return self.jax.tree_util.tree_map(change, tree)
