"""The names in scope while a program is walked, and how branches are merged."""

from __future__ import annotations

import builtins

from whygpu.model.values import Constant, Name, Value

_BUILTINS = {name: Name(f"builtins.{name}") for name in dir(builtins)}
MISSING = object()


class Scope:
    """The names of a module, function or class, with the scopes around it."""

    __slots__ = ("declared_global", "names", "outer")

    def __init__(self, outer: Scope | None) -> None:
        self.names: dict[str, Value] = {}
        self.outer = outer
        self.declared_global: set[str] | None = None

    def lookup(self, name: str) -> Value:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name, MISSING)
            if found is not MISSING:
                return found  # type: ignore[return-value]
            scope = scope.outer
        return _BUILTINS.get(name)

    def bind(self, name: str, value: Value) -> None:
        if self.declared_global is not None and name in self.declared_global:
            self.outermost().names[name] = value
        else:
            self.names[name] = value

    def outermost(self) -> Scope:
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def declare_global(self, names: list[str]) -> None:
        self.declared_global = (self.declared_global or set()) | set(names)


def joined(arms: list[dict[str, Value]]) -> dict[str, Value]:
    """The names after branches are merged: a name with different values is unknown."""
    if len(arms) == 1:
        return arms[0]
    first, *others = arms
    result = dict(first)
    for arm in others:
        for name, value in arm.items():
            if name not in result:
                result[name] = value
            elif result[name] is not value and result[name] != value:
                result[name] = None
    return result


def recovered(body: dict[str, Value], handler: dict[str, Value]) -> dict[str, Value]:
    """The names after a try: if a handler sets a name to None, the body's value stays."""
    result = dict(body)
    for name, value in handler.items():
        if name not in result:
            result[name] = value
        elif result[name] != value and value != Constant(None):
            result[name] = None
    return result
