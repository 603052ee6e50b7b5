"""Where a person writes: around the output that they show in Markdown, or above it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.model.log import Line

FENCE = re.compile(r"\s{0,8}`{3,8}\s{0,4}[\w+-]{0,20}\s{0,4}$")


_MOST_ABOVE = 6
"""So many lines at the start may tell what is wrong; output follows them."""


def above_output(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The first lines, without records: words of a person, or the beginning of the output."""
    return tuple(line for line in lines[:_MOST_ABOVE] if line.level == "none")


def around_output(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines outside the fences, without records; none if the text has no fence.

    Programs print no fences, so such a text is a report. An open fence goes on to the end.
    """
    around: list[Line] = []
    inside = fenced = False
    for line in lines:
        if FENCE.match(line.text):
            inside, fenced = not inside, True
        elif not inside and line.level == "none":
            around.append(line)
    return tuple(around) if fenced else ()
