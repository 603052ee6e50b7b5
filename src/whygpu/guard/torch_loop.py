"""A step of a PyTorch loop: the gradients of a batch, in parts if memory runs out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from whygpu.errors import UsageError
from whygpu.guard.batches import bounds
from whygpu.guard.difference_messages import RANDOM_NUMBERS, batch_norm_words, changed_words
from whygpu.guard.splitting import Sizes, Splitter
from whygpu.guard.torch_gradients import Gradients, Work
from whygpu.guard.torch_sameness import TorchLossCheck
from whygpu.guard.torch_state import ModuleState, RandomState, batch_norms


class TorchLoop:
    """The modules and parameters that a loop trains, and the splitter of its steps."""

    def __init__(self, splitter: Splitter, objects: Sequence[Any], *, check: bool) -> None:
        torch: Any = sys.modules["torch"]
        self._torch = torch
        self._splitter = splitter
        self._modules = [item for item in objects if isinstance(item, torch.nn.Module)]
        self._gradients = Gradients(torch, objects)
        self._check = TorchLossCheck(
            torch, self._modules, self._gradients, differs=splitter.differs, wanted=check
        )

    def backward(self, work: Work) -> Any:
        """Add the gradient of the batch's loss to `.grad`, as loss.backward() would."""
        self._refuse_many_processes()
        self._gradients.refuse_hooks()
        samples = work.samples
        state, random = ModuleState(self._torch, self._modules), RandomState(self._torch)
        earlier = self._gradients.taken()

        def attempt(sizes: Sizes) -> Any:
            try:
                if len(sizes) == 1:
                    return self._gradients.add(work, 1.0)
                return self._in_parts(work, sizes, state, random)
            except BaseException:
                self._gradients.drop()
                state.restore()
                random.restore()
                raise

        try:
            loss = self._splitter.run(samples, attempt)
        except BaseException:
            self._gradients.put(earlier)
            raise
        self._gradients.join(earlier)
        return loss

    def _in_parts(self, work: Work, sizes: Sizes, state: ModuleState, random: RandomState) -> Any:
        try:
            reduction = self._check.reduction(work, sizes[0])
        finally:
            self._gradients.drop()
            state.restore()
            random.restore()
        norms = batch_norms(self._torch, self._modules)
        if norms:
            self._splitter.differs(batch_norm_words(norms))
        total: Any = 0.0
        for start, stop in bounds(sizes):
            part = work.rows(start, stop)
            of_samples = (stop - start) / sum(sizes)
            share = 1.0 if reduction == "sum" else part.share_of(work, of_samples)
            if share:
                # The loss of a part with the weight 0 may be 0 / 0.
                total = total + self._gradients.add(part, share) * share
            state.end_of_part(of_samples)
        state.end_of_parts()
        changed = state.changed_by_part()
        if changed:
            self._splitter.differs(changed_words(changed))
        if random.has_moved():
            self._splitter.differs(RANDOM_NUMBERS)
        self._check.end_of_step()
        return total

    def _refuse_many_processes(self) -> None:
        distributed = self._torch.distributed
        if not distributed.is_available() or not distributed.is_initialized():
            return
        if distributed.get_world_size() > 1:
            raise UsageError(
                "this process trains together with others (torch.distributed): if one of them "
                "runs out of memory, the others are already waiting for its gradients, so a "
                "second attempt does not work. Use a batch that fits (whygpu memory find)"
            )
