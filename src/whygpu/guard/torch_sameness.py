"""Whether parts give what the whole batch gives, for the loss of a PyTorch program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from whygpu.guard import sameness
from whygpu.guard.splitting import CannotSplit
from whygpu.guard.torch_gradients import Gradients, Work, grain, norm
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

    def _looks(self, work: Work, half: int) -> list[sameness.Look]:
        """With modules as in evaluation: no dropout, no statistics of the batch."""
        starts = sameness.windows(work.samples, half)
        looked_at = [work.rows(start, start + 2 * half) for start in starts]
        try:
            with _evaluating(self._modules):
                return [self._on(both, half) for both in looked_at]
        except CannotSplit:
            raise
        except Exception as error:
            if shortage_in(error) is not None:
                raise
            # Some models have no loss in evaluation mode; those are checked in training mode.
            return self._looked_in_training(looked_at, half)

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
        gap = partial(self._gradients.gap, together)
        if gap((both, 1.0)) > size * sameness.HALF_THE_DIGITS:
            return "random"
        gaps = sameness.Gaps(
            gap(*zip(halves, shares, strict=True)) / size,
            gap(*((part, 1.0) for part in halves)) / size,
            gap((both.reversed(), 1.0)) / size,
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
