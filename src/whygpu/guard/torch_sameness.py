"""Whether parts give what the whole batch gives, for the loss of a PyTorch program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from whygpu.guard import sameness
from whygpu.guard.freeing import release
from whygpu.guard.splitting import CannotSplit
from whygpu.guard.torch_gradients import Gradients, Work, distance, grain, norm, weighed_sum
from whygpu.guard.torch_state import batch_norms
from whygpu.readers.memory_errors import shortage_in


class TorchLossCheck(sameness.LossCheck):
    """The check for gradients that are in `.grad`.

    It changes gradients, buffers and random numbers; the caller restores them.
    """

    def __init__(
        self,
        torch: Any,
        modules: Sequence[Any],
        gradients: Gradients,
        *,
        differs: Callable[[str], None],
        wanted: bool,
    ) -> None:
        super().__init__(differs=differs, wanted=wanted)
        self._torch = torch
        self._modules = modules
        self._gradients = gradients

    def _looked(self, work: Work, size: int) -> list[sameness.Look]:
        """With modules as in evaluation: no dropout, no statistics of the batch."""
        half = max(1, size // 2)
        starts = sameness.windows(work.samples, half)
        looked_at = [work.rows(start, start + 2 * half) for start in starts]
        try:
            with _evaluating(self._modules):
                return [self._on(both, half) for both in looked_at]
        except CannotSplit:
            raise
        except Exception as error:
            if shortage_in(error) is None:
                # Some models have no loss in evaluation mode; those are checked in training mode.
                return self._looked_in_training(looked_at, half)
            if size > 1:
                raise
            release(error)
        self._differs(sameness.NO_ROOM)
        return []

    def _looked_in_training(self, looked_at: Sequence[Work], half: int) -> list[sameness.Look]:
        if batch_norms(self._torch, self._modules):
            self._differs(sameness.BATCH_NORM)
            return []
        return [self._on(both, half) for both in looked_at]

    def _on(self, both: Work, half: int) -> sameness.Look:
        halves = both.rows(0, half), both.rows(half, 2 * half)
        shares = [part.share_of(both, 0.5) for part in halves]
        together = self._gradients.of(both) if all(shares) else []
        size = norm(together)
        if size == 0.0:
            return None
        # Computing the same samples again draws other random numbers; nothing else differs.
        if distance(together, self._gradients.of(both)) > size * sameness.HALF_THE_DIGITS:
            return "random"
        noise = distance(together, self._gradients.of(both.reversed()))
        first, second = (self._gradients.of(part) for part in halves)
        gaps = sameness.Gaps(
            distance(together, weighed_sum(first, shares[0], second, shares[1])) / size,
            distance(together, weighed_sum(first, 1.0, second, 1.0)) / size,
            noise / size,
            grain(self._torch, together),
        )
        found = sameness.reduction_of(gaps)
        if found is None:
            raise CannotSplit(sameness.NEITHER)
        return found


@contextmanager
def _evaluating(modules: Sequence[Any]) -> Iterator[None]:
    """Modules as in evaluation, each put back into its own mode afterwards."""
    inner = [(module, module.training) for root in modules for module in root.modules()]
    for module, _ in inner:
        module.training = False
    try:
        yield
    finally:
        for module, training in inner:
            module.training = training
