"""A step of a TensorFlow loop: loss and gradients of a batch, in parts if memory runs out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from whygpu.errors import UsageError
from whygpu.guard import sameness
from whygpu.guard.batches import bounds, leaves, mapped, samples_in
from whygpu.guard.difference_messages import changed_words
from whygpu.guard.splitting import CannotSplit, Sizes, Splitter
from whygpu.guard.tensorflow_gradients import Gradient, added, distance, grain, norm

_READS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape")
"""Operations that leave a variable as it is."""

Result = tuple[Any, Gradient]


class _Saved(NamedTuple):
    """A variable that the loss changes, and its value from before the step."""

    variable: Any
    value: Any

    def has_changed(self, tf: Any) -> bool:
        return not bool(tf.reduce_all(self.variable == self.value))


class TensorFlowLoop:
    """One loss function, and the graph of its gradients for some variables."""

    def __init__(
        self,
        splitter: Splitter,
        loss_fn: Callable[..., Any],
        variables: Sequence[Any],
        *,
        weight: Callable[..., Any] | None,
        jit_compile: bool | None,
        check: bool,
    ) -> None:
        tf: Any = sys.modules["tensorflow"]
        self._tf = tf
        self._splitter = splitter
        self._loss_fn = loss_fn
        self._variables = [v if isinstance(v, tf.Variable) else v.value for v in variables]
        self._weight = weight
        self._graph = tf.function(self._traced, reduce_retracing=True, jit_compile=jit_compile)
        self._check = _LossCheck(self, differs=splitter.differs, wanted=check)

    def __call__(self, *batch: Any) -> Result:
        self._refuse_graph()
        saved = self._saved(batch)

        def attempt(sizes: Sizes) -> Result:
            try:
                if len(sizes) == 1:
                    return self.run(batch)
                return self._in_parts(batch, sizes, saved)
            except BaseException:
                _restore(saved)
                raise

        return self._splitter.run(_samples(batch), attempt)

    def run(self, batch: tuple[Any, ...], share: float = 1.0) -> Result:
        """The loss of these rows, and its gradient times the share."""
        # A Python number would be part of the graph: each new value would create another graph.
        loss, gradient = self._graph(self._tf.constant(share, "float64"), *batch)
        self._tf.test.experimental.sync_devices()
        return loss, list(gradient)

    def share(self, part: tuple[Any, ...], whole: tuple[Any, ...], of_samples: float) -> float:
        if self._weight is None:
            return of_samples
        return sameness.quotient(float(self._weight(*part)), float(self._weight(*whole)))

    def _traced(self, share: Any, *batch: Any) -> Any:
        with self._tf.GradientTape() as tape:
            loss = self._loss_fn(*batch)
            scaled = loss * self._tf.cast(share, loss.dtype)
        return loss, tape.gradient(scaled, self._variables)

    def _in_parts(self, whole: tuple[Any, ...], sizes: Sizes, saved: Sequence[_Saved]) -> Result:
        try:
            reduction = self._check.reduction(whole, sizes[0])
        finally:
            _restore(saved)
        total: Any = 0.0
        gradient: Gradient = [None] * len(self._variables)
        for start, stop in bounds(sizes):
            part = rows(whole, start, stop)
            of_samples = (stop - start) / sum(sizes)
            share = 1.0 if reduction == "sum" else self.share(part, whole, of_samples)
            if not share:
                # The loss of a part with the weight 0 may be 0 / 0.
                continue
            loss, new = self.run(part, share)
            total = total + loss * self._tf.cast(share, loss.dtype)
            for index, each in enumerate(new):
                # One after the other, so that two full sets never exist at the same time.
                gradient[index] = added(self._tf, gradient[index], each)
        changed = [each.variable.name for each in saved if each.has_changed(self._tf)]
        if changed:
            self._splitter.differs(changed_words(changed))
        self._check.end_of_step()
        return total, gradient

    def _saved(self, batch: tuple[Any, ...]) -> list[_Saved]:
        """The variables that the loss function changes, as they are now. Building its graph shows
        which these are, and takes no memory of the GPU."""
        share = self._tf.TensorSpec((), "float64")
        traced = self._graph.get_concrete_function(share, *batch)
        shape = traced.structured_outputs[0].shape
        if shape.rank:
            raise UsageError(
                f"the loss function returned a tensor of shape {shape}: expected a tensor with one "
                "value"
            )
        graph = traced.graph
        touched = {
            id(tensor)
            for operation in graph.get_operations()
            if operation.type not in _READS
            for tensor in operation.inputs
            if tensor.dtype == self._tf.resource
        }
        handles = {id(outer) for outer, inner in graph.captures if id(inner) in touched}
        return [
            _Saved(variable, self._tf.identity(variable))
            for variable in graph.variables
            if id(variable.handle) in handles
        ]

    def _refuse_graph(self) -> None:
        if self._tf.inside_function():
            raise UsageError(
                "the guarded gradients were called inside tf.function. Memory cannot run out while "
                "a graph is built. Call them outside: they compile the loss themselves"
            )
        if self._tf.distribute.has_strategy():
            raise UsageError(
                "the loop trains under a tf.distribute strategy: the guard works only on one device"
            )


class _LossCheck(sameness.LossCheck):
    """The check for the graph of a loop. The caller puts back the variables that it changes."""

    def __init__(
        self, loop: TensorFlowLoop, *, differs: Callable[[str], None], wanted: bool
    ) -> None:
        super().__init__(differs=differs, wanted=wanted)
        self._tf: Any = sys.modules["tensorflow"]
        self._loop = loop

    def _looks(self, whole: tuple[Any, ...], half: int) -> list[sameness.Look]:
        starts = sameness.windows(_samples(whole), half)
        return [self._on(rows(whole, start, start + 2 * half), half) for start in starts]

    def _on(self, both: tuple[Any, ...], half: int) -> sameness.Look:
        halves = rows(both, 0, half), rows(both, half, 2 * half)
        shares = [self._loop.share(part, both, 0.5) for part in halves]
        together = self._gradient(both) if all(shares) else []
        size = norm(self._tf, together)
        if size == 0.0:
            return None
        # Computing the same samples again draws other random numbers; nothing else differs.
        if self._gap(together, (1.0, self._gradient(both))) > size * sameness.HALF_THE_DIGITS:
            return "random"
        backwards = mapped(both, lambda tensor: tensor[::-1])
        first, second = (self._gradient(part) for part in halves)
        gaps = sameness.Gaps(
            self._gap(together, (shares[0], first), (shares[1], second)) / size,
            self._gap(together, (1.0, first), (1.0, second)) / size,
            self._gap(together, (1.0, self._gradient(backwards))) / size,
            grain(self._tf, together),
        )
        found = sameness.reduction_of(gaps)
        if found is None:
            raise CannotSplit(sameness.NEITHER)
        return found

    def _gap(self, together: Gradient, *parts: tuple[float, Gradient]) -> float:
        return distance(self._tf, together, parts)

    def _gradient(self, batch: tuple[Any, ...]) -> Gradient:
        return self._loop.run(batch)[1]


def rows(batch: tuple[Any, ...], start: int, stop: int) -> tuple[Any, ...]:
    cut: tuple[Any, ...] = mapped(batch, lambda tensor: tensor[start:stop])
    return cut


def _samples(batch: tuple[Any, ...]) -> int:
    return samples_in(leaves(batch))


def _restore(saved: Sequence[_Saved]) -> None:
    for variable, value in saved:
        variable.assign(value)
