"""A step of a JAX loop: value and gradient of a batch, in parts where memory asks for it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from whygpu.errors import UsageError
from whygpu.guard import sameness
from whygpu.guard.batches import bounds, samples_in
from whygpu.guard.freeing import release
from whygpu.guard.jax_aux import AuxRules
from whygpu.guard.splitting import CannotSplit, Sizes, Splitter
from whygpu.memory.recognise import shortage_in

Arguments = tuple[Any, ...]
Result = tuple[Any, Any]
Weight = Callable[..., Any] | None


class JaxLoop:
    """One loss function, its compiled value_and_grad, and what is known of its parts."""

    def __init__(
        self,
        splitter: Splitter,
        loss_fn: Callable[..., Any],
        *,
        argnums: int | Sequence[int],
        has_aux: bool,
        batch_argnums: Sequence[int] | None,
        weight: Weight,
        check: bool,
    ) -> None:
        if has_aux and not check:
            raise UsageError(
                "has_aux=True needs check=True: what the parts' auxiliary values make up together "
                "is seen in the check"
            )
        jax: Any = sys.modules["jax"]
        self._jax = jax
        self._splitter = splitter
        self._step = jax.jit(jax.value_and_grad(loss_fn, argnums=argnums, has_aux=has_aux))
        self._add = jax.jit(_weighed_sum(jax), donate_argnums=0)
        self._scale = jax.jit(_weighed(jax), donate_argnums=0)
        self._trained = {argnums} if isinstance(argnums, int) else set(argnums)
        self._batch_argnums = None if batch_argnums is None else set(batch_argnums)
        self._weight = weight
        self._check = check
        self._aux = AuxRules(jax) if has_aux else None
        self._reduction: sameness.Reduction | None = None
        self._cut_steps = 0

    def __call__(self, *arguments: Any) -> Any:
        self._refuse_tracing(arguments)
        samples = samples_in(self._batch_leaves(arguments))

        def attempt(sizes: Sizes) -> Result:
            if len(sizes) == 1:
                return self._run(arguments)
            return self._in_parts(arguments, sizes)

        return self._splitter.run(samples, attempt)

    def _run(self, arguments: Arguments) -> Result:
        # Waiting is what makes an error show here, where the arguments are still at hand.
        result: Result = self._jax.block_until_ready(self._step(*arguments))
        return result

    def _in_parts(self, arguments: Arguments, sizes: Sizes) -> Result:
        self._settle(arguments, sizes[0])
        values: list[Any] = []
        gradient: Any = None
        shares = []
        for index, (start, stop) in enumerate(bounds(sizes)):
            part = self._part(arguments, start, stop, index)
            share = self._share(part, arguments, (stop - start) / sum(sizes))
            value, added = self._run(part)
            values.append(value)
            shares.append(share)
            gradient = (
                self._scale(added, share) if gradient is None else self._add(gradient, added, share)
            )
            self._jax.block_until_ready(gradient)
        return self._together(values, shares, sizes), gradient

    def _together(self, values: list[Any], shares: list[float], sizes: Sizes) -> Any:
        losses = [value[0] if self._aux else value for value in values]
        loss = sum(value * share for value, share in zip(losses, shares, strict=True))
        if self._aux is None:
            return loss
        return loss, self._aux.joined([value[1] for value in values], sizes)

    def _share(self, part: Arguments, whole: Arguments, of_samples: float) -> float:
        if self._reduction == "sum":
            return 1.0
        if self._weight is None:
            return of_samples
        return float(self._weight(*self._batch(part))) / float(self._weight(*self._batch(whole)))

    # How parts make up the whole

    def _settle(self, arguments: Arguments, size: int) -> None:
        """See on the first samples whether the parts' gradients make up that of the whole."""
        self._cut_steps += 1
        if not self._check:
            self._splitter.differs(sameness.UNCHECKED)
            return
        if not sameness.is_power_of_two(self._cut_steps):
            return
        try:
            found = self._reduction_on(arguments, max(1, size // 2))
        except CannotSplit:
            raise
        except Exception as error:
            if size > 1 or self._aux or shortage_in(error) is None:
                raise
            release(error)
            self._splitter.differs(sameness.NO_ROOM)
            return
        if found is not None and self._reduction not in (None, found):
            raise CannotSplit(sameness.NEITHER)
        self._reduction = found or self._reduction

    def _reduction_on(self, arguments: Arguments, half: int) -> sameness.Reduction | None:
        both = self._part(arguments, 0, 2 * half, 0)
        value, together = self._run(both)
        norm = self._norm(together)
        parts = [self._part(both, 0, half, 0), self._part(both, half, 2 * half, 1)]
        shares = [self._share_by_weight(part, both) for part in parts]
        (value_a, first), (value_b, second) = (self._run(part) for part in parts)
        if self._aux:
            self._aux.learn(value[1], [value_a[1], value_b[1]], half)
        if norm == 0.0:
            self._splitter.differs(sameness.NO_GRADIENT)
            return None
        turned = self._run(self._mapped(both, lambda leaf: leaf[::-1]))[1]
        gaps = sameness.Gaps(
            self._norm(self._gap(together, first, second, *shares)) / norm,
            self._norm(self._gap(together, first, second, 1.0, 1.0)) / norm,
            self._norm(self._gap(together, turned, turned, 1.0, 0.0)) / norm,
        )
        found = sameness.reduction_of(gaps)
        if found is None and self._is_random(both, together, norm):
            self._splitter.differs(sameness.RANDOM)
        elif found is None:
            raise CannotSplit(f"{sameness.NEITHER}. {_ABOUT_KEYS}")
        return found

    def _share_by_weight(self, part: Arguments, whole: Arguments) -> float:
        weight = self._weight
        if weight is None:
            return 0.5
        return float(weight(*self._batch(part))) / float(weight(*self._batch(whole)))

    def _is_random(self, arguments: Arguments, gradient: Any, norm: float) -> bool:
        """Whether another key gives another gradient; without a key nothing can."""
        other = self._with_keys(arguments, 1)
        if other is arguments:
            return False
        again = self._run(other)[1]
        gap = self._norm(self._gap(gradient, again, again, 1.0, 0.0))
        return gap > norm * sameness.HALF_THE_DIGITS

    def _norm(self, tree: Any) -> float:
        numpy = self._jax.numpy
        sizes = (
            numpy.abs(leaf).astype("float32") for leaf in self._jax.tree_util.tree_leaves(tree)
        )
        return math.sqrt(sum(float(numpy.linalg.norm(leaf.ravel())) ** 2 for leaf in sizes))

    def _gap(self, whole: Any, first: Any, second: Any, a: float, b: float) -> Any:
        tree_map = self._jax.tree_util.tree_map
        return tree_map(lambda w, x, y: w - (x * a + y * b), whole, first, second)

    # Arguments and their rows

    def _is_batch(self, index: int) -> bool:
        if self._batch_argnums is not None:
            return index in self._batch_argnums
        return index not in self._trained

    def _batch(self, arguments: Arguments) -> Arguments:
        return tuple(a for i, a in enumerate(arguments) if self._is_batch(i))

    def _batch_leaves(self, arguments: Arguments) -> list[tuple[str, Any]]:
        jax = self._jax
        found: list[tuple[str, Any]] = []
        for index, argument in enumerate(arguments):
            if self._is_batch(index):
                for path, leaf in jax.tree_util.tree_leaves_with_path(argument):
                    place = f"argument {index}{jax.tree_util.keystr(path)}"
                    if hasattr(leaf, "shape") and not self._is_key(leaf):
                        found.append((place, leaf))
        return found

    def _mapped(self, arguments: Arguments, change: Callable[[Any], Any]) -> Arguments:
        def changed(leaf: Any) -> Any:
            rows = hasattr(leaf, "shape") and len(leaf.shape) and not self._is_key(leaf)
            return change(leaf) if rows else leaf

        tree_map = self._jax.tree_util.tree_map
        return tuple(
            tree_map(changed, argument) if self._is_batch(index) else argument
            for index, argument in enumerate(arguments)
        )

    def _part(self, arguments: Arguments, start: int, stop: int, index: int) -> Arguments:
        rows = self._mapped(arguments, lambda leaf: self._rows(leaf, start, stop))
        return self._with_keys(rows, index) if index else rows

    def _rows(self, leaf: Any, start: int, stop: int) -> Any:
        if not isinstance(leaf, self._jax.Array):
            return leaf[start:stop]
        # Compiled once for each size, where leaf[start:stop] is once for each start as well.
        return self._jax.lax.dynamic_slice_in_dim(leaf, start, stop - start)

    def _with_keys(self, arguments: Arguments, index: int) -> Arguments:
        """Other random numbers for each part, as the rows of a whole batch have."""
        met = []

        def folded(leaf: Any) -> Any:
            if not self._is_key(leaf) or leaf.shape:
                return leaf
            met.append(leaf)
            return self._jax.random.fold_in(leaf, index)

        tree_map = self._jax.tree_util.tree_map
        changed = tuple(
            argument if number in self._trained else tree_map(folded, argument)
            for number, argument in enumerate(arguments)
        )
        return changed if met else arguments

    def _is_key(self, leaf: Any) -> bool:
        dtypes = self._jax.dtypes
        return hasattr(leaf, "dtype") and bool(dtypes.issubdtype(leaf.dtype, dtypes.prng_key))

    def _refuse_tracing(self, arguments: Arguments) -> None:
        tracer = self._jax.core.Tracer
        if any(isinstance(leaf, tracer) for leaf in self._jax.tree_util.tree_leaves(arguments)):
            raise UsageError(
                "the guarded value_and_grad was called inside jax.jit or another transformation, "
                "where memory cannot run out yet. Call it outside: it compiles the loss itself"
            )


_ABOUT_KEYS = (
    "Where random numbers are the reason, pass a key made by jax.random.key() as an argument, or "
    "check=False"
)


def _weighed(jax: Any) -> Callable[[Any, Any], Any]:
    return lambda tree, share: jax.tree_util.tree_map(lambda x: (x * share).astype(x.dtype), tree)


def _weighed_sum(jax: Any) -> Callable[[Any, Any, Any], Any]:
    def add(total: Any, tree: Any, share: Any) -> Any:
        return jax.tree_util.tree_map(lambda t, x: (t + x * share).astype(t.dtype), total, tree)

    return add
