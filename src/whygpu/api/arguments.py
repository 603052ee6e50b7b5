"""Checks the arguments of verbs, so that a wrong one is named before it fails somewhere inside."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from whygpu.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")

THIS_PYTHON = sys.executable or None
"""The interpreter of this program, whose frameworks a user of the Python functions means."""

_HAS_VARARGS = 0x04
_CHECKED = frozenset(("None", "str", "bool", "int", "float", "Snapshot", "DevicePolicy"))
"""Names of types; an argument whose annotation has any other is not checked here."""


def checked(verb: Callable[P, T]) -> Callable[P, T]:
    """Check arguments against the annotations of the verb; a path may be given for a text."""

    @functools.wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        code = verb.__code__
        names = list(code.co_varnames[: code.co_argcount])
        if code.co_flags & _HAS_VARARGS:
            last = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
            names += [last] * (len(args) - len(names))
        kinds = verb.__annotations__
        # Too many arguments, or unknown ones, are Python's to refuse.
        names += [""] * (len(args) - len(names))
        given: Any = [
            _value(name, arg, kinds.get(name)) for name, arg in zip(names, args, strict=False)
        ]
        named: Any = {name: _value(name, arg, kinds.get(name)) for name, arg in kwargs.items()}
        return verb(*given, **named)

    return call


def _value(name: str, value: object, kind: str | None) -> object:
    kinds = [] if kind is None else kind.split(" | ")
    if "str" in kinds and isinstance(value, os.PathLike):
        return os.fspath(value)
    if _CHECKED.issuperset(kinds) and kinds and not _is_one_of(value, kinds):
        received = type(value).__name__
        shown = value if isinstance(value, str | int | float) else None
        raise UsageError(
            f"expected {' or '.join(kinds)}, received {received}", option=name, value=shown
        )
    return value


def _is_one_of(value: object, kinds: list[str]) -> bool:
    """By the names of the types: some are imported for type checkers only."""
    names = {each.__name__ for each in type(value).__mro__}
    if "int" in names:
        names.add("float")
    if value is None:
        names.add("None")
    return not names.isdisjoint(kinds)
