"""How a size in bytes is written, and how one is read."""

from __future__ import annotations

import re

from whygpu.model.lazy_regex import late

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30
TIB = 1 << 40

_WRITTEN = (("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB))
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
"""By the letter that a unit begins with."""
_GIVEN = late(r"(\d+(?:\.\d+)?)\s*(?:([kmgt]?)(i?)(b?))", re.IGNORECASE)


def size_text(count: float, digits: int = 3) -> str:
    """A size with this many significant digits: 900 bytes, 138 KiB, 8.02 GiB."""
    for unit, scale in _WRITTEN:
        if count >= scale:
            amount = count / scale
            # Avoid 1e+03: a number with that many digits before the point is written in full.
            whole = amount >= 10**digits - 0.5
            return f"{amount:.0f} {unit}" if whole else f"{amount:.{digits}g} {unit}"
    return f"{count:.0f} bytes"


def given_size(text: str) -> float | None:
    """The bytes of an amount that a user gives: 4GiB, 500MB (powers of 1000), 4G, 900B.

    None if it is not an amount, or has no unit: by a bare number a program most likely means bytes,
    and a person GiB.
    """
    match = _GIVEN.fullmatch(text.strip())
    if match is None or not (match[2] or match[4]):
        return None
    base = 1000.0 if match[4] and not match[3] else 1024.0
    return float(match[1]) * float(base ** _POWERS[match[2].lower()])


def logged_size(number: str, unit: str | None) -> int | None:
    """The bytes of a size in a log: 1.57 and GiB, 8,00 and GiB, 138.0 and K.

    Frameworks count in powers of 1024, even if they write MB. The empty unit is bytes. Without a
    unit (None), or if the number cannot be read, the size is unknown.
    """
    if unit is None:
        return None
    cleaned = number.rstrip(".,")
    if cleaned.count(",") == 1 and "." not in cleaned and len(cleaned.partition(",")[2]) != 3:
        cleaned = cleaned.replace(",", ".")
    try:
        value = float(cleaned.replace(",", ""))
    except ValueError:
        return None
    return int(value * 1024 ** _POWERS.get(unit.lower()[:1], 0))
