"""Amounts of memory in a user's words: 8GiB, 5%."""

from __future__ import annotations

from whygpu.errors import UsageError
from whygpu.launch.policy_options import parse_bytes


def in_bytes(amount: str | int, option: str) -> int:
    """An amount as programs give it (bytes), or in a user's words (8GiB)."""
    if isinstance(amount, int):
        return amount
    return int(parse_bytes(amount, option, expected="an amount such as 8GiB"))


def parse_part(text: str, option: str) -> float:
    """5%, or 0.05, as a part of one."""
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest or not 0 <= value < 1:
        raise UsageError("expected a part of the memory, such as 5%", option=option, value=text)
    return value
