"""Which of many words a log contains, so that its lines are not searched for the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whygpu.model.log import Line


def words_in(lines: Sequence[Line], words: Iterable[str]) -> tuple[str, ...]:
    """Those of the words, which are in lower case, that are in one of the lines."""
    folded = "\n".join(line.text for line in lines).lower()
    return tuple(word for word in words if word in folded)
