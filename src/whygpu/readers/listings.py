"""Leaves out the source code that pytest prints around an error: its strings are no messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TIME = r"(?:\d{4}-\d\d-\d\dT[\d:.]{8,18}Z )?"
_ERROR = re.compile(_TIME + r"E {3,16}\S")
_STATEMENT = re.compile(_TIME + r"> {3}")
_SOURCE = re.compile(_TIME + r"(?: {4}|\s{0,80}$)")
_ENOUGH = 120
"""The start of a line, in characters, shows what it is."""
_MOST_LINES = 300
"""The longest listing of a function that is looked at."""

Raw = tuple[int, bytes]


def without_listings(lines: Sequence[Raw]) -> list[Raw]:
    """The lines, without the listing of the function above each first line marked as an error.

    pytest prints the whole function, with `>` before the statement that failed and `E` before the
    message. Functions of libraries contain the texts of all errors that they can raise.
    """
    starts = [raw[:_ENOUGH].decode("latin-1") for _, raw in lines]
    dropped: set[int] = set()
    for place, start in enumerate(starts):
        if not _ERROR.match(start) or (place and _ERROR.match(starts[place - 1])):
            continue
        for above in range(place - 1, max(place - 1 - _MOST_LINES, -1), -1):
            if _SOURCE.match(starts[above]):
                dropped.add(above)
            elif not _STATEMENT.match(starts[above]):
                # The statement that failed belongs to the error; it may go on over several lines.
                break
    return [line for place, line in enumerate(lines) if place not in dropped]
