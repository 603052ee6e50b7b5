"""Messages about what differs in micro-batches, shared by all frameworks."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.model.derived import and_list

_MOST_NAMED = 5
RANDOM_NUMBERS = (
    "random numbers, for example for dropout, are drawn for each micro-batch: the distribution is "
    "the same, the numbers may differ"
)


def batch_norm_words(names: Sequence[str]) -> str:
    return (
        f"batch normalisation ({_some(names)}) uses the statistics of each micro-batch, so the "
        "gradients are not those of the whole batch"
    )


def changed_words(names: Sequence[str]) -> str:
    return f"the state in {_some(names)} changed once for each micro-batch"


def _some(names: Sequence[str]) -> str:
    if len(names) <= _MOST_NAMED:
        return and_list(names)
    return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"
