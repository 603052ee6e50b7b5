"""Whether the gradient of a batch follows from the gradients of its parts, checked on real data.

A loss is a function that whygpu cannot read. Most are a mean over the samples, some are a sum, and
some are neither: a mean over tokens that are not padding, a loss between the samples of a batch.
So the gradient of some samples is compared with the gradients of their two halves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from whygpu.errors import UsageError
from whygpu.guard.freeing import release
from whygpu.guard.splitting import CannotSplit
from whygpu.readers.memory_errors import shortage_in

Reduction = Literal["mean", "sum"]
Look = Literal["mean", "sum", "random"] | None
"""The result of a check on some samples; None if they show nothing."""

HALF_THE_DIGITS = math.sqrt(2.0**-23)
"""The relative difference that is normal between float32 numbers computed in different ways."""
_NOISE_FACTOR = 4
"""Two gradients may differ by this many times what reordering the samples changes."""
_COARSEST = 2.0**-6
"""No type used for training rounds more than this: bfloat16 keeps 8 bits."""


GRAINS = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
"""Types in which gradients are rounded, whatever type they are kept in; the coarsest first."""


def grain_of(on_grid: Callable[[str], int], count: int) -> float:
    """The grain, from how many nonzero numbers of the gradient a coarser type can hold."""
    return next((grain for name, grain in GRAINS.items() if 2 * on_grid(name) > count > 0), 0.0)


class Gaps(NamedTuple):
    """Distances from the gradient of the samples taken together, as parts of its norm."""

    as_mean: float
    """Of the weighted mean of the halves' gradients."""
    as_sum: float
    """Of the plain sum of the halves' gradients."""
    reordered: float
    """Of the gradient of the same samples in reverse order: what rounding alone does."""
    grain: float = 0.0
    """The step between the numbers in most of the gradient, if it is coarse."""


def reduction_of(gaps: Gaps) -> Reduction | None:
    """How the gradients of parts combine to that of the whole; None if neither way works.

    If the work is done in less than float32, the reordered samples differ as well, or the gradient
    has a coarse grain: under autocast, the gradient of each part is rounded to few digits.
    """
    if gaps.reordered > _COARSEST:
        return None
    tolerance = max(HALF_THE_DIGITS, _NOISE_FACTOR * gaps.reordered, 2 * gaps.grain)
    if gaps.as_mean <= tolerance:
        return "mean"
    return "sum" if gaps.as_sum <= tolerance else None


def windows(samples: int, half: int) -> list[int]:
    """Where the checked samples begin: at both ends of the batch, to rule out chance."""
    return sorted({0, samples - 2 * half})


def settled(
    before: Reduction | None, looks: Sequence[Look], differs: Callable[[str], None]
) -> Reduction | None:
    """What all checks agree on, earlier ones included."""
    known = [look for look in (before, *looks) if look == "mean" or look == "sum"]
    if len(set(known)) > 1:
        raise CannotSplit(NEITHER)
    if "random" in looks:
        differs(RANDOM)
    elif looks and not known:
        differs(NOTHING)
    return known[0] if known else None


class LossCheck:
    """Checks the loss now and then, and remembers how parts combine to the whole."""

    def __init__(self, *, differs: Callable[[str], None], wanted: bool) -> None:
        self._differs = differs
        self._wanted = wanted
        self._found: Reduction | None = None
        self._steps = 0
        self._looked_in_this_step = False

    def reduction(self, whole: Any, size: int) -> Reduction:
        """Mean or sum, for a batch that will be computed in parts of this size."""
        if not self._wanted:
            self._differs(UNCHECKED)
        elif not self._looked_in_this_step and is_power_of_two(self._steps + 1):
            self._found = settled(self._found, self._looked(whole, size), self._differs)
            self._looked_in_this_step = True
        return self._found or "mean"

    def end_of_step(self) -> None:
        """A step in parts is done; it may have taken several attempts."""
        self._steps += 1
        self._looked_in_this_step = False

    def _looked(self, whole: Any, size: int) -> Sequence[Look]:
        """The checks on as many samples of a part as there is memory for.

        The check holds more gradients than a step. So if it runs out of memory, this does not mean
        that the part is too large.
        """
        half = max(1, size // 2)
        while True:
            try:
                return self._looks(whole, half)
            except CannotSplit:
                raise
            except Exception as error:
                if shortage_in(error) is None or (half == 1 and self._must_look):
                    raise
                release(error)
            if half == 1:
                self._differs(NO_ROOM)
                return []
            half = max(1, half // 4)

    _must_look = False
    """Whether parts cannot be computed if nothing was checked."""

    def _looks(self, whole: Any, half: int) -> Sequence[Look]:
        """The checks on twice this many samples at each end of the batch."""
        raise NotImplementedError


def quotient(part: float, whole: float) -> float:
    """The weight of a part, relative to that of the whole, as weight= gives it."""
    if not math.isfinite(part) or not math.isfinite(whole) or part > whole:
        raise UsageError(
            f"weight= returned {part} for a part of a batch, and {whole} for the whole batch"
        )
    return part / whole if whole else 0.0


def is_power_of_two(count: int) -> bool:
    """When a check is repeated: it then sees later data, and costs almost nothing."""
    return count & (count - 1) == 0


NEITHER = (
    "the gradient of a batch is neither the mean nor the sum of the gradients of its halves, so "
    "micro-batches would train something else. This happens if the loss compares samples of a "
    "batch with each other, or if it is a mean over items such as tokens, and samples have "
    "different numbers of them. In the second case pass the weight of a part, for example "
    "weight=lambda tokens, labels: (labels != -100).sum()"
)
_TAKEN = "whygpu assumes a mean over samples"
RANDOM = f"the loss is random, so it could not be checked; {_TAKEN}"
NOTHING = f"the samples of the check have no gradient, so nothing was checked; {_TAKEN}"
NO_ROOM = (
    "there is no memory to check the loss, which takes one gradient more than a step, and two "
    f"samples; {_TAKEN}"
)
BATCH_NORM = (
    "the loss exists only in training and contains batch normalisation, so it could not be "
    f"checked; {_TAKEN}"
)
UNCHECKED = f"the loss was not checked (check=False); {_TAKEN}"
