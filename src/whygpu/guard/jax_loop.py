"""A step of a JAX loop: value and gradient of a batch, in parts if memory runs out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from whygpu.errors import UsageError
from whygpu.guard.batches import bounds
from whygpu.guard.jax_aux import AuxRules
from whygpu.guard.jax_call import Call, Layout
from whygpu.guard.jax_sameness import JaxLossCheck, Weight
from whygpu.guard.splitting import Sizes, Splitter

Result = tuple[Any, Any]


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
                "has_aux=True needs check=True: the check shows how to combine the parts' "
                "auxiliary values"
            )
        jax: Any = sys.modules["jax"]
        self._jax = jax
        self._splitter = splitter
        self._layout = Layout(
            frozenset([argnums] if isinstance(argnums, int) else argnums),
            None if batch_argnums is None else frozenset(batch_argnums),
        )
        self._value_and_grad = jax.jit(
            jax.value_and_grad(loss_fn, argnums=argnums, has_aux=has_aux)
        )
        self._add = jax.jit(_add(jax), donate_argnums=0)
        self._scale = jax.jit(_scale(jax), donate_argnums=0)
        self._aux = AuxRules(jax) if has_aux else None
        self._check = JaxLossCheck(
            self._run, aux=self._aux, weight=weight, differs=splitter.differs, wanted=check
        )

    def __call__(self, *arguments: Any) -> Any:
        whole = Call(self._jax, self._layout, arguments)
        whole.refuse_tracing()

        def attempt(sizes: Sizes) -> Result:
            return self._run(whole) if len(sizes) == 1 else self._in_parts(whole, sizes)

        return self._splitter.run(whole.samples(), attempt)

    def _run(self, call: Call) -> Result:
        # Waiting makes an error appear here, where the arguments are still available.
        result: Result = self._jax.block_until_ready(self._value_and_grad(*call.arguments))
        return result

    def _in_parts(self, whole: Call, sizes: Sizes) -> Result:
        reduction = self._check.reduction(whole, sizes[0])
        losses, aux = [], []
        gradient: Any = None
        for index, (start, stop) in enumerate(bounds(sizes)):
            part = whole.part(start, stop, index)
            of_samples = (stop - start) / sum(sizes)
            share = 1.0 if reduction == "sum" else self._check.share(part, whole, of_samples)
            value, added = self._run(part)
            loss = value[0] if self._aux is not None else value
            # The loss of a part with the weight 0 may be 0 / 0.
            losses.append(loss * share if share else self._jax.numpy.zeros_like(loss))
            aux.append(value[1] if self._aux is not None else None)
            if gradient is None:
                gradient = self._scale(added, share)
            elif share:
                gradient = self._add(gradient, added, share)
            self._jax.block_until_ready(gradient)
        self._check.end_of_step()
        total = sum(losses)
        if self._aux is None:
            return total, gradient
        return (total, self._aux.joined(aux, sizes)), gradient


def _scale(jax: Any) -> Callable[[Any, Any], Any]:
    def scale(tree: Any, share: Any) -> Any:
        def scaled(leaf: Any) -> Any:
            return jax.numpy.where(share, leaf * share, 0).astype(leaf.dtype)

        return jax.tree_util.tree_map(scaled, tree)

    return scale


def _add(jax: Any) -> Callable[[Any, Any, Any], Any]:
    def add(total: Any, tree: Any, share: Any) -> Any:
        def added(sum_so_far: Any, leaf: Any) -> Any:
            return (sum_so_far + leaf * share).astype(sum_so_far.dtype)

        return jax.tree_util.tree_map(added, total, tree)

    return add
