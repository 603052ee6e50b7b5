"""What a program does, as a list of events with the conditions under which they happen."""

from __future__ import annotations

import ast
from typing import Any, Literal, NamedTuple

from whygpu.model.values import Combined, Constant, Item, Name, Value

FrameKind = Literal["if", "loop", "handler", "function", "case", "with", "try", "call"]
CONDITIONAL: frozenset[FrameKind] = frozenset({"if", "loop", "handler", "function", "case"})


class Fact(NamedTuple):
    """A value is known to have at least this many items here."""

    value: Value
    at_least: int


class Frame(NamedTuple):
    """What encloses a piece of code: a branch of an if, the body of a with or try, a function."""

    kind: FrameKind
    node: ast.AST
    arm: int = 0
    facts: tuple[Fact, ...] = ()
    test: ast.expr | None = None
    values: tuple[Value, ...] = ()
    """What a with statement enters."""


Context = tuple[Frame, ...]


class Event:
    """Something that the program does, at its position in the order of execution."""

    __slots__ = ("context", "index", "node", "path", "scope")

    def __init__(
        self, path: str, node: ast.AST, index: int, context: Context, scope: ast.AST
    ) -> None:
        self.path = path
        self.node = node
        self.index = index
        self.context = context
        self.scope = scope
        """The function, or the module, that it is written in."""


class Import(Event):
    """A module is imported; path is its full name."""

    __slots__ = ()


class Mention(Event):
    """A name of a framework is read without being called."""

    __slots__ = ()


class Call(Event):
    """A call. Its path is empty if the source does not show what is called."""

    __slots__ = ("arguments", "keywords", "method", "receiver", "target")
    node: ast.Call

    def __init__(
        self,
        path: str,
        node: ast.Call,
        index: int,
        context: Context,
        scope: ast.AST,
        *,
        receiver: Value,
        method: str,
        target: Value,
        arguments: tuple[Value, ...],
        keywords: dict[str, Value],
    ) -> None:
        super().__init__(path, node, index, context, scope)
        self.receiver = receiver
        """For a method of a value: that value."""
        self.method = method
        """The last part of what is called: fit in model.fit(...)."""
        self.target = target
        self.arguments = arguments
        self.keywords = keywords

    @property
    def key(self) -> tuple[Any, ...] | None:
        """Calls with the same key return the same value, for example the same query made twice."""
        if not self.path or self.receiver is not None:
            return None
        given = (*self.arguments, *self.keywords.values())
        # Deeper values are not compared: that could take very long, and such calls do not repeat.
        if not all(value is None or type(value) in (Constant, Name) for value in given):
            return None
        path = self.path.replace(".experimental.", ".").replace(".compat.v1.", ".")
        return (path, self.arguments, tuple(self.keywords.items()))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Call) and self.key is not None and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.path)

    def argument(self, place: int | None, keyword: str = "") -> Value:
        """An argument by its place, or by its keyword."""
        if keyword and keyword in self.keywords:
            return self.keywords[keyword]
        if place is not None and place < len(self.arguments):
            return self.arguments[place]
        return None


class Setting(Event):
    """os.environ[path] = value; the value None means that the source does not show it."""

    __slots__ = ("default", "unset", "value")

    def __init__(
        self,
        path: str,
        node: ast.AST,
        index: int,
        context: Context,
        scope: ast.AST,
        *,
        value: Value,
        unset: bool = False,
        default: bool = False,
    ) -> None:
        super().__init__(path, node, index, context, scope)
        self.value = value
        self.unset = unset
        self.default = default
        """Set only if it is not set yet: os.environ.setdefault."""


class Assignment(Event):
    """An attribute is set: torch.backends.cudnn.enabled = False, config.gpu_options.x = y."""

    __slots__ = ("target", "value")

    def __init__(
        self,
        path: str,
        node: ast.AST,
        index: int,
        context: Context,
        scope: ast.AST,
        *,
        target: Value,
        value: Value,
    ) -> None:
        super().__init__(path, node, index, context, scope)
        self.target = target
        self.value = value


class Combination(Event):
    """An operation combines two values: a + b."""

    __slots__ = ("value",)
    node: ast.BinOp

    def __init__(
        self,
        path: str,
        node: ast.AST,
        index: int,
        context: Context,
        scope: ast.AST,
        *,
        value: Combined,
    ) -> None:
        super().__init__(path, node, index, context, scope)
        self.value = value


class Taking(Event):
    """A value is indexed by a number: gpus[1]."""

    __slots__ = ("value",)
    node: ast.Subscript

    def __init__(
        self,
        path: str,
        node: ast.AST,
        index: int,
        context: Context,
        scope: ast.AST,
        *,
        value: Item,
    ) -> None:
        super().__init__(path, node, index, context, scope)
        self.value = value
