"""Limits the size of a program's values, because a value may grow without end.

Values share their parts, but comparing two values treats them as trees. As a tree, a value that is
built in sixty lines can have more parts than there are atoms. So the size of the tree is counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from whygpu.model.values import (
    Combined,
    Constant,
    Either,
    Filtered,
    Item,
    Length,
    Member,
    Name,
    Several,
    Value,
)
from whygpu.readers import limits

_SMALL = 16
"""Values up to this size are counted each time; the size of a larger value is cached."""


class Size(NamedTuple):
    parts: int
    depth: int


_ONE = Size(1, 1)
_LINKS = frozenset({Member, Item, Length, Filtered})
_COMPOUND = frozenset({*_LINKS, Several, Combined, Either})


class ValueSizes:
    """The sizes of the values of one program."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Value, Size]] = {}
        """By identity, with the value itself, so that no other value can reuse the identity."""

    def bounded(self, value: Value) -> Value:
        """The value, or None (unknown) if it is larger than the limit."""
        kind = type(value)
        if kind is Name:
            return value if len(value.path) <= limits.NAME_LENGTH else None  # type: ignore[union-attr]
        if kind is Constant:
            return value if is_short(value.value) else None  # type: ignore[union-attr]
        if kind in _LINKS:
            # Most links are short; their size need not be counted.
            of: Any = value.of  # type: ignore[union-attr]
            if type(of) in _LINKS:
                of = of.of
            if type(of) not in _COMPOUND:
                return value
        size = self.of(value)
        most = limits.VALUE_PARTS
        if kind is Several:
            # A long list that is written out is no larger than its text.
            most += 2 * len(value.items)  # type: ignore[union-attr]
        return value if size.parts <= most and size.depth <= limits.VALUE_DEPTH else None

    def of(self, value: Value) -> Size:
        parts = _parts(value)
        if not parts:
            return _ONE
        known = self._known.get(id(value))
        if known is not None:
            return known[1]
        # Most parts are single names and constants.
        sizes = [self.of(part) for part in parts if type(part) in _COMPOUND]
        if not sizes:
            return Size(1 + len(parts), 2)
        single = len(parts) - len(sizes)
        size = Size(
            1 + single + sum(each.parts for each in sizes), 1 + max(each.depth for each in sizes)
        )
        if size.parts > _SMALL:
            self._known[id(value)] = (value, size)
        return size


def is_short(value: Any) -> bool:
    """Whether a constant is small enough to be kept."""
    return not isinstance(value, (str, bytes)) or len(value) <= limits.TEXT_VALUE


def _parts(value: Value) -> tuple[Value, ...]:
    kind = type(value)
    if kind not in _COMPOUND:
        return ()
    if isinstance(value, (Member, Item, Length, Filtered)):
        return (value.of,)
    if isinstance(value, Several):
        return value.items
    if isinstance(value, Combined):
        return (value.left, value.right)
    return value.values  # type: ignore[union-attr]
