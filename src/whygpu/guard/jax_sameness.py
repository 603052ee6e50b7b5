"""Whether parts give what the whole batch gives, for the loss of a JAX program."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from whygpu.guard import sameness
from whygpu.guard.jax_aux import AuxRules
from whygpu.guard.jax_call import Call
from whygpu.guard.splitting import CannotSplit

Weight = Callable[..., Any] | None


class JaxLossCheck(sameness.LossCheck):
    """The check for a compiled value_and_grad."""

    def __init__(
        self,
        run: Callable[[Call], tuple[Any, Any]],
        *,
        aux: AuxRules | None,
        weight: Weight,
        differs: Callable[[str], None],
        wanted: bool,
    ) -> None:
        super().__init__(differs=differs, wanted=wanted)
        self._run = run
        self._aux = aux
        self._must_look = aux is not None
        self._weight = weight

    def share(self, part: Call, whole: Call, of_samples: float) -> float:
        if self._weight is None:
            return of_samples
        of_part, of_whole = self._weight(*part.batch), self._weight(*whole.batch)
        return sameness.quotient(float(of_part), float(of_whole))

    def _looks(self, whole: Call, half: int) -> list[sameness.Look]:
        starts = sameness.windows(whole.samples(), half)
        return [self._on(whole.part(start, start + 2 * half, 0), half) for start in starts]

    def _on(self, both: Call, half: int) -> sameness.Look:
        halves = both.part(0, half, 0), both.part(half, 2 * half, 1)
        value, together = self._run(both)
        (value_a, first), (value_b, second) = (self._run(part) for part in halves)
        if self._aux is not None:
            self._aux.learn(value[1], [value_a[1], value_b[1]], half)
        shares = [self.share(part, both, 0.5) for part in halves]
        size = _norm(both.jax, together)
        if size == 0.0 or not all(shares):
            return None

        def distance(a: float, one: Any, b: float, other: Any) -> float:
            return _distance(both.jax, together, a, one, b, other) / size

        gaps = sameness.Gaps(
            distance(shares[0], first, shares[1], second),
            distance(1.0, first, 1.0, second),
            distance(1.0, self._run(both.reversed())[1], 0.0, first),
            _grain(both.jax, together),
        )
        found = sameness.reduction_of(gaps)
        if found is not None:
            return found
        if both.has_keys():
            # Only the key is different, so the difference is due to random numbers.
            again = distance(1.0, self._run(both.with_keys(1))[1], 0.0, first)
            if again > sameness.HALF_THE_DIGITS:
                return "random"
        raise CannotSplit(f"{sameness.NEITHER}. {_ABOUT_KEYS}")


def _distance(jax: Any, tree: Any, a: float, one: Any, b: float, other: Any) -> float:
    def gap(leaf: Any, x: Any, y: Any) -> Any:
        return leaf - (x * a + y * b if b else x * a)

    return _norm(jax, jax.tree_util.tree_map(gap, tree, one, other))


def _grain(jax: Any, tree: Any) -> float:
    leaves = [leaf[leaf != 0] for leaf in jax.tree_util.tree_leaves(tree)]

    def on_grid(name: str) -> int:
        return sum(int((leaf == leaf.astype(name).astype(leaf.dtype)).sum()) for leaf in leaves)

    return sameness.grain_of(on_grid, sum(leaf.size for leaf in leaves))


def _norm(jax: Any, tree: Any) -> float:
    numpy = jax.numpy
    leaves = (numpy.abs(leaf).astype("float32") for leaf in jax.tree_util.tree_leaves(tree))
    return math.sqrt(sum(float(numpy.linalg.norm(leaf.ravel())) ** 2 for leaf in leaves))


_ABOUT_KEYS = (
    "If random numbers are the reason, pass a key made by jax.random.key() as an argument, or use "
    "check=False"
)
