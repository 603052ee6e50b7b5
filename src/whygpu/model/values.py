"""The values of a program's expressions, as far as its source shows them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple, Union

if TYPE_CHECKING:
    from whygpu.model.events import Call


class Name(NamedTuple):
    """Something imported, by its full name: tensorflow.config.list_physical_devices."""

    path: str


class Constant(NamedTuple):
    value: Any


class Result(NamedTuple):
    """The value that a call returns."""

    call: Call


class Member(NamedTuple):
    """An attribute of a value: config.gpu_options."""

    of: Value
    name: str


class Item(NamedTuple):
    """One item of a value: gpus[0], or with number None any of them: for gpu in gpus."""

    of: Value
    number: int | None


class Length(NamedTuple):
    of: Value


class Filtered(NamedTuple):
    """A list of devices filtered by type: [d for d in devices if d.device_type == "CPU"]."""

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
"""The value of an expression; None if the source does not show it."""


class Definition:
    """A function or class of this file."""

    __slots__ = ("attributes", "bases", "members", "node", "owner", "scope")

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef,
        scope: Any,
        owner: Definition | None,
    ) -> None:
        self.node = node
        self.scope = scope
        """The names in scope at its definition. Only the reader of source code uses this."""
        self.owner = owner
        self.bases: tuple[Value, ...] = ()
        self.members: dict[str, Definition] = {}
        self.attributes: dict[str, Value] = {}

    def finish(self) -> None:
        """Drop what only the walk of the program needs.

        A scope and the definitions in it refer to each other. Without this, the syntax tree of
        every file would wait for the garbage collector.
        """
        self.scope = self.owner = None
        self.attributes = {}
