"""Applies a function to every text in a value: records, observed facts, lists and dictionaries.

Words of a fixed vocabulary do not change: a user called "gpu" must not alter a verdict. Names of
fields and keys of dictionaries do not change either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from typing import Any, TypeVar

from whygpu.model.codec import hints, vocabulary
from whygpu.model.observed import Absent, Known, Unknown

T = TypeVar("T")
Change = Callable[[str, str], str]
"""From a text and the name of the field that it is in to the new text."""


def with_texts(
    value: T, change: Change, commands: Change | None = None, kinds: Collection[type] = ()
) -> T:
    """`commands` changes the texts in these kinds of records instead, at any depth."""
    inside = {} if commands is None else dict.fromkeys(kinds, commands)
    result: T = _Changer(inside).changed(value, change, "", frozenset())
    return result


class _Changer:
    def __init__(self, inside: dict[type, Change]) -> None:
        self._inside = inside

    def changed(self, value: Any, change: Change, field: str, words: frozenset[str]) -> Any:
        if isinstance(value, str):
            return value if value in words else change(value, field)
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                return self._record(value, change)
            return tuple(self.changed(item, change, field, words) for item in value)
        if isinstance(value, Known):
            return Known(
                self.changed(value.value, change, field, words), change(value.source, "source")
            )
        if isinstance(value, Absent):
            return Absent(change(value.source, "source"))
        if isinstance(value, Unknown):
            return Unknown(change(value.reason, "reason"))
        if isinstance(value, list):
            return [self.changed(item, change, field, words) for item in value]
        if isinstance(value, dict):
            return {
                key: self.changed(item, change, field if key == "known" else str(key), words)
                for key, item in value.items()
            }
        return value

    def _record(self, value: Any, change: Change) -> Any:
        kind: Any = type(value)
        change = self._inside.get(kind, change)
        words = _fixed_words(kind)
        pairs = zip(value._fields, value, strict=True)
        return kind._make(
            self.changed(item, change, name, words.get(name, frozenset())) for name, item in pairs
        )


@cache
def _fixed_words(kind: Any) -> dict[str, frozenset[str]]:
    """For each field, the words that have a fixed meaning there."""
    try:
        return {name: vocabulary(hint) for name, hint in hints(kind)}
    except (NameError, TypeError):
        # Outside the model, a type may be imported only for the type checker.
        return {}
