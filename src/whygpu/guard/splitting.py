"""The rule of a guard: if a step runs out of memory, try it again in more parts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from whygpu.errors import UsageError
from whygpu.guard.freeing import add_note, free_on_gpu, release
from whygpu.guard.guard_report import Cut, Record, say, shortage_words
from whygpu.model.shortage import Shortage

_QUIET_FOR = 2.0
"""Seconds: a search that takes longer says what it does."""

T = TypeVar("T")
Sizes = tuple[int, ...]
"""How many samples are in each part of a batch."""


class CannotSplit(Exception):
    """The parts would not give the same result as the whole batch. The message says why."""


class Splitter:
    """Runs steps, remembers the micro-batch that fits, and records what it did.

    A step is given as a function of the sizes of its parts. It must leave everything as it was when
    it raises, so that it can be called again.
    """

    def __init__(
        self, record: Record, *, micro_batch: int | None = None, exact: bool = False, of: str
    ) -> None:
        if micro_batch is not None and micro_batch < 1:
            raise UsageError(f"micro_batch={micro_batch}: expected 1 or more samples")
        self.record = record
        self._micro_batch = micro_batch
        self._exact = exact
        self._of = of
        self._steps = 0

    def run(self, samples: int, attempt: Callable[[Sizes], T]) -> T:
        """The result of a step over this many samples, in as many parts as are needed."""
        self._steps += 1
        if self._of == "training":
            self.record.steps += 1
        parts = self._parts_to_begin_with(samples)
        refused: tuple[Exception, Shortage] | None = None
        told = 0.0
        while True:
            try:
                result = attempt(balanced(samples, parts))
            except CannotSplit as reason:
                if refused is None:
                    raise UsageError(
                        f"this batch cannot be computed in parts: {reason}"
                    ) from reason
                raise self._given_up(refused[0], reason) from None
            except UsageError:
                raise
            except Exception as error:
                shortage = _shortage_in(error, after_refusal=refused is not None)
                if shortage is None and refused is not None:
                    failure = CannotSplit(f"it fails in parts: {type(error).__name__}: {error}")
                    raise self._given_up(refused[0], failure) from error
                if shortage is None:
                    raise
                if parts >= samples:
                    self._even_one(error, shortage, samples)
                    raise
                release(error)
                parts = _more_parts(samples, parts, shortage)
                if refused is None or time.monotonic() > told + _QUIET_FOR:
                    self._tries(samples, parts, shortage)
                    told = time.monotonic()
                refused = (error, shortage) if refused is None else refused
            else:
                self._succeeded(samples, parts, refused[1] if refused else None)
                return result

    def differs(self, text: str) -> None:
        """Something differs by more than rounding in parts: record it, or refuse."""
        if self._exact:
            raise CannotSplit(f"{text} (exact=True)")
        self.record.differs(text)

    def _parts_to_begin_with(self, samples: int) -> int:
        if self._micro_batch is None:
            return 1
        return max(1, -(-samples // self._micro_batch))

    def _succeeded(self, samples: int, parts: int, shortage: Shortage | None) -> None:
        if parts > 1 and self._of == "training":
            self.record.steps_in_parts += 1
        if shortage is None:
            return
        self._micro_batch = balanced(samples, parts)[0]
        self.record.cut(
            Cut(
                step=self._steps,
                of=self._of,
                samples=samples,
                micro_batches=parts,
                micro_batch=self._micro_batch,
                asked=shortage.asked,
                message=shortage.text,
            )
        )

    def _tries(self, samples: int, parts: int, shortage: Shortage) -> None:
        largest = balanced(samples, parts)[0]
        say(
            f"{self._of} step {self._steps}: out of memory ({shortage_words(shortage)}); trying "
            f"{parts} micro-batches of at most {largest}"
        )

    def _given_up(self, error: Exception, reason: CannotSplit) -> Exception:
        words = f"the batch was not split into micro-batches: {reason}"
        say(words)
        add_note(error, words)
        return error

    def _even_one(self, error: Exception, shortage: Shortage, samples: int) -> None:
        words = (
            f"even one sample at a time does not fit ({shortage_words(shortage)}): what is in "
            "memory besides the micro-batch is too large. That contains the batch itself"
        )
        if self._of == "training":
            words += (
                " and, from the second micro-batch on, a sum of gradients, which a step over a "
                "smaller batch does not need"
            )
        if samples == 1:
            words = f"the batch has one sample and cannot be split ({shortage_words(shortage)})"
        say(words)
        add_note(error, words)


def _more_parts(samples: int, parts: int, shortage: Shortage) -> int:
    """Twice as many, or more if the request would not even fit into all memory that is free now.

    A request shrinks at most in proportion to its part, so fewer parts are not worth an attempt:
    TensorFlow's allocator waits 10 s before each refusal.
    """
    free = free_on_gpu() if shortage.place == "gpu" and shortage.asked else None
    asked_per_sample = (shortage.asked or 0) / balanced(samples, parts)[0]
    parts *= 2
    while (
        free is not None
        and parts < samples
        and asked_per_sample * balanced(samples, parts)[0] > free
    ):
        parts *= 2
    return min(parts, samples)


def balanced(samples: int, parts: int) -> Sizes:
    """Sizes that differ by one at most, larger first, so that no part is a single last sample."""
    size, rest = divmod(samples, parts)
    return (size + 1,) * rest + (size,) * (parts - rest)


def _shortage_in(error: Exception, *, after_refusal: bool) -> Shortage | None:
    # A program with enough memory does not spend time on reading the table.
    from whygpu.readers.memory_errors import no_algorithm_in, shortage_in

    found = shortage_in(error)
    return no_algorithm_in(error) if found is None and after_refusal else found
