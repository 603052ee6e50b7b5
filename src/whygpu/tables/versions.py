"""Release numbers of a version, for looking it up in a table."""

from __future__ import annotations

import functools
import re

_NUMBERS = re.compile(r"\d{1,18}(?!\d)(?:\.\d{1,18}(?!\d))*")
"""Longer numbers are in no version, and Python refuses to convert those of thousands of digits."""


@functools.lru_cache(4096)
def release_numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: release_numbers("2.21.0rc1+cpu") is (2, 21, 0)."""
    match = _NUMBERS.match(version)
    return tuple(int(number) for number in match.group().split(".")) if match else ()
