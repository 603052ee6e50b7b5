"""Amounts of memory in a user's words: 8GiB, 5%."""

from __future__ import annotations

from whygpu.errors import UsageError
from whygpu.launch.policy_options import parse_memory


def parse_limit(text: str, option: str = "--limit") -> int:
    """--limit 8GiB, in bytes."""
    expected = f"{option} {text}: expected an amount such as 8GiB"
    try:
        amount = parse_memory(text)
    except UsageError as error:
        words = str(error).replace("--memory", option)
        # Other words for it, such as growth, are those of a policy.
        raise UsageError(expected if "growth" in words else words) from error
    if amount.kind != "bytes":
        raise UsageError(expected)
    return int(amount.amount)


def in_bytes(amount: str | int, option: str = "--limit") -> int:
    """An amount as programs give it, or in a user's words."""
    return amount if isinstance(amount, int) else parse_limit(amount, option)


def parse_part(text: str) -> float:
    """--margin 5%, or 0.05, as a part of one."""
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if rest or not 0 <= value < 1:
        raise UsageError(f"--margin {text}: expected a part of the memory, such as 5%")
    return value
