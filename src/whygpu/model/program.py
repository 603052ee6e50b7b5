"""A program as its source tells it: what it runs, in which order, and under which conditions.

The reader of source code makes it; a cause's code detector asks it. Nothing here reads a file.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Union

Position = tuple[int, int]
"""Line and column, both counted from 1, the column in characters."""


class Place(NamedTuple):
    """A stretch of source. In a notebook, lines are those of all its code cells together."""

    start: Position
    end: Position


class Edit(NamedTuple):
    """Replace what stands at a place by this text."""

    place: Place
    text: str


class Name(NamedTuple):
    """Something imported, by its full name: tensorflow.config.list_physical_devices."""

    path: str


class Constant(NamedTuple):
    value: Any


class Result(NamedTuple):
    """What a call gives back."""

    call: Call


class Member(NamedTuple):
    """An attribute of a value: config.gpu_options."""

    of: Value
    name: str


class Item(NamedTuple):
    """One item of a value: gpus[0], or with index None any of them: for gpu in gpus."""

    of: Value
    index: int | None


class Length(NamedTuple):
    of: Value


class Filtered(NamedTuple):
    """The devices of one type among others: [d for d in devices if d.device_type == "CPU"]."""

    of: Value
    device_type: str


class Several(NamedTuple):
    """A list or tuple whose items are written out."""

    items: tuple[Value, ...]


class Combined(NamedTuple):
    """An operation on two values: a + b, a @ b."""

    left: Value
    right: Value


class Either(NamedTuple):
    """One of two values: "cuda" if torch.cuda.is_available() else "cpu"."""

    values: tuple[Value, ...]


class Defined(NamedTuple):
    """A function or class of this file, or a method bound to its object."""

    definition: Definition
    bound_to: Instance | None = None


class Instance(NamedTuple):
    """An object of a class of this file."""

    definition: Definition


Value = Union[
    Name,
    Constant,
    Result,
    Member,
    Item,
    Length,
    Filtered,
    Several,
    Combined,
    Either,
    Defined,
    Instance,
    None,
]
"""What an expression stands for; None where the source does not tell."""


class Definition:
    """A function or class of this file."""

    __slots__ = ("attributes", "bases", "members", "node", "owner", "scope", "visits")

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
        scope: Any,
        owner: Definition | None,
    ) -> None:
        self.node = node
        self.scope = scope
        """The names it can see from where it is defined; the reader's own business."""
        self.owner = owner
        self.bases: tuple[Value, ...] = ()
        self.members: dict[str, Definition] = {}
        self.attributes: dict[str, Value] = {}
        self.visits = 0


FrameKind = Literal["if", "loop", "handler", "function", "case", "with", "try", "call"]
CONDITIONAL: frozenset[FrameKind] = frozenset({"if", "loop", "handler", "function", "case"})


class Fact(NamedTuple):
    """A value is known to have at least so many items here."""

    value: Value
    at_least: int


class Frame(NamedTuple):
    """What a piece of code stands in: an arm of an if, the body of a with or try, a function."""

    kind: FrameKind
    node: ast.AST
    arm: int = 0
    facts: tuple[Fact, ...] = ()
    test: ast.expr | None = None
    values: tuple[Value, ...] = ()
    """What a with statement enters."""


Context = tuple[Frame, ...]


class Event:
    """Something that the program does, at its place in the order of execution."""

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
    """A call. Its path is empty where the source does not tell what is called."""

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
    def key(self) -> tuple[Any, ...]:
        """Two calls with the same key give back the same thing: a query asked twice."""
        path = self.path.replace(".experimental.", ".").replace(".compat.v1.", ".")
        return (path or self.node, self.receiver, self.arguments, tuple(self.keywords.items()))

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Call) and self.key == other.key)

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
    """os.environ[path] = value; the value None means that the source does not tell it."""

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
        """Set only where it is not set yet: os.environ.setdefault."""


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
    """Two values meet in an operation: a + b."""

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
    """One item is taken out of a value by its number: gpus[1]."""

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


TensorFlowLine = Literal["1", "2", "either", "unknown"]


class Program:
    """One source file. Events are in the order of execution, as far as the source tells it."""

    def __init__(
        self,
        path: str,
        text: str,
        tree: ast.Module,
        events: tuple[Event, ...],
        tensorflow: Callable[[Program], TensorFlowLine],
    ) -> None:
        self.path = path
        self.text = text
        self.tree = tree
        self.events = events
        self.imports = {event.path.partition(".")[0] for event in events if type(event) is Import}
        self._tensorflow = tensorflow
        self._line: TensorFlowLine | None = None
        self._lines: list[str] | None = None
        self._parents: dict[ast.AST, ast.AST] | None = None

    @property
    def tensorflow(self) -> TensorFlowLine:
        """Which TensorFlow the file is written for: either means that it looks at the version."""
        if self._line is None:
            self._line = self._tensorflow(self)
        return self._line

    @property
    def lines(self) -> list[str]:
        if self._lines is None:
            # Not splitlines(), which also splits at form feeds, where Python does not.
            self._lines = self.text.split("\n")
        return self._lines

    def calls(self, *paths: str) -> Iterator[Call]:
        """The calls of these full names, or all of them."""
        for event in self.events:
            if type(event) is Call and (not paths or event.path in paths):
                yield event

    def settings(self) -> Iterator[Setting]:
        for event in self.events:
            if type(event) is Setting:
                yield event

    def takings(self) -> Iterator[Taking]:
        for event in self.events:
            if type(event) is Taking:
                yield event

    def assignments(self) -> Iterator[Assignment]:
        for event in self.events:
            if type(event) is Assignment:
                yield event

    def named(self) -> Iterator[Event]:
        """Everything that names something of a framework: calls, mentions and assignments."""
        for event in self.events:
            if event.path and type(event) in (Call, Mention, Assignment):
                yield event

    def parent(self, node: ast.AST) -> ast.AST | None:
        if self._parents is None:
            self._parents = {
                child: node
                for node in ast.walk(self.tree)
                for child in ast.iter_child_nodes(node)
            }
        return self._parents.get(node)

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that an expression stands in."""
        found: ast.AST | None = node
        while found is not None and not isinstance(found, ast.stmt):
            found = self.parent(found)
        assert isinstance(found, ast.stmt)
        return found

    def place(self, node: ast.AST) -> Place:
        """Where a node stands; ast counts columns in bytes of UTF-8, we in characters."""
        assert isinstance(node, (ast.expr, ast.stmt, ast.excepthandler, ast.keyword, ast.alias))
        start = self._position(node.lineno, node.col_offset)
        if node.end_lineno is None or node.end_col_offset is None:
            return Place(start, start)
        return Place(start, self._position(node.end_lineno, node.end_col_offset))

    def _position(self, line: int, offset: int) -> Position:
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        if text.isascii():
            return (line, offset + 1)
        return (line, len(text.encode()[:offset].decode(errors="replace")) + 1)

    def source(self, node: ast.AST) -> str:
        """The source of a node, as it is written."""
        (line, column), (end_line, end_column) = self.place(node)
        if line == end_line:
            return self.lines[line - 1][column - 1 : end_column - 1]
        middle = self.lines[line : end_line - 1]
        return "\n".join(
            [self.lines[line - 1][column - 1 :], *middle, self.lines[end_line - 1][: end_column - 1]]
        )

    def comments_at(self, node: ast.stmt) -> str:
        """The comments on a statement's lines and right above it."""
        found: list[str] = []
        first, last = node.lineno, node.end_lineno or node.lineno
        for line in range(first, last + 1):
            before, mark, comment = self.lines[line - 1].partition("#")
            if mark:
                found.append(comment)
        above = first - 1
        while above >= 1 and self.lines[above - 1].lstrip().startswith("#"):
            found.append(self.lines[above - 1])
            above -= 1
        return "\n".join(found)


def conditions(event: Event) -> list[tuple[ast.AST, int]]:
    """The conditions under which it happens."""
    return [(frame.node, frame.arm) for frame in event.context if frame.kind in CONDITIONAL]


def surely_before(first: Event, second: Event) -> bool:
    """Whenever the second happens, the first has happened already."""
    if first.index >= second.index:
        return False
    ours, theirs = conditions(first), conditions(second)
    return theirs[: len(ours)] == ours


def exclusive(first: Event, second: Event) -> bool:
    """They stand in different arms of one condition: at most one of them happens."""
    arms = dict(conditions(first))
    return any(arms.get(node, arm) != arm for node, arm in conditions(second))


def known_length(event: Event, value: Value) -> int:
    """How many items a value has at least, by the conditions around an event."""
    return max(
        (
            fact.at_least
            for frame in event.context
            for fact in frame.facts
            if fact.value == value
        ),
        default=0,
    )


def handlers_around(event: Event) -> Iterator[ast.ExceptHandler]:
    """The except clauses that would catch what it raises, innermost first."""
    for frame in reversed(event.context):
        if frame.kind == "function":
            return
        if frame.kind == "try":
            assert isinstance(frame.node, ast.Try)
            yield from frame.node.handlers
