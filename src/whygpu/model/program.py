"""A program as its source shows it: what it runs, in which order, and under which conditions.

The reader of source code builds it, and the code detectors of causes query it. Nothing here reads a
file.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeVar

from whygpu.model.events import (
    CONDITIONAL,
    Assignment,
    Call,
    Event,
    Frame,
    Import,
    Mention,
    Setting,
    Taking,
)
from whygpu.model.lazy_regex import late
from whygpu.model.values import Value

_WORD_AT_START = late(r"^[\w+/=.-]{1,200}")
_WORD_AT_END = late(r"[\w+/=.-]{1,200}$")
LONGEST_EXCERPT = 1_000
"""How many characters of a source line a finding keeps."""

Position = tuple[int, int]
"""Line and column, both counted from 1, the column in characters."""


class Place(NamedTuple):
    """A stretch of source. In a notebook, lines are those of all its code cells together."""

    start: Position
    end: Position


class Excerpt(NamedTuple):
    """A line of source, or a part of a long one."""

    text: str
    column: int
    """The column at which the text begins, counted from 1."""


def excerpt_of(line: str, column: int) -> Excerpt:
    """The part of a line around a column; the whole line if it is not too long.

    Generated files have lines of megabytes, and each may have thousands of findings.
    """
    if len(line) <= LONGEST_EXCERPT:
        return Excerpt(line, 1)
    start = max(0, min(column - 1 - LONGEST_EXCERPT // 4, len(line) - LONGEST_EXCERPT))
    text = line[start : start + LONGEST_EXCERPT]
    # Half of a word may be half of a secret key, which the privacy rules would not recognise.
    first = len(text) - len(_WORD_AT_START.sub("", text)) if start else 0
    last = len(_WORD_AT_END.sub("", text)) if start + len(text) < len(line) else len(text)
    return Excerpt(text[first:last], start + first + 1)


class Edit(NamedTuple):
    """Replace the source at a place with this text."""

    place: Place
    text: str


_Kind = TypeVar("_Kind", bound=Event)

TensorFlowLine = Literal["1", "2", "either", "unknown"]


class _Parents:
    """The parents of nodes. They are found for one statement of the module after the other."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._starts = [_first_line(statement) for statement in tree.body]
        self._found: dict[ast.AST, ast.AST] = dict.fromkeys(tree.body, tree)
        self._searched: set[ast.stmt] = set()

    def get(self, node: ast.AST) -> ast.AST | None:
        """None for the module, and for nodes of other files."""
        if node not in self._found and self._tree.body:
            place = bisect_right(self._starts, getattr(node, "lineno", 0)) - 1
            self._search(self._tree.body[max(place, 0)])
            if node not in self._found and node is not self._tree:
                # Several statements on one line, or a node without a line.
                for statement in self._tree.body:
                    self._search(statement)
        return self._found.get(node)

    def _search(self, statement: ast.stmt) -> None:
        if statement not in self._searched:
            self._searched.add(statement)
            self._found |= _parents_in(statement)


def _first_line(statement: ast.stmt) -> int:
    """The line of its first decorator, if it has one."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _parents_in(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """The parent of each node; a plain loop, because ast.walk takes three times as long."""
    found: dict[ast.AST, ast.AST] = {}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        for field in node._fields:
            value = getattr(node, field, None)
            for child in value if type(value) is list else (value,):
                if isinstance(child, ast.AST):
                    found[child] = node
                    waiting.append(child)
    return found


class Followed(NamedTuple):
    """A function of another file of the project, which was walked at its call in this one."""

    path: str
    call: ast.Call


class Origin(NamedTuple):
    """The line of another file that a finding in this one is about."""

    path: str
    line: int


class Program:
    """One source file. Events are in the order of execution, as far as the source shows it."""

    def __init__(
        self,
        path: str,
        text: str,
        tree: ast.Module,
        events: tuple[Event, ...],
        tensorflow: Callable[[Program], TensorFlowLine],
        line_name: Callable[[int], str] = "line {}".format,
        followed: Mapping[ast.AST, Followed] | None = None,
        run_number: Callable[[int], int | None] = lambda line: None,
    ) -> None:
        self.path = path
        self.text = text
        self.tree = tree
        self.events = events
        self.imports = {event.path.partition(".")[0] for event in events if type(event) is Import}
        self._tensorflow = tensorflow
        self._line_name = line_name
        self._run_number = run_number
        self._line: TensorFlowLine | None = None
        self._lines: list[str] | None = None
        self._named: list[Event] | None = None
        self._kinds: dict[type[Event], list[Event]] = {}
        self._parents: _Parents | None = None
        self._followed = followed or {}
        self._parents_there: dict[ast.AST, ast.AST] | None = None
        """Those of the functions of other files."""

    @property
    def tensorflow(self) -> TensorFlowLine:
        """The TensorFlow that the file is written for; `either` if the file checks the version."""
        if self._line is None:
            self._line = self._tensorflow(self)
        return self._line

    @property
    def lines(self) -> list[str]:
        if self._lines is None:
            # Not splitlines(), which also splits at form feeds, where Python does not.
            self._lines = self.text.split("\n")
        return self._lines

    def excerpt(self, place: Position) -> Excerpt:
        """The line of source that a place is on."""
        line, column = place
        return excerpt_of(self.lines[line - 1], column)

    def calls(self, *paths: str) -> Iterator[Call]:
        """The calls of these full names, or all of them, in order."""
        if not paths:
            yield from self._of_kind(Call)
            return
        for call in self._of_kind(Call):
            if call.path in paths:
                yield call

    def settings(self) -> Iterator[Setting]:
        yield from self._of_kind(Setting)

    def takings(self) -> Iterator[Taking]:
        yield from self._of_kind(Taking)

    def named(self) -> Iterator[Event]:
        """Everything that uses a name of a framework: calls, mentions and assignments."""
        if self._named is None:
            kinds = (Call, Mention, Assignment)
            self._named = [event for event in self.events if event.path and type(event) in kinds]
        yield from self._named

    def _of_kind(self, kind: type[_Kind]) -> list[_Kind]:
        """Events of one class, cached because two dozen detectors request them repeatedly."""
        if not self._kinds:
            for event in self.events:
                self._kinds.setdefault(type(event), []).append(event)
        return self._kinds.get(kind, [])  # type: ignore[return-value]

    def parent(self, node: ast.AST) -> ast.AST | None:
        if self._parents is None:
            self._parents = _Parents(self.tree)
        return self._parents.get(node) or self._parent_there(node)

    def _parent_there(self, node: ast.AST) -> ast.AST | None:
        if self._parents_there is None:
            self._parents_there = {}
            for function in self._followed:
                self._parents_there |= _parents_in(function)
        return self._parents_there.get(node)

    def _function_there(self, node: ast.AST) -> ast.AST | None:
        """The followed function of another file that contains a node; mostly None."""
        found: ast.AST | None = node
        while found is not None and found not in self._followed:
            found = self._parent_there(found)
        return found

    def origin(self, node: ast.AST) -> Origin | None:
        """Where a node of another file is; None for the nodes of this file."""
        function = self._function_there(node) if self._followed else None
        if function is None:
            return None
        return Origin(self._followed[function].path, getattr(node, "lineno", 1))

    def only_here(self, edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
        """The edits; none if one of them is for another file, which this file only calls."""
        calls = {self.place(followed.call) for followed in self._followed.values()}
        return () if any(edit.place in calls for edit in edits) else edits

    def surely_before(self, first: Event, second: Event) -> bool:
        """Whether the first event always happens before the second.

        The cells of a notebook may be run in any order. If its numbers show another order than that
        of the cells, the order is not sure.
        """
        if first.index >= second.index:
            return False
        ours, theirs = conditions(first), conditions(second)
        return theirs[: len(ours)] == ours and not self._ran_in_other_order(first, second)

    def _ran_in_other_order(self, first: Event, second: Event) -> bool:
        numbers = [self._run_number(self.place(each.node).start[0]) for each in (first, second)]
        return None not in numbers and numbers[0] > numbers[1]  # type: ignore[operator]

    def statement(self, node: ast.AST) -> ast.stmt:
        """The statement that contains an expression."""
        found: ast.AST | None = node
        while found is not None and not isinstance(found, ast.stmt):
            found = self.parent(found)
        assert isinstance(found, ast.stmt)
        return found

    def place(self, node: ast.AST) -> Place:
        """The place of a node. ast counts columns in bytes of UTF-8, Place in characters."""
        function = self._function_there(node) if self._followed else None
        if function is not None:
            node = self._followed[function].call
        assert isinstance(node, (ast.expr, ast.stmt, ast.excepthandler, ast.keyword, ast.alias))
        start = self._position(node.lineno, node.col_offset)
        if node.end_lineno is None or node.end_col_offset is None:
            return Place(start, start)
        return Place(start, self._position(node.end_lineno, node.end_col_offset))

    def line_name(self, node: ast.AST) -> str:
        """The line of a node, as messages name it: "line 7", "line 2 of cell 3" in a notebook."""
        line = self._line_name(self.place(node).start[0])
        origin = self.origin(node)
        return line if origin is None else f"{line} (line {origin.line} of {origin.path})"

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
        first, last = self.lines[line - 1][column - 1 :], self.lines[end_line - 1][: end_column - 1]
        return "\n".join([first, *self.lines[line : end_line - 1], last])

    def comments_at(self, node: ast.stmt) -> str:
        """The comments on a statement's lines and directly above it."""
        found: list[str] = []
        (first, _), (last, _) = self.place(node)
        for line in range(first, last + 1):
            _, mark, comment = self.lines[line - 1].partition("#")
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


def is_conditional(event: Event) -> bool:
    """Whether it may not happen when the file is run as a program."""
    return any(frame.kind in CONDITIONAL and not asks_for_main(frame) for frame in event.context)


def asks_for_main(frame: Frame) -> bool:
    """if __name__ == "__main__":"""
    test = frame.test if frame.arm == 0 else None
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Eq)
        and getattr(test.left, "id", "") == "__name__"
    )


def in_one_run(first: Event, second: Event) -> bool:
    """Whether one of them never happens without the other's place being reached as well."""
    ours, theirs = conditions(first), conditions(second)
    shorter = min(len(ours), len(theirs))
    return ours[:shorter] == theirs[:shorter]


def exclusive(first: Event, second: Event) -> bool:
    """Whether they are in different branches of one condition, so that at most one happens."""
    arms = dict(conditions(first))
    return any(arms.get(node, arm) != arm for node, arm in conditions(second))


def known_length(event: Event, value: Value) -> int:
    """The minimum number of items of a value, according to the conditions around an event."""
    return max(
        (fact.at_least for frame in event.context for fact in frame.facts if fact.value == value),
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
